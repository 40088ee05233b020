//! The size of the state behind skill facts on real logs: rule set v2 beside v1.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)]

use flate2::read::GzDecoder;
use ipse_consolidate::{EVERY_FACT, RuleSet, Tally, V1, V2};
use ipse_core::chunk::{self, CHUNK_EVENTS, Chunk};
use ipse_core::{Admitted, Event, FactKind, Seq};
use ipse_door::{Origin, admit};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The state of v2 per skill fact is at most this many tenths of that of v1.
const LIMIT_TENTHS: usize = 25;

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    match path.extension()?.to_str()? {
        "jsonl" => File::open(path).ok()?.read_to_string(&mut text).ok()?,
        "gz" => GzDecoder::new(File::open(path).ok()?).read_to_string(&mut text).ok()?,
        _ => return None,
    };
    Some(text)
}

/// The events of a log that pass the door, each once.
fn events(text: &str) -> Vec<Admitted> {
    let mut seen = BTreeSet::new();
    let admitted =
        text.lines().filter_map(|line| admit(line.as_bytes(), Origin::Producer, || [0; 16]).ok());
    admitted.filter(|event| seen.insert(event.event_ref)).collect()
}

/// The number of skill facts, and the bytes of their sums.
fn state<R: RuleSet>(rules: &R, log: &[Admitted]) -> (usize, usize) {
    let mut bulk = rules.bulk(EVERY_FACT).unwrap();
    let mut refs = |seq: Seq| log.get(seq.0 as usize - 1).map(|event| event.event_ref);
    for (number, part) in log.chunks(CHUNK_EVENTS).enumerate() {
        let typed: Vec<Event<'_>> = part.iter().map(|event| event.typed().unwrap()).collect();
        let bytes = chunk::encode(&typed);
        let first = Seq((number * CHUNK_EVENTS) as u64 + 1);
        bulk.fold(&Chunk::decode(&bytes).unwrap(), first, 0..part.len(), &mut refs).unwrap();
    }
    let (mut facts, mut bytes) = (0, Vec::new());
    bulk.finish(&mut refs, &mut |key, group| {
        if key.kind() == FactKind::SkillSuccessRate {
            facts += 1;
            group.tally.encode(&mut bytes);
        }
    })
    .unwrap();
    (facts, bytes.len())
}

#[test]
fn the_state_of_v2_stays_small_on_real_logs() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let Ok(entries) = fs::read_dir(&directory) else {
        eprintln!("SKIPPED: the real logs are missing (no ../shared/data)");
        return;
    };
    let mut seen = 0;
    for path in entries.map(|entry| entry.unwrap().path()) {
        let Some(text) = read(&path) else { continue };
        let log = events(&text);
        let (v1, v2) = (state(&V1, &log), state(&V2, &log));
        assert_eq!(v1.0, v2.0, "the same facts");
        eprintln!("{}: {} skill facts, {} and {} bytes", path.display(), v1.0, v1.1, v2.1);
        assert!(v2.1 * 10 <= v1.1 * LIMIT_TENTHS, "{}: {v1:?} {v2:?}", path.display());
        seen += 1;
    }
    assert!(seen > 0, "the logs are there");
}
