//! The write-ahead log: its removal or replacement is detected, it is rewritten after a crash, and
//! it is checked for damage.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse_core::{Admitted, Identity};
use ipse_door::{Origin, admit};
use ipse_store::{Error, Location, Store, Writer};
use rusqlite::Connection;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

struct World {
    directory: TempDir,
    path: PathBuf,
    identity: Identity,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let identity = Store::create(&Location::file(&path))
            .unwrap()
            .register("{\"agent_id\":\"a\"}")
            .unwrap()
            .identity;
        World { directory, path, identity }
    }

    fn open(&self) -> Store {
        Store::open(&Location::file(&self.path)).unwrap()
    }

    fn writer(&self) -> Writer {
        self.open().writer(&self.identity).unwrap()
    }

    fn events(&self) -> u64 {
        let reader = self.open().reader().unwrap();
        reader.view(&self.identity).unwrap().view().head().unwrap().0
    }

    /// The store as a power cut leaves it now: without its shared memory.
    fn crashed(&self) -> World {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        std::fs::copy(&self.path, &path).unwrap();
        std::fs::copy(wal(&self.path), wal(&path)).unwrap();
        World { directory, path, identity: self.identity }
    }

    fn damage(&self) -> Option<u64> {
        let reader = self.open().reader().unwrap();
        reader.view(&self.identity).unwrap().wal_damage().unwrap()
    }
}

fn wal(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    path.with_extension(format!("db{suffix}"))
}

fn event(id: u32) -> Admitted {
    let text = format!(
        "{{\"id\":\"{id}\",\"source\":\"arm\",\"type\":\"note\",\
         \"time\":\"2026-05-06T10:00:00Z\",\"data\":{{}}}}"
    );
    admit(text.as_bytes(), Origin::Producer, || [0; 16]).unwrap()
}

fn append(writer: &mut Writer, id: u32) -> Result<(), Error> {
    let mut batch = writer.begin()?;
    batch.append(&event(id))?;
    batch.commit()
}

/// A commit into a file without a name is not acknowledged, and neither is any later one.
#[test]
fn a_log_that_was_removed_or_replaced_takes_nothing() {
    let remove: fn(&Path) = |wal| std::fs::remove_file(wal).unwrap();
    let replace: fn(&Path) = |wal| {
        std::fs::rename(wal, wal.with_extension("aside")).unwrap();
        std::fs::copy(wal.with_extension("aside"), wal).unwrap();
    };
    for (act, suffix) in [(remove, "-wal"), (replace, "-wal"), (remove, "-shm"), (replace, "-shm")]
    {
        for during in [false, true] {
            let world = World::new();
            let mut writer = world.writer();
            append(&mut writer, 1).unwrap();
            let file = beside(&world.path, suffix);
            let gone = if during {
                let mut batch = writer.begin().unwrap();
                batch.append(&event(2)).unwrap();
                act(&file);
                batch.commit()
            } else {
                act(&file);
                append(&mut writer, 2)
            };
            assert!(matches!(&gone, Err(Error::Gone(path)) if *path == file), "{gone:?}");
            assert!(matches!(append(&mut writer, 3), Err(Error::Gone(_))));
        }
    }
}

#[test]
fn a_reader_that_watches_notices_it_too() {
    let world = World::new();
    let mut writer = world.writer();
    append(&mut writer, 1).unwrap();
    let mut watch = world.open().watch().unwrap();
    watch.changed().unwrap();
    std::fs::remove_file(wal(&world.path)).unwrap();
    assert!(matches!(watch.changed(), Err(Error::Gone(_))));
}

fn empty(path: &Path) {
    File::options().write(true).open(path).unwrap().set_len(0).unwrap();
}

/// Nothing is acknowledged after the log was emptied from outside. If another process copied the
/// log into the store and emptied it, appending continues.
#[test]
fn a_log_or_a_store_that_was_emptied_takes_nothing() {
    let world = World::new();
    let mut writer = world.writer();
    append(&mut writer, 1).unwrap();
    let db = Connection::open(&world.path).unwrap();
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    assert_eq!(std::fs::metadata(wal(&world.path)).unwrap().len(), 0);
    for id in 2..4 {
        append(&mut writer, id).unwrap();
    }
    assert_eq!(world.events(), 3);
    empty(&wal(&world.path));
    let gone = append(&mut writer, 4);
    assert!(matches!(&gone, Err(Error::Gone(path)) if *path == wal(&world.path)), "{gone:?}");

    let world = World::new();
    let mut writer = world.writer();
    append(&mut writer, 1).unwrap();
    let mut watch = world.open().watch().unwrap();
    watch.changed().unwrap();
    empty(&world.path);
    assert!(matches!(append(&mut writer, 2), Err(Error::Gone(path)) if path == world.path));
    assert!(matches!(watch.changed(), Err(Error::Gone(path)) if path == world.path));
}

/// The log is next to the file, not next to a symbolic link to it.
#[test]
fn a_store_behind_a_link_is_written() {
    let world = World::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("link.db");
    std::os::unix::fs::symlink(&world.path, &link).unwrap();
    let mut writer = Store::open(&Location::file(&link)).unwrap().writer(&world.identity).unwrap();
    append(&mut writer, 1).unwrap();
    std::fs::remove_file(wal(&world.path)).unwrap();
    assert!(matches!(append(&mut writer, 2), Err(Error::Gone(_))));
}

/// Sets the modification time of a file to long ago.
fn age(path: &Path) {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

fn is_aged(path: &Path) -> bool {
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    std::fs::metadata(path).unwrap().modified().unwrap() == then
}

/// The first process that opens the store alone for writing rewrites the log of a dead process with
/// the same bytes. A reader does not, and no process does while others have the store open.
#[test]
fn a_log_that_was_left_behind_is_written_again() {
    let world = World::new();
    let mut writer = world.writer();
    for id in 0..5 {
        append(&mut writer, id).unwrap();
    }
    let left = world.crashed();
    let log = wal(&left.path);
    let bytes = std::fs::read(&log).unwrap();
    age(&log);
    assert_eq!(left.events(), 5);
    assert!(is_aged(&log), "a reader writes nothing");

    let other = Connection::open(&left.path).unwrap();
    let count = |other: &Connection| {
        other.query_row("SELECT count(*) FROM event", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(count(&other), 5);
    let beside = left.writer();
    assert!(is_aged(&log), "another connection has it open");
    assert_eq!(count(&other), 5);
    // Both end without copying the log into the store, as if they were killed.
    std::mem::forget((beside, other));
    let again = left.crashed();
    let log = wal(&again.path);
    age(&log);
    let mut alone = again.writer();
    assert!(!is_aged(&log), "it was rewritten");
    assert_eq!(std::fs::read(&log).unwrap(), bytes);
    append(&mut alone, 5).unwrap();
    assert_eq!(again.events(), 6);
    drop(alone);

    // Every handle that writes does this. A store that was closed properly has no such log.
    let again = left.crashed();
    let log = wal(&again.path);
    age(&log);
    let tokens = again.open().tokens().unwrap();
    assert!(!is_aged(&log), "it was rewritten");
    drop(tokens);
    assert!(!log.exists());
    assert_eq!(again.events(), 5);
}

/// The bytes of the log header, and of a frame with its page.
const LOG_HEADER: usize = 32;
const FRAME: usize = 24 + 4096;

#[test]
fn damage_is_distinguished_from_frames_of_an_older_log() {
    let world = World::new();
    let mut writer = world.writer();
    // The older log is longer, so that some of its frames follow those of the newer one.
    for id in 0..20 {
        append(&mut writer, id).unwrap();
    }
    let db = Connection::open(&world.path).unwrap();
    db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
    append(&mut writer, 20).unwrap();
    let length = std::fs::metadata(wal(&world.path)).unwrap().len();
    let older = world.crashed();
    assert_eq!((older.damage(), older.events()), (None, 21));

    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    for id in 21..25 {
        append(&mut writer, id).unwrap();
    }
    let bytes = std::fs::read(wal(&world.path)).unwrap();
    assert!((bytes.len() as u64) < length);
    let frames = (bytes.len() - LOG_HEADER) / FRAME;
    assert_eq!(LOG_HEADER + frames * FRAME, bytes.len());
    let at = |frame: usize, byte: usize| LOG_HEADER + frame * FRAME + byte;
    let last = frames - 1;
    let flipped = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 1;
        bytes
    };
    let cases = [
        ("whole", bytes.clone(), None),
        ("empty", Vec::new(), None),
        ("a header alone", bytes[..LOG_HEADER].to_vec(), None),
        ("cut between frames", bytes[..at(last, 0)].to_vec(), None),
        ("a byte of the last page", flipped(at(last, 2000)), Some(last)),
        ("a byte of its header", flipped(at(last, 1)), Some(last)),
        ("a byte of its sum", flipped(at(last, 20)), Some(last)),
        ("a byte of a page in the middle", flipped(at(1, 30)), Some(1)),
        ("a mark in the middle", flipped(at(1, 9)), Some(1)),
        ("an end that is missing", bytes[..at(last, 2000)].to_vec(), Some(last)),
        ("a byte of the log's header", flipped(17), Some(0)),
    ];
    for (name, bytes, want) in cases {
        let crashed = world.crashed();
        std::fs::write(wal(&crashed.path), bytes).unwrap();
        assert_eq!(crashed.damage(), want.map(|frames| frames as u64), "{name}");
        drop(crashed.directory);
    }
}

/// An event that fills 15 pages of the log.
fn large_event(id: u32) -> Admitted {
    let text = format!(
        "{{\"id\":\"{id}\",\"source\":\"arm\",\"type\":\"note\",\
         \"time\":\"2026-05-06T10:00:00Z\",\"data\":{{\"x\":\"{}\"}}}}",
        "x".repeat(60_000)
    );
    admit(text.as_bytes(), Origin::Producer, || [0; 16]).unwrap()
}

/// Appends large events, ten per batch, until the log has `pages` more.
fn fill(writer: &mut Writer, next: &mut u32, pages: u32) {
    for _ in 0..pages / 150 {
        let mut batch = writer.begin().unwrap();
        for _ in 0..10 {
            batch.append(&large_event(*next)).unwrap();
            *next += 1;
        }
        batch.commit().unwrap();
    }
}

/// A data tool with an open result reads one state for any time. Writers of all processes continue,
/// however long the log gets meanwhile. The log restarts when that reader has ended.
#[test]
fn a_reader_that_stays_does_not_keep_writers_out() {
    let world = World::new();
    let (mut writer, mut other) = (world.writer(), world.writer());
    append(&mut writer, 0).unwrap();
    let reader = Connection::open(&world.path).unwrap();
    let mut statement = reader.prepare("SELECT payload FROM event").unwrap();
    let mut rows = statement.query([]).unwrap();
    rows.next().unwrap().unwrap();
    let (mut next, done) = (1, AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for id in 1_000_000.. {
                append(&mut other, id).unwrap();
                if done.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        // Twice as many pages as the limit at which the log restarts.
        fill(&mut writer, &mut next, 8000);
        done.store(true, Ordering::Relaxed);
    });
    let length = || std::fs::metadata(wal(&world.path)).unwrap().len();
    let held = length();
    assert!(held > 30 << 20, "the reader keeps the log: {held}");
    drop(rows);
    fill(&mut writer, &mut next, 16_000);
    assert!(length() < held + held / 2, "it restarted: {held}, then {}", length());
}
