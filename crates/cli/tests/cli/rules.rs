//! The rules of a log from the command line: unknown rules lose nothing, and a change needs an
//! approval.

use crate::store::Store;

#[test]
fn a_change_without_an_approval_writes_nothing() {
    let store = Store::with("facts/paper_v3.events.jsonl");
    let before = (store.snapshot(), store.run(&["log", "--json"]).out);
    let missing = store.write("empty.json", "{}");
    for (args, code, words) in [
        (&["rules", "activate", "v1"][..], 2, "--approval"),
        (&["rules", "activate", "v9", "--approval", &missing], 2, "unknown_rules"),
        (&["rules", "activate", "v1", "--approval", &missing], 2, "not_signed"),
        (&["rules", "activate", "v1", "--approval", "nowhere.json"], 2, "nowhere.json"),
        (&["rules", "propose", "v1"], 2, "already"),
        (&["rules", "propose", "v9"], 2, "unknown_rules"),
        (&["rules", "back"], 2, "nothing_to_go_back_to"),
        (&["rules", "withdraw", "v1"], 2, "not_proposed"),
        (&["rules", "report", "v1"], 2, "already"),
        (&["rules", "show", "v9"], 2, "rules list"),
        (&["rules", "approve", "v1", "--report", &missing, "-o", "x"], 2, "is not a report"),
    ] {
        store.run(args).ended(code, &[words]);
    }
    assert_eq!((store.snapshot(), store.run(&["log", "--json"]).out), before);
    let list = store.run(&["rules", "list", "--json"]).fine().json();
    assert_eq!(list["in_force"]["rule_version"], "v1");
    assert_eq!(list["steps"].as_array().unwrap().len(), 0);
    assert!(store.run(&["rules", "list"]).fine().out.contains("since the log began"));
    assert!(store.run(&["rules", "show", "v1"]).fine().out.contains("in force"));
}

mod second {
    use crate::store::{Store, attempt};
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    /// The rule set that logs change to.
    const SECOND: &str = "v2";
    const KILLS: u32 = 100;

    /// A log, and an approval of the second rule set with its open proposal.
    fn proposed(events: usize) -> (Store, String) {
        let store = Store::new();
        let line = |n: usize| {
            attempt(&format!("e{n}"), !n.is_multiple_of(3))
                .replace("\"grasp\"", &format!("\"skill{}\"", n % 40))
        };
        let file = store.write("log.jsonl", (0..events).map(line).collect::<String>());
        store.run(&["import", &file]).fine();
        let approval = approved(&store, SECOND);
        (store, approval)
    }

    /// Proposes and approves a rule set.
    fn approved(store: &Store, version: &str) -> String {
        let file = |name: &str| store.directory.path().join(name).to_str().unwrap().to_owned();
        let (report, approval) = (file("report.json"), file("approval.json"));
        store.run(&["rules", "propose", version]).fine();
        store.run(&["rules", "report", version, "-o", &report, "--force"]).fine();
        let approve =
            ["rules", "approve", version, "--report", &report, "-o", &approval, "--force"];
        store.run(&approve).fine();
        approval
    }

    /// The number of steps of all rule sets.
    fn list_steps(store: &Store) -> usize {
        let list = store.run(&["rules", "list", "--json"]).fine().json();
        list["steps"].as_array().unwrap().len()
    }

    #[test]
    fn activate_and_back_from_the_command_line() {
        let (store, approval) = proposed(200);
        let (identity, before) = (store.run(&["identity"]).fine().out, store.snapshot());
        let shadow = store.run(&["rules", "facts", SECOND, "--json"]).fine().json();
        store.run(&["rules", "activate", SECOND, "--approval", &approval]).fine();
        let served = store.run(&["facts", "--json"]).fine().json();
        assert_eq!(served["rule_version"], SECOND);
        assert_eq!(served["facts"].as_array(), shadow["facts"].as_array());
        let event = ["record", "--skill", "grasp", "--outcome", "success"];
        store.run(&event).fine();
        let list = store.run(&["rules", "list", "--json"]).fine().json();
        assert_eq!(list["steps"][1]["before"]["attempts"], 200);
        assert_eq!(list["steps"][1]["since"]["attempts"], 1);
        let head = store.run(&["log", "--json"]).fine().out.lines().count().to_string();
        let diff = store.run(&["diff", "0", &head]).fine().out;
        assert!(diff.starts_with(&format!("rules: {SECOND} in force from seq ")), "{diff}");
        let again = approved(&store, "v1");
        store.run(&["rules", "activate", "v1", "--approval", &again]).fine();
        let again = approved(&store, SECOND);
        store.run(&["rules", "activate", SECOND, "--approval", &again]).fine();
        store.run(&["verify"]).fine();
        for _ in 0..3 {
            store.run(&["rules", "back"]).fine();
        }
        store.run(&["rules", "back"]).ended(2, &["nothing_to_go_back_to"]);
        let plain = Store::new();
        let file = store.directory.path().join("log.jsonl");
        plain.run(&["import", file.to_str().unwrap()]).fine();
        assert_eq!(plain.snapshot(), before);
        assert_eq!(store.run(&["identity"]).fine().out.lines().next(), identity.lines().next());
        store.run(&["verify"]).fine();
        let bundle = store.directory.path().join("b.ipse").to_str().unwrap().to_owned();
        store.run(&["export", "-o", &bundle]).fine();
        let keys = store.directory.path().join("ipse.db.keys");
        let [log, operator] =
            ["log.vkey", "operator.pub"].map(|it| keys.join(it).to_str().unwrap().to_owned());
        // A range carries the changes of rules before it, and passes: only its size is refused.
        let range = store.directory.path().join("r.ipse").to_str().unwrap().to_owned();
        store.run(&["export", "-o", &range, "--from", "205"]).fine();
        let bytes = std::fs::read(&range).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let (events, _) = text.split_once("entries.jsonl").unwrap();
        assert_eq!(events.matches("\"type\":\"ipse.rules\"").count(), list_steps(&store));
        let empty = Store::new();
        let refused = ["import-bundle", &range, "--trust", &log, "--trust", &operator];
        empty.run(&refused).ended(2, &["whole"]);
        let other = Store::new();
        other.run(&["import-bundle", &bundle, "--trust", &log, "--trust", &operator]).fine();
        assert_eq!(other.snapshot(), store.snapshot());
        other.run(&["verify"]).fine();
    }

    #[test]
    fn a_log_may_begin_with_other_rules() {
        let store = Store::nothing();
        let manifest = crate::store::vector("manifest/golden.toml");
        let manifest = manifest.to_str().unwrap();
        store.run(&["init", "--manifest", manifest, "--rules", "v9"]).ended(2, &["v1"]);
        store.run(&["init", "--manifest", manifest, "--rules", SECOND]).fine();
        store.run(&["init", "--manifest", manifest, "--rules", SECOND]).fine();
        assert_eq!(store.run(&["facts", "--json"]).json()["rule_version"], SECOND);
        store.run(&["record", "--skill", "grasp", "--outcome", "success"]).fine();
        store.run(&["init", "--manifest", manifest, "--rules", "v1"]).ended(2, &["not_first"]);
        store.run(&["verify"]).fine();
    }

    #[test]
    fn killed_during_an_activation_one_whole_set_is_there() {
        let (base, approval) = proposed(4000);
        let old = base.snapshot();
        let activate = |store: &Store| {
            Command::new(env!("CARGO_BIN_EXE_ipse"))
                .args(["--store", store.path.to_str().unwrap()])
                .args(["--key-dir", base.path.with_extension("db.keys").to_str().unwrap()])
                .args(["rules", "activate", SECOND, "--approval", &approval])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        let copied = || {
            let store = Store::nothing();
            for suffix in ["", "-wal"] {
                let [from, to] =
                    [&base.path, &store.path].map(|path| format!("{}{suffix}", path.display()));
                let _ = std::fs::copy(from, to);
            }
            store
        };
        let whole = copied();
        let started = Instant::now();
        assert!(activate(&whole).wait().unwrap().success());
        let (lasts, new) = (started.elapsed(), whole.snapshot());
        assert_ne!(old, new);
        let mut found = [0, 0];
        for kill in 0..KILLS {
            let store = copied();
            let mut child = activate(&store);
            std::thread::sleep(lasts * kill * 11 / (KILLS * 10) + Duration::from_micros(1));
            let _ = child.kill();
            child.wait().unwrap();
            let facts = store.snapshot();
            assert!(facts == old || facts == new, "kill {kill}");
            found[usize::from(facts == new)] += 1;
            store.run(&["verify"]).fine();
        }
        assert!(found[0] > 0, "{found:?}");
    }
}

mod unknown {
    use crate::older::sample;

    /// The events of the log of `vectors/store/unknown_rules.db.gz`.
    const SAMPLE_EVENTS: usize = 15;

    /// The log of this sample follows a rule set that no shipped program has.
    #[test]
    fn a_program_without_the_rules_serves_the_facts_and_loses_nothing() {
        let (store, facts) = sample("unknown_rules");
        store.run(&["migrate"]).fine();
        assert_eq!(store.snapshot(), facts);
        let served = store.run(&["facts", "--json"]).fine().json();
        assert_eq!(served["rule_version"], "trial");
        assert_eq!(
            store.run(&["rules", "list", "--json"]).fine().json()["in_force"]["rule_version"],
            "trial"
        );
        assert!(!store.run(&["rules", "show", "trial"]).fine().out.is_empty());
        let unknown = ["unknown_rules", "`trial`", "e30d13f080e0f09d"];
        let event = ["record", "--skill", "grasp", "--target", "cup", "--outcome", "failed"];
        store.run(&event).ended(2, &["the event is stored", unknown[0], unknown[1]]);
        store.run(&["consolidate"]).ended(2, &unknown);
        store.run(&["rebuild"]).ended(2, &unknown);
        let log = store.run(&["log", "--json"]).fine().out;
        assert_eq!(log.lines().count(), SAMPLE_EVENTS + 2, "the baseline, and the event");
        let first: serde_json::Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        let name = first["event_ref"].as_str().unwrap();
        store.run(&["forget", "--yes", name]).ended(2, &unknown);
        store.run(&["rules", "propose", "trial"]).ended(2, &["unknown_rules", "it has v1, v2"]);
        store.run(&["verify"]).ended(1, &[]);
        assert_eq!(store.snapshot(), facts, "no fact changed");
        assert_eq!(store.run(&["log", "--json"]).fine().out, log, "nothing else was written");
        // The operator can go back to rules that this program has.
        store.run(&["rules", "back"]).fine();
        assert!(store.snapshot().contains("\"rule_version\":\"v1\""));
        store.run(&["verify"]).fine();
    }
}
