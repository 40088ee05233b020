//! The rules of a log: every step, the rules in force, and what happened under them.
//!
//! **Invariant:** the steps are copied from the log. Attempts, failures, denied intents and drift
//! alarms are counted in the log, without forgotten events.

use crate::answer::{clean, counted, from_data};
use crate::drift::drift_alarms;
use crate::log::to_seconds;
use crate::{Error, Page};
use ipse_consolidate::Rules;
use ipse_consolidate::days::{Day, day_of};
use ipse_core::event::RULES;
use ipse_core::intent::{INTENT, Ruling};
use ipse_core::json::{Members, list};
use ipse_core::{EventKind, Identity, Outcome, Seq, Time, hex};
use ipse_engine::{RulesReport, known_rules, rules_history, rules_name};
use ipse_ledger::{Basis, RuleSetName, RulesEvent, RulesHistory, Step, dsse};
use ipse_store::View;
use std::ops::ControlFlow;

/// What happened between two positions of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Activity {
    /// Attempts that worked or failed.
    pub attempts: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Intents that a gate denied.
    pub denied: u64,
    /// Days on which the drift monitor raised an alarm.
    pub alarms: u64,
}

impl Activity {
    fn add(&mut self, other: &Activity) {
        self.attempts += other.attempts;
        self.failures += other.failures;
        self.denied += other.denied;
        self.alarms += other.alarms;
    }

    fn json(&self) -> String {
        Members::new()
            .raw("attempts", self.attempts)
            .raw("denied_intents", self.denied)
            .raw("drift_alarms", self.alarms)
            .raw("failures", self.failures)
            .finish()
    }

    fn words(&self) -> String {
        let Activity { attempts, failures, denied, alarms } = self;
        format!("{attempts}/{failures}/{denied}/{alarms}")
    }
}

/// A step in the life of a rule set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RulesStep {
    /// The position of the event.
    pub seq: Seq,
    /// The time of the event.
    pub time: Time,
    /// The event.
    pub event: RulesEvent,
    /// For an activation, if it was counted: what happened between the previous one and it, and
    /// since.
    pub activity: Option<[Activity; 2]>,
}

impl RulesStep {
    /// The basis of the step: an approval, going back, the begin of the log, or none.
    fn basis(&self) -> &'static str {
        match &self.event.step {
            Step::Active(Basis::First) => "first",
            Step::Active(Basis::Back) => "back",
            Step::Active(Basis::Approved { .. }) => "approved",
            Step::Proposed { .. } | Step::Withdrawn => "-",
        }
    }

    fn members(&self, members: Members) -> Members {
        let members = members
            .raw("seq", self.seq)
            .text("time", &self.time.to_string())
            .text("stage", self.event.step.stage());
        match &self.event.step {
            Step::Active(basis) => {
                let members = members.text("basis", self.basis());
                let Basis::Approved { checkpoint, report, approval } = basis else {
                    return members;
                };
                let keys = dsse::key_ids(approval.as_bytes());
                members
                    .text("approved_by", &keys.join(", "))
                    .raw("checkpoint", checkpoint)
                    .text("report_sha256", &hex::encode(report))
            }
            Step::Proposed { .. } | Step::Withdrawn => members,
        }
    }

    fn json(&self) -> String {
        let members = self.members(named(Members::new(), &self.event.rules));
        let activity = self.activity.as_ref();
        members
            .optional("before", activity.map(|[before, _]| before.json()))
            .optional("since", activity.map(|[_, since]| since.json()))
            .finish()
    }

    fn row(&self) -> Vec<String> {
        let [before, since] = match &self.activity {
            Some(activity) => activity.each_ref().map(Activity::words),
            None => [(); 2].map(|()| "-".to_owned()),
        };
        vec![
            self.seq.to_string(),
            to_seconds(self.time),
            clean(&self.event.rules.version),
            self.event.step.stage().to_owned(),
            self.basis().to_owned(),
            before,
            since,
        ]
    }
}

fn named(members: Members, rules: &RuleSetName) -> Members {
    members.text("rule_set_sha256", &rules.hex()).text("rule_version", &rules.version)
}

/// The rules of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RulesList {
    /// The rules in force.
    pub in_force: RuleSetName,
    /// All steps, the oldest first.
    pub steps: Vec<RulesStep>,
    history: RulesHistory,
}

impl RulesList {
    /// Reads the steps of a log.
    pub fn read(view: View<'_>) -> Result<Self, Error> {
        let history = rules_history(view)?;
        let mut steps = Vec::new();
        view.house_back(RULES, Seq(1)..=Seq::MAX, |stored| {
            let read = RulesEvent::read(stored.seq, stored.canonical.as_bytes());
            let damaged = || Error::Damaged(format!("rules event at seq {}", stored.seq));
            let (seq, time, event) = (stored.seq, stored.time, read.ok_or_else(damaged)?);
            steps.push(RulesStep { seq, time, event, activity: None });
            Ok::<_, Error>(ControlFlow::Continue(()))
        })?;
        steps.reverse();
        Ok(RulesList { in_force: history.in_force().clone(), steps, history })
    }

    /// The same, with what happened before and since each activation. This reads the whole log.
    pub fn with_activity(view: View<'_>, identity: &Identity) -> Result<Self, Error> {
        let mut list = Self::read(view)?;
        let activations: Vec<Seq> = list.history.changes().iter().map(|(seq, _)| *seq).collect();
        let parts = activity(view, identity, &activations)?;
        for step in &mut list.steps {
            let Ok(place) = activations.binary_search(&step.seq) else { continue };
            let mut since = Activity::default();
            parts[place + 1..].iter().for_each(|part| since.add(part));
            step.activity = Some([parts[place], since]);
        }
        Ok(list)
    }

    /// The rule set of a version or of a hash in hex, if the log or this build has it.
    pub fn find(&self, name: &str) -> Option<RuleSetName> {
        let of_log = self.steps.iter().map(|step| step.event.rules.clone());
        let known = Rules::ALL.iter().map(|rules| rules_name(*rules));
        let mut all = [self.in_force.clone()].into_iter().chain(of_log).chain(known);
        all.find(|rules| rules.version == name || rules.hex() == name)
    }

    /// A rule set with its standing and its descriptor.
    pub fn shown(&self, rules: &RuleSetName) -> RuleSetInfo {
        let mut steps = self.steps.iter().filter(|step| step.event.rules == *rules);
        let file = steps.clone().find_map(|step| match &step.event.step {
            Step::Proposed { file } => Some(file.clone()),
            _ => None,
        });
        let is_open = self.history.proposals().any(|(open, _)| open == rules);
        let (last, known) = (steps.next_back().cloned(), known_rules(rules).ok());
        let stage = match last.as_ref().map(|step| &step.event.step) {
            _ if *rules == self.in_force => "in_force",
            _ if is_open => "proposed",
            Some(Step::Withdrawn) => "withdrawn",
            Some(Step::Active(_)) => "replaced",
            _ if self.history.at(Seq(0)) == rules => "replaced",
            _ => "available",
        };
        let descriptor = file.or_else(|| known.map(Rules::descriptor));
        RuleSetInfo { rules: rules.clone(), stage, last, known: known.is_some(), descriptor }
    }

    /// The rules as JSON.
    pub fn json(&self) -> String {
        let available = Rules::ALL.iter().map(|rules| quoted_name(&rules_name(*rules)));
        let proposals = self.history.proposals().map(|(rules, _)| quoted_name(rules));
        Members::new()
            .raw("available", list(available))
            .raw("in_force", quoted_name(&self.in_force))
            .raw("proposals", list(proposals))
            .raw("steps", list(self.steps.iter().map(RulesStep::json)))
            .finish()
    }

    /// The rules as text.
    pub fn page(&self) -> Page {
        let mut page = Page::new();
        let since = match self.history.changes().last() {
            Some((seq, _)) => format!("since seq {seq}"),
            None => "since the log began".to_owned(),
        };
        page.line(format!("in force: {} ({since})", clean(&self.in_force.version)));
        let header = ["SEQ", "TIME", "RULES", "STAGE", "BASIS", "BEFORE", "SINCE"];
        page.table(&header, self.steps.iter().map(RulesStep::row).collect());
        if self.steps.iter().any(|step| step.activity.is_some()) {
            page.note("BEFORE and SINCE: attempts/failures/denied intents/drift alarms");
        }
        page.note(format!("rule sets of this ipse: {}", Rules::versions()));
        page
    }
}

fn quoted_name(rules: &RuleSetName) -> String {
    named(Members::new(), rules).finish()
}

/// A rule set, as the log and this build know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleSetInfo {
    /// The rule set.
    pub rules: RuleSetName,
    /// `in_force`, `proposed`, `withdrawn`, `replaced` or `available`.
    pub stage: &'static str,
    /// Its last step in the log.
    pub last: Option<RulesStep>,
    /// Whether this build can apply it.
    pub known: bool,
    /// The descriptor, if the log or this build has it.
    pub descriptor: Option<String>,
}

impl RuleSetInfo {
    /// The rule set as JSON. The descriptor is a text: its bytes are hashed.
    pub fn json(&self) -> String {
        let members = named(Members::new(), &self.rules)
            .text("stage", self.stage)
            .raw("known", self.known)
            .optional("last_step", self.last.as_ref().map(RulesStep::json));
        match &self.descriptor {
            Some(descriptor) => members.text("descriptor", descriptor).finish(),
            None => members.finish(),
        }
    }

    /// The rule set as text.
    pub fn page(&self) -> Page {
        let mut page = Page::new();
        let mut field = |name: &str, value: String| page.line(format!("{name:<13}{value}"));
        field("version", clean(&self.rules.version));
        field("sha256", self.rules.hex());
        field("stage", self.stage.replace('_', " "));
        if let Some(step) = &self.last {
            field("last step", format!("{} at seq {}", step.event.step.stage(), step.seq));
            field("at", to_seconds(step.time));
            if let Step::Active(Basis::Approved { approval, checkpoint, report }) = &step.event.step
            {
                field("approved by", clean(&dsse::key_ids(approval.as_bytes()).join(", ")));
                field("report", format!("{} at seq {checkpoint}", hex::encode(report)));
            }
        }
        if let Some(descriptor) = &self.descriptor {
            field("descriptor", clean(descriptor));
        }
        if !self.known {
            page.note("this ipse does not have these rules");
        }
        page
    }
}

/// What happened between each two of these positions, before the first and after the last.
fn activity(view: View<'_>, identity: &Identity, ends: &[Seq]) -> Result<Vec<Activity>, Error> {
    let mut parts = vec![Activity::default(); ends.len() + 1];
    if ends.is_empty() {
        return Ok(parts);
    }
    // The newest day with an attempt in each part.
    let mut newest = vec![Day::MIN; parts.len()];
    let part = |seq: Seq| ends.partition_point(|end| *end < seq);
    view.each_event(Seq(1)..=view.head()?, |seq, event| {
        let is_attempt = EventKind::of(event.event_type) == EventKind::ExecutionResult;
        let outcome = event.columns.outcome.filter(|_| is_attempt && event.columns.skill.is_some());
        if let Some(outcome @ (Outcome::Success | Outcome::Failed)) = outcome {
            newest[part(seq)] = newest[part(seq)].max(day_of(event.time));
            parts[part(seq)].attempts += 1;
            parts[part(seq)].failures += u64::from(outcome == Outcome::Failed);
        }
        Ok::<_, Error>(())
    })?;
    view.house_back(INTENT, Seq(1)..=Seq::MAX, |stored| {
        let is_denied = from_data(&stored.canonical, |data| {
            Some(data.get("verdict")?.as_text()? == Ruling::Denied.name())
        });
        if is_denied == Some(true) {
            parts[part(stored.seq)].denied += 1;
        }
        Ok::<_, Error>(ControlFlow::Continue(()))
    })?;
    // An alarm belongs to the first part whose attempts reach its day.
    for alarm in drift_alarms(view, identity)? {
        let place = newest.iter().position(|newest| *newest >= alarm).unwrap_or(ends.len());
        parts[place].alarms += 1;
    }
    Ok(parts)
}

/// The report as text: how many facts differ, by kind, and the first of them.
pub fn report_page(report: &RulesReport) -> Page {
    let mut page = Page::new();
    let (from, to) = (report.from.version(), report.to.version());
    page.line(format!("{from} to {to}, as of seq {}", report.checkpoint));
    let rows = report.kinds.iter().map(|(kind, counts)| {
        let counts = [counts.only_before, counts.only_after, counts.changed, counts.equal];
        [kind.to_string()].into_iter().chain(counts.map(|count| count.to_string())).collect()
    });
    page.table(&["KIND", "ONLY BEFORE", "ONLY AFTER", "CHANGED", "EQUAL"], rows.collect());
    let [appear, vanish, moved] = report.recommended;
    page.line(format!("recommendations: {appear} appear, {vanish} vanish, {moved} move"));
    let mark = |fact: &ipse_engine::ChangedFact| match (&fact.before, &fact.after) {
        (None, _) => "+",
        (_, None) => "-",
        _ => "~",
    };
    for fact in &report.facts {
        page.line(format!("{} {} {}", mark(fact), fact.key.kind(), clean(fact.key.text())));
    }
    if report.left_out > 0 {
        page.line(format!("… and {}", counted(report.left_out, "more fact")));
    }
    if report.is_equivalent() {
        page.line("no fact differs");
    }
    if !report.back {
        page.note("the rules in force do not give the stored facts: run `ipse verify`");
    }
    page
}
