//! Parcels: lines that went through the door together, on their way to the log.
//!
//! **Invariant:** in a signed file, the events up to an envelope and the envelope stay together.

use ipse_core::Admitted;
use ipse_door::Refusal;
use ipse_engine::SignedBatch;
use ipse_ledger::SentStatement;

/// Lines that went through the door together.
#[derive(Default)]
pub(crate) struct Parcel {
    pub(crate) events: Vec<Admitted>,
    /// The line of each event.
    pub(crate) lines: Vec<u64>,
    pub(crate) refusals: Vec<(u64, Refusal)>,
    pub(crate) last_line: u64,
    pub(crate) endorsed: Option<SignedBatch>,
    /// Whether it ends with an envelope, good or bad.
    pub(crate) sealed: bool,
}

impl Parcel {
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.refusals.is_empty()
    }

    /// How many lines it holds that are not empty.
    pub(crate) fn len(&self) -> usize {
        self.events.len() + self.refusals.len()
    }

    /// Adds what the door made of a line.
    pub(crate) fn add(&mut self, line: u64, admitted: Result<Admitted, Refusal>) {
        match admitted {
            Ok(event) => {
                self.events.push(event);
                self.lines.push(line);
            }
            Err(refusal) => self.refusals.push((line, refusal)),
        }
    }

    /// Takes out the events that no envelope that follows can cover.
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

    /// Ends it with what its envelope says.
    pub(crate) fn seal(&mut self, line: u64, endorsed: Result<Option<SignedBatch>, Refusal>) {
        self.sealed = true;
        match endorsed {
            Ok(endorsed) => self.endorsed = endorsed,
            Err(refusal) => self.refusals.push((line, refusal)),
        }
    }

    /// Adds the parcel that follows.
    pub(crate) fn join(&mut self, next: Parcel) {
        self.events.extend(next.events);
        self.lines.extend(next.lines);
        self.refusals.extend(next.refusals);
        self.last_line = self.last_line.max(next.last_line);
    }
}
