//! A store with planned actions: a consultation, intents, decisions and outcomes.

use super::store::Store;
use ipse_core::json::{Members, list, quoted};
use ipse_core::{Admitted, EventRef, Identity, Time};
use ipse_door::{Origin, Salt, admit};
use ipse_engine::facts::Filter;
use ipse_engine::{Consultation, Host, Memory, Policy};
use std::time::Duration;

/// A fixed clock, and counted salts.
struct TestHost(u128);

impl Host for TestHost {
    fn now(&self) -> Time {
        Time::parse("2026-05-07T00:00:00Z").unwrap()
    }

    fn salt(&mut self) -> Salt {
        self.0 += 1;
        self.0.to_be_bytes()
    }
}

/// The planned actions of a store.
pub(crate) struct Planned {
    pub(crate) intent: String,
    pub(crate) waiting: String,
    pub(crate) confirmation: String,
    /// As it was planned.
    pub(crate) acted: String,
    /// Under a denied intent.
    pub(crate) against: String,
}

fn event(source: &str, id: &str, event_type: &str, data: &str) -> Admitted {
    let bytes = format!(
        r#"{{"id":"{id}","source":"{source}","type":"{event_type}",
        "time":"2026-05-06T12:00:00Z","data":{data}}}"#
    );
    admit(bytes.as_bytes(), Origin::House, || [9; 16]).unwrap()
}

fn gates(verdict: &str) -> String {
    let gate = |name: &str, result: &str| {
        let gate = Members::new().text("gate", name).text("result", result);
        gate.raw("findings", "[]").finish()
    };
    let (policy, contract) = match verdict {
        "needs_confirmation" => ("passed", verdict),
        verdict => (verdict, "passed"),
    };
    let mut gates = vec![gate("admission", "passed"), gate("policy", policy)];
    gates.extend((verdict != "denied").then(|| gate("contract", contract)));
    gates.push(Members::new().text("gate", "audit").text("result", "verified").finish());
    list(gates)
}

fn intent(n: u8, verdict: &str, consultation: Option<&Consultation>) -> Admitted {
    let admitted = (verdict != "denied").then_some(r#"{"force_n":40}"#);
    let data = Members::new()
        .text("skill_id", "manipulation.grasp")
        .text("target_class", "glass_cup")
        .text("environment", "sim_relaxed")
        .raw("params", r#"{"force_n":60}"#)
        .optional("admitted_params", admitted)
        .text("token_id", "0123456789abcdef0123456789abcdef")
        .text("verdict", verdict)
        .raw("gates", gates(verdict))
        .optional("consultation", consultation.map(|it| &it.json))
        .optional("consultation_id", consultation.map(|it| quoted(&it.id())))
        .finish();
    event("ipse", &format!("intent:{n:032x}"), "intent", &data)
}

fn attempt(id: &str, intent: &EventRef, force: u8) -> Admitted {
    let data = format!(
        r#"{{"skill_id":"manipulation.grasp","target_class":"glass_cup",
        "environment":"sim_relaxed","params":{{"force_n":{force}}},"success":true,
        "intent":"{intent}"}}"#
    );
    event("robot-7", id, "execution_result", &data)
}

/// Plans and acts in a store with events about the glass cup; runs a pass and signs.
pub(crate) fn plan(store: &Store) -> Planned {
    let identity = store.run(&["identity", "--json"]).fine().json();
    let identity = Identity::parse(identity["identity_hash"].as_str().unwrap()).unwrap();
    let opened = ipse_store::Location::file(&store.path);
    let opened = ipse_store::Store::open(&opened).unwrap();
    let policy = Policy { every: 1_000_000, quiet: Duration::from_secs(3600) };
    let memory = Memory::open(&opened, identity, policy, Box::new(TestHost(0)), None).unwrap();
    let filter = Filter { target: Some("glass_cup".to_owned()), ..Filter::default() };
    let known = memory.known();
    let said =
        Consultation::of(&identity, known.checkpoint(), "v1", &filter, &known.choose(&filter));
    let good = intent(1, "clamped", Some(&said));
    let denied = intent(2, "denied", None);
    let waiting = intent(3, "needs_confirmation", None);
    let data =
        format!(r#"{{"decision":"declined","intent":"{}","token_id":"00"}}"#, waiting.event_ref);
    let id = format!("confirm:{}", waiting.event_ref);
    let confirmation = event("ipse", &id, "ipse.confirmation", &data);
    let acted = attempt("acted", &good.event_ref, 41);
    let against = attempt("against", &denied.event_ref, 41);
    let all = [good, denied, waiting, confirmation, acted, against];
    memory.append_all(&all).unwrap();
    drop(memory);
    store.run(&["consolidate"]).fine();
    store.run(&["tree-head", "--sign"]).fine();
    let [intent, _, waiting, confirmation, acted, against] =
        all.map(|event| event.event_ref.to_string());
    Planned { intent, waiting, confirmation, acted, against }
}
