//! Intents over HTTP: verdicts of the gates, decisions of persons, and their records in the log.

mod authority;
mod candidates;
mod consulted;
mod files;
mod judged;
mod limits;
#[allow(dead_code)]
#[path = "../../../../gates/tests/all/oracle.rs"]
mod oracle;
mod outcomes;
mod planners;
mod verdicts;
mod walked;

use super::client::{Answer, Request};
use super::server::{Agent, GATE_FILES, Server, example};
use super::store::Store;
use serde_json::{Value, json};

/// The gate files on disk.
pub(crate) fn gate_files() -> String {
    GATE_FILES.map(|(_, file)| std::fs::read_to_string(example(file)).unwrap()).concat()
}

/// An intent to grasp a glass cup with this many newtons.
pub(crate) fn grasp(force: impl Into<Value>) -> Value {
    json!({ "skill_id": "manipulation.grasp", "target_class": "glass_cup",
            "environment": "ward3", "params": { "force_n": force.into() } })
}

/// The request that proposes an intent.
pub(crate) fn proposal(force: impl Into<Value>) -> Request {
    proposing(&grasp(force))
}

fn proposing(intent: &Value) -> Request {
    Request::post("/api/agent/intents", "application/json", intent.to_string())
}

/// An agent that is bound to gates, and its server.
struct Gated {
    store: Store,
    agent: Agent,
    server: Server,
}

impl Gated {
    fn new() -> Self {
        Self::with(&["--pass-every", "1"])
    }

    /// The same, with a log that begins with rule set v2.
    fn under_v2() -> Self {
        let store = Store::nothing();
        let agent = Agent::bound(&store, "ward-robot-01");
        let manifest = store.path.with_file_name("ward-robot-01.toml");
        store.run(&["init", "--manifest", manifest.to_str().unwrap(), "--rules", "v2"]).fine();
        let server = Server::gated(&store, &["--pass-every", "1"]);
        Gated { store, agent, server }
    }

    fn with(args: &[&str]) -> Self {
        let store = Store::nothing();
        let agent = Agent::bound(&store, "ward-robot-01");
        let server = Server::gated(&store, args);
        Gated { store, agent, server }
    }

    /// An agent that is bound to its own files: those of the examples, each changed.
    fn changed(change: impl Fn(&str, String) -> String, args: &[&str]) -> Self {
        let store = Store::nothing();
        let files = GATE_FILES.map(|(field, file)| {
            let text = std::fs::read_to_string(example(file)).unwrap();
            store.write(&format!("{field}.toml"), change(field, text))
        });
        let agent = Agent::bound_to(&store, "ward-robot-01", &files);
        let server = Server::with(&store, &[&flags(&files)[..], args].concat());
        Gated { store, agent, server }
    }

    #[track_caller]
    fn ask(&self, intent: &Value) -> Answer {
        self.server.ask(&proposing(intent).token(&self.agent.planner))
    }

    #[track_caller]
    fn propose(&self, intent: &Value) -> Value {
        self.ask(intent).is(201).json()
    }

    #[track_caller]
    fn intent(&self, name: &Value) -> Value {
        let path = format!("/api/agent/intents/{}", name.as_str().unwrap());
        self.server.get(&path, &self.agent.planner).ok().json()
    }

    #[track_caller]
    fn decide(&self, name: &Value, body: &str) -> Answer {
        let path = format!("/api/agent/intents/{}/confirm", name.as_str().unwrap());
        let request = match body {
            "" => Request::new("POST", &path),
            body => Request::post(&path, "application/json", body),
        };
        self.server.ask(&request.token(&self.agent.operator))
    }

    /// The events of a type, oldest first.
    fn log(&self, event_type: &str) -> Vec<Value> {
        let log = self.agent.run(&self.store, &["log", "--json"]).out;
        let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|event| event["type"] == event_type).collect()
    }

    #[track_caller]
    fn report(&self, id: &str, force: f64, success: bool) -> Value {
        let event = json!({ "id": id, "source": "arm", "type": "execution_result",
            "time": "2026-05-06T10:00:00Z", "data": {
                "skill_id": "manipulation.grasp", "target_class": "glass_cup",
                "environment": "ward3", "params": { "force_n": force }, "success": success,
                "failure_reason": "slip" } });
        let request = Request::post("/api/agent/events", "application/json", event.to_string());
        self.server.ask(&request.token(&self.agent.producer)).is(201).json()
    }
}

/// The arguments of a server with these gate files.
fn flags(files: &[String; 3]) -> [&str; 6] {
    let [registry, policy, temperament] = files.each_ref().map(String::as_str);
    ["--ecm-registry", registry, "--policy", policy, "--temperament", temperament]
}

/// The codes of a gate's findings.
fn codes<'v>(intent: &'v Value, gate: &str) -> Vec<&'v str> {
    let gates = intent["gates"].as_array().unwrap();
    let gate = gates.iter().find(|one| one["gate"] == gate);
    let findings = gate.and_then(|gate| gate["findings"].as_array()).into_iter().flatten();
    findings.map(|finding| finding["code"].as_str().unwrap()).collect()
}

/// The result of the audit gate.
fn audit(intent: &Value) -> &Value {
    let last = intent["gates"].as_array().unwrap().last().unwrap();
    assert_eq!(last["gate"], "audit", "{intent}");
    last
}
