//! The planned part of a fact's evidence.
//!
//! **Invariant:** a log without intents is not scanned: its chunks show that it has none.

use crate::Error;
use crate::walk::StoreRecord;
use ipse_consult::trail::{AttemptStanding, Standings};
use ipse_core::chunk::{Chunk, Dictionary};
use ipse_core::intent::{CONFIRMATION, INTENT};
use ipse_core::{Event, Seq};
use ipse_store::{Scan, View};
use std::collections::BTreeSet;
use std::ops::Range;

/// The standings of the attempts that a fact rests on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Planned {
    /// Whether the log has an intent.
    pub any_intent: bool,
    /// The number of planned attempts.
    pub planned: u64,
    /// The number of attempts against the gates.
    pub against: u64,
}

impl Planned {
    /// Counts the attempts at these positions. Reads none of them in a log without intents.
    pub(crate) fn among(
        view: View<'_>,
        seqs: impl FnOnce() -> Result<Vec<Seq>, Error>,
    ) -> Result<Self, Error> {
        let Some(first) = first_intent(view)? else { return Ok(Planned::default()) };
        let mut count = Planned { any_intent: true, ..Planned::default() };
        let seqs: BTreeSet<Seq> = seqs()?.into_iter().collect();
        let Some(last) = seqs.last() else { return Ok(count) };
        let record = StoreRecord(view);
        let mut standings = Standings::new(&record);
        view.each_holding("\"intent\":\"ev_", first..=*last, |seq, canonical| {
            if !seqs.contains(&seq) {
                return Ok(());
            }
            match standings.of(seq, Some(canonical))?.1 {
                AttemptStanding::Planned => count.planned += 1,
                AttemptStanding::AgainstGates => count.against += 1,
                _ => {}
            }
            Ok::<_, Error>(())
        })?;
        Ok(count)
    }
}

/// The approximate position of the first intent or confirmation that is not forgotten. Sealed
/// chunks are read instead of events, so a log without intents costs next to nothing.
fn first_intent(view: View<'_>) -> Result<Option<Seq>, Error> {
    let mut search = FirstIntent(None);
    view.scan(Seq(1)..=view.head()?, &mut search)?;
    Ok(search.0)
}

struct FirstIntent(Option<Seq>);

impl FirstIntent {
    fn add(&mut self, seq: Seq, event_type: &str) {
        // A confirmation stays when its intent is forgotten.
        if self.0.is_none() && matches!(event_type, INTENT | CONFIRMATION) {
            self.0 = Some(seq);
        }
    }
}

impl Scan<Error> for FirstIntent {
    fn chunk(&mut self, first: Seq, chunk: &Chunk<'_>, _: Range<usize>) -> Result<(), Error> {
        if self.0.is_some() {
            return Ok(());
        }
        let damaged = || Error::Damaged(format!("chunk from seq {first} on"));
        let dictionary = Dictionary::decode(chunk.dictionary).ok_or_else(damaged)?;
        for id in &dictionary.fields[0] {
            let text = id.checked_sub(1).and_then(|place| dictionary.texts.get(place));
            self.add(first, text.ok_or_else(damaged)?);
        }
        Ok(())
    }

    fn event(&mut self, seq: Seq, event: &Event<'_>) -> Result<(), Error> {
        self.add(seq, event.event_type);
        Ok(())
    }
}
