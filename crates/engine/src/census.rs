//! Counting events, from chunks where they exist.

use crate::Error;
use ipse_core::chunk::{Chunk, Dictionary};
use ipse_core::{Event, Seq, event, is_housekeeping};
use ipse_store::{Scan, View};
use std::ops::Range;

/// The number of events of a log, without housekeeping.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Census {
    /// Events that are not forgotten.
    pub events: u64,
    /// Forgotten events.
    pub forgotten: u64,
}

/// Counts the events of a log.
pub fn census(view: View<'_>) -> Result<Census, Error> {
    let mut census = Census::default();
    view.scan(Seq(1)..=view.head()?, &mut census)?;
    Ok(census)
}

impl Census {
    fn add(&mut self, event_type: &str, count: u64) {
        if event_type == event::FORGOTTEN {
            self.forgotten += count;
        } else if !is_housekeeping(event_type) {
            self.events += count;
        }
    }
}

impl Scan<Error> for Census {
    fn chunk(&mut self, first: Seq, chunk: &Chunk<'_>, places: Range<usize>) -> Result<(), Error> {
        let damaged = || Error::Damaged(format!("chunk from seq {first} on"));
        let dictionary = Dictionary::decode(chunk.dictionary).ok_or_else(damaged)?;
        let types = &dictionary.fields[0];
        let mut counts = vec![0; types.len()];
        for place in places {
            let code = chunk.fields[0].get(place).ok_or_else(damaged)?;
            *counts.get_mut(code).ok_or_else(damaged)? += 1;
        }
        for (id, count) in types.iter().zip(counts) {
            let text = id.checked_sub(1).and_then(|place| dictionary.texts.get(place));
            self.add(text.ok_or_else(damaged)?, count);
        }
        Ok(())
    }

    fn event(&mut self, _: Seq, event: &Event<'_>) -> Result<(), Error> {
        self.add(event.event_type, 1);
        Ok(())
    }
}
