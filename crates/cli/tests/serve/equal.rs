//! HTTP and the command line give the same output, byte for byte where both are bytes. Events that
//! are appended over HTTP give the same facts as imported ones.

use super::client::Request;
use super::events::{BATCH, LINES, ONE};
use super::server::{Agent, Server, one_agent, wait_until};
use super::store::{Store, ran, vector};
use serde_json::Value;

/// The acts that created the four tokens: the first positions of the log.
const ACTS: usize = super::server::ACTS as usize;

/// A served store with three logs, some forgotten events and a signed tree head.
struct Both {
    store: Store,
    agent: Agent,
    server: Server,
}

impl Both {
    fn new() -> Self {
        let (store, agent) = one_agent();
        for name in ["glass_cup", "mixed_random", "zones"] {
            // Lines with ids that an earlier log has are conflicts.
            let text = std::fs::read_to_string(vector(&format!("facts/{name}.events.jsonl")));
            let file = store.write("log.jsonl", text.unwrap().replace("robot-7", name));
            store.run(&["import", &file]).fine();
        }
        let first = cli(&store, &["log", "--json"]);
        let first: Value = serde_json::from_str(first.lines().nth(ACTS + 20).unwrap()).unwrap();
        store.run(&["forget", first["event_ref"].as_str().unwrap()]).fine();
        // With this act comes the one about the erased bytes, so that the server appends nothing.
        store.run(&["config", "retention", "180d"]).fine();
        store.run(&["tree-head", "--sign"]).fine();
        let server = Server::start(&store);
        Both { store, agent, server }
    }

    fn cli(&self, args: &[&str]) -> String {
        cli(&self.store, args)
    }

    /// The response to a role.
    #[track_caller]
    fn http(&self, role: &str, path: &str) -> String {
        self.server.get(path, self.agent.token(role)).ok().text()
    }

    /// Every item of a paged list.
    fn pages(&self, path: &str, items: &str, parameter: &str) -> Vec<Value> {
        let (mut all, mut next) = (Vec::new(), None);
        loop {
            let more = next.map(|at: u64| format!("&{parameter}={at}")).unwrap_or_default();
            let page: Value =
                serde_json::from_str(&self.http("auditor", &format!("{path}{more}"))).unwrap();
            all.extend(page[items].as_array().unwrap().clone());
            match page.get(format!("next_{parameter}")) {
                Some(at) => next = Some(at.as_u64().unwrap()),
                None => return all,
            }
        }
    }

    /// The log over HTTP in pages, compared with the command line.
    #[track_caller]
    fn same_log(&self, query: &str, args: &[&str]) -> usize {
        let theirs = self.store.run(&[&["log", "--json"], args].concat());
        let ours = self.pages(&format!("/api/agent/log?limit=7&{query}"), "events", "after");
        assert_eq!(ours, objects(&theirs.out), "{query}");
        ours.len()
    }

    /// Compares the facts of both, and the other members that both have.
    #[track_caller]
    fn same_facts(&self, query: &str, args: &[&str]) -> usize {
        let ours = self.http("planner", &format!("/api/agent/semantic?{query}"));
        let ours: Value = serde_json::from_str(&ours).unwrap();
        let theirs = self.store.run(&[&["facts", "--json"], args].concat());
        let theirs: Value = serde_json::from_str(&theirs.out).unwrap();
        let names = ["facts", "identity_hash", "checkpoint", "rule_version", "total", "as_of"];
        for name in names {
            assert_eq!(ours.get(name), theirs.get(name), "{query}");
        }
        let grounding = self.store.run(&[&["facts", "--format", "grounding"], args].concat());
        let read = format!("checkpoint {}, consultation ", theirs["checkpoint"]);
        let id = theirs["consultation_id"].as_str().unwrap();
        assert!(grounding.err.contains(&format!("{read}{id}\n")), "{}", grounding.err);
        let text = self.http("planner", &format!("/api/agent/semantic?{query}&format=grounding"));
        assert_eq!(text, grounding.out, "{query}");
        assert_eq!(ours["grounding"], text, "{query}");
        ours["facts"].as_array().unwrap().len()
    }
}

fn cli(store: &Store, args: &[&str]) -> String {
    store.run(args).fine().out
}

fn objects(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn facts_are_the_same_under_every_filter() {
    let both = Both::new();
    let all = both.same_facts("limit=1000", &[]);
    assert!(all > 20, "{all}");
    assert_eq!(both.same_facts("", &["--limit", "20"]), 20);
    for limit in ["1", "7"] {
        both.same_facts(&format!("limit={limit}"), &["--limit", limit]);
    }
    let mut found = 0;
    for (parameter, flag, values) in [
        ("skill_id", "--skill", &["skill.0", "manipulation.grasp", "nothing"][..]),
        ("target_class", "--target", &["t1", "glass_cup"]),
        ("environment", "--environment", &["e0", "sim_relaxed"]),
        ("env", "--env", &["e0"]),
        ("zone", "--zone", &["z0", "z1"]),
        ("kind", "--kind", &["zone_risk", "interaction_pattern", "object_property"]),
    ] {
        for value in values {
            let query = format!("{parameter}={value}&limit=1000");
            found += both.same_facts(&query, &[flag, value]);
        }
    }
    assert!(found > all, "{found}");
    let two = ["--skill", "skill.0", "--environment", "e1", "--kind", "skill_success_rate"];
    let query = "skill_id=skill.0&environment=e1&kind=skill_success_rate&limit=1000";
    assert!(both.same_facts(query, &two) > 0);
}

#[test]
fn facts_as_of_a_position_are_the_same() {
    let both = Both::new();
    let head = objects(&both.cli(&["log", "--json"])).len();
    let of_producers = [1, 15, 16, 17, 30, 300].map(|seq| ACTS + seq);
    for seq in [0, 1, head].into_iter().chain(of_producers) {
        let seq = seq.to_string();
        both.same_facts(&format!("limit=1000&as_of={seq}"), &["--as-of", &seq]);
    }
    let beyond = (head + 1).to_string();
    let path = format!("/api/agent/semantic?as_of={beyond}");
    both.server.get(&path, &both.agent.planner).problem(404, "not_found");
    both.store.run(&["facts", "--as-of", &beyond]).ended(2, &[]);
}

#[test]
fn facts_as_of_a_time_are_the_same() {
    let both = Both::new();
    let passes = objects(&both.cli(&["passes", "--json"]));
    let time = |pass: &Value| pass["time"].as_str().unwrap().to_owned();
    let mut times: Vec<String> = passes.iter().map(time).collect();
    times
        .extend(["1999-01-01", "2026-05-03", "9999-12-31", "2026-05-03T10:00:00Z"].map(Into::into));
    for when in &times {
        both.same_facts(&format!("limit=1000&as_of={when}"), &["--as-of", when]);
    }
    let (first, last) = (&passes[0], passes.last().unwrap());
    let facts = |when: &str| -> Value {
        let path = format!("/api/agent/semantic?as_of={when}");
        serde_json::from_str(&both.http("planner", &path)).unwrap()
    };
    let answer = facts(&time(first));
    assert_eq!(answer["checkpoint"], first["seq"], "the pass itself was recorded then");
    assert_eq!(answer["as_of"]["recorded"], first["time"]);
    let log = objects(&both.cli(&["log", "--json"]));
    let newest = log.iter().rfind(|entry| entry["event"]["source"] == "ipse").unwrap();
    assert!(newest["seq"].as_u64() > last["seq"].as_u64(), "an act follows the last pass");
    assert_eq!(facts("9999-12-31")["checkpoint"], newest["seq"], "the newest of ipse");
    assert_eq!(facts("1999-01-01")["as_of"]["recorded"], Value::Null);
    let path = format!("/api/agent/semantic?as_of={}&format=grounding", time(first));
    let text = both.server.get(&path, &both.agent.planner).ok();
    assert_eq!(text.header("ipse-checkpoint").unwrap(), first["seq"].to_string());
    let tag = text.header("etag").unwrap().to_owned();
    let again = Request::get(&path).token(&both.agent.planner).header("if-none-match", &tag);
    both.server.ask(&again).is(304);
    let rules = objects(&both.cli(&["rules", "list", "--json"]))[0].clone();
    let available = rules["available"].as_array().unwrap();
    let v2 = available.iter().find(|it| it["rule_version"] == "v2").unwrap();
    let hash = v2["rule_set_sha256"].as_str().unwrap();
    let report =
        |when: &str| both.http("auditor", &format!("/api/agent/rules/{hash}/report?as_of={when}"));
    assert_eq!(report(&time(first)), report(&first["seq"].to_string()));
}

#[test]
fn the_log_is_the_same_under_every_filter() {
    let both = Both::new();
    let mut found = 0;
    for (query, args) in [
        (
            "since=2026-04-24&until=2026-04-24",
            &["--since", "2026-04-24", "--until", "2026-04-24"][..],
        ),
        ("since=2026-05-01T00:00:00Z", &["--since", "2026-05-01T00:00:00Z"]),
        ("skill_id=skill.0", &["--skill", "skill.0"]),
        ("target_class=glass_cup", &["--target", "glass_cup"]),
        ("failed=true", &["--failed"]),
        ("failed=false&type=incident", &["--type", "incident"]),
        ("type=consolidation_run", &["--type", "consolidation_run"]),
        ("source=glass_cup", &["--source", "glass_cup"]),
        ("source=glass_cup&failed=true", &["--source", "glass_cup", "--failed"]),
        ("source=no-one", &["--source", "no-one"]),
    ] {
        found += both.same_log(query, args);
    }
    assert!(found > 100, "{found}");
    for (query, code) in [
        ("since=15", "bad_parameter"),
        ("until=yesterday", "bad_parameter"),
        ("since=2026-05-04&until=2026-05-03", "bad_parameter"),
        ("failed=yes", "bad_parameter"),
        ("skill=grasp", "unknown_parameter"),
        ("event_type=note", "unknown_parameter"),
        ("type=a&type=b", "repeated_parameter"),
    ] {
        let answer = both.server.get(&format!("/api/agent/log?{query}"), &both.agent.operator);
        answer.problem(400, code);
    }
}

#[test]
fn who_it_is_and_what_it_lived_through_are_the_same() {
    let both = Both::new();
    assert_eq!(
        both.http("planner", "/api/agent/identity") + "\n",
        both.cli(&["identity", "--json"])
    );
    let log = objects(&both.cli(&["log", "--json"]));
    assert_eq!(both.pages("/api/agent/log?limit=1000", "events", "after"), log);
    assert_eq!(both.pages("/api/agent/log?limit=13", "events", "after"), log);
    assert_eq!(both.pages("/api/agent/log?limit=640", "events", "after"), log);
    let mut passes = objects(&both.cli(&["passes", "--json"]));
    assert!(passes.len() >= 4, "{passes:?}");
    // Over HTTP the newest come first.
    passes.sort_by_key(|pass| std::cmp::Reverse(pass["seq"].as_u64()));
    assert_eq!(both.pages("/api/agent/passes?limit=1000", "passes", "before"), passes);
    assert_eq!(both.pages("/api/agent/passes?limit=1", "passes", "before"), passes);
}

#[test]
fn every_fact_and_its_explanation_are_the_same() {
    let both = Both::new();
    let facts = both.http("planner", "/api/agent/semantic?limit=1000");
    let facts: Value = serde_json::from_str(&facts).unwrap();
    let mut several = 0;
    for fact in facts["facts"].as_array().unwrap() {
        let id = fact["fact_id"].as_str().unwrap();
        let path = format!("/api/agent/facts/{id}");
        let alone: Value = serde_json::from_str(&both.http("planner", &path)).unwrap();
        assert_eq!(&alone, fact);
        let mut total = 0;
        for page in 1.. {
            let path = format!("{path}/explanation?page={page}");
            let theirs = both.cli(&["explain", id, "--json", "--page", &page.to_string()]);
            assert_eq!(both.http("auditor", &path) + "\n", theirs, "{id}");
            let theirs: Value = serde_json::from_str(&theirs).unwrap();
            total += theirs["evidence"].as_array().unwrap().len();
            if theirs["evidence_total"] == total {
                let beyond = format!("/api/agent/facts/{id}/explanation?page={}", page + 1);
                both.server.get(&beyond, &both.agent.planner).problem(404, "not_found");
                break;
            }
            several += 1;
        }
    }
    assert!(several > 0, "some have more than a page");
}

#[test]
fn what_an_auditor_takes_away_is_the_same() {
    let both = Both::new();
    assert_eq!(both.http("auditor", "/api/audit/tree-head"), both.cli(&["tree-head"]));
    let log = objects(&both.cli(&["log", "--json"]));
    for event in log.iter().step_by(97).chain(log.last()) {
        let name = event["event_ref"].as_str().unwrap();
        let ours = both.http("auditor", &format!("/api/audit/proof?event_ref={name}"));
        let theirs = both.cli(&["explain", name, "--proof", "--json"]);
        assert_eq!(ours.trim_end(), theirs.trim_end(), "{name}");
    }
    consistent(&both);
    let bundle = both.server.get("/api/audit/bundle", &both.agent.auditor).ok();
    let name = format!("attachment; filename=\"{}.ipse\"", &both.agent.identity[..16]);
    assert_eq!(bundle.header("content-disposition"), Some(name.as_str()));
    let file = both.store.directory.path().join("exported.ipse");
    let file = file.to_str().unwrap();
    both.store.run(&["export", "-o", file]).fine();
    assert!(bundle.body == std::fs::read(file).unwrap(), "the bundles differ");
    let taken = both.store.write("taken.ipse", &bundle.body);
    verifies(&both.store, &taken);
    // A store that imports it has the same facts.
    let keys = both.store.path.with_extension("db.keys");
    let [log, operator] = ["log.vkey", "operator.pub"].map(|name| keys.join(name));
    let (log, operator) = (log.to_str().unwrap(), operator.to_str().unwrap());
    let other = Store::new();
    let trust = ["import-bundle", &taken, "--trust", log, "--trust", operator];
    other.run(&trust).fine();
    assert_eq!(other.snapshot(), both.store.snapshot());
    assert_eq!(cli(&other, &["log", "--json"]), both.cli(&["log", "--json"]));
}

/// The auditor's program, if it was built next to this one.
pub(crate) fn verifies(store: &Store, bundle: &str) {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_ipse")).with_file_name("ipse-verify");
    if !program.exists() {
        eprintln!("SKIPPED: ipse-verify is not built (cargo build -p ipse-verify)");
        return;
    }
    let keys = store.path.with_extension("db.keys");
    let mut command = assert_cmd::Command::new(program);
    command.arg(bundle).arg("--trust").arg(keys.join("log.vkey"));
    ran(command.arg("--trust").arg(keys.join("operator.pub"))).fine();
}

/// The same events over HTTP, in every form and another order, and by the command line.
#[test]
fn what_is_appended_teaches_what_is_imported() {
    for name in ["mixed_random", "v1_thousand", "edges_more"] {
        let file = vector(&format!("facts/{name}.events.jsonl"));
        let text = std::fs::read_to_string(&file).unwrap();
        let (store, agent) = one_agent();
        let server = Server::with(&store, &["--pass-every", "50", "--pass-quiet", "10"]);
        let send = |kind: &str, body: String| {
            let request = Request::events(kind, body).token(&agent.producer);
            assert!(matches!(server.ask(&request).status, 200 | 201 | 409 | 422));
        };
        let lines: Vec<&str> = text.lines().collect();
        let (first, rest) = lines.split_at(lines.len() / 2);
        send(LINES, first.join("\n"));
        let (second, third) = rest.split_at(rest.len() / 2);
        send(BATCH, format!("[{}]", second.join(",")));
        for line in third {
            send(ONE, (*line).to_string());
        }
        let fold = Request::new("POST", "/api/agent/consolidate").token(&agent.operator);
        server.ask(&fold).ok();
        let imported = Store::new();
        imported.run(&["import", file.to_str().unwrap()]);
        assert_eq!(store.snapshot(), imported.snapshot(), "{name}");
        let facts = |store: &Store| cli(store, &["facts", "--json"]);
        let [ours, theirs] = [&store, &imported]
            .map(|store| serde_json::from_str::<Value>(&facts(store)).unwrap()["facts"].clone());
        assert_eq!(ours, theirs, "{name}");
        store.run(&["rebuild"]).fine();
    }
}

/// Facts that another process adds are served soon, with the values of that process.
#[test]
fn what_another_process_does_is_seen() {
    let both = Both::new();
    let tag = |both: &Both| {
        let answer = both.server.get("/api/agent/semantic?limit=1000", &both.agent.planner).ok();
        answer.header("etag").unwrap().to_string()
    };
    let before = tag(&both);
    both.store.run(&["record", "--skill", "new", "--target", "x", "--success"]).fine();
    wait_until("the new fact is answered", || tag(&both) != before);
    both.same_facts("limit=1000", &[]);
    assert_eq!(both.same_facts("skill_id=new", &["--skill", "new"]), 1);
    let log = objects(&both.cli(&["log", "--json"]));
    let first = log[ACTS + 3]["event_ref"].clone();
    both.store.run(&["forget", first.as_str().unwrap()]).fine();
    let (before, seen) =
        (both.cli(&["facts", "--json"]), || both.http("planner", "/api/agent/semantic?limit=1000"));
    let before: Value = serde_json::from_str(&before).unwrap();
    wait_until("what was forgotten is gone", || {
        serde_json::from_str::<Value>(&seen()).unwrap()["facts"] == before["facts"]
    });
}

/// Every proof of consistency leads from one tree to the other, and wrong sizes are rejected.
fn consistent(both: &Both) {
    let path = "/api/audit/consistency";
    let note = both.cli(&["tree-head"]);
    let size: u64 = note.lines().nth(1).unwrap().parse().unwrap();
    for from in (1..=size).step_by(97).chain([size]) {
        let answer = objects(&both.http("auditor", &format!("{path}?from={from}"))).remove(0);
        assert_eq!((&answer["from"], &answer["to"]), (&from.into(), &size.into()));
        assert_eq!(answer["tree_head"], note.as_str());
        let hash = |hash: &Value| ipse_ledger::base64::decode(hash.as_str().unwrap()).unwrap();
        let hashes = answer["hashes"].as_array().unwrap().iter();
        let hashes: Vec<ipse_ledger::Hash> =
            hashes.map(|one| hash(one).try_into().unwrap()).collect();
        let reader = ipse_store::Store::open(&ipse_store::Location::file(&both.store.path));
        let reader = reader.unwrap().reader().unwrap();
        let identity = ipse_core::Identity::parse(&both.agent.identity).unwrap();
        let snapshot = reader.view(&identity).unwrap();
        let root = |size| snapshot.view().tree_root(size).unwrap();
        let (old, new) = ((from, &root(from)), (size, &root(size)));
        assert!(ipse_ledger::tree::is_consistent(old, new, &hashes), "{from}");
    }
    let auditor = &both.agent.auditor;
    let beyond = size + 1;
    for bad in ["", "?from=0", "?from=x", "?from=2&to=1", &format!("?from={beyond}"), "?to=3"] {
        both.server.get(&format!("{path}{bad}"), auditor).problem(400, "bad_parameter");
    }
    both.server.get(&format!("{path}?from=1&to={beyond}"), auditor).problem(404, "not_found");
    let between = objects(&both.http("auditor", &format!("{path}?from=2&to=3"))).remove(0);
    assert_eq!((&between["to"], &between["tree_head"]), (&3.into(), &note.as_str().into()));
}
