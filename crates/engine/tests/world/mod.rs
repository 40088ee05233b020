//! A temporary store with one identity, and queries for tests.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use ipse_consolidate::{Contribution, LimitError, RuleSet, Skip, V1, f, snapshot};
use ipse_core::{
    Admitted, Columns, Event, EventKind, FactKey, FactKind, Identity, Seq, Support, Time, json,
};
use ipse_door::{Origin, Salt, admit};
use ipse_engine::{CompleteLog, Error, Host, Log, rebuild_under, restore_under};
use ipse_inspect::verify::{ExternalEvidence, verify_under};
use ipse_ledger::Entry;
use ipse_ledger::account::PassClaim;
use ipse_store::{Location, Reader, Store};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tempfile::TempDir;

pub struct World {
    directory: Rc<TempDir>,
    pub path: PathBuf,
    pub store: Store,
    pub identity: Identity,
}

/// A fixed clock, and salts from a counter.
pub struct TestHost(pub u128);

impl Host for TestHost {
    fn now(&self) -> Time {
        Time::parse("2026-05-07T00:00:00Z").unwrap()
    }

    fn salt(&mut self) -> Salt {
        self.0 += 1;
        self.0.to_be_bytes()
    }
}

impl World {
    pub fn new() -> Self {
        let directory = Rc::new(tempfile::tempdir().unwrap());
        let path = directory.path().join("store.db");
        let store = Store::create(&Location::file(&path)).unwrap();
        let identity = store.register("{\"agent_id\":\"a\"}").unwrap().identity;
        let world = World { directory, path, store, identity };
        world.accept_any_time();
        world
    }

    /// The clock of these tests stands still, and events come from any time.
    fn accept_any_time(&self) {
        self.store.settings().unwrap().set_max_ahead(&self.identity, None).unwrap();
    }

    /// Runs a check of the settings against the acts: no act changed what these tests change.
    pub fn under_default_settings<T>(&self, check: impl FnOnce() -> T) -> T {
        self.store.settings().unwrap().set_max_ahead(&self.identity, Some(24)).unwrap();
        let checked = check();
        self.accept_any_time();
        checked
    }

    pub fn second_identity(&self) -> World {
        let identity = self.store.register("{\"agent_id\":\"b\"}").unwrap().identity;
        let (directory, store) = (self.directory.clone(), self.store.clone());
        let world = World { directory, path: self.path.clone(), store, identity };
        world.accept_any_time();
        world
    }

    /// A copy of the store in its own directory. No handle may be open.
    pub fn copy(&self) -> World {
        let directory = Rc::new(tempfile::tempdir().unwrap());
        let path = directory.path().join("store.db");
        std::fs::copy(&self.path, &path).unwrap();
        let store = Store::open(&Location::file(&path)).unwrap();
        World { directory, path, store, identity: self.identity }
    }

    /// The log under rules of a test's choice.
    pub fn log<R>(&self, rules: R) -> Log
    where
        R: RuleSet<Tally: Send> + Send + 'static,
    {
        Log::open_under(&self.store, self.identity, rules, Box::new(TestHost(0))).unwrap()
    }

    /// The log under the rules that it names.
    pub fn own_log(&self) -> Log {
        Log::open(&self.store, self.identity, Box::new(TestHost(0))).unwrap()
    }

    pub fn reader(&self) -> Reader {
        self.store.reader().unwrap()
    }

    pub fn snapshot(&self) -> String {
        let reader = self.reader();
        snapshot(&reader.view(&self.identity).unwrap().view().facts().unwrap())
    }

    pub fn head(&self) -> Seq {
        self.reader().view(&self.identity).unwrap().view().head().unwrap()
    }

    pub fn rebuilds_equal(&self) -> bool {
        self.rebuilds_equal_under(&V1)
    }

    pub fn rebuilds_equal_under<R: RuleSet>(&self, rules: &R) -> bool {
        let reader = self.reader();
        let snapshot = reader.view(&self.identity).unwrap();
        let view = snapshot.view();
        let checkpoint = view.progress().unwrap().checkpoint;
        rebuild_under(view, rules, checkpoint).unwrap().equals(&view.facts().unwrap())
    }

    /// Another store, restored from the log of this one.
    pub fn taken_in<R: RuleSet>(&self, rules: &R) -> World {
        let other = World::new();
        let (reader, mut log, mut passes) = (self.reader(), Vec::new(), Vec::new());
        let snapshot = reader.view(&self.identity).unwrap();
        let view = snapshot.view();
        let each = |entry: Entry, forgotten: bool| {
            let stored = view.stored(entry.seq)?.unwrap().canonical;
            if entry.event_type == "consolidation_run" {
                passes.push(PassClaim::read(entry.seq, stored.as_bytes(), 0).unwrap());
            }
            let event =
                (!forgotten).then(|| admit(stored.as_bytes(), Origin::House, || [0; 16]).unwrap());
            log.push(Ok((entry, event)));
            Ok::<_, ipse_store::Error>(())
        };
        view.each_entry(Seq(1)..=view.head().unwrap(), each).unwrap();
        let checkpoint = view.progress().unwrap().checkpoint;
        let whole = CompleteLog { passes: &passes, statements: &[], checkpoint, last_head: None };
        let log = log.into_iter();
        restore_under::<_, Error>(&other.store, &other.identity, rules, log, &whole).unwrap();
        other
    }

    /// Asserts that all stored data can be derived from the log.
    pub fn assert_healthy(&self) {
        self.assert_healthy_under(&V1);
    }

    pub fn assert_healthy_under<R: RuleSet>(&self, rules: &R) {
        assert!(self.rebuilds_equal_under(rules));
        assert_eq!(self.findings_under(rules, &ExternalEvidence::default()), Vec::<String>::new());
    }

    /// The findings of a verification: place and message.
    pub fn findings(&self, outside: &ExternalEvidence) -> Vec<String> {
        self.findings_under(&V1, outside)
    }

    pub fn findings_under<R: RuleSet>(&self, rules: &R, outside: &ExternalEvidence) -> Vec<String> {
        let reader = self.reader();
        let snapshot = reader.view(&self.identity).unwrap();
        let manifests = self.manifest_bytes();
        let ours = |(hash, _): &&(String, String)| *hash == self.identity.to_string();
        let (_, manifest) = manifests.iter().find(ours).unwrap();
        let report =
            verify_under(&snapshot, rules, &self.identity, manifest, outside, &mut |_, _| {})
                .unwrap();
        let findings = report.findings.into_iter();
        findings.map(|finding| format!("{}: {}", finding.place, finding.message)).collect()
    }

    /// Observations and successes of the only skill fact.
    pub fn counts(&self) -> (i64, i64) {
        let snapshot = self.snapshot();
        let line = snapshot.lines().find(|line| line.contains("skill_success_rate")).unwrap();
        let fact: serde_json::Value = serde_json::from_str(line).unwrap();
        let figure = |name: &str| fact["value"][name].as_i64().unwrap();
        (figure("n_observations"), figure("successes"))
    }

    pub fn pass_records(&self) -> Vec<serde_json::Value> {
        let reader = self.reader();
        let mut records = Vec::new();
        let snapshot = reader.view(&self.identity).unwrap();
        snapshot
            .view()
            .each_stored(true, None, |stored| {
                let event: serde_json::Value = serde_json::from_str(&stored.canonical).unwrap();
                records.push(event["data"].clone());
                Ok::<_, ipse_store::Error>(std::ops::ControlFlow::Continue(()))
            })
            .unwrap();
        records
    }

    /// The type of every event, in the order of the log.
    pub fn types(&self) -> Vec<String> {
        let reader = self.reader();
        let snapshot = reader.view(&self.identity).unwrap();
        let mut types = Vec::new();
        snapshot
            .view()
            .each_stored(false, None, |stored| {
                types.push(stored.event_type);
                Ok::<_, ipse_store::Error>(std::ops::ControlFlow::Continue(()))
            })
            .unwrap();
        types
    }

    pub fn manifest_bytes(&self) -> Vec<(String, String)> {
        self.reader().manifests().unwrap()
    }

    /// The bytes of the store's files, to check that nothing was written.
    pub fn bytes(&self) -> [Vec<u8>; 2] {
        let wal = self.path.with_extension("db-wal");
        [std::fs::read(&self.path).unwrap(), std::fs::read(wal).unwrap()]
    }

    pub fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(&self.path).unwrap()
    }

    pub fn plant_trigger_on_facts(&self) {
        let sql = "CREATE TRIGGER planted BEFORE INSERT ON fact \
                   BEGIN SELECT RAISE(ABORT, 'no'); END";
        self.raw().execute_batch(sql).unwrap();
    }

    pub fn remove_trigger(&self) {
        self.raw().execute_batch("DROP TRIGGER planted").unwrap();
    }

    /// Makes typed columns up to a position unreadable.
    pub fn spoil_typed_columns(&self, up_to: Seq) {
        let sql = format!(
            "DROP TRIGGER event_is_frozen; \
             UPDATE event SET columns = x'ff' WHERE at <= (1 << 40) + {up_to}"
        );
        self.raw().execute_batch(&sql).unwrap();
    }

    /// Empties derived tables, as if by hand.
    pub fn delete_derived(&self, tables: &[&str]) {
        for table in tables {
            self.raw().execute_batch(&format!("DELETE FROM {table}")).unwrap();
        }
    }

    /// Runs a pass and drops it before its record is committed.
    pub fn start_pass_and_die(&self) {
        let mut writer = self.store.writer(&self.identity).unwrap();
        let mut batch = writer.begin().unwrap();
        let reader = self.reader();
        let view = reader.view(&self.identity).unwrap();
        let rebuilt = rebuild_under(view.view(), &V1, self.head()).unwrap();
        let pass = batch.pass().unwrap();
        let facts = rebuilt.facts.into_iter();
        let facts: Vec<_> =
            facts.map(|fact| (ipse_core::FactId::new(&self.identity, &fact.key), fact)).collect();
        assert!(pass.put_facts(&facts).unwrap().iter().all(|changed| *changed));
    }
}

pub fn admit_line(line: &str) -> Admitted {
    admit(line.as_bytes(), Origin::Producer, || [7; 16]).unwrap()
}

pub fn admitted(id: u64, skill: &str, success: bool) -> Admitted {
    admit_line(&format!(
        "{{\"id\":\"{id}\",\"type\":\"execution_result\",\"time\":\"2026-05-06T10:00:{:02}Z\",\
         \"data\":{{\"skill_id\":\"{skill}\",\"success\":{success},\"params\":{{\"f\":{}}}}}}}",
        id % 60,
        id % 7
    ))
}

/// An attempt with many parameters with long names, and this much more data.
pub fn heavy_event(id: u64, data: &str) -> Admitted {
    let (count, name) = (if id <= 100 { 240 } else { 2 }, "x".repeat(190));
    let params: Vec<String> = (0..count).map(|n| format!("\"{n}{name}\":{id}")).collect();
    admit_line(&format!(
        "{{\"id\":\"{id}\",\"type\":\"execution_result\",\"time\":\"2026-05-06T10:00:00Z\",\
         \"data\":{{{data},\"params\":{{{}}}}}}}",
        params.join(",")
    ))
}

/// An event from a small set of values, so that events share facts.
pub fn random_event(index: usize, n: u64, seed: u32) -> Admitted {
    let mut state = u64::from(seed).wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1;
    let mut pick = |from: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % from
    };
    let kinds = ["execution_result", "execution_result", "incident", "observation", "note"];
    let kind = kinds[pick(5) as usize];
    let (second, skill, target) = (pick(60), pick(3), pick(2));
    let (value, zone) = (pick(400), pick(2));
    let outcome = ["success", "failed", "failed", "denied", "unknown"][pick(5) as usize];
    let reason = ["slip", "drop"][pick(2) as usize];
    admit_line(&format!(
        "{{\"id\":\"{index}-{n}\",\"type\":\"{kind}\",\"time\":\"2026-05-06T10:00:{second:02}Z\",\
         \"data\":{{\"skill_id\":\"s{skill}\",\"target_class\":\"t{target}\",\"zone\":\"z{zone}\",\
         \"outcome\":\"{outcome}\",\"failure_reason\":\"{reason}\",\
         \"params\":{{\"f\":{value}.{value}}},\
         \"object\":{{\"mass\":{value},\"c\":\"{reason}\"}}}}}}"
    ))
}

pub fn fold(events: &[Admitted]) -> String {
    let typed = |event: &'_ Admitted| Event {
        event_ref: event.event_ref,
        time: event.time,
        event_type: Box::leak(event.event_type.clone().into_boxed_str()),
        columns: Columns::decode(Box::leak(event.columns.clone().into_boxed_slice())).unwrap(),
    };
    snapshot(&f(&V1, events.iter().map(typed)).unwrap())
}

pub fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors")
}

pub fn case_names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(vectors().join("facts"))
        .unwrap()
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.strip_suffix(".events.jsonl").map(str::to_string)
        })
        .collect();
    names.sort();
    assert!(names.len() >= 14, "the vectors exist");
    names
}

pub fn read_log(path: &Path) -> Vec<Admitted> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .filter_map(|line| admit(line.as_bytes(), Origin::Producer, || [7; 16]).ok())
        .collect()
}

pub fn shuffled<T>(mut items: Vec<T>, n: u64) -> Vec<T> {
    let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for last in (1..items.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        items.swap(last, (state % (last as u64 + 1)) as usize);
    }
    items
}

/// A second rule set for tests: it counts the events of each type.
pub struct CountTypes;

impl RuleSet for CountTypes {
    type Tally = i64;

    fn version(&self) -> &'static str {
        "count-types"
    }

    fn descriptor(&self) -> String {
        String::from("{\"rule_version\":\"count-types\"}")
    }

    fn contributions(&self, event: &Event<'_>) -> Result<Vec<Contribution<i64>>, Skip> {
        if EventKind::of(event.event_type) == EventKind::Housekeeping {
            return Err(Skip::Housekeeping);
        }
        let key = FactKey::new(FactKind::ObjectProperty, &["log", event.event_type]);
        Ok(vec![Contribution { key, tally: 1, supports: true }])
    }

    fn publish(
        &self,
        _key: &FactKey,
        tally: &i64,
        _last: &Support,
    ) -> Result<Option<String>, LimitError> {
        let value = json::Members::new()
            .raw("n_observations", tally)
            .raw("confidence", "0")
            .text("rule_version", self.version());
        Ok(Some(value.finish()))
    }
}
