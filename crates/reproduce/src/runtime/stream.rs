//! The logs that passes are timed on: a store that grows, and copies of it.
//!
//! **Invariants**
//! - Events pass the door and are appended durably; the store that grows never sees a pass.
//! - A copy is made of a closed store, when its write-ahead log is empty, and is synced: a commit
//!   that is timed later does not wait for bytes of the copy.
//! - No store outlives the value that stands for it.

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

/// Keys of the streams: the paper's two skills, and a thousand.
pub(super) const KEYS: [u64; 2] = [TWO_SKILLS, 1000];
const TWO_SKILLS: u64 = 2;
/// What SQLite puts beside a store while it is open.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// A stream and the store that it has gone into so far.
pub(super) struct Stream<'l> {
    /// Distinct keys.
    pub(super) keys: u64,
    /// Events so far.
    pub(super) events: u64,
    /// Whose log it is.
    pub(super) identity: Identity,
    lines: Box<dyn Iterator<Item = String>>,
    lab: &'l Lab<'l>,
    store: Scratch,
}

impl<'l> Stream<'l> {
    /// A stream of which nothing has come yet.
    pub(super) fn begin(lab: &'l Lab<'l>, keys: u64) -> Result<Self, Error> {
        let name = format!("g with {keys} keys");
        let store = Scratch::new(lab.store(&format!("g-{keys}")))?;
        let manifest = manifest(&name)?;
        let identity =
            Store::create(&Location::file(&store.path))?.register(&manifest.canonical())?.identity;
        Ok(Stream { keys, events: 0, identity, lines: lines(keys), lab, store })
    }

    /// Lets the store grow to `to` events.
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

    /// A copy of the store as it is.
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

/// The lines of a stream, without end.
fn lines(keys: u64) -> Box<dyn Iterator<Item = String>> {
    if keys == TWO_SKILLS { Box::new(two_skills()) } else { Box::new(Workload::new(keys, 0)) }
}

/// V3's history, gone on with: four attempts at the glass and one at the unknown object, in turn.
/// Failures have no reason there, so no more than two facts come of it, however long it is.
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
        // What a run that died left there would mix with what comes now.
        scratch.remove()?;
        Ok(scratch)
    }

    /// Opens it.
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
        // If it cannot go, it goes with the lab's directory.
        let _ = self.remove();
    }
}

/// The file that SQLite puts beside a store.
fn beside(store: &Path, suffix: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Bytes of a file; none if it is not there.
fn length(path: &Path) -> io::Result<u64> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        metadata => Ok(metadata?.len()),
    }
}
