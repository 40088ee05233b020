//! Checks the log event by event: position, digest, entry, typed columns, and chunks.

use super::Check;
use super::evidence::{cosigned_sizes, heads, sizes};
use crate::Error;
use crate::report::{BESIDE, DERIVED, GROUND, Report};
use ipse_audit::{self as audit, Context, Index, differences};
use ipse_consolidate::RuleSet;
use ipse_consult::intents::Content;
use ipse_core::event::PASS_RECORD;
use ipse_core::{Admitted, EventRef, Seq, Time, sha256};
use ipse_door::read_stored;
use ipse_ledger::account::can_be_forgotten;
use ipse_ledger::{entry_hash, write_entry};
use ipse_store::{ChunkComparison, ChunkDamage, RawEvent, TreeComparison};

/// The number of events between two progress reports.
const TELL_EVERY: u64 = 4096;

/// The stored copies of the log, compared during the walk.
struct Stored<'v> {
    chunks: ChunkComparison<'v>,
    tree: TreeComparison<'v>,
    /// Whether producers signed events. Only then digests are kept.
    keeps_digests: bool,
}

impl<'c, R: RuleSet> Check<'c, R> {
    /// Walks over the log and checks the log itself. Returns the comparison of the stored tree.
    pub(super) fn ground(&mut self) -> Result<TreeComparison<'c>, Error> {
        let view = self.view;
        self.reached = view.progress()?;
        self.log.heads = heads(view, self.outside)?;
        self.log.cosigned = view.all_cosignatures()?;
        let signed = sizes(&self.log.heads).chain(cosigned_sizes(&self.log.cosigned));
        self.log.index = Index::new(signed);
        let mut stored = Stored {
            chunks: ChunkComparison::new(view)?,
            tree: TreeComparison::new(view)?,
            // A read error is reported later, when they are compared.
            keeps_digests: view.statements().map_or(true, |statements| !statements.is_empty()),
        };
        let total = view.head()?.0;
        view.each_raw_event(|raw| {
            if raw.seq.0.is_multiple_of(TELL_EVERY) {
                (self.progress)(raw.seq.0, total);
            }
            self.event(&raw, &mut stored)
        })?;
        // The checkpoint is beyond the last event, so the end of the log is missing.
        let (head, checkpoint) = (self.log.head, self.reached.checkpoint);
        if checkpoint.0 > 0 && head <= checkpoint {
            self.gap(head.next(), checkpoint.next());
        }
        self.report.events = self.log.index.names.len() as u64;
        for [first, _] in self.log.index.sort() {
            let name = self.log.index.names[first].to_string();
            self.report.add(GROUND, name, "is in the log twice");
        }
        self.chunks(stored.chunks.finish());
        self.shared();
        Ok(stored.tree)
    }

    /// Makes the checks of every log, as far as this one can be compared.
    fn shared(&mut self) {
        for check in audit::Check::ALL {
            let is_damaged = self.report.is_damaged();
            // An approval rests on the changes before it.
            let operators = if is_damaged { &[][..] } else { &self.outside.operator_keys };
            let (names, identity) = (&self.log.index.names, self.identity);
            let context = Context { names, from: Seq(0), identity, operators };
            let found = check.run(&self.log.walk, &context);
            let kind = match check {
                audit::Check::Passes if self.log.is_missing => continue,
                audit::Check::Passes => DERIVED,
                // In a damaged log a decision may lack its intent.
                audit::Check::Intents if is_damaged => {
                    let note = "intents were not compared: the log is damaged";
                    found.holds.into_iter().for_each(|_| self.report.note(note));
                    continue;
                }
                _ => GROUND,
            };
            self.report.all(kind, found.faults);
            // The operator's key was replaced, or the log came from another operator.
            let notes = found.untrusted.into_iter().map(|(place, what)| format!("{place}: {what}"));
            let limits = found.limits.into_iter().filter(|_| !is_damaged);
            notes.chain(limits).for_each(|note| self.report.note(note));
        }
    }

    /// Reports damaged chunks, except those that other findings explain.
    fn chunks(&mut self, damage: Vec<ChunkDamage>) {
        let forgets = &self.log.walk.forgets;
        for damage in damage {
            let kind = match &damage {
                ChunkDamage::Foreign(last) if *last > self.log.head && self.log.is_missing => {
                    continue;
                }
                // Events without content that no `forget` event names cannot be compared.
                ChunkDamage::Differs(range) if forgets.lost(range.clone()) => continue,
                // A chunk may be the only witness of the entry of a forgotten event.
                ChunkDamage::Differs(range) if forgets.any(range.clone()) => BESIDE,
                ChunkDamage::Reordered(_) => GROUND,
                _ => DERIVED,
            };
            self.report.all(kind, [damage.describe()]);
        }
    }

    /// Reports positions that are missing.
    fn gap(&mut self, first: Seq, last: Seq) {
        let more = if first == last { String::new() } else { format!("..{last}") };
        self.report.add(GROUND, format!("seq {first}{more}"), "is missing from the log");
        self.log.is_missing = true;
    }

    fn event(&mut self, raw: &RawEvent, stored: &mut Stored<'_>) -> Result<(), Error> {
        let (seq, expected) = (raw.seq, self.log.head.next());
        if seq.0 == 0 {
            self.report.add(GROUND, "seq 0", "is before the first position");
            return Ok(());
        }
        if seq != expected {
            self.gap(expected, Seq(seq.0 - 1));
            stored.chunks.skip();
        }
        self.log.head = seq;
        let name = EventRef(raw.event_ref.as_slice().try_into().unwrap_or_default());
        self.log.index.names.push(name);
        let event_type = std::str::from_utf8(&raw.event_type).unwrap_or_default();
        let text = String::from_utf8_lossy(&raw.payload);
        let is_gone = raw.payload.is_empty() && raw.columns.is_empty();
        let (row, content) = if is_gone && can_be_forgotten(event_type) {
            (raw.unchecked(), Content::Forgotten)
        } else {
            let readable = if event_type == PASS_RECORD { text.as_bytes() } else { &raw.payload };
            (checked(raw, &mut self.report), Content::Bytes(readable))
        };
        self.report.all(GROUND, self.log.walk.next(seq, name, event_type, content));
        if let Some(row) = &row {
            self.grow(raw, row, stored)?;
        }
        let typed = row.as_ref().and_then(Admitted::typed);
        if let (Some(again), Some(time)) = (&mut self.gates.again, Time::from_micros(raw.time)) {
            again.next((seq, name, time), event_type, content, typed.as_ref());
        }
        if let Some(event) = typed {
            let is_in_sums = seq <= self.reached.checkpoint;
            let sums = is_in_sums.then_some(&mut self.sums[0]);
            self.log.walk.feed(self.rules, sums, &event);
        }
        if seq == self.reached.tallied {
            self.sums[1] = self.sums[0].clone();
        }
        Ok(stored.chunks.next(seq, row)?)
    }

    /// Adds the next entry to the tree.
    fn grow(
        &mut self,
        raw: &RawEvent,
        row: &Admitted,
        stored: &mut Stored<'_>,
    ) -> Result<(), Error> {
        let index = &mut self.log.index;
        let is_next = raw.seq.0 == index.edge.size() + 1;
        if !is_next || raw.event_ref.len() != 16 || raw.digest.len() != 32 {
            return Ok(());
        }
        let Admitted { event_ref, time, event_type, digest, .. } = row;
        index.digests.extend(stored.keeps_digests.then_some(*digest));
        let mut entry = String::with_capacity(256);
        write_entry(raw.seq, event_ref, *time, event_type, digest, &mut entry);
        index.grow(entry_hash(entry.as_bytes()), |level, _, hash| stored.tree.add(level, hash));
        Ok(stored.tree.next(raw.seq)?)
    }
}

/// Compares a row with its payload. Returns the event without content.
fn checked(raw: &RawEvent, report: &mut Report) -> Option<Admitted> {
    let place = format!("seq {}", raw.seq);
    let read = read_stored(&raw.payload);
    let digest = read.as_ref().map_or_else(|_| sha256(&[&raw.payload]), |event| event.digest.0);
    let is_its = digest == raw.digest.as_slice();
    let event = match read {
        Ok(event) if is_its => event,
        read => {
            let fault = read.err().filter(|_| is_its);
            let fault = fault.unwrap_or_else(|| "payload and digest do not match".to_owned());
            report.add(GROUND, place, fault);
            return raw.unchecked();
        }
    };
    for part in differences(&event, (&raw.event_ref, raw.time, &raw.event_type)) {
        report.add(GROUND, &place, format!("{part} and payload do not match"));
    }
    if event.columns != raw.columns {
        report.add(BESIDE, place, "typed columns and payload do not match");
    }
    Some(Admitted { canonical: String::new(), ..event })
}
