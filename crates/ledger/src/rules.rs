//! Which rules are in force: `ipse.rules` events, and the history that they make.
//!
//! **Invariants**
//! - The rules in force at a position are a function of the log up to it.
//! - A version names one hash for the life of a log.
//! - An activation needs an open proposal and an approval; going back needs neither and never
//!   undoes the rules that a log began with.
//! - An approval is for one activation: its checkpoint is not before the last change of rules.
//! - The signature of an approval is checked by the caller, who has the operator's keys.

use crate::account::house_parts;
use crate::claim::RulesApproval;
use crate::dsse::{self, EnvelopeError};
use crate::note::NoteKey;
use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use ipse_core::event::MAX_DEPTH;
use ipse_core::json::{Members, Object, Value};
use ipse_core::{Identity, Seq, hex, json_parse, sha256};

/// The largest descriptor in a proposal, so that the event stays below the size limit of events.
pub const MAX_DESCRIPTOR_BYTES: usize = 24_576;

/// A rule set by its version and the SHA-256 of its descriptor.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RuleSetName {
    /// The version, such as `v1`.
    pub version: String,
    /// The hash of the descriptor.
    pub hash: [u8; 32],
}

impl RuleSetName {
    /// Whether a text has the form of a hash.
    pub fn is_hash(text: &str) -> bool {
        hex::decode::<32>(text).is_some()
    }

    /// The hash in hex, as in JSON.
    pub fn hex(&self) -> String {
        hex::encode(&self.hash)
    }
}

/// The reason why a rule set became active.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Basis {
    /// The log began with it.
    First,
    /// The newest activation was undone.
    Back,
    /// The operator approved it.
    Approved {
        /// The position of the report.
        checkpoint: Seq,
        /// The SHA-256 of the report.
        report: [u8; 32],
        /// The signed approval: a DSSE envelope.
        approval: String,
    },
}

/// One step in the life of a rule set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// It may be reported on and approved.
    Proposed {
        /// The descriptor.
        file: String,
    },
    /// It is in force from this event on.
    Active(Basis),
    /// The proposal ended without an activation.
    Withdrawn,
}

impl Step {
    /// The stage in JSON.
    pub fn stage(&self) -> &'static str {
        match self {
            Step::Proposed { .. } => "proposed",
            Step::Active(_) => "active",
            Step::Withdrawn => "withdrawn",
        }
    }
}

/// An `ipse.rules` event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RulesEvent {
    /// The rule set.
    pub rules: RuleSetName,
    /// The step.
    pub step: Step,
}

impl RulesEvent {
    /// The id of such an event at a position.
    pub fn id(seq: Seq) -> String {
        format!("rules:{seq}")
    }

    /// The data of the event, as canonical JSON.
    pub fn data(&self) -> String {
        let members = Members::new()
            .text("rule_set_sha256", &self.rules.hex())
            .text("rule_version", &self.rules.version)
            .text("stage", self.step.stage());
        let members = match &self.step {
            Step::Proposed { file } => members.text("file", file),
            Step::Withdrawn => members,
            Step::Active(Basis::First) => members.raw("first", true),
            Step::Active(Basis::Back) => members.raw("back", true),
            Step::Active(Basis::Approved { checkpoint, report, approval }) => members
                .text("approval", approval)
                .raw("checkpoint", checkpoint)
                .text("report_sha256", &hex::encode(report)),
        };
        members.finish()
    }

    /// Reads the canonical bytes of the event at a position.
    pub fn read(seq: Seq, payload: &[u8]) -> Option<Self> {
        let value = json_parse::parse(payload, MAX_DEPTH).ok()?;
        let parts = house_parts(&value).filter(|parts| parts.id == Self::id(seq))?;
        let text = |name: &str| Some(parts.data.get(name)?.as_text()?.to_owned());
        let hash = hex::decode(&text("rule_set_sha256")?)?;
        let rules = RuleSetName { version: text("rule_version")?, hash };
        let step = match text("stage")?.as_str() {
            "proposed" => Step::Proposed { file: text("file")? },
            "withdrawn" => Step::Withdrawn,
            "active" => Step::Active(basis(parts.data)?),
            _ => return None,
        };
        let event = RulesEvent { rules, step };
        // Only the bytes that ipse writes are accepted.
        let mut stored = String::new();
        parts.data.write(&mut stored);
        (event.data() == stored).then_some(event)
    }

    /// The fault of the approval of an activation, if it has one.
    pub fn approval_fault(
        &self,
        from: &RuleSetName,
        identity: &Identity,
        operators: &[NoteKey],
    ) -> Option<ApprovalFault> {
        use ApprovalFault::{Untrusted, Wrong};
        let Step::Active(Basis::Approved { checkpoint, report, approval }) = &self.step else {
            return None;
        };
        let opened = dsse::open(approval.as_bytes(), RulesApproval::TYPE, operators);
        let statement = match opened {
            Ok((statement, _)) => statement,
            Err(EnvelopeError::Untrusted | EnvelopeError::OtherKey) => {
                return Some(Untrusted(dsse::key_ids(approval.as_bytes()).join(", ")));
            }
            Err(_) => return Some(Wrong("cannot be read")),
        };
        let expected = RulesApproval {
            identity: *identity,
            checkpoint: *checkpoint,
            from: from.hash,
            rules: self.rules.clone(),
            report: *report,
        };
        match RulesApproval::read(&statement) {
            Some(approved) if approved == expected => None,
            Some(approved) if approved.identity != *identity => {
                Some(Wrong("is for another identity"))
            }
            Some(approved) if approved.from != from.hash => {
                Some(Wrong("is for a change from other rules"))
            }
            Some(_) => Some(Wrong("is for another rule set or report")),
            None => Some(Wrong("is not a statement about rules")),
        }
    }
}

fn basis(data: &Object<'_>) -> Option<Basis> {
    let is_true = |name: &str| matches!(data.get(name), Some(Value::Bool(true)));
    let text = |name: &str| Some(data.get(name)?.as_text()?.to_owned());
    match (is_true("first"), is_true("back")) {
        (true, false) => Some(Basis::First),
        (false, true) => Some(Basis::Back),
        (false, false) => Some(Basis::Approved {
            checkpoint: Seq(data.get("checkpoint")?.as_count()?),
            report: hex::decode(&text("report_sha256")?)?,
            approval: text("approval")?,
        }),
        (true, true) => None,
    }
}

/// The fault of an approval.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ApprovalFault {
    /// No trusted key signed it; the ids of the keys that it names.
    Untrusted(String),
    /// It is not about this change.
    Wrong(&'static str),
}

impl fmt::Display for ApprovalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApprovalFault::Untrusted(_) => {
                f.write_str("its approval is not signed by a trusted operator key")
            }
            ApprovalFault::Wrong(what) => write!(f, "its approval {what}"),
        }
    }
}

/// Why a step does not follow from the log before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RulesFault {
    /// A log can begin with rules only at its first position.
    NotFirst,
    /// There is no activation that could be undone.
    NothingToGoBackTo,
    /// Going back names other rules than those before the newest activation.
    WrongWayBack,
    /// There is no open proposal of that rule set.
    NotProposed,
    /// The version already names another hash in this log.
    VersionTaken,
    /// The descriptor does not have the hash.
    WrongDescriptor,
    /// The descriptor is too large.
    TooLarge,
    /// The rule set is in force already, or its proposal is open already.
    Already,
    /// The approved report is from before the last change of rules, or from a later position.
    WrongCheckpoint,
}

impl RulesFault {
    /// The code for programs.
    pub fn code(self) -> &'static str {
        match self {
            RulesFault::NotFirst => "not_first",
            RulesFault::NothingToGoBackTo => "nothing_to_go_back_to",
            RulesFault::WrongWayBack => "wrong_way_back",
            RulesFault::NotProposed => "not_proposed",
            RulesFault::VersionTaken => "version_taken",
            RulesFault::WrongDescriptor => "wrong_descriptor",
            RulesFault::TooLarge => "descriptor_too_large",
            RulesFault::Already => "already",
            RulesFault::WrongCheckpoint => "report_moved",
        }
    }

    /// The fault in words.
    pub fn message(self) -> &'static str {
        match self {
            RulesFault::NotFirst => "begins a log with rules, but is not its first event",
            RulesFault::NothingToGoBackTo => "goes back, but no activation is left to undo",
            RulesFault::WrongWayBack => "goes back to rules that were not in force before",
            RulesFault::NotProposed => "names a rule set without an open proposal",
            RulesFault::VersionTaken => "gives a version that names another hash in this log",
            RulesFault::WrongDescriptor => "has a descriptor with another hash",
            RulesFault::TooLarge => "has a descriptor that is too large",
            RulesFault::Already => "names a rule set that is in force or proposed already",
            RulesFault::WrongCheckpoint => {
                "names a checkpoint that is not between the last change of rules and this one"
            }
        }
    }
}

/// The rules in force at every position of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RulesHistory {
    /// The rules that the log began with.
    first: RuleSetName,
    /// The activations that are not undone, the newest last.
    active: Vec<RuleSetName>,
    /// The open proposals, with their positions.
    open: BTreeMap<RuleSetName, Seq>,
    versions: BTreeMap<String, [u8; 32]>,
    /// The positions from which other rules are in force, in order.
    changes: Vec<(Seq, RuleSetName)>,
}

impl RulesHistory {
    /// The history of a log without such events: the default rules are in force.
    pub fn new(default: RuleSetName) -> Self {
        let versions = BTreeMap::from([(default.version.clone(), default.hash)]);
        let (active, open, changes) = (Vec::new(), BTreeMap::new(), Vec::new());
        RulesHistory { first: default, active, open, versions, changes }
    }

    /// The rules in force after the last event.
    pub fn in_force(&self) -> &RuleSetName {
        self.active.last().unwrap_or(&self.first)
    }

    /// The rules in force at a position.
    pub fn at(&self, seq: Seq) -> &RuleSetName {
        let later = self.changes.partition_point(|(from, _)| *from <= seq);
        let change = later.checked_sub(1).map(|index| &self.changes[index].1);
        change.unwrap_or_else(|| match self.changes.first() {
            // Before a log's own first event the rules are those that it began with.
            Some((Seq(1), first)) => first,
            _ => &self.first,
        })
    }

    /// The rules that going back would put in force again.
    pub fn previous(&self) -> Option<&RuleSetName> {
        let undone = self.active.len().checked_sub(1)?;
        Some(undone.checked_sub(1).map_or(&self.first, |index| &self.active[index]))
    }

    /// The open proposals, with their positions.
    pub fn proposals(&self) -> impl Iterator<Item = (&RuleSetName, Seq)> {
        self.open.iter().map(|(rules, seq)| (rules, *seq))
    }

    /// The positions from which other rules are in force, in order.
    pub fn changes(&self) -> &[(Seq, RuleSetName)] {
        &self.changes
    }

    /// Whether a position is that of an activation or of going back. Its pass follows it.
    pub fn is_change(&self, seq: Seq) -> bool {
        // The first event of a log says which rules it begins with, so nothing changes there.
        seq > Seq(1) && self.changes.binary_search_by_key(&seq, |(at, _)| *at).is_ok()
    }

    /// The position of the last change, or 0.
    fn last_change(&self) -> Seq {
        let last = self.changes.last().map(|(seq, _)| *seq);
        last.filter(|seq| self.is_change(*seq)).unwrap_or(Seq(0))
    }

    /// Checks a step at the next position.
    pub fn check(&self, seq: Seq, event: &RulesEvent) -> Result<(), RulesFault> {
        let rules = &event.rules;
        let known = self.versions.get(&rules.version);
        if known.is_some_and(|hash| *hash != rules.hash) {
            return Err(RulesFault::VersionTaken);
        }
        let is_open = self.open.contains_key(rules);
        match &event.step {
            Step::Proposed { file } if file.len() > MAX_DESCRIPTOR_BYTES => {
                Err(RulesFault::TooLarge)
            }
            Step::Proposed { file } if sha256(&[file.as_bytes()]) != rules.hash => {
                Err(RulesFault::WrongDescriptor)
            }
            Step::Proposed { .. } if is_open || rules == self.in_force() => {
                Err(RulesFault::Already)
            }
            Step::Withdrawn if !is_open => Err(RulesFault::NotProposed),
            Step::Active(Basis::Approved { .. }) if !is_open => Err(RulesFault::NotProposed),
            Step::Active(Basis::Approved { .. }) if rules == self.in_force() => {
                Err(RulesFault::Already)
            }
            Step::Active(Basis::Approved { checkpoint, .. })
                if *checkpoint >= seq || *checkpoint < self.last_change() =>
            {
                Err(RulesFault::WrongCheckpoint)
            }
            Step::Active(Basis::First) if seq != Seq(1) => Err(RulesFault::NotFirst),
            Step::Active(Basis::Back) => match self.previous() {
                None => Err(RulesFault::NothingToGoBackTo),
                Some(previous) if previous != rules => Err(RulesFault::WrongWayBack),
                Some(_) => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Adds the step at a position, if it follows from the log before it.
    pub fn add(&mut self, seq: Seq, event: &RulesEvent) -> Result<(), RulesFault> {
        self.check(seq, event)?;
        let rules = event.rules.clone();
        self.versions.insert(rules.version.clone(), rules.hash);
        match &event.step {
            Step::Proposed { .. } => {
                self.open.insert(rules, seq);
                return Ok(());
            }
            Step::Withdrawn => {
                self.open.remove(&rules);
                return Ok(());
            }
            Step::Active(Basis::First) => self.first = rules.clone(),
            Step::Active(Basis::Back) => {
                self.active.pop();
            }
            Step::Active(Basis::Approved { .. }) => {
                self.open.remove(&rules);
                self.active.push(rules.clone());
            }
        }
        self.changes.push((seq, rules));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::NoteSigner;
    use alloc::string::ToString;
    use alloc::vec;

    fn rules(version: &str) -> RuleSetName {
        RuleSetName { version: version.to_string(), hash: sha256(&[version.as_bytes()]) }
    }

    fn event(version: &str, step: Step) -> RulesEvent {
        RulesEvent { rules: rules(version), step }
    }

    fn proposed(version: &str) -> RulesEvent {
        event(version, Step::Proposed { file: version.to_string() })
    }

    fn approved(version: &str) -> RulesEvent {
        let approval = "{}".to_string();
        let basis = Basis::Approved { checkpoint: Seq(1), report: [7; 32], approval };
        event(version, Step::Active(basis))
    }

    fn approved_at(version: &str, at: u64) -> RulesEvent {
        let mut event = approved(version);
        if let Step::Active(Basis::Approved { checkpoint, .. }) = &mut event.step {
            *checkpoint = Seq(at);
        }
        event
    }

    fn back(version: &str) -> RulesEvent {
        event(version, Step::Active(Basis::Back))
    }

    /// Applies steps at positions 1, 2, …; returns the faults and the history.
    fn run(steps: &[RulesEvent]) -> (Vec<Option<RulesFault>>, RulesHistory) {
        let mut history = RulesHistory::new(rules("a"));
        let faults = (1..).map(Seq).zip(steps).map(|(seq, step)| history.add(seq, step).err());
        (faults.collect(), history)
    }

    #[test]
    fn the_rules_in_force_follow_from_the_events() {
        let steps = [
            proposed("b"),
            approved("b"),
            proposed("a"),
            approved_at("a", 2),
            proposed("b"),
            approved_at("b", 5),
            back("a"),
            back("b"),
            back("a"),
        ];
        let (faults, history) = run(&steps);
        assert_eq!(faults, [None; 9]);
        // The letters are the rules at positions 0 to 9.
        let in_force: String = (0..=9).map(|seq| history.at(Seq(seq)).version.clone()).collect();
        assert_eq!(in_force, "aabbaababa");
    }

    #[test]
    fn steps_that_do_not_follow_are_named() {
        let other = RulesEvent {
            rules: RuleSetName { version: "a".to_string(), hash: [1; 32] },
            step: Step::Proposed { file: "a".to_string() },
        };
        let wrong = event("b", Step::Proposed { file: "c".to_string() });
        let large = "x".repeat(MAX_DESCRIPTOR_BYTES + 1);
        let large = event("b", Step::Proposed { file: large });
        let first = event("b", Step::Active(Basis::First));
        for (steps, fault) in [
            (vec![approved("b")], RulesFault::NotProposed),
            (vec![back("a")], RulesFault::NothingToGoBackTo),
            (vec![first.clone(), back("a")], RulesFault::NothingToGoBackTo),
            (vec![proposed("b"), first.clone()], RulesFault::NotFirst),
            (vec![proposed("b"), approved("b"), back("b")], RulesFault::WrongWayBack),
            (vec![proposed("b"), approved("b"), approved("b")], RulesFault::NotProposed),
            (vec![event("b", Step::Withdrawn)], RulesFault::NotProposed),
            (vec![proposed("b"), proposed("b")], RulesFault::Already),
            (vec![proposed("a")], RulesFault::Already),
            (vec![other], RulesFault::VersionTaken),
            (vec![wrong], RulesFault::WrongDescriptor),
            (vec![large], RulesFault::TooLarge),
            (vec![proposed("b"), approved_at("b", 2)], RulesFault::WrongCheckpoint),
            (
                vec![proposed("b"), approved("b"), back("a"), proposed("b"), approved_at("b", 2)],
                RulesFault::WrongCheckpoint,
            ),
        ] {
            let (faults, _) = run(&steps);
            assert_eq!(faults.last(), Some(&Some(fault)), "{steps:?}");
            assert!(faults[..faults.len() - 1].iter().all(Option::is_none), "{steps:?}");
        }
        let (faults, history) = run(&[first]);
        assert_eq!((faults, history.at(Seq(0)).version.as_str()), (vec![None], "b"));
    }

    #[test]
    fn an_event_is_read_back_and_no_other_bytes_are() {
        let steps = [
            proposed("b"),
            approved("b"),
            back("a"),
            event("b", Step::Active(Basis::First)),
            event("b", Step::Withdrawn),
        ];
        for step in steps {
            let payload = |id: &str, data: &str| {
                format!(
                    "{{\"data\":{data},\"id\":\"{id}\",\"salt\":\"00\",\"source\":\"ipse\",\
                     \"specversion\":\"1.0\",\"time\":\"2026-05-06T10:00:00Z\",\
                     \"type\":\"ipse.rules\"}}"
                )
            };
            let good = payload("rules:7", &step.data());
            assert_eq!(RulesEvent::read(Seq(7), good.as_bytes()), Some(step.clone()));
            assert_eq!(RulesEvent::read(Seq(8), good.as_bytes()), None, "another position");
            let more = step.data().replacen('{', "{\"a\":1,", 1);
            assert_eq!(RulesEvent::read(Seq(7), payload("rules:7", &more).as_bytes()), None);
        }
    }

    #[test]
    fn an_approval_is_for_one_change() {
        let signer = NoteSigner::new("operator", crate::SecretKey::from_seed(&[5; 32])).unwrap();
        let stranger = NoteSigner::new("operator", crate::SecretKey::from_seed(&[6; 32])).unwrap();
        let identity = Identity([9; 32]);
        let approval = |by: &NoteSigner, change: &dyn Fn(&mut RulesApproval)| {
            let (from, rules, report) = (rules("a").hash, rules("b"), [7; 32]);
            let mut approval = RulesApproval { identity, checkpoint: Seq(3), from, rules, report };
            change(&mut approval);
            let approval = dsse::sign(&approval.statement(), by);
            let basis = Basis::Approved { checkpoint: Seq(3), report: [7; 32], approval };
            event("b", Step::Active(basis))
        };
        let fault =
            |event: &RulesEvent| event.approval_fault(&rules("a"), &identity, &[signer.public()]);
        assert_eq!(fault(&approval(&signer, &|_| {})), None);
        let unsigned = fault(&approval(&stranger, &|_| {})).unwrap().to_string();
        assert!(unsigned.contains("not signed by a trusted operator key"), "{unsigned}");
        type Change<'c> = &'c dyn Fn(&mut RulesApproval);
        let changes: [(Change<'_>, &str); 5] = [
            (&|it| it.identity = Identity([1; 32]), "another identity"),
            (&|it| it.from = [1; 32], "from other rules"),
            (&|it| it.checkpoint = Seq(4), "another rule set or report"),
            (&|it| it.report = [1; 32], "another rule set or report"),
            (&|it| it.rules = rules("c"), "another rule set or report"),
        ];
        for (change, words) in changes {
            let message = fault(&approval(&signer, change)).unwrap().to_string();
            assert!(message.contains(words), "{message}");
        }
    }
}
