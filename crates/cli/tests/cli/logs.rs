//! Whole logs through the binary: every vector, and real logs if they are available.

use super::store::{Store, attempt, root, vector};
use ipse_core::{hex, sha256};

#[test]
fn every_vector_gives_its_snapshot() {
    let mut cases = 0;
    for entry in std::fs::read_dir(vector("facts")).unwrap() {
        let path = entry.unwrap().path().to_str().unwrap().to_string();
        let Some(stem) = path.strip_suffix(".events.jsonl") else { continue };
        let store = Store::new();
        store.run(&["import", &path]);
        let want = std::fs::read_to_string(format!("{stem}.snapshot.jsonl")).unwrap();
        assert_eq!(store.snapshot(), want, "{stem}");
        cases += 1;
    }
    assert!(cases >= 14, "the vectors are there");
}

/// Overlapping logs, imported concurrently by several processes that seal chunks in between.
#[test]
fn imports_at_the_same_time_lose_nothing_and_double_nothing() {
    let event = |n: usize| {
        attempt(&format!("e{n}"), !n.is_multiple_of(3))
            .replace("\"grasp\"", &format!("\"skill{}\"", n % 7))
    };
    let part = |from: usize, to: usize| (from..to).map(event).collect::<String>();
    let alone = Store::new();
    alone.import(part(0, 12_000)).fine();
    let store = Store::new();
    let files: Vec<String> = [(0, 6000), (3000, 9000), (6000, 12_000), (0, 12_000)]
        .iter()
        .map(|(from, to)| store.write(&format!("{from}-{to}.jsonl"), part(*from, *to)))
        .collect();
    std::thread::scope(|scope| {
        for file in &files {
            scope.spawn(|| store.run(&["import", file]).fine());
        }
    });
    let identity = store.run(&["identity", "--json"]).fine().json();
    assert_eq!(identity["events"], 12_000);
    assert_eq!(store.snapshot(), alone.snapshot());
    store.run(&["verify"]).fine();
}

/// Logs of third parties are read in place; if they are missing, the test prints so.
#[test]
fn real_logs_give_their_snapshot() {
    let data = root().join("../shared/data");
    if !data.is_dir() {
        eprintln!("SKIPPED: real logs are not available (no ../shared/data)");
        return;
    }
    let mut logs = 0;
    for entry in std::fs::read_dir(data).unwrap() {
        let path = entry.unwrap().path().to_str().unwrap().to_string();
        let Some(stem) = path.strip_suffix(".snapshot.sha256") else { continue };
        let plain = format!("{stem}.jsonl");
        let log = if std::path::Path::new(&plain).exists() { plain } else { plain + ".gz" };
        let store = Store::new();
        store.run(&["import", &log]).fine();
        let want = std::fs::read_to_string(&path).unwrap();
        let got = hex::encode(&sha256(&[store.snapshot().as_bytes()]));
        assert_eq!(got, want.trim(), "{log}");
        store.run(&["rebuild"]).fine();
        logs += 1;
    }
    assert!(logs > 0);
}
