//! The logs that passes are timed on: a growing store, and copies of it.
//!
//! **Invariants**
//! - The door validates all events, and they are appended durably. No pass runs on the growing
//!   store.
//! - A copy is made of a closed store with an empty write-ahead log, and it is synced. A timed
//!   commit therefore does not wait for bytes of the copy.
//! - A store is deleted when its [`Scratch`] is dropped.

use super::Work;
use crate::attempt::Attempt;
use crate::lab::{BATCH, Lab, manifest};
use crate::random::Python;
use crate::scene::Target;
use crate::v3::SEEDS;
use crate::{Error, Workload};
use ipse_core::{Admitted, Identity};
use ipse_door::{Origin, admit};
use ipse_engine::{Log, NextStep};
use ipse_store::{Location, Store};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The numbers of keys: the paper's two skills, and a thousand.
pub(super) const KEYS: [u64; 2] = [TWO_SKILLS, 1000];
const TWO_SKILLS: u64 = 2;
/// The suffixes of SQLite's files next to an open store.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// A stream and the store that its events are appended to.
pub(super) struct Stream<'l> {
    /// Distinct keys.
    pub(super) keys: u64,
    /// Events appended so far.
    pub(super) events: u64,
    /// The identity of the log.
    pub(super) identity: Identity,
    lines: Box<dyn Iterator<Item = String>>,
    lab: &'l Lab<'l>,
    store: Scratch,
}

impl<'l> Stream<'l> {
    /// A stream with an empty store.
    pub(super) fn begin(lab: &'l Lab<'l>, keys: u64) -> Result<Self, Error> {
        let name = format!("g with {keys} keys");
        let store = Scratch::new(lab.store(&format!("g-{keys}")))?;
        let manifest = manifest(&name)?;
        let identity =
            Store::create(&Location::file(&store.path))?.register(&manifest.canonical())?.identity;
        Ok(Stream { keys, events: 0, identity, lines: lines(keys), lab, store })
    }

    /// Appends events until the store has `to` of them.
    pub(super) fn grow(&mut self, to: u64, work: &mut Work<'_>) -> Result<(), Error> {
        let mut log = self.open(&self.store)?;
        while self.events < to {
            let count = (to - self.events).min(BATCH as u64);
            let lines = self.lines.by_ref().take(count as usize);
            let events = lines
                .map(|line| admit(line.as_bytes(), Origin::Producer, || log.host().salt()))
                .collect::<Result<Vec<Admitted>, _>>()?;
            log.append(&events, NextStep::Nothing)?;
            self.events += count;
            work.did(count);
        }
        Ok(())
    }

    /// Copies the store in its current state.
    pub(super) fn copy(&self) -> Result<Scratch, Error> {
        // The last connection that closes a store empties its write-ahead log.
        if length(&beside(&self.store.path, BESIDE[0]))? > 0 {
            return Err(
                io::Error::other("the write-ahead log of a closed store is not empty").into()
            );
        }
        let copy = Scratch::new(self.lab.store(&format!("g-{}-copy", self.keys)))?;
        fs::copy(&self.store.path, &copy.path)?;
        File::open(&copy.path)?.sync_all()?;
        Ok(copy)
    }

    /// Opens the log of the store, or of a copy of it.
    pub(super) fn open(&self, store: &Scratch) -> Result<Log, Error> {
        Ok(Log::open(&store.open()?, self.identity, (self.lab.host)())?)
    }
}

/// The endless lines of a stream.
fn lines(keys: u64) -> Box<dyn Iterator<Item = String>> {
    if keys == TWO_SKILLS { Box::new(two_skills()) } else { Box::new(Workload::new(keys, 0)) }
}

/// V3's history, repeated: four attempts at the glass, then one at the unknown object. Its failures
/// have no reason, so there are never more than two facts.
fn two_skills() -> impl Iterator<Item = String> {
    let mut random = Python::new(SEEDS[0]);
    (0..).map(move |number: u32| {
        let target = if number % 5 < 4 { Target::Glass } else { Target::Unknown };
        let (name, success) = (Some(target.name()), target.holds(&mut random));
        Attempt { number, target: name, success, force: None }.line()
    })
}

/// A store that is deleted when it is dropped.
pub(super) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    fn new(path: PathBuf) -> Result<Self, Error> {
        let scratch = Scratch { path };
        // A run that died may have left files here; they would mix with the new events.
        scratch.remove()?;
        Ok(scratch)
    }

    /// Opens the store.
    pub(super) fn open(&self) -> Result<Store, Error> {
        Ok(Store::open(&Location::file(&self.path))?)
    }

    /// Bytes of the file and of its write-ahead log.
    pub(super) fn bytes(&self) -> Result<u64, Error> {
        Ok(length(&self.path)? + length(&beside(&self.path, BESIDE[0]))?)
    }

    fn remove(&self) -> io::Result<()> {
        let others = BESIDE.map(|suffix| beside(&self.path, suffix));
        for path in others.iter().chain([&self.path]) {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If this fails, the caller deletes the files with the lab's directory.
        let _ = self.remove();
    }
}

/// The path of an SQLite file next to a store.
fn beside(store: &Path, suffix: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Bytes of a file; 0 if it does not exist.
fn length(path: &Path) -> io::Result<u64> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        metadata => Ok(metadata?.len()),
    }
}
