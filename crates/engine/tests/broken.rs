//! A log whose commit failed accepts nothing more.
#![allow(missing_docs, clippy::unwrap_used)]

mod world;

use ipse_consolidate::V1;
use ipse_core::Admitted;
use ipse_engine::{Error, Log, NextStep, Selection, Trigger};
use std::fs;
use std::path::PathBuf;
use world::{World, admitted};

fn event(number: u64) -> Admitted {
    admitted(number, "grasp", true)
}

/// A log whose last commit failed, because its write-ahead log was moved away.
fn broken(world: &World) -> (Log, PathBuf) {
    let mut log = world.log(V1);
    log.append(&[event(1)], NextStep::Nothing).unwrap();
    let wal = PathBuf::from(format!("{}-wal", world.path.display()));
    let moved = wal.with_extension("moved");
    let failed = log.append_judged(|_| {
        fs::rename(&wal, &moved).unwrap();
        Ok(Ok::<_, ()>((event(2), ())))
    });
    assert!(failed.unwrap_err().is_gone());
    // Even with the file back, the commit may be durable or not.
    fs::rename(&moved, &wal).unwrap();
    (log, wal)
}

#[test]
fn nothing_is_written_after_a_commit_that_failed() {
    let world = World::new();
    let (mut log, wal) = broken(&world);
    let before = fs::read(&wal).unwrap();
    let is_broken = |error: Error| matches!(error, Error::Broken);
    assert!(is_broken(log.append(&[event(3)], NextStep::Nothing).unwrap_err()));
    assert!(is_broken(log.consolidate(Trigger::Manual).unwrap_err()));
    assert!(is_broken(log.append_judged(|_| Ok(Ok::<_, ()>((event(4), ())))).unwrap_err()));
    let which = Selection::Refs(vec![event(1).event_ref]);
    assert!(is_broken(log.forget(&which).unwrap_err()));
    assert_eq!(fs::read(&wal).unwrap(), before, "no byte was written");
    drop(log);
    // After reopening, the log accepts events.
    let mut log = world.log(V1);
    log.append(&[event(3)], NextStep::Consolidate(Trigger::Manual)).unwrap();
    drop(log);
    world.assert_healthy();
}
