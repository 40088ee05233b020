//! A store by its address: create, open, migrate, and open a handle for one duty.
//!
//! **Invariants**
//! - Only [`Store::create`] creates a store. [`Store::open`] changes nothing.
//! - Read-only connections are reused: a dropped reader returns its connection to a pool. A pooled
//!   connection is discarded if the store file was replaced.

use crate::session::{Duty, Engine, Result, Session};
use crate::write::Writer;
use crate::{
    CosignatureWriter, Eraser, Error, HeadWriter, Location, Reader, Registered, Settings,
    TokenWriter, Watch, sqlite,
};
use ipse_core::Identity;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of idle connections.
const MAX_IDLE: usize = 8;

/// A store. Clones share its idle connections.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    engine: Box<dyn Engine>,
    idle: Mutex<Vec<Box<dyn Session>>>,
}

/// How long to wait for readers that keep forgotten content in the store's files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Patience {
    /// Do not wait.
    None,
    /// Wait up to two seconds.
    Some,
}

/// The result of erasing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Erased {
    /// No file of the store holds forgotten content.
    Gone,
    /// A file may still hold forgotten content, because another process uses it. The next process
    /// that opens the store for writing retries.
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

/// The sizes of the files of a store in bytes; 0 for a missing file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileBytes {
    /// The main file.
    pub store: u64,
    /// The write-ahead log.
    pub wal: u64,
}

impl Store {
    /// Creates a store. If it exists, opens it and migrates its schema.
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
        // Reports an error about the store now. The connection is reused for the next read.
        drop(store.reader()?);
        Ok(store)
    }

    /// Opens a store, and migrates its schema first if it is older.
    pub fn open_migrated(at: &Location) -> Result<(Self, Option<Migrated>)> {
        match Self::open(at) {
            Err(Error::Older { .. }) => {
                let migrated = Self::migrate(at)?;
                Ok((Self::open(at)?, migrated))
            }
            opened => Ok((opened?, None)),
        }
    }

    /// Migrates the schema of a store; `None` if it is up to date.
    pub fn migrate(at: &Location) -> Result<Option<Migrated>> {
        match at {
            Location::File(path) => sqlite::migrate_at(path),
        }
    }

    /// The address of the store.
    pub fn location(&self) -> &Location {
        self.0.engine.location()
    }

    /// The sizes of the files of the store.
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

    /// Opens the log of an identity for appending and passes only.
    pub fn writer(&self, of: &Identity) -> Result<Writer> {
        Writer::open(self, of, Duty::Write)
    }

    /// Opens the log of an identity for forgetting.
    pub fn eraser(&self, of: &Identity) -> Result<Eraser> {
        Ok(Eraser(Writer::open(self, of, Duty::Forget)?))
    }

    /// Opens the log of an identity for storing tree heads only.
    pub fn heads(&self, of: &Identity) -> Result<HeadWriter> {
        HeadWriter::open(self, of)
    }

    /// Opens the log of an identity for storing cosignatures of witnesses only.
    pub fn cosigner(&self, of: &Identity) -> Result<CosignatureWriter> {
        CosignatureWriter::open(self, of)
    }

    /// Opens the store for access tokens only.
    pub fn tokens(&self) -> Result<TokenWriter> {
        TokenWriter::open(self)
    }

    /// Opens the store for settings only.
    pub fn settings(&self) -> Result<Settings> {
        Settings::open(self)
    }

    /// Registers a manifest by its canonical bytes. A registered manifest does not change.
    pub fn register(&self, canonical: &str) -> Result<Registered> {
        self.writing(Duty::Register)?.register(canonical)
    }

    /// Removes an identity with its tokens, producers and settings. Fails with
    /// [`Error::NotEmpty`] if its log has an event.
    pub fn remove(&self, identity: &Identity) -> Result<()> {
        let session = self.writing(Duty::Register)?;
        let log = session.log(identity)?;
        session.remove(log.ok_or_else(|| Error::UnknownIdentity(identity.to_string()))?)
    }

    /// Starts to watch the store for changes.
    pub fn watch(&self) -> Result<Watch> {
        Ok(Watch::new(self.reader()?))
    }

    /// Erases forgotten content that may still be in the store's files.
    pub fn finish_erasing(&self, patience: Patience) -> Result<Erased> {
        if !self.reader()?.erase_pending()? && patience == Patience::None {
            return Ok(Erased::Gone);
        }
        // An idle connection does not block this, but an open reader of this process may.
        self.0.engine.finish_erasing(patience)
    }

    /// Writes a compact copy of the whole store to a new path.
    pub fn copy_to(&self, path: &Path) -> Result<()> {
        self.0.engine.copy_to(path)
    }

    /// Opens a connection that writes. Closes idle readers first: an engine may have to repair its
    /// files while no other connection has them open.
    pub(crate) fn writing(&self, duty: Duty) -> Result<Writing> {
        self.close_idle();
        Ok(Writing { session: self.0.engine.session(duty)?, store: self.clone() })
    }

    #[cfg(feature = "faults")]
    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.0.engine
    }

    /// Returns the connection of a reader to the pool.
    pub(crate) fn keep(&self, session: Box<dyn Session>) {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push(session);
        }
    }

    /// Closes the pooled connections.
    fn close_idle(&self) {
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// A connection that writes. Its drop closes idle readers first: the last connection to a file
/// must be able to write, so that it removes the write-ahead log.
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
