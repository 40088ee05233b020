//! The trail of an action: standings, deviations, consultations, and the page.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

mod consulted;
mod grounding;
mod hostile;
mod log;
mod page;
mod standing;
