//! Refusals of events that passed the door and were not stored.

use crate::SignatureError;
use ipse_door::{Refusal, Rule};
use ipse_store::Appended;

/// The refusal of an event that was not stored, given the reason why the signature of its batch was
/// rejected; `None` if it is in the log.
pub fn refusal_under(appended: Appended, unkept: Option<&SignatureError>) -> Option<Refusal> {
    match (appended, unkept) {
        (Appended::Unsigned, Some(error @ SignatureError::SourceNotAllowed(..))) => {
            Some(error.refusal())
        }
        _ => refusal_of(appended),
    }
}

/// The refusal of an event that was not stored; `None` if it is in the log.
pub fn refusal_of(appended: Appended) -> Option<Refusal> {
    match appended {
        Appended::New(_) | Appended::Duplicate(_) => None,
        Appended::Conflict(seq) => {
            let message = format!(
                "seq {seq} has this source and id with other content; send a correction with a \
                 new id"
            );
            Some(Refusal::new("id", Rule::Conflict, &message))
        }
        Appended::Forgotten(seq) => {
            let message = format!("seq {seq} had this source and id and was forgotten");
            Some(Refusal::new("id", Rule::Forgotten, &message))
        }
        Appended::Unsigned => {
            let message = "this log takes signed events only, and this one is not signed";
            Some(Refusal::new("", Rule::Unsigned, message))
        }
        Appended::Ahead(latest) => {
            let message = format!(
                "too far ahead of the clock here: this log takes events up to {latest} now \
                 (setting max-ahead)"
            );
            Some(Refusal::new("time", Rule::TimeAhead, &message))
        }
    }
}
