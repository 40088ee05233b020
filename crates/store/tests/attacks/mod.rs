//! Attacks on the file and its connections: each is rejected and changes nothing.

mod artefacts;
mod cosignatures;
mod guards;
mod removal;
mod tokens;

use super::session::Connected;
use crate::session::Duty;
use crate::{Location, Store};
use std::path::Path;

/// Opens a store.
fn open(path: &Path) -> Result<Store, crate::Error> {
    Store::open(&Location::file(path))
}

/// Creates a store.
fn create(path: &Path) -> Result<Store, crate::Error> {
    Store::create(&Location::file(path))
}

/// A connection with a duty, for SQL statements that its handle has no method for.
struct Guarded(Connected);

impl Guarded {
    fn of(path: &Path, duty: Duty) -> Self {
        Guarded(Connected::open(path, duty).unwrap())
    }

    fn try_statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.0.connection.execute_batch(sql)
    }
}
