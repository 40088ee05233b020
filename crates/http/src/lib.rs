//! Planners read, producers append, over HTTP.
#![forbid(unsafe_code)]

mod problem;
mod query;
