//! Intents judged again: each recorded verdict follows from the files of the gates and the log.
//!
//! **Invariants**
//! - Pure: the gates are an argument. No fact can be named here, as in the judgement itself.
//! - Each intent is judged with its own past: only entries before it count.
//! - Content that the verifier does not have is a limit, never a fault. A recorded value that
//!   contradicts the content that is there is a fault.

use crate::past::{Recent, Windows};
use crate::recorded::{RecordedVerdict, canonical};
use ipse_consult::intents::Content;
use ipse_core::event::{FORGET, PASS_RECORD, RULES};
use ipse_core::intent::INTENT;
use ipse_core::judge::{
    EndedAttempt, EndedAttempts, GATES_VERSION, Judge, Judged, Past, Precondition,
};
use ipse_core::{Event, EventRef, Seq, Time, is_housekeeping};
use ipse_ledger::account::Fault;
use std::collections::BTreeMap;

/// The result of judging one intent again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Again {
    /// The files give the recorded verdict.
    Equal,
    /// The files give another verdict, or the record contradicts the log.
    Different,
    /// It was not judged: its content is missing, or what it rests on.
    NotJudged,
}

impl Again {
    /// The result as text.
    pub fn name(self) -> &'static str {
        match self {
            Again::Equal => "equal",
            Again::Different => "NOT what the files say",
            Again::NotJudged => "not judged",
        }
    }
}

/// The number of intents for which a part could not be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AgainLimits {
    /// Intents that were not judged, because of missing content.
    pub not_judged: u64,
    /// Intents whose count rests on missing intents, or on times that run backwards.
    pub recent: u64,
    /// Intents whose contract names missing attempts.
    pub contract: u64,
    /// Intents that another version judged: their codes were compared, and not their words.
    pub words: u64,
}

impl AgainLimits {
    /// A sentence for each part that could not be compared.
    pub fn lines(self) -> impl Iterator<Item = String> {
        let AgainLimits { not_judged, recent, contract, words } = self;
        let parts = [
            (not_judged, "not judged again, because content that they rest on is missing"),
            (
                recent,
                "with a count of recent intents that rests on missing intents, or on times that \
                 run backwards",
            ),
            (contract, "with a contract that rests on missing attempts"),
            (
                words,
                "judged by another version of ipse: their codes were compared, not their words",
            ),
        ];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        parts.map(|(count, what)| {
            let noun = if count == 1 { "intent" } else { "intents" };
            format!("{count} {noun} {what}")
        })
    }
}

/// Judges the intents of a log again, entry by entry.
pub struct JudgingAgain<'j> {
    judge: &'j dyn Judge,
    ended: EndedAttempts,
    windows: Windows,
    /// Events without content that may be attempts, if contracts name any skill.
    missing: BTreeMap<EventRef, (Seq, Time)>,
    /// Whether the content of an event that may be an attempt was never available.
    begins_late: bool,
    /// The first intent that records the version of the gates.
    new_form: Option<Seq>,
    results: BTreeMap<EventRef, Again>,
    faults: Vec<Fault>,
    limits: AgainLimits,
}

/// The contract of an intent, looked up again.
enum Contract {
    /// Whether each line holds, and whether one rests on the record alone.
    Holds(Vec<bool>, bool),
    Fault(String),
    NotJudged,
}

impl<'j> JudgingAgain<'j> {
    /// Begins before the first entry of a log.
    pub fn new(judge: &'j dyn Judge) -> Self {
        JudgingAgain {
            judge,
            ended: EndedAttempts::of(judge.preceding_skills()),
            windows: Windows::default(),
            missing: BTreeMap::new(),
            begins_late: false,
            new_form: None,
            results: BTreeMap::new(),
            faults: Vec::new(),
            limits: AgainLimits::default(),
        }
    }

    /// Adds the next entry, with its event if its content is there.
    pub fn next(
        &mut self,
        (seq, name, time): (Seq, EventRef, Time),
        event_type: &str,
        content: Content<'_>,
        event: Option<&Event<'_>>,
    ) {
        match (event_type, content) {
            (INTENT, Content::Bytes(bytes)) => {
                let result = self.intent(seq, time, bytes);
                self.limits.not_judged += u64::from(result == Again::NotJudged);
                self.results.insert(name, result);
            }
            (INTENT, _) => {
                self.windows.missing(time);
                self.results.insert(name, Again::NotJudged);
            }
            (PASS_RECORD | FORGET | RULES, _) => {}
            (event_type, Content::Forgotten | Content::Unknown) => {
                if !self.ended.is_empty() && !is_housekeeping(event_type) {
                    self.begins_late |= content == Content::Unknown;
                    self.missing.insert(name, (seq, time));
                }
            }
            (_, Content::Bytes(_)) => {
                if let Some(event) = event {
                    self.ended.add(seq, event);
                }
            }
        }
    }

    /// The number of intents that were judged again.
    pub fn judged(&self) -> u64 {
        self.results.values().filter(|result| **result != Again::NotJudged).count() as u64
    }

    /// The recorded values that do not follow, in the order of the log.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The parts that could not be compared.
    pub fn limits(&self) -> AgainLimits {
        self.limits
    }

    /// The result of every intent.
    pub fn into_results(self) -> BTreeMap<EventRef, Again> {
        self.results
    }

    fn intent(&mut self, seq: Seq, time: Time, bytes: &[u8]) -> Again {
        // The form of an intent is checked by `ipse_consult`.
        let Some(recorded) = RecordedVerdict::read(bytes) else { return Again::NotJudged };
        let found = self.judged_again(seq, time, &recorded);
        let limited = self.judge.rate_window(&recorded.skill_id).is_some();
        self.windows.intent(&recorded.skill_id, time, limited && recorded.counts());
        match found {
            Ok(result) => result,
            Err(message) => {
                self.faults.push((format!("intent at seq {seq}"), message));
                Again::Different
            }
        }
    }

    /// Judges an intent again. An error says what does not follow.
    fn judged_again(
        &mut self,
        seq: Seq,
        time: Time,
        recorded: &RecordedVerdict,
    ) -> Result<Again, String> {
        match (recorded.version, self.new_form) {
            (Some(_), None) => self.new_form = Some(seq),
            (None, Some(first)) => {
                return Err(format!(
                    "records no gates_version, but the intent at seq {first} does"
                ));
            }
            _ => {}
        }
        let (recent, open_count) = self.recent(time, recorded)?;
        let (holds, open_contract) = match self.contract(seq, time, recorded) {
            Contract::Holds(holds, open) => (holds, open),
            Contract::Fault(message) => return Err(message),
            Contract::NotJudged => return Ok(Again::NotJudged),
        };
        let past = Past { recent, holds: &holds };
        let judged = self.judge.judge(recorded.request.as_bytes(), &past);
        let judged = judged.ok_or("its request is not an intent that the gates read")?;
        let compared = compare(recorded, &judged, self.judge.confirm_within(), time);
        // An older intent does not record its count, and the log does not give it exactly.
        if compared.is_err() && open_count && recorded.recent.is_none() {
            return Ok(Again::NotJudged);
        }
        self.limits.recent += u64::from(open_count);
        self.limits.contract += u64::from(open_contract);
        self.limits.words += u64::from(recorded.version != Some(GATES_VERSION));
        compared.map(|()| Again::Equal)
    }

    /// The count to judge with, and whether the log gives it only roughly.
    fn recent(&mut self, time: Time, recorded: &RecordedVerdict) -> Result<(u64, bool), String> {
        let Some(seconds) = self.judge.rate_window(&recorded.skill_id) else {
            return match recorded.recent {
                None => Ok((0, false)),
                Some(_) => Err("records recent, but its skill has no rate limit".to_owned()),
            };
        };
        let Recent { least, most, backwards } =
            self.windows.recent(&recorded.skill_id, time, seconds);
        let open = backwards || least != most;
        match recorded.recent {
            None if recorded.version.is_some() => {
                Err("does not record recent, but its skill has a rate limit".to_owned())
            }
            None => Ok((least, open)),
            Some(recent) if backwards || (least..=most).contains(&recent) => Ok((recent, open)),
            Some(recent) if least == most => {
                Err(format!("recorded recent {recent}, the log gives {least}"))
            }
            Some(recent) => {
                Err(format!("recorded recent {recent}, the log gives {least} to {most}"))
            }
        }
    }

    /// Looks up the attempts that decide the contract of an intent.
    fn contract(&self, seq: Seq, time: Time, recorded: &RecordedVerdict) -> Contract {
        let lines = self.judge.contract(&recorded.skill_id);
        let names = recorded.contract.as_deref().unwrap_or_default();
        if lines.len() != names.len() {
            let (lines, names) = (lines.len(), names.len());
            return Contract::Fault(format!(
                "records {names} attempts for its contract, which has {lines} lines"
            ));
        }
        let (mut holds, mut open) = (Vec::new(), false);
        for (index, (line, name)) in lines.iter().zip(names).enumerate() {
            let newest = self.ended.newest(line, recorded.target_class.as_deref());
            if newest.map(|ended| ended.event_ref) == *name {
                holds.push(line.holds(time, newest));
                // Before the first event of a bundle there may be an attempt.
                open |= name.is_none() && self.begins_late;
                continue;
            }
            let missing = name.as_ref().and_then(|name| self.missing.get(name));
            let is_newer = |at: &Seq| newest.is_none_or(|newest| newest.seq < *at) && *at < seq;
            let Some((at, ended)) = missing.filter(|(at, _)| is_newer(at)) else {
                return Contract::Fault(wrong_attempt(index, line, newest.map(|it| it.seq)));
            };
            if !recorded.lists_all_findings() {
                return Contract::NotJudged;
            }
            // The record says whether the missing attempt succeeded. Its time is known.
            let success = !recorded.says_not_after(&line.rule);
            let (seq, time_of, event_ref) = (*at, *ended, EventRef([0; 16]));
            let ended = EndedAttempt { seq, event_ref, time: time_of, success };
            holds.push(line.holds(time, Some(&ended)));
            open = true;
        }
        Contract::Holds(holds, open)
    }
}

fn wrong_attempt(index: usize, line: &Precondition, newest: Option<Seq>) -> String {
    let skill = ipse_core::text::printable(&line.skill);
    let gives = match newest {
        Some(seq) => format!("the event at seq {seq}"),
        None => "none".to_owned(),
    };
    format!("its contract[{index}] is not the newest attempt at {skill}: the log gives {gives}")
}

/// Compares a recorded verdict with the judged one. An error says what differs.
fn compare(
    recorded: &RecordedVerdict,
    judged: &Judged,
    confirm_within: Option<u64>,
    time: Time,
) -> Result<(), String> {
    let reason = judged.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    if recorded.ruling != judged.ruling {
        let (was, is) = (recorded.ruling.name(), judged.ruling.name());
        return Err(format!("recorded {was}, the files say {is}{reason}"));
    }
    if recorded.admitted_params != judged.admitted_params.as_deref().and_then(canonical) {
        return Err(format!("its admitted_params are not those that the files give{reason}"));
    }
    recorded.compare_gates(&judged.gates)?;
    let confirm_by = recorded.confirm_by(confirm_within, time);
    if recorded.confirm_by != confirm_by {
        let by = confirm_by.map_or("no time".to_owned(), |by| by.to_string());
        return Err(format!("its confirm_by is not the one that the files give: {by}"));
    }
    Ok(())
}
