//! The write-ahead log: noticed when it is removed or replaced.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse_core::{Admitted, Identity};
use ipse_door::{Origin, admit};
use ipse_store::Error;
use ipse_store::sqlite::{Reader, Writer, create};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

struct World {
    _directory: TempDir,
    path: PathBuf,
    identity: Identity,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.db");
        let identity = create(&path).unwrap().register("{\"agent_id\":\"a\"}").unwrap().identity;
        World { _directory: directory, path, identity }
    }

    fn writer(&self) -> Writer {
        Writer::open(&self.path, &self.identity).unwrap()
    }
}

fn wal(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
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

/// What is committed into a file without a name is not acknowledged, and so is nothing after it.
#[test]
fn a_log_that_was_removed_or_replaced_takes_nothing() {
    let remove: fn(&Path) = |wal| std::fs::remove_file(wal).unwrap();
    let replace: fn(&Path) = |wal| {
        std::fs::rename(wal, wal.with_extension("aside")).unwrap();
        std::fs::copy(wal.with_extension("aside"), wal).unwrap();
    };
    for act in [remove, replace] {
        for during in [false, true] {
            let world = World::new();
            let mut writer = world.writer();
            append(&mut writer, 1).unwrap();
            let gone = if during {
                let mut batch = writer.begin().unwrap();
                batch.append(&event(2)).unwrap();
                act(&wal(&world.path));
                batch.commit()
            } else {
                act(&wal(&world.path));
                append(&mut writer, 2)
            };
            assert!(
                matches!(&gone, Err(Error::Gone(path)) if *path == wal(&world.path)),
                "{gone:?}"
            );
            assert!(matches!(append(&mut writer, 3), Err(Error::Gone(_))));
        }
    }
}

#[test]
fn a_reader_that_watches_notices_it_too() {
    let world = World::new();
    let mut writer = world.writer();
    append(&mut writer, 1).unwrap();
    let reader = Reader::open(&world.path).unwrap();
    reader.version().unwrap();
    std::fs::remove_file(wal(&world.path)).unwrap();
    assert!(matches!(reader.version(), Err(Error::Gone(_))));
}

/// The log is beside the file, not beside a link to it.
#[test]
fn a_store_behind_a_link_is_written() {
    let world = World::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let link = elsewhere.path().join("link.db");
    std::os::unix::fs::symlink(&world.path, &link).unwrap();
    let mut writer = Writer::open(&link, &world.identity).unwrap();
    append(&mut writer, 1).unwrap();
    std::fs::remove_file(wal(&world.path)).unwrap();
    assert!(matches!(append(&mut writer, 2), Err(Error::Gone(_))));
}
