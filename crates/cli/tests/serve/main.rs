//! The server as in production: the real binary, real sockets, good and bad clients.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)]

mod actions;
mod append;
mod chance;
mod client;
mod clients;
mod cloud_events;
mod dev;
mod drift;
mod early;
mod equal;
mod events;
mod failing;
mod fair;
mod gates;
mod hosts;
mod identities;
mod killed;
mod limits;
mod load;
mod logged;
mod matrix;
mod metrics;
mod notified;
mod plan;
#[allow(dead_code)]
#[path = "../cli/planned.rs"]
mod planned;
mod rolled_back;
mod semantic;
mod server;
mod settings;
mod spool;
mod stopping;
#[allow(dead_code)]
#[path = "../cli/store.rs"]
mod store;
mod streaming;
#[cfg(feature = "tls")]
mod tls;
