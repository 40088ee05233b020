//! What the file and the connections refuse: the attack, each time, and that nothing moved.

mod guards;
mod tokens;

use super::session::Connected;
use crate::session::Duty;
use crate::{Location, Store};
use std::path::Path;

/// Opens a store.
fn open(path: &Path) -> Result<Store, crate::Error> {
    Store::open(&Location::file(path))
}

/// Makes a store.
fn create(path: &Path) -> Result<Store, crate::Error> {
    Store::create(&Location::file(path))
}

/// A connection of a duty, to run statements on that its handle has no method for.
struct Guarded(Connected);

impl Guarded {
    fn of(path: &Path, duty: Duty) -> Self {
        Guarded(Connected::open(path, duty).unwrap())
    }

    fn try_statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.0.connection.execute_batch(sql)
    }
}
