//! The walk: every entry in order, with its event.
//!
//! **Invariants:** forgetting, passes, rules, intents and decisions are checked only here. The walk
//! continues in a damaged log: content that a verifier does not have is unknown, not absent.

use ipse_consolidate::{Rules, Skip};
use ipse_consult::intents::{Content, Intents};
use ipse_core::event::{FORGET, PASS_RECORD, RULES};
use ipse_core::{Admitted, EventRef, Identity, Seq, is_housekeeping};
use ipse_ledger::account::{
    Fault, ForgetRecords, PassClaim, PreviousPass, RULES_TRIGGER, Skipped, shortened,
};
use ipse_ledger::{ApprovalFault, Basis, NoteKey, RuleSetName, RulesEvent, RulesHistory, Step};
use std::collections::BTreeMap;

/// The result of a walk over a log.
pub struct Walk {
    /// Forgotten events and `forget` events.
    pub forgets: ForgetRecords,
    /// Intents and decisions.
    pub intents: Intents,
    /// Pass records that have content.
    pub records: Vec<Record>,
    /// Events that feed no fact: of the whole log, and since the last pass record.
    pub idle: [Skipped<Skip>; 2],
    /// The same under other rules, by their version.
    idle_under: BTreeMap<&'static str, [Skipped<Skip>; 2]>,
    /// The number of events so far, without housekeeping.
    counted: u64,
    /// The position of the last pass record, with or without content.
    last_pass: Option<Seq>,
    /// The rules in force at every position.
    pub rules: RulesHistory,
    /// Approved activations with the rules in force before them.
    approvals: Vec<(Seq, RulesEvent, RuleSetName)>,
    /// The last event, if it changed the rules: the pass over all events must follow.
    changed_rules: Option<Seq>,
}

impl Default for Walk {
    fn default() -> Self {
        let rules = Rules::default();
        Self::new(RuleSetName { version: rules.version().to_owned(), hash: rules.hash() })
    }
}

impl Walk {
    /// A walk over a log in which these rules are in force until an event says otherwise.
    pub fn new(rules: RuleSetName) -> Self {
        Walk {
            forgets: ForgetRecords::default(),
            intents: Intents::default(),
            records: Vec::new(),
            idle: Default::default(),
            idle_under: BTreeMap::new(),
            counted: 0,
            last_pass: None,
            rules: RulesHistory::new(rules),
            approvals: Vec::new(),
            changed_rules: None,
        }
    }
}

/// A pass record.
pub struct Record {
    /// The position of the record.
    pub seq: Seq,
    /// The name of the record.
    pub name: EventRef,
    /// The claim of the record, if it can be read.
    pub claimed: Option<PassClaim>,
    /// The position of the previous pass record.
    pub follows: Option<Seq>,
    /// Whether it lists the events of its range that feed no fact.
    pub lists_idle: bool,
}

impl Record {
    /// The place of the record in a report.
    pub fn place(&self) -> String {
        format!("pass record at seq {}", self.seq)
    }
}

impl Walk {
    /// Adds the next entry with its content. Returns the faults of `forget` events that cannot be
    /// read and of `ipse.rules` events.
    pub fn next(
        &mut self,
        seq: Seq,
        name: EventRef,
        event_type: &str,
        content: Content<'_>,
    ) -> Vec<Fault> {
        let mut faults = Vec::new();
        if let Some(changed) = self.changed_rules.take().filter(|_| event_type != PASS_RECORD) {
            faults.push(not_followed(changed));
        }
        self.forgets.next(seq, event_type);
        self.intents.event(seq, name, event_type, content);
        let counted = self.counted;
        self.counted += u64::from(!is_housekeeping(event_type));
        let follows = self.last_pass;
        self.last_pass = if event_type == PASS_RECORD { Some(seq) } else { follows };
        match (event_type, content) {
            (_, Content::Forgotten) => self.forgets.gone(name, seq, event_type),
            (FORGET, Content::Bytes(payload)) if !self.forgets.said(seq, payload) => {
                faults.push((format!("forget event at seq {seq}"), "cannot be read".to_owned()));
            }
            (RULES, Content::Bytes(payload)) => {
                let fault = self.change_rules(seq, payload).err();
                faults.extend(fault.map(|what| (rules_place(seq), what)));
            }
            (PASS_RECORD, Content::Bytes(payload)) => {
                let claimed = PassClaim::read(seq, payload, counted);
                self.records.push(Record { seq, name, claimed, follows, lists_idle: false });
            }
            _ => {}
        }
        faults
    }

    /// Adds a change of rules.
    fn change_rules(&mut self, seq: Seq, payload: &[u8]) -> Result<(), String> {
        let event = RulesEvent::read(seq, payload).ok_or("cannot be read")?;
        let before = self.rules.in_force().clone();
        self.rules.add(seq, &event).map_err(|fault| fault.message().to_owned())?;
        match &event.step {
            Step::Active(Basis::First) | Step::Proposed { .. } | Step::Withdrawn => {}
            Step::Active(basis) => {
                self.changed_rules = Some(seq);
                if matches!(basis, Basis::Approved { .. }) {
                    self.approvals.push((seq, event, before));
                }
            }
        }
        Ok(())
    }

    /// Whether an activation of rules was approved.
    pub fn has_approvals(&self) -> bool {
        !self.approvals.is_empty()
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

    /// The fault of a log that ends with a change of rules.
    pub fn unfinished(&self) -> Option<Fault> {
        self.changed_rules.map(not_followed)
    }

    /// Adds the reason why the rules skip the last event, if they do. A pass record must list the
    /// skipped events of its range.
    pub fn fed(&mut self, event_type: &str, skip: Option<Skip>) {
        self.fed_under(event_type, skip, &[]);
    }

    /// The same for a log whose rules change: `others` are other rules by their version. A pass
    /// record lists the events that its own rules skip.
    pub fn fed_under(
        &mut self,
        event_type: &str,
        skip: Option<Skip>,
        others: &[(&'static str, Option<Skip>)],
    ) {
        count(&mut self.idle, event_type, skip);
        for (version, skip) in others {
            count(self.idle_under.entry(*version).or_default(), event_type, *skip);
        }
        if event_type == PASS_RECORD {
            let coded = |(name, reasons): (String, BTreeMap<Skip, u64>)| {
                (name, reasons.into_iter().map(|(skip, n)| (skip.code().to_owned(), n)).collect())
            };
            if let Some(Record { claimed: Some(claimed), lists_idle, .. }) = self.records.last_mut()
            {
                let under = self.idle_under.get(claimed.rule_version.as_str());
                let idle =
                    under.unwrap_or(&self.idle)[usize::from(claimed.first != Seq(1))].clone();
                let idle: Skipped<String> = shortened(idle).into_iter().map(coded).collect();
                *lists_idle = idle == claimed.skipped_by_type;
            }
            self.idle[1].clear();
            self.idle_under.values_mut().for_each(|idle| idle[1].clear());
        }
    }

    /// Compares each pass record with the previous one and with the log, given by its names.
    /// Returns whether the whole range is known, and the faults. A range that begins before `from`
    /// is not known.
    pub fn passes(
        &self,
        names: &[EventRef],
        from: Seq,
    ) -> impl Iterator<Item = (&Record, bool, Vec<&'static str>)> {
        let mut before = PreviousPass::Nothing;
        self.records.iter().map(move |record| {
            let earlier = std::mem::replace(&mut before, PreviousPass::Unreadable);
            let Some(claimed) = &record.claimed else {
                return (record, false, vec!["cannot be read"]);
            };
            before = PreviousPass::Pass(claimed.clone());
            let earlier = if claimed.first < from { PreviousPass::BeforeRange } else { earlier };
            let mut wrong = claimed.contradictions(&earlier, names, &self.forgets);
            wrong.extend(self.rules_fault(claimed));
            let whole = !matches!(earlier, PreviousPass::Unreadable | PreviousPass::BeforeRange);
            (record, whole, wrong)
        })
    }
}

impl Walk {
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

/// Counts an event that feeds no fact.
fn count(idle: &mut [Skipped<Skip>; 2], event_type: &str, skip: Option<Skip>) {
    let Some(skip) = skip.filter(|skip| *skip != Skip::Housekeeping) else { return };
    for idle in idle {
        *idle.entry(event_type.to_owned()).or_default().entry(skip).or_default() += 1;
    }
}

fn rules_place(seq: Seq) -> String {
    format!("rules event at seq {seq}")
}

fn not_followed(seq: Seq) -> Fault {
    (rules_place(seq), "is not followed by its pass".to_owned())
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
