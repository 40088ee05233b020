//! Parcels: lines that passed the door together, on their way to the log.
//!
//! **Invariant:** in a signed file, the events up to an envelope and the envelope stay together.

use ipse_core::Admitted;
use ipse_door::Refusal;
use ipse_engine::SignedBatch;
use ipse_ledger::SentStatement;

/// Lines that passed the door together.
#[derive(Default)]
pub(crate) struct Parcel {
    pub(crate) events: Vec<Admitted>,
    /// The line of each event.
    pub(crate) lines: Vec<u64>,
    pub(crate) refusals: Vec<(u64, Refusal)>,
    pub(crate) last_line: u64,
    pub(crate) endorsed: Option<SignedBatch>,
    /// Whether it ends with an envelope, valid or not.
    pub(crate) sealed: bool,
}

impl Parcel {
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.refusals.is_empty()
    }

    /// The number of lines that are not empty.
    pub(crate) fn len(&self) -> usize {
        self.events.len() + self.refusals.len()
    }

    /// Adds the result of the door for a line.
    pub(crate) fn add(&mut self, line: u64, admitted: Result<Admitted, Refusal>) {
        match admitted {
            Ok(event) => {
                self.events.push(event);
                self.lines.push(line);
            }
            Err(refusal) => self.refusals.push((line, refusal)),
        }
    }

    /// Removes and returns the events that no later envelope can cover.
    pub(crate) fn split(&mut self) -> Parcel {
        let unsigned = self.events.len().saturating_sub(SentStatement::MAX_EVENTS);
        let (events, lines) = (self.events.split_off(unsigned), self.lines.split_off(unsigned));
        let last_line = self.last_line;
        let refusals = std::mem::take(&mut self.refusals);
        let older =
            std::mem::replace(self, Parcel { events, lines, last_line, ..Parcel::default() });
        let last_line = older.lines.last().copied().unwrap_or_default();
        Parcel { refusals, last_line, ..older }
    }

    /// Ends the parcel with the result of its envelope.
    pub(crate) fn seal(&mut self, line: u64, endorsed: Result<Option<SignedBatch>, Refusal>) {
        self.sealed = true;
        match endorsed {
            Ok(endorsed) => self.endorsed = endorsed,
            Err(refusal) => self.refusals.push((line, refusal)),
        }
    }

    /// Appends the next parcel.
    pub(crate) fn join(&mut self, next: Parcel) {
        self.events.extend(next.events);
        self.lines.extend(next.lines);
        self.refusals.extend(next.refusals);
        self.last_line = self.last_line.max(next.last_line);
    }
}
