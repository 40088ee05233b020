//! The walk: every entry in order, with its event.
//!
//! **Invariants:** forgetting, passes, rules, intents and decisions are checked only here. The walk
//! continues in a damaged log: content that a verifier does not have is unknown, not absent.

use ipse_consolidate::{Groups, RuleSet, Rules, Skip, with_rules};
use ipse_consult::intents::{Content, Intents};
use ipse_core::event::{ACT, FORGET, PASS_RECORD, RULES};
use ipse_core::{Admitted, Event, EventRef, HOUSE_SOURCE, Identity, Seq, is_housekeeping, sha256};
use ipse_ledger::account::{Fault, ForgetRecords, PassClaim, RULES_TRIGGER, Skipped, shortened};
use ipse_ledger::{
    ActEvent, ApprovalFault, Basis, Governance, NoteKey, RuleSetName, RulesEvent, RulesHistory,
    Step,
};
use std::collections::BTreeMap;

/// The result of a walk over a log.
pub struct Walk {
    /// Forgotten events and `forget` events.
    pub forgets: ForgetRecords,
    /// Intents and decisions.
    pub intents: Intents,
    /// Pass records that have content.
    pub records: Vec<Record>,
    /// Events that feed no fact, by the version of the rules: of the whole log, and since the last
    /// pass record.
    pub idle: BTreeMap<&'static str, [Skipped<String>; 2]>,
    /// The number of events so far, without housekeeping.
    pub counted: u64,
    /// The positions of pass records, with or without content.
    passes: Vec<Seq>,
    /// The rules in force at every position.
    pub rules: RulesHistory,
    /// The acts of governance, and the settings that they give.
    pub governance: Governance,
    /// Approved activations with the rules in force before them.
    pub approvals: Vec<(Seq, RulesEvent, RuleSetName)>,
}

impl Default for Walk {
    fn default() -> Self {
        with_rules!(Rules::default(), |rules| Self::new(rules))
    }
}

/// A pass record.
pub struct Record {
    /// The position of the record.
    pub seq: Seq,
    /// The name of the record.
    name: EventRef,
    /// The claim of the record, if it can be read.
    pub claimed: Option<PassClaim>,
    /// The position of the previous pass record.
    pub follows: Option<Seq>,
    /// Whether it lists the events of its range that feed no fact. `None` if its rules are unknown.
    pub lists_idle: Option<bool>,
}

impl Record {
    /// The place of the record in a report.
    pub fn place(&self) -> String {
        format!("pass record at seq {}", self.seq)
    }
}

impl Walk {
    /// A walk over a log in which these rules are in force until an event says otherwise.
    pub fn new(rules: &impl RuleSet) -> Self {
        let hash = sha256(&[rules.descriptor().as_bytes()]);
        Walk {
            forgets: ForgetRecords::default(),
            intents: Intents::default(),
            records: Vec::new(),
            idle: BTreeMap::new(),
            counted: 0,
            passes: Vec::new(),
            rules: RulesHistory::new(RuleSetName { version: rules.version().to_owned(), hash }),
            governance: Governance::default(),
            approvals: Vec::new(),
        }
    }

    /// Adds the next entry with its content. Returns the fault of an event of ipse that cannot be
    /// read or does not follow from the log.
    pub fn next(
        &mut self,
        seq: Seq,
        name: EventRef,
        event_type: &str,
        content: Content<'_>,
    ) -> Option<Fault> {
        let (counted, follows) = (self.counted, self.passes.last().copied());
        self.counted += u64::from(!is_housekeeping(event_type));
        self.passes.extend((event_type == PASS_RECORD).then_some(seq));
        self.forgets.next(seq, event_type);
        self.intents.event(seq, name, event_type, content);
        if content == Content::Forgotten {
            self.forgets.gone(name, seq, event_type);
        }
        let Content::Bytes(payload) = content else {
            if event_type == ACT {
                self.governance.unknown();
            }
            return None;
        };
        match event_type {
            FORGET => self.forget(seq, name, payload),
            RULES => self.change_rules(seq, payload).err(),
            ACT => self.act(seq, payload).err(),
            PASS_RECORD => {
                let claimed = PassClaim::read(seq, payload, counted);
                self.records.push(Record { seq, name, claimed, follows, lists_idle: None });
                None
            }
            _ => None,
        }
    }

    fn forget(&mut self, seq: Seq, name: EventRef, payload: &[u8]) -> Option<Fault> {
        let id = format!("forget:{seq}");
        let fault = match self.forgets.said(seq, payload) {
            _ if name != EventRef::new(HOUSE_SOURCE, &id) => format!("its id is not {id}"),
            false => "cannot be read".to_owned(),
            true => return None,
        };
        Some((format!("forget event at seq {seq}"), fault))
    }

    /// Adds a change of rules.
    fn change_rules(&mut self, seq: Seq, payload: &[u8]) -> Result<(), Fault> {
        let fault = |what: &str| (rules_place(seq), what.to_owned());
        let event = RulesEvent::read(seq, payload).ok_or_else(|| fault("cannot be read"))?;
        let before = self.rules.in_force().clone();
        self.rules.add(seq, &event).map_err(|wrong| fault(wrong.message()))?;
        if matches!(event.step, Step::Active(Basis::Approved { .. })) {
            self.approvals.push((seq, event, before));
        }
        Ok(())
    }

    /// Adds an act of governance.
    fn act(&mut self, seq: Seq, payload: &[u8]) -> Result<(), Fault> {
        let place = || format!("act at seq {seq}");
        let Some(event) = ActEvent::read(seq, payload) else {
            self.governance.unknown();
            return Err((place(), "cannot be read".to_owned()));
        };
        self.governance.add(seq, event).map_err(|fault| (place(), fault))
    }

    /// The changes of rules that their pass does not follow.
    pub fn unfinished(&self) -> impl Iterator<Item = Fault> {
        let changes = self.rules.changes().iter().map(|(seq, _)| *seq);
        let is_alone = |seq: &Seq| {
            self.rules.is_change(*seq) && self.passes.binary_search(&seq.next()).is_err()
        };
        let message = "is not followed by its pass";
        changes.filter(is_alone).map(move |seq| (rules_place(seq), message.to_owned()))
    }

    /// The approvals that are not about their change, or that none of these operator keys signed,
    /// each with its place. Without keys, approvals are not checked.
    pub fn approval_faults(
        &self,
        identity: &Identity,
        operators: &[NoteKey],
    ) -> Vec<(String, ApprovalFault)> {
        let checked = self.approvals.iter().filter(|_| !operators.is_empty());
        let faults = checked.filter_map(|(seq, event, before)| {
            let fault = event.approval_fault(before, identity, operators)?;
            Some((rules_place(*seq), fault))
        });
        faults.collect()
    }

    /// Folds the last event into the sums, if given, and adds the reasons why the rule sets of this
    /// build skip it.
    pub fn feed<R: RuleSet>(
        &mut self,
        rules: &R,
        sums: Option<&mut Groups<R::Tally>>,
        event: &Event<'_>,
    ) {
        let skip = match sums {
            Some(sums) => sums.fold(rules, event),
            None => rules.skip(event),
        };
        let others = Rules::ALL.iter().copied().filter(|it| it.version() != rules.version());
        let skip_under = |it| with_rules!(it, |rules| rules.skip(event));
        let others = others.map(|it| (it.version(), skip_under(it)));
        self.fed(event.event_type, others.chain([(rules.version(), skip)]));
    }

    /// Adds the reasons why rules skip the last event, by their version. A pass record must list
    /// the events of its range that its rules skip.
    pub fn fed(
        &mut self,
        event_type: &str,
        skips: impl IntoIterator<Item = (&'static str, Option<Skip>)>,
    ) {
        for (version, skip) in skips {
            let idle = self.idle.entry(version).or_default();
            let Some(skip) = skip.filter(|skip| *skip != Skip::Housekeeping) else { continue };
            for idle in idle {
                let reasons = idle.entry(event_type.to_owned()).or_default();
                *reasons.entry(skip.code().to_owned()).or_default() += 1;
            }
        }
        if event_type != PASS_RECORD {
            return;
        }
        if let Some(Record { claimed: Some(claimed), lists_idle, .. }) = self.records.last_mut() {
            let idle = self.idle.get(claimed.rule_version.as_str());
            let idle = idle.map(|idle| idle[usize::from(claimed.first != Seq(1))].clone());
            *lists_idle = idle.map(|idle| shortened(idle) == claimed.skipped_by_type);
        }
        self.idle.values_mut().for_each(|idle| idle[1].clear());
    }

    /// Compares each pass record with the previous one and with the log, given by its names.
    /// Returns the faults. The events of a range that begins before `from` are not known.
    pub fn passes(
        &self,
        names: &[EventRef],
        from: Seq,
    ) -> impl Iterator<Item = (&Record, Vec<&'static str>)> {
        let mut before: Option<&PassClaim> = None;
        self.records.iter().map(move |record| {
            let previous = std::mem::replace(&mut before, record.claimed.as_ref());
            let Some(claimed) = &record.claimed else { return (record, vec!["cannot be read"]) };
            let PassClaim { first, last, rule_version, .. } = claimed;
            let since = match previous {
                _ if *first < from => None,
                _ if *first == Seq(1) => Some(0),
                Some(previous) if Some(*first) == record.follows => Some(previous.counted),
                _ => None,
            };
            let mut wrong = claimed.contradictions(record.follows, since, names, &self.forgets);
            wrong.extend(self.rules_fault(claimed));
            let compared = since.is_some() && !self.forgets.any(*first..=*last);
            if compared && record.lists_idle == Some(false) {
                wrong.push("its list of skipped events is not the one that the rules give");
            }
            let id = format!("pass:{rule_version}:{first}-{last}");
            if record.name != EventRef::new(HOUSE_SOURCE, &id) {
                wrong.push("its id is not pass:<rule version>:<first>-<last>");
            }
            (record, wrong)
        })
    }

    /// The contradiction of a pass record to the rules in force before it.
    fn rules_fault(&self, claimed: &PassClaim) -> Option<&'static str> {
        let before = Seq(claimed.seq.0.saturating_sub(1));
        let rules = self.rules.at(before);
        let follows_change = self.rules.is_change(before);
        if rules.version != claimed.rule_version || rules.hex() != claimed.rule_set {
            return Some("names rules that were not in force");
        }
        match claimed.trigger == RULES_TRIGGER {
            true if !follows_change => Some("is triggered by rules, but none changed before it"),
            true if claimed.first != Seq(1) => Some("must cover the log from seq 1"),
            false if follows_change => Some("must be triggered by rules"),
            _ => None,
        }
    }
}

fn rules_place(seq: Seq) -> String {
    format!("rules event at seq {seq}")
}

/// The parts of a stored entry that differ from its event.
pub fn differences(
    event: &Admitted,
    (name, time, event_type): (&[u8], i64, &[u8]),
) -> impl DoubleEndedIterator<Item = &'static str> {
    let parts = [
        ("event_ref", event.event_ref.0 == name),
        ("time", event.time.micros() == time),
        ("type", event.event_type.as_bytes() == event_type),
    ];
    parts.into_iter().filter(|(_, equal)| !equal).map(|(part, _)| part)
}
