//! The command line, used as people and programs use it.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)]

mod actions;
mod acts;
mod bad_input;
#[cfg(feature = "experiments")]
mod bench;
mod by_time;
mod change;
mod commands;
mod conventions;
mod damage;
mod documents;
#[cfg(feature = "experiments")]
mod evaluate;
mod explain;
mod files;
mod foreign_keys;
mod forget;
mod gates;
mod identity;
mod import;
mod key_files;
mod keys;
mod kill;
mod ledger;
mod logs;
mod mistakes;
mod older;
mod plan;
mod planned;
#[cfg(feature = "experiments")]
mod reproduce;
mod retention;
mod rules;
mod shell;
mod signed;
mod signing;
mod store;
mod tokens;
mod witness;
