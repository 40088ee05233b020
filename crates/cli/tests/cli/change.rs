//! Rule set v2 and the drift monitor from the command line.

use crate::store::{Store, vector};
use serde_json::Value;

/// A store whose log begins with rule set v2.
fn v2() -> Store {
    let store = Store::nothing();
    let manifest = vector("manifest/golden.toml");
    let args = ["init", "--manifest", manifest.to_str().unwrap(), "--rules", "v2"];
    store.run(&args).ended(0, &["rules: v2"]);
    store
}

/// Attempts, `per_day` a day from the first of January on; `worked` decides by the day.
fn attempts(source: &str, days: u64, per_day: u64, worked: impl Fn(u64, u64) -> bool) -> String {
    let line = |day: u64, n: u64| {
        let (month, of_month) = (1 + day / 28, 1 + day % 28);
        format!(
            "{{\"id\":\"{source}-{day}-{n}\",\"source\":\"{source}\",\
             \"type\":\"execution_result\",\
             \"time\":\"2026-{month:02}-{of_month:02}T{:02}:00:00Z\",\
             \"data\":{{\"skill_id\":\"grasp\",\"target_class\":\"cup\",\"success\":{},\
             \"params\":{{\"force_n\":{}}}}}}}\n",
            n % 24,
            worked(day, n),
            20 + 5 * (n % 2),
        )
    };
    (0..days)
        .flat_map(|day| (0..per_day).map(move |n| (day, n)))
        .map(|(day, n)| line(day, n))
        .collect()
}

fn fact(store: &Store) -> Value {
    let args = ["facts", "--kind", "skill_success_rate", "--json"];
    store.run(&args).fine().json()["facts"][0]["value"].clone()
}

#[test]
fn init_offers_both_rule_sets_and_knows_no_other() {
    let store = Store::nothing();
    let manifest = vector("manifest/golden.toml");
    let init = ["init", "--manifest", manifest.to_str().unwrap()];
    let unknown = store.run(&[&init[..], &["--rules", "v9"]].concat());
    unknown.ended(2, &["v9", "v1, v2"]);
    assert!(!store.path.exists(), "nothing was made");
    let words = "rules: v1 (the paper's); --rules v2 also notices change";
    store.run(&init).ended(0, &[words]);
    let again = store.run(&init).ended(0, &["already registered", "rules: v1"]);
    assert!(!again.err.contains("--rules v2"), "the log has its rules");
    // An empty log may still begin with v2; a log with events needs an approval.
    store.run(&[&init[..], &["--rules", "v2"]].concat()).ended(0, &["rules: v2"]);
    store.import(attempts("arm", 2, 2, |_, _| true)).fine();
    store.run(&[&init[..], &["--rules", "v1"]].concat()).ended(2, &["not_first"]);
    assert_eq!(fact(&store)["rule_version"], "v2");
}

#[test]
fn every_vector_gives_its_bytes_and_forgets_to_the_byte() {
    let cases = std::fs::read_dir(vector("facts-v2")).unwrap();
    let mut seen = 0;
    for case in cases.map(|entry| entry.unwrap().path()) {
        let Some(name) = case.to_str().unwrap().strip_suffix(".events.jsonl") else { continue };
        let read = |end: &str| std::fs::read_to_string(format!("{name}.{end}")).unwrap();
        let store = v2();
        store.import(read("events.jsonl"));
        assert_eq!(store.snapshot(), read("snapshot.jsonl"), "{name}");
        let gone: Vec<String> = serde_json::from_str(&read("forget.json")).unwrap();
        if !gone.is_empty() {
            let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
            store.run(&[&["forget", "--yes"][..], &gone].concat()).fine();
            assert_eq!(store.snapshot(), read("forgotten.snapshot.jsonl"), "{name}");
        }
        store.run(&["rebuild"]);
        seen += 1;
    }
    assert!(seen >= 20, "the vectors are there");
}

#[test]
fn a_fact_reports_the_newest_stretch_and_explains_the_boundary() {
    let store = v2();
    store.import(attempts("arm", 20, 4, |day, _| day < 12)).fine();
    let value = fact(&store);
    assert_eq!((&value["since"], &value["n_observations"]), (&"2026-01-13".into(), &32.into()));
    assert_eq!(value["before"], serde_json::json!({"n": 48, "successes": 48}));
    assert_eq!((&value["success_rate"], &value["last_outcome"]), (&0.into(), &"failed".into()));
    let text = store.run(&["facts", "--format", "grounding"]).fine().out;
    let words = "success_rate = 0 between 0.00 and 0.09 since 2026-01-13, failed last, retry \
                 after 2026-01-27T03:00:00Z, confidence = 0.91, n_observations = 32";
    assert!(text.contains(words), "{text}");
    assert!(!text.contains("skill_advice") && !text.contains("predict"), "{text}");
    let key = "grasp + cup + *";
    let out = store.run(&["explain", key]).fine().out;
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "0 of 32 attempts worked since 2026-01-13: success_rate 0, between 0 and 0.0858.",
        "The rate changed on 2026-01-13: before it, 48 of 48 worked (0.8571 to 1); from it on, 0 \
         of 32 worked (0 to 0.2).",
        "Both ranges have z² = 8",
        "Of all older days: 48 of 48 worked.",
        "Evidence: 32 events",
    ] {
        assert!(out.contains(words), "{words}\n{out}");
    }
    let json = store.run(&["explain", key, "--json"]).fine().json();
    let cut = &json["stretch"]["cut"];
    assert_eq!((&cut["day"], &cut["k"]), (&"2026-01-13".into(), &8.into()));
    assert_eq!(cut["before"], serde_json::json!({"high":1,"low":0.8571,"n":48,"successes":48}));
    assert_eq!(json["without_source"], serde_json::json!([]), "one source");
    assert_eq!(json["evidence_total"], 32);
    // The advice of one key is no warning: it is shown only if it is asked for.
    let advice = store.run(&["facts", "--kind", "skill_advice", "--json"]).fine().json();
    assert_eq!((&advice["total"], &advice["facts"][0]["value"]["keys"]), (&1.into(), &1.into()));
    let all = store.run(&["facts", "--json"]).fine().json();
    assert!(!all.to_string().contains("skill_advice"), "{all}");
}

#[test]
fn the_fact_without_each_source_is_shown() {
    let store = v2();
    store.import(attempts("good", 10, 3, |_, _| true)).fine();
    store.import(attempts("bad", 10, 1, |_, _| false)).fine();
    let json = store.run(&["explain", "grasp + cup + *", "--json"]).fine().json();
    let without: Vec<(&str, &Value)> = json["without_source"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["source"].as_str().unwrap(), &it["value"]["success_rate"]))
        .collect();
    assert_eq!(without, [("good", &0.into()), ("bad", &1.into())], "the loudest first");
    assert_eq!(json["fact"]["value"]["robust"]["n"], 20, "neither counts for more than 10");
    store.run(&["explain", "grasp + cup + *"]).ended(0, &[]);
    let out = store.run(&["explain", "grasp + cup + *"]).fine().out;
    assert!(out.contains("Without a source"), "{out}");
}

#[test]
fn drift_is_found_reported_and_drawn_under_both_rule_sets() {
    let log = attempts("arm", 80, 4, |day, n| if day < 74 { n != 0 } else { n == 0 });
    let (one, other) = (Store::new(), v2());
    let mut answers = Vec::new();
    for store in [&one, &other] {
        store.run(&["drift"]).ended(0, &[]);
        let empty = store.run(&["drift", "--json"]).fine().json();
        let want = serde_json::json!({"day":"1970-01-01","drift":false,"facts":0,"most":[],"z2":0});
        assert_eq!(empty, want);
        assert!(store.run(&["drift", "--series"]).fine().out.contains("no attempts yet"));
        store.import(log.clone()).fine();
        let ran = store.run(&["drift"]).ended(1, &[]);
        assert!(ran.out.contains("DRIFT as of 2026-03-24"), "{}", ran.out);
        assert!(ran.out.contains("grasp + cup + *"), "{}", ran.out);
        let before = store.run(&["drift", "--day", "2026-03-18", "--json"]).fine().json();
        assert_eq!(before["drift"], false, "{before}");
        let series = store.run(&["drift", "--series"]).fine().out;
        assert!(series.contains("7777777777742  grasp + cup + *"), "{series}");
        let report = store.run(&["drift", "--json"]).ended(1, &[]).json();
        answers.push((report, store.run(&["drift", "--series", "--json"]).fine().json()));
    }
    assert_eq!(answers[0].0, answers[1].0, "the report does not depend on the rules");
    let [(_, v1), (_, v2)] = &answers[..] else { panic!() };
    assert_eq!(v1["weeks"].as_array().unwrap().len(), 13);
    assert_eq!(v1["facts"][0]["weeks"], v2["facts"][0]["weeks"]);
    assert_eq!((&v1["rule_version"], &v2["rule_version"]), (&"v1".into(), &"v2".into()));
    for bad in ["2026-3-1", "2026-02-30", "tomorrow", "1969-12-31", ""] {
        one.run(&["drift", "--day", bad]).ended(2, &["--day"]);
    }
    one.run(&["drift", "--series", "--day", "2026-03-01"]).ended(2, &["cannot be used with"]);
    // The alarm is counted under the rules that were in force when its attempts arrived.
    let list = other.run(&["rules", "list", "--json"]).fine().json();
    let alarms = |part: &str| list["steps"][0][part]["drift_alarms"].as_u64().unwrap();
    assert_eq!((alarms("before"), alarms("since")), (0, 1), "{list}");
}

/// A week's recommendation rests on the days up to its end; values outside of it are counted.
#[test]
fn the_series_shows_what_was_recommended_each_week() {
    let store = v2();
    // 20 never works, 25 always does.
    store.import(attempts("arm", 30, 6, |_, n| n % 2 == 1)).fine();
    let series = store.run(&["drift", "--series", "--json"]).fine().json();
    let fact = &series["facts"][0];
    let weeks = fact["params"][0]["weeks"].as_array().unwrap();
    let last = weeks.last().unwrap();
    assert_eq!(last["recommended"]["value"], 25, "{last}");
    assert_eq!(last["inside"], last["outside"], "half of the values are 20");
    assert_eq!(fact["last_outside"], "2026-02-02");
    let added: u64 = series["weeks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|week| week["added"].as_u64().unwrap())
        .sum();
    assert_eq!(added, 1, "it appeared once");
    assert_eq!(series["weeks"][0]["week"], "2026-W01");
}

/// The source of a forgotten event is in columns, chunks, sums and dictionaries, and leaves all.
#[test]
fn a_forgotten_source_leaves_every_file() {
    let store = v2();
    let secret = "secret-arm-4711";
    store.import(attempts("arm", 30, 20, |_, _| true)).fine();
    store.import(attempts(secret, 2, 3, |_, _| true)).fine();
    let bytes = || std::fs::read(&store.path).unwrap();
    let holds =
        |bytes: &[u8]| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
    assert!(holds(&bytes()));
    let log = store.run(&["log", "--json"]).fine().out;
    let mut gone = vec!["forget".to_owned(), "--yes".to_owned()];
    for line in log.lines().filter(|line| line.contains(secret)) {
        let entry: Value = serde_json::from_str(line).unwrap();
        gone.push(entry["event_ref"].as_str().unwrap().to_owned());
    }
    assert_eq!(gone.len(), 2 + 6);
    store.run(&gone.iter().map(String::as_str).collect::<Vec<_>>()).fine();
    assert!(!holds(&bytes()), "the file");
    let wal = store.path.with_extension("db-wal");
    assert!(!holds(&std::fs::read(wal).unwrap_or_default()), "the write-ahead log");
    store.run(&["verify"]).fine();
}
