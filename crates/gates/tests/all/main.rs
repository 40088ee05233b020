//! The gates from outside: tables of cases for each gate and each file, and chance.
#![allow(missing_docs, clippy::unwrap_used)]

mod cases;
mod chance;
mod errors;
mod examples;
mod fixture;
mod intents;
mod mutate;
mod oracle;
