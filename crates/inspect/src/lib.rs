//! Read, explain, compare and verify the logs in a store.
//!
//! **Invariants**
//! - Every function reads one snapshot of a store on a read-only connection. No function appends,
//!   forgets, repairs or signs.
//! - An answer is a value. Its JSON and its text are computed from it alone, so the command line
//!   and HTTP return the same members for the same query.
//! - This crate does not depend on `ipse-manifest`.
//!
//! ```compile_fail,E0432
//! use ipse_manifest::Manifest;
//! ```
#![forbid(unsafe_code)]

pub mod answer;
mod consistency;
mod diff;
mod drift;
pub mod explain;
mod intents;
mod log;
mod log_search;
mod log_summary;
mod look;
mod moment;
mod page;
mod passes;
mod plan;
mod preview;
mod proof;
mod report;
mod rules;
mod signers;
mod skills;
mod standing;
pub mod verify;
mod walk;
mod witness;

pub use consistency::{Comparison, Consistency, ConsistencyAnswer, compare, prove_consistency};
pub use diff::{Changed, Diff, Figure, diff};
pub use drift::{DriftSeries, drift, drift_page, watches_drift};
pub use intents::IntentPage;
pub use ipse_consolidate::Rules;
pub use ipse_consolidate::days::{Day, read_day};
pub use ipse_consolidate::drift::DriftReport;
pub use ipse_engine::Error;
pub use log::{LogEntry, LogPage, LogQuery, LogRow, to_seconds};
pub use log_search::{Found, LogFilter, LogSearch, SearchCost};
pub use look::{Derivation, Look, PastFacts};
pub use moment::{DayEdge, Moment, MomentError, Position, read_time};
pub use page::{Block, Page};
pub use passes::{PassEntry, PassPage};
pub use plan::{AttemptAdvice, PlannedAttempt, ValueAdvice, default_candidates};
pub use preview::{Preview, preview, preview_under};
pub use proof::{Heads, Proof, SignedHead, prove};
pub use rules::{Activity, RuleSetInfo, RulesList, RulesStep, report_page};
pub use signers::{SignedBy, Signers};
pub use skills::{SkillRow, Skills};
pub use standing::{Difference, ManifestComparison, Standing};
pub use walk::StoreRecord;
pub use witness::{RequestAnswer, cosign_request, request_json};
