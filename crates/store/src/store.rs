//! One store, by its address: opening, creating, migrating, and a handle for each duty.
//!
//! **Invariants**
//! - Only [`Store::create`] makes a store. [`Store::open`] changes nothing.
//! - Connections that only read are used again: a reader that is dropped leaves its connection for
//!   the next one, as long as the store is still the same one.

use crate::session::{Duty, Engine, Result, Session};
use crate::write::Writer;
use crate::{
    Eraser, Error, HeadWriter, Location, Reader, Registered, Settings, TokenWriter, Watch, sqlite,
};
use ipse_core::Identity;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Idle connections that are kept at most.
const MAX_IDLE: usize = 8;

/// A store. Clones share its idle connections.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    engine: Box<dyn Engine>,
    idle: Mutex<Vec<Box<dyn Session>>>,
}

/// How long to wait for readers that keep erased bytes in the store's files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patience {
    /// Not at all.
    None,
    /// Two seconds.
    Some,
}

/// The result of erasing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Erased {
    /// No file of the store holds forgotten content.
    Gone,
    /// A file may still hold it: another process is in the way. The next process that opens the
    /// store for writing tries again.
    Pending,
}

/// The schema before and after a migration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Migrated {
    /// The version that the store had.
    pub from: usize,
    /// The version that it has now.
    pub to: usize,
}

/// How large the files of a store are, in bytes; 0 for a file that is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileBytes {
    /// The store itself.
    pub store: u64,
    /// Its write-ahead log.
    pub wal: u64,
}

impl Store {
    /// Makes a new store, or opens the one that is there and brings its schema up to date.
    pub fn create(at: &Location) -> Result<Self> {
        match at {
            Location::File(path) => sqlite::create(path)?,
        }
        Self::open(at)
    }

    /// Opens a store. An older or newer schema is an error, and nothing is changed.
    pub fn open(at: &Location) -> Result<Self> {
        let engine: Box<dyn Engine> = match at {
            Location::File(path) => Box::new(sqlite::Sqlite::at(path)),
        };
        Self::over(engine)
    }

    /// A store over an engine.
    pub(crate) fn over(engine: Box<dyn Engine>) -> Result<Self> {
        let store = Store(Arc::new(Inner { engine, idle: Mutex::default() }));
        // An error about the store is reported here. The connection is used for the next question.
        drop(store.reader()?);
        Ok(store)
    }

    /// The same for a store that may have an older schema, which is brought up to date first.
    pub fn open_migrated(at: &Location) -> Result<(Self, Option<Migrated>)> {
        match Self::open(at) {
            Err(Error::Older { .. }) => {
                let migrated = Self::migrate(at)?;
                Ok((Self::open(at)?, migrated))
            }
            opened => Ok((opened?, None)),
        }
    }

    /// Brings the schema of a store up to date; `None` if it is.
    pub fn migrate(at: &Location) -> Result<Option<Migrated>> {
        match at {
            Location::File(path) => sqlite::migrate_at(path),
        }
    }

    /// The address of the store.
    pub fn location(&self) -> &Location {
        self.0.engine.location()
    }

    /// How large the files of the store are.
    pub fn file_bytes(&self) -> FileBytes {
        match self.location() {
            Location::File(path) => sqlite::file_bytes(path),
        }
    }

    /// Opens the store for reading.
    pub fn reader(&self) -> Result<Reader> {
        let idle = || self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        while let Some(session) = idle() {
            if session.is_usable() {
                return Ok(Reader::new(self.clone(), session));
            }
        }
        Ok(Reader::new(self.clone(), self.0.engine.session(Duty::Read)?))
    }

    /// Opens the log of an identity for appending and for passes, and for nothing else.
    pub fn writer(&self, of: &Identity) -> Result<Writer> {
        Writer::open(self, of, Duty::Write)
    }

    /// Opens the log of an identity for forgetting.
    pub fn eraser(&self, of: &Identity) -> Result<Eraser> {
        Ok(Eraser(Writer::open(self, of, Duty::Forget)?))
    }

    /// Opens the log of an identity for tree heads, and for nothing else.
    pub fn heads(&self, of: &Identity) -> Result<HeadWriter> {
        HeadWriter::open(self, of)
    }

    /// Opens the store for access tokens, and for nothing else.
    pub fn tokens(&self) -> Result<TokenWriter> {
        TokenWriter::open(self)
    }

    /// Opens the store for settings, and for nothing else.
    pub fn settings(&self) -> Result<Settings> {
        Settings::open(self)
    }

    /// Registers a manifest by its canonical bytes; one that is there already stays as it is.
    pub fn register(&self, canonical: &str) -> Result<Registered> {
        self.writing(Duty::Register)?.register(canonical)
    }

    /// Begins to watch the store.
    pub fn watch(&self) -> Result<Watch> {
        Ok(Watch::new(self.reader()?))
    }

    /// Erases what was forgotten and may still be in the store's files.
    pub fn finish_erasing(&self, patience: Patience) -> Result<Erased> {
        if !self.reader()?.erase_pending()? && patience == Patience::None {
            return Ok(Erased::Gone);
        }
        // An idle connection is not in the way, but a reader of this process may be.
        self.0.engine.finish_erasing(patience)
    }

    /// Writes a compact copy of the whole store to a path where nothing is.
    pub fn copy_to(&self, path: &Path) -> Result<()> {
        self.0.engine.copy_to(path)
    }

    /// Opens a connection that writes. Idle readers are closed first: an engine may have to repair
    /// its files while no other connection has them open.
    pub(crate) fn writing(&self, duty: Duty) -> Result<Writing> {
        self.close_idle();
        Ok(Writing { session: self.0.engine.session(duty)?, store: self.clone() })
    }

    #[cfg(feature = "faults")]
    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.0.engine
    }

    /// Keeps the connection of a reader for the next one.
    pub(crate) fn keep(&self, session: Box<dyn Session>) {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push(session);
        }
    }

    /// Closes the connections that no reader uses.
    fn close_idle(&self) {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// A connection that writes. When it is dropped, idle readers are closed first: the last connection
/// of a file must be able to write, so that it leaves the file without a write-ahead log.
pub(crate) struct Writing {
    session: Box<dyn Session>,
    store: Store,
}

impl Writing {
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}

impl Deref for Writing {
    type Target = dyn Session;

    fn deref(&self) -> &Self::Target {
        &*self.session
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.store.close_idle();
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(self.location()).finish()
    }
}
