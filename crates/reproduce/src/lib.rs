//! The paper, executable: V1, V2, V3, the sweeps D, the runtime G, and V3's question to real logs.
//!
//! **Invariants**
//! - What an agent lives through goes into a real store, and what its planner decides on comes from
//!   there: no experiment hands itself a figure.
//! - Random numbers are those of CPython and NumPy, bit for bit, and intervals those of SciPy to
//!   1e-9; floating point is at home here, and nowhere below.
//! - Clock, randomness, scratch directory and progress are arguments. Nothing is written but
//!   scratch stores: a report is handed back as files in memory.
#![forbid(unsafe_code)]

mod attempt;
pub mod bca;
pub mod errata;
mod error;
pub mod example;
pub mod figures;
pub mod lab;
mod normal;
pub mod printed;
pub mod random;
pub mod real;
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
