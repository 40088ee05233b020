//! SIGKILL at random moments of imports, passes and signing: nothing acknowledged is lost, nothing
//! is stored twice, and no two heads contradict each other.

use super::store::{Store, attempt};
use ipse_core::{Digest, EventRef, Seq, Time};
use ipse_ledger::{Edge, Entry};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const EVENTS: usize = 6000;
const KILLS: u32 = 60;
/// The number of kills before a store is finished and compared.
const KILLS_PER_STORE: u32 = 6;

fn log() -> String {
    (0..EVENTS)
        .map(|n| {
            attempt(&format!("e{n}"), n % 3 != 0)
                .replace("\"grasp\"", &format!("\"skill{}\"", n % 40))
                .replace("\"success\"", &format!("\"params\":{{\"f\":{}.5}},\"success\"", n % 90))
        })
        .collect()
}

fn start(store: &Store, file: &str) -> Child {
    Command::new(env!("CARGO_BIN_EXE_ipse"))
        .args(["--store", store.path.to_str().unwrap(), "--verbose", "import", file])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills an import after a while; returns the last line that it reported as durable.
fn kill_after(store: &Store, file: &str, delay: Duration) -> usize {
    let mut child = start(store, file);
    std::thread::sleep(delay);
    child.kill().unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let durable = stderr
        .lines()
        .map_while(Result::ok)
        .filter_map(|line| {
            let rest = line.strip_prefix("durable up to line ")?.to_string();
            rest.split(':').next()?.parse().ok()
        })
        .max();
    child.wait().unwrap();
    durable.unwrap_or(0)
}

/// The ids in the log; none may occur twice.
fn ids(store: &Store) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for line in store.run(&["log", "--json"]).out.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let id = event["event"]["id"].as_str().unwrap().to_string();
        assert!(ids.insert(id), "an event is there twice: {line}");
    }
    ids
}

#[test]
fn killed_at_random_moments_it_always_comes_back_whole() {
    let reference = Store::new();
    let file = reference.write("log.jsonl", log());
    let started = Instant::now();
    assert!(start(&reference, &file).wait().unwrap().success());
    let whole = started.elapsed();
    let want = reference.snapshot();
    assert_eq!(want.lines().count(), 40);

    let mut store = Store::new();
    let mut inside = 0;
    for kill in 0..KILLS {
        if kill % KILLS_PER_STORE == 0 {
            store = Store::new();
        }
        // Spread evenly over the whole run, and a little beyond its end.
        let delay = whole * (kill * 37 % KILLS) * 11 / (KILLS * 10);
        let durable = kill_after(&store, &file, delay);
        inside += u32::from(0 < durable && durable < EVENTS);
        store.run(&["verify"]).fine();
        let ids = ids(&store);
        for n in 0..durable {
            assert!(ids.contains(&format!("e{n}")), "kill {kill}: line {} is lost", n + 1);
        }
        if kill % KILLS_PER_STORE == KILLS_PER_STORE - 1 {
            store.run(&["import", &file]).fine();
            assert_eq!(store.snapshot(), want);
            store.run(&["rebuild"]).fine();
            store.run(&["identity"]).fine();
        }
    }
    eprintln!("{KILLS} kills, {inside} of them between two durable batches");
}

const SIGNING_KILLS: u32 = 60;

/// The roots over the first 0, 1, 2, … entries of a log.
fn roots(store: &Store) -> Vec<[u8; 32]> {
    let mut edge = Edge::default();
    let mut roots = vec![edge.root()];
    for line in store.run(&["log", "--json"]).fine().out.lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| event[name].as_str().unwrap();
        let entry = Entry {
            seq: Seq(event["seq"].as_u64().unwrap()),
            event_ref: EventRef::parse(text("event_ref")).unwrap(),
            time: Time::parse(text("time")).unwrap(),
            event_type: text("type").to_string(),
            digest: Digest(ipse_core::hex::decode(text("digest")).unwrap()),
        };
        edge.push(entry.hash(), |_, _, _| {});
        roots.push(edge.root());
    }
    roots
}

/// Kills while heads are signed: no two published heads contradict each other, and the key
/// directory has every published head.
#[test]
fn killed_while_it_signs_it_never_signs_two_histories() {
    let store = Store::new();
    let identity = store.run(&["identity", "--json"]).fine().json();
    let name = format!("heads/{}.note", identity["identity_hash"].as_str().unwrap());
    let kept = store.path.with_extension("db.keys").join(name);
    let mut seen = Vec::new();
    let mut cut_short = 0;
    for kill in 0..SIGNING_KILLS {
        let id = kill.to_string();
        let args = ["record", "--zone", "z", "--failed", "--no-consolidate", "--id", &id];
        store.run(&args).fine();
        let mut child = Command::new(env!("CARGO_BIN_EXE_ipse"))
            .args(["--store", store.path.to_str().unwrap(), "tree-head", "--sign"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(u64::from(kill * 7919 % 12_000)));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        let published = String::from_utf8(output.stdout).unwrap();
        let last = std::fs::read_to_string(&kept).ok();
        if published.ends_with('\n') {
            assert_eq!(Some(&published), last.as_ref(), "published before it was kept");
        } else {
            cut_short += 1;
        }
        seen.extend(last);
        store.run(&["verify"]).fine();
    }
    store.run(&["tree-head", "--sign"]).fine();
    let roots = roots(&store);
    for note in &seen {
        let head = ipse_engine::head_of(note).unwrap();
        assert_eq!(roots[usize::try_from(head.size).unwrap()], head.root);
    }
    eprintln!("{SIGNING_KILLS} kills, {cut_short} before a head was published");
}
