//! Append, passes, tree heads, forgetting and folding over a store.
//!
//! **Invariants**
//! - Facts, checkpoint and pass record commit together; a pass without new events writes nothing.
//! - The cost of a pass depends on the new events, not on the history: sums are cached in memory,
//!   saved from time to time, and read from the store only if a new event changes them.
//! - Facts follow the rules that the log names ([`rules_of`]); a function whose name ends in
//!   `_under` takes rules of the caller's choice instead.
//! - Clock and randomness are arguments ([`Host`]).
//! - This crate does not depend on `ipse-manifest`: a pass cannot read who the agent is.
//!
//! ```compile_fail,E0432
//! use ipse_manifest::Manifest;
//! ```
#![forbid(unsafe_code)]

mod answer;
mod arrival;
mod as_of;
mod census;
mod changes;
mod cosign;
mod differences;
mod error;
mod fact_table;
mod forget;
mod governor;
mod head;
mod hot_sums;
mod latest;
mod log;
mod memory;
mod pass;
mod rebuild;
mod refused;
mod rehearsal;
mod restore;
mod rules;
mod rules_change;
mod rules_report;
mod scan;
mod signed;
mod signed_batch;
mod skill_sums;
mod watch;

pub use answer::{consolidated_json, pass_json};
pub use arrival::{TYPE_HINT, decode_data, event_of, hint_of, type_hint};
pub use as_of::{
    AsOf, Start, as_of, as_of_from, as_of_under, as_of_with, chosen_as_of, chosen_as_of_under,
    chosen_as_of_with,
};
pub use census::{Census, census};
pub use cosign::{Cosigning, add_cosignature, keep_cosignatures};
pub use error::Error;
pub use fact_table::FactTable;
pub use forget::{Forgotten, SelectedEvents, Selection};
pub use governor::{
    Governor, SignChange, governance, owes_key_change, producer_key, settings_of, token_id,
    token_record,
};
pub use head::{HEAD_EVERY, Notary, check_head, head_of, sign_head};
pub use hot_sums::{SAVE_EVERY, SLICE, stored_group};
pub use ipse_consult::trail::{EventRecord, IntentStanding, Proposal};
pub use ipse_consult::{Basis, Claim, Consultation, Echo, MAX_FACTS, Status};
pub use ipse_consult::{facts, grounding, trail};
pub use ipse_ledger::account::{MAX_SKIPPED_TYPES, Skipped};
pub use ipse_store::Appended;
pub use log::{Acknowledged, Host, Log, LogView, NextStep};
pub use memory::{Memory, Policy};
pub use pass::{PassCommitted, PassReport, Trigger};
pub use rebuild::{Rebuilt, rebuild, rebuild_under, rebuild_without};
pub use refused::{refusal_of, refusal_under};
pub use rehearsal::Rehearsal;
pub use restore::{CompleteLog, restore, restore_under};
pub use rules::{
    known as known_rules, name_of as rules_name, rules_at, rules_history, rules_name_at, rules_of,
};
pub use rules_change::{RulesChange, RulesError};
pub use rules_report::{ChangedFact, KindCounts, RulesReport};
pub use scan::{fold_range, group_without_source};
pub use signed_batch::{SignatureError, SignedBatch, registered};
pub use skill_sums::{skill_sum, skill_sums, skill_sums_until};
pub use watch::Watch;
