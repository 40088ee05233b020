//! The paper's experiments: V1, V2, V3, the sweeps D and the runtime G; and the
//! evaluation of planners on real logs and in made worlds.
//!
//! **Invariants**
//! - Every event of an experiment goes into a real store, and planners decide on facts read from
//!   it. No experiment feeds itself a figure.
//! - Random numbers are those of CPython and NumPy, bit for bit, and intervals those of SciPy to
//!   1e-9. Floating point is used in this crate and not in the crates below it.
//! - Clock, randomness, scratch directory and progress are arguments. Only scratch stores are
//!   written to disk; a report is returned as files in memory.
#![forbid(unsafe_code)]

mod attempt;
pub mod bca;
pub mod clamp;
pub mod errata;
mod error;
pub mod evaluate;
pub mod example;
pub mod figures;
pub mod lab;
mod normal;
pub mod printed;
pub mod random;
pub mod report;
pub mod results;
pub mod runtime;
pub mod scene;
pub mod sweeps;
pub mod table;
pub mod v1;
pub mod v2;
pub mod v3;
mod v3_table;
mod workload;

pub use error::Error;
pub use v3_table::V3;
pub use workload::Workload;
