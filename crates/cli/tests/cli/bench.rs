//! `bench`: its measurements, and that a given store is only read.

use super::store::Store;

#[test]
fn bench_measures_and_leaves_a_given_store_alone() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let before = std::fs::read(&store.path).unwrap();
    for job in ["rebuild", "record", "lookup"] {
        let ran = store.run(&["bench", job, "--runs", "2", "--json"]).fine();
        assert_eq!(
            ran.members(),
            [
                "cpu_ms",
                "disk_bytes",
                "events",
                "job",
                "peak_memory_bytes",
                "per_second",
                "runs",
                "wall_ms"
            ]
        );
        assert_eq!(ran.json()["events"], 16);
    }
    assert_eq!(std::fs::read(&store.path).unwrap(), before);
    let generated = ["bench", "append", "--events", "5000", "--keys", "30", "--runs", "1"];
    assert!(Store::nothing().run(&generated).fine().out.contains("a second"));
    Store::nothing().run(&["bench", "lookup"]).ended(2, &["no store at"]);
}

#[test]
fn a_bench_of_nothing_is_refused() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    for job in
        ["rebuild", "append", "record", "lookup", "explain", "open", "forget", "forget-tenth"]
    {
        store.run(&["bench", job, "--runs", "0"]).ended(2, &["at least 1"]);
    }
}
