//! The public surface of the library: error codes of files and formats, types that a program can
//! name, `Debug` output, and the small operations around the log.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse::{Agent, ExchangeError, Manifest};
use std::io::{self, Write};
use std::path::PathBuf;
use tempfile::TempDir;

fn manifest() -> Manifest {
    let value = |field: &str| match field {
        "commissioned_at" => "2026-05-01T00:00:00Z".to_owned(),
        hash if hash.ends_with("_hash") => "1".repeat(64),
        name => format!("my {name}"),
    };
    Manifest::new(|field| Some(value(field))).unwrap()
}

struct World {
    _directory: TempDir,
    store: PathBuf,
    agent: Agent,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("ipse.db");
        let agent = Agent::register(&store, &manifest()).unwrap();
        World { _directory: directory, store, agent }
    }
}

fn code<T>(result: ipse::Result<T>) -> &'static str {
    result.err().map_or("fine", |error| error.code())
}

#[test]
fn an_input_of_another_format_is_no_error_of_an_export() {
    let world = World::new();
    let formats: [&[u8]; 4] =
        [b"[{\"id\":\"1\"}]", b"time,force\n1,2\n", b"PK\x03\x04rest of it", b"{\n  \"id\": 1\n}\n"];
    for format in formats {
        assert_eq!(code(world.agent.import(format)), "not_json_lines");
    }
    let part = ipse::Error::from(ExchangeError::NotWhole);
    assert_eq!(part.code(), "bundle_not_whole");
}

/// A disk that is full from the first byte.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_bundle_that_cannot_be_written_is_an_error_of_its_stream() {
    let world = World::new();
    assert_eq!(code(world.agent.export(&mut Full)), "file");
    assert!(world.store.exists());
}
