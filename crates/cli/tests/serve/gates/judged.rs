//! A thousand random intents, judged by a server, again from a bundle, and by the oracle.

use super::oracle::{Attempt, Oracle};
use super::{Gated, grasp};
use crate::client::Request;
use ipse_bundle::{GatesInput, Opened, Trust, open_judged};
use ipse_core::{Identity, Time};
use ipse_door::{Origin, admit};
use ipse_gates::{Code, Ruling, read_gates};
use ipse_store::{Location, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

const REGISTRY: &str = r#"format = "ipse-ecm-registry/2"
[skills.grasp]
risk = 0.3
ethics = 0.9
requires = ["target_class", "environment"]
targets = ["cup", "tray"]
environments = ["ward", "lab"]
[skills.grasp.params]
force_n = { type = "number", unit = "N", min = 0, max = 140, required = true }
retries = { type = "integer", unit = "1" }
grip = { type = "text", one_of = ["soft", "firm"] }
gentle = { type = "boolean" }
[skills.place]
risk = 0.1
ethics = 1
requires = ["target_class"]
[skills.place.contract]
after = [
  { skill = "grasp", within_s = 3600, same_target = true },
  { skill = "look", within_s = 60 },
]
[skills.look]
risk = 0
ethics = 1
[skills.throw]
risk = 0.1
ethics = 1
[skills.tow]
risk = 0.1
ethics = 0.1
[skills.saw]
risk = 0.9
ethics = 1
[skills.hit]
risk = 0
ethics = 1
[skills.wave]
risk = 0
ethics = 1
"#;
const POLICY: &str = r#"format = "ipse-policy/1"
unlisted_skills = "deny"
[skills.grasp]
clamp = [{ param = "force_n", min = 5, max = 100 }]
forbid = [
  { param = "force_n", from = 60, to = 70 },
  { param = "grip", equals = "firm", target_class = "cup" },
]
[skills.place]
rate_limit = { intents = 60, seconds = 86400 }
[skills.look]
[skills.throw]
rate_limit = { intents = 5, seconds = 86400 }
[skills.tow]
[skills.saw]
[skills.hit]
forbid = [{}]
"#;
const TEMPERAMENT: &str = r#"format = "ipse-temperament/1"
risk_appetite = 0.5
ethical_floor = 0.4
confirm_within_s = 300
human_check = [{ skill_id = "grasp", param = "force_n", above = 40, target_class = "tray" }]
"#;
const FILES: [&str; 3] = [REGISTRY, POLICY, TEMPERAMENT];
const INTENTS: usize = 1000;
/// Each verdict and each code must occur this often.
const OFTEN: usize = 20;

/// A generator of small numbers, always the same (xorshift).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

/// A grasp that may pass, then changed in one way of many; or another skill.
fn intent(chance: &mut Chance) -> Value {
    let force = chance.of(&[5.0, 20.0, 33.3, 39.999_999_9, 45.0, 58.0]);
    let (target, place) = (chance.of(&["cup", "tray"]), chance.of(&["ward", "lab"]));
    let mut intent = json!({ "skill_id": "grasp", "target_class": target, "environment": place,
                             "params": { "force_n": force } });
    let params = &mut intent["params"];
    match chance.below(22) {
        0 => params["force_n"] = chance.of(&[141.0, -1.0, 1e12]).into(),
        1 => params["force_n"] = chance.of(&[0.0, 4.999_999, 1e-7]).into(),
        2 => params["force_n"] = chance.of(&[100.000_001, 120.0]).into(),
        3 => params["force_n"] = chance.of(&[60.0, 65.5, 70.0]).into(),
        4 => params["force_n"] = "20".into(),
        5 => params["retries"] = chance.of(&[1.5, 2.0, -0.5]).into(),
        6 => params["grip"] = chance.of(&["hard", "hard", "soft"]).into(),
        7 => (params["grip"], intent["target_class"]) = ("firm".into(), "cup".into()),
        8 => drop(params.as_object_mut().unwrap().remove("force_n")),
        9 => params["speed"] = json!({ "deep": [1, null] }),
        10 => drop(intent.as_object_mut().unwrap().remove("target_class")),
        11 => intent["target_class"] = "cat".into(),
        12 => intent["environment"] = "moon".into(),
        13 => (params["force_n"], intent["target_class"]) = (50.into(), "tray".into()),
        other => {
            let skills = ["fly", "wave", "hit", "throw", "tow", "saw", "place", "place"];
            let skill = skills[usize::try_from(other - 14).unwrap()];
            intent = json!({ "skill_id": skill, "target_class": target });
        }
    }
    intent
}

/// The end of an attempt at what a contract asks for, some time ago.
fn attempt(chance: &mut Chance, gated: &Gated, number: usize) {
    let seconds = chance.of(&[0, 1, 30, 59, 100, 5000]);
    let then = now().micros() - seconds * 1_000_000;
    let data = json!({ "skill_id": chance.of(&["grasp", "look"]),
                       "target_class": chance.of(&["cup", "tray"]),
                       "outcome": chance.of(&["success", "success", "failed", "unknown"]) });
    let event = json!({ "id": format!("n{number}"), "source": "arm", "type": "execution_result",
                        "time": Time::from_micros(then).unwrap().to_string(), "data": data });
    let request = Request::post("/api/agent/events", "application/json", event.to_string());
    gated.server.ask(&request.token(&gated.agent.producer)).is(201);
}

fn now() -> Time {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    Time::from_micros(i64::try_from(now.as_micros()).unwrap()).unwrap()
}

/// Judges every intent of a bundle by the oracle. Returns how often each verdict and code occurs.
fn compared(opened: &Opened<'_>) -> BTreeMap<String, usize> {
    let oracle = Oracle::new(REGISTRY, POLICY, TEMPERAMENT);
    let (mut attempts, mut seen): (Vec<Attempt>, BTreeMap<String, usize>) = Default::default();
    let mut passed: BTreeMap<String, i64> = BTreeMap::new();
    for line in opened.log() {
        let (entry, event) = line.unwrap();
        let event: Value = serde_json::from_str(&event.unwrap()).unwrap();
        let (data, time) = (&event["data"], entry.time.micros());
        let skill = data["skill_id"].as_str().unwrap_or_default().to_owned();
        if let Some(outcome @ ("success" | "failed")) = data["outcome"].as_str() {
            let target = data["target_class"].as_str().map(str::to_owned);
            attempts.push((skill, target, outcome == "success", time));
        } else if event["type"] == "intent" {
            // No window ends during this test.
            let recent = passed.get(&skill).copied().unwrap_or_default();
            let (ruling, params) = oracle.judge_after(data, recent, time, &attempts);
            assert_eq!(data["verdict"], ruling, "{event}");
            let admitted = params.map(|params| serde_json::to_value(params).unwrap());
            let numbers = |value: Option<&Value>| value.map(|it| format!("{:?}", doubles(it)));
            assert_eq!(numbers(data.get("admitted_params")), numbers(admitted.as_ref()), "{event}");
            *passed.entry(skill).or_default() += i64::from(ruling != "denied");
            *seen.entry(ruling.to_owned()).or_default() += 1;
            let gates = data["gates"].as_array().unwrap().iter();
            let findings = gates.filter_map(|gate| gate["findings"].as_array()).flatten();
            for finding in findings {
                *seen.entry(finding["code"].as_str().unwrap().to_owned()).or_default() += 1;
            }
        }
    }
    seen
}

/// Numbers as doubles, however they were written.
fn doubles(value: &Value) -> BTreeMap<&str, String> {
    let text = |value: &Value| value.as_f64().map_or(value.to_string(), |it| it.to_string());
    value.as_object().unwrap().iter().map(|(name, it)| (&**name, text(it))).collect()
}

#[test]
fn a_thousand_random_intents_are_judged_equal_offline_and_by_the_oracle() {
    let change = |field: &str, _| {
        let at = ["ecm_registry", "policy", "temperament"].iter().position(|it| *it == field);
        FILES[at.unwrap()].to_owned()
    };
    let gated = Gated::changed(change, &["--intent-rate", "600000"]);
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    for number in 0..INTENTS {
        gated.propose(&intent(&mut chance));
        if number % 3 == 0 {
            attempt(&mut chance, &gated, number);
        }
    }
    let path = gated.store.directory.path().join("all.ipse");
    gated.agent.run(&gated.store, &["export", "-o", path.to_str().unwrap()]).fine();
    let bundle = fs::read(&path).unwrap();
    let mut trust = Trust::default();
    for name in ["log.vkey", "operator.pub"] {
        trust.add(&super::walked::key(&gated, name)).unwrap();
    }
    let gates = GatesInput { read: Some(&read_gates), ..GatesInput::default() };
    let opened = open_judged(&bundle, &trust, &[], &gates, &mut |_, _| {}).unwrap();
    let opened = opened.unwrap_or_else(|report| panic!("{}", report.json()));
    let report = opened.report.json();
    let line = format!("{INTENTS} intents judged again: every verdict follows");
    assert!(report.contains(&line), "{report}");
    let limits = opened.report.lines.iter().filter(|line| line.verdict.name() == "LIMIT");
    let limits: Vec<_> = limits.filter(|line| line.place == "gates").collect();
    assert!(limits.is_empty(), "{limits:?}");
    let store = gated.agent.run(&gated.store, &["verify"]).fine();
    assert!(store.out.contains(&line), "{}", store.out);

    let seen = compared(&opened);
    let names = Ruling::ALL.iter().map(|it| it.name()).chain(Code::ALL.iter().map(|it| it.name()));
    for name in names {
        assert!(seen.get(name).is_some_and(|n| *n >= OFTEN), "{name}: {seen:#?}");
    }
}

/// An intent of 500 N on glass, recorded as admitted by someone who can write to the store.
#[test]
fn a_forged_admission_is_found_in_the_store_and_in_its_bundle() {
    let gated = Gated::new();
    let admitted = gated.propose(&grasp(25));
    let mut event = gated.log("intent").remove(0)["event"].clone();
    assert_eq!(admitted["verdict"], "admitted");
    event["id"] = format!("intent:{}", "0".repeat(32)).into();
    event["data"]["recent"] = 1.into();
    for params in ["params", "admitted_params"] {
        event["data"][params]["force_n"] = 500.into();
    }
    let event = admit(event.to_string().as_bytes(), Origin::House, || [7; 16]).unwrap();
    let store = Store::open(&Location::file(&gated.store.path)).unwrap();
    let identity = Identity::parse(&gated.agent.identity).unwrap();
    let mut writer = store.writer(&identity).unwrap();
    let mut batch = writer.begin().unwrap();
    batch.append(&event).unwrap();
    batch.commit().unwrap();
    drop(writer);
    let wanted = "recorded admitted, the files say denied (admission: out_of_range force_n)";
    let found = gated.agent.run(&gated.store, &["verify"]).ended(1, &[]);
    assert!(found.out.contains(&format!("intent at seq 2: {wanted}")), "{}", found.out);

    let path = gated.store.directory.path().join("forged.ipse");
    gated.agent.run(&gated.store, &["export", "-o", path.to_str().unwrap()]).fine();
    let mut trust = Trust::default();
    for name in ["log.vkey", "operator.pub"] {
        trust.add(&super::walked::key(&gated, name)).unwrap();
    }
    let gates = GatesInput { read: Some(&read_gates), ..GatesInput::default() };
    let bundle = fs::read(&path).unwrap();
    let report = ipse_bundle::verify_judged(&bundle, &trust, &[], &gates, &mut |_, _| {}).unwrap();
    assert!(!report.passed() && report.json().contains(wanted), "{}", report.json());
}
