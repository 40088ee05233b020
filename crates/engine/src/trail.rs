//! The walk back from an action, over a store.

use crate::Error;
use ipse_core::{Seq, is_housekeeping};
use ipse_ledger::account::forgotten_names;
use ipse_store::sqlite::View;

/// Whether an event up to a position that may have fed a fact was forgotten after it.
pub(crate) fn forgotten_since(view: View<'_>, seq: Seq) -> Result<bool, Error> {
    let mut found = false;
    view.each_content(seq.next()..=view.head()?, Some("forget"), |payload| {
        for name in forgotten_names(payload.as_bytes()).into_iter().flatten() {
            let place = if found { None } else { view.find(&name)? };
            let Some(place) = place.filter(|place| *place <= seq) else { continue };
            let gone = view.stored(place)?.is_some_and(|gone| !is_housekeeping(&gone.event_type));
            found = found || gone;
        }
        Ok::<_, Error>(())
    })?;
    Ok(found)
}
