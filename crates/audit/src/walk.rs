//! The walk: every entry in order, with its event.
//!
//! **Invariant:** the walk continues in a damaged log: content that a verifier does not have is
//! unknown, not absent.

use ipse_consolidate::{Groups, RuleSet, Rules, Skip, with_rules};
use ipse_consult::intents::{Content, Intents};
use ipse_core::event::{FORGET, PASS_RECORD, RULES};
use ipse_core::{Admitted, Event, EventRef, Seq, is_housekeeping, sha256};
use ipse_ledger::account::{Fault, ForgetRecords, PassClaim, Skipped, shortened};
use ipse_ledger::{Basis, RuleSetName, RulesEvent, RulesHistory, Step};
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
    pub(crate) passes: Vec<Seq>,
    /// The rules in force at every position.
    pub rules: RulesHistory,
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
    /// The claim of the record, if it can be read.
    pub claimed: Option<PassClaim>,
    /// The position of the previous pass record.
    pub follows: Option<Seq>,
    /// Whether it lists the events of its range that feed no fact. `None` if its rules are unknown.
    pub lists_idle: Option<bool>,
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
        let Content::Bytes(payload) = content else { return None };
        match event_type {
            FORGET => self.forgets.said(seq, name, payload),
            RULES => self.change_rules(seq, payload).err(),
            PASS_RECORD => {
                let claimed = PassClaim::read(seq, payload, counted);
                let fault = claimed.is_none().then(|| "cannot be read".to_owned());
                self.records.push(Record { seq, claimed, follows, lists_idle: None });
                fault.map(|fault| (format!("pass record at seq {seq}"), fault))
            }
            _ => None,
        }
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
}

/// The place of a change of rules in a report.
pub(crate) fn rules_place(seq: Seq) -> String {
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
