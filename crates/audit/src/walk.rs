//! The walk: every entry in order, with the event that it is about.
//!
//! **Invariants:** forgetting, passes, intents and decisions are checked here and nowhere else.
//! Where a log is damaged the walk goes on: what a verifier does not have is unknown, not absent.

use ipse_consolidate::Skip;
use ipse_consult::intents::{Content, Intents};
use ipse_core::event::{FORGET, PASS_RECORD};
use ipse_core::{Admitted, EventRef, Seq, is_housekeeping};
use ipse_ledger::account::{Fault, ForgetRecords, PassClaim, PreviousPass, Skipped, shortened};
use std::collections::BTreeMap;

/// What a walk over a log has found out.
#[derive(Default)]
pub struct Walk {
    /// What was forgotten, and what says so.
    pub forgets: ForgetRecords,
    /// Intents and decisions.
    pub intents: Intents,
    /// Pass records whose content is there.
    pub records: Vec<Record>,
    /// Events that feed no fact: all of them, and those since the last pass record.
    pub idle: [Skipped<Skip>; 2],
    /// Events so far, housekeeping aside.
    counted: u64,
    /// Where the last pass record stands, with or without content.
    last_pass: Option<Seq>,
}

/// A pass record.
pub struct Record {
    /// Its position.
    pub seq: Seq,
    /// Its name.
    pub name: EventRef,
    /// What it says, if it can be read.
    pub claimed: Option<PassClaim>,
    /// Where the pass record before it stands.
    pub follows: Option<Seq>,
    /// Whether it lists the events of its range that feed no fact.
    pub lists_idle: bool,
}

impl Record {
    /// Its place in a report.
    pub fn place(&self) -> String {
        format!("pass record at seq {}", self.seq)
    }
}

impl Walk {
    /// Takes in the next entry with its content. Returns a fault if that is a `forget` event which
    /// cannot be read.
    pub fn next(
        &mut self,
        seq: Seq,
        name: EventRef,
        event_type: &str,
        content: Content<'_>,
    ) -> Option<Fault> {
        self.forgets.next(seq, event_type);
        self.intents.event(seq, name, event_type, content);
        let counted = self.counted;
        self.counted += u64::from(!is_housekeeping(event_type));
        let follows = self.last_pass;
        self.last_pass = if event_type == PASS_RECORD { Some(seq) } else { follows };
        match (event_type, content) {
            (_, Content::Forgotten) => self.forgets.gone(name, seq, event_type),
            (FORGET, Content::Bytes(payload)) if !self.forgets.said(seq, payload) => {
                return Some((format!("forget event at seq {seq}"), "cannot be read".to_owned()));
            }
            (PASS_RECORD, Content::Bytes(payload)) => {
                let claimed = PassClaim::read(seq, payload, counted);
                self.records.push(Record { seq, name, claimed, follows, lists_idle: false });
            }
            _ => {}
        }
        None
    }

    /// Takes in why the rules skip the event that came last, if they do. A pass record ends the
    /// range in which it must list them.
    pub fn fed(&mut self, event_type: &str, skip: Option<Skip>) {
        if let Some(skip) = skip.filter(|skip| *skip != Skip::Housekeeping) {
            for idle in &mut self.idle {
                *idle.entry(event_type.to_owned()).or_default().entry(skip).or_default() += 1;
            }
        }
        if event_type == PASS_RECORD {
            let coded = |(name, reasons): (String, BTreeMap<Skip, u64>)| {
                (name, reasons.into_iter().map(|(skip, n)| (skip.code().to_owned(), n)).collect())
            };
            if let Some(Record { claimed: Some(claimed), lists_idle, .. }) = self.records.last_mut()
            {
                let idle = self.idle[usize::from(claimed.first != Seq(1))].clone();
                let idle: Skipped<String> = shortened(idle).into_iter().map(coded).collect();
                *lists_idle = idle == claimed.skipped_by_type;
            }
            self.idle[1].clear();
        }
    }

    /// Compares each pass record with the one before it and with the log, whose names these are.
    /// Returns whether its whole range is known, and what is wrong. Nothing is known of ranges that
    /// begin before `from`.
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
            let earlier = if claimed.first < from { PreviousPass::Unreadable } else { earlier };
            let wrong = claimed.contradictions(&earlier, names, &self.forgets);
            (record, !matches!(earlier, PreviousPass::Unreadable), wrong)
        })
    }
}

/// The parts of an entry, given as it is stored, that differ from its event.
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
