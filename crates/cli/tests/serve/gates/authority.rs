//! Information, not authority: the verdict depends neither on an agent's facts nor on what a
//! planner claims to have read.

use super::{Gated, grasp};
use crate::chance::Chance;
use crate::client::Request;
use serde_json::{Value, json};

const SKILLS: [&str; 5] =
    ["manipulation.grasp", "manipulation.place", "navigation.move_to", "navigation.tow_bed", "fly"];
const TARGETS: [&str; 3] = ["glass_cup", "tray", "cat"];
const PLACES: [&str; 4] = ["ward3", "sim_relaxed", "kitchen", "stairwell"];

fn one<'c>(chance: &mut Chance, choices: &[&'c str]) -> &'c str {
    choices[chance.below(choices.len() as u64) as usize]
}

/// A random intent, valid or not.
fn intent(chance: &mut Chance) -> Value {
    let mut intent = grasp(0);
    intent["skill_id"] = one(chance, &SKILLS).into();
    intent["target_class"] = one(chance, &TARGETS).into();
    intent["environment"] = one(chance, &PLACES).into();
    // Two of three have the parameters of the skill.
    let skill = SKILLS.iter().position(|skill| intent["skill_id"] == *skill).unwrap_or(0) as u64;
    let shape = if chance.below(3) == 0 { chance.below(4) } else { skill };
    let number = |chance: &mut Chance| chance.below(1_600_000) as f64 / 10_000.0;
    intent["params"] = match shape {
        0 => json!({ "force_n": number(chance) }),
        1 => json!({ "height_m": number(chance) / 100.0, "upright": chance.below(2) == 0 }),
        2 => json!({ "place": "bed 4", "speed_m_s": number(chance) / 60.0 }),
        _ => json!({ "force_n": number(chance), "grip": one(chance, &["soft", "pinch"]) }),
    };
    intent
}

/// A random event: any outcome, under any circumstances.
fn lived(chance: &mut Chance, id: u64) -> Value {
    let mut data = intent(chance);
    data["outcome"] = one(chance, &["success", "failed", "denied", "unknown"]).into();
    data["failure_reason"] = one(chance, &["slip", "crack"]).into();
    data["object"] = json!({ "mass_kg": chance.below(9), "max_force_n": 1000 });
    data["zone"] = one(chance, &PLACES).into();
    json!({ "id": id.to_string(), "source": "arm", "type": "execution_result",
            "time": "2026-05-06T10:00:00Z", "data": data })
}

/// The decisions of the gates, without the notes of the audit gate.
fn decided(answer: &Value) -> Value {
    let gates = answer["gates"].as_array().unwrap();
    let judging: Vec<&Value> = gates.iter().filter(|gate| gate["gate"] != "audit").collect();
    json!([answer["verdict"], answer.get("admitted_params"), judging])
}

#[test]
fn the_verdict_depends_on_no_fact() {
    let mut chance = Chance::new();
    // One agent has no facts; the others have different histories.
    let naive = Gated::new();
    for _ in 0..3 {
        let wise = Gated::new();
        let events: Vec<Value> = (0..150).map(|id| lived(&mut chance, id)).collect();
        let batch = Request::post(
            "/api/agent/events",
            "application/cloudevents-batch+json",
            json!(events).to_string(),
        );
        wise.server.ask(&batch.token(&wise.agent.producer)).ok();
        let known = wise.server.get("/api/agent/semantic", &wise.agent.planner).ok().json();
        assert!(known["facts"].as_array().unwrap().len() > 10);
        let mut verdicts = std::collections::BTreeSet::new();
        for _ in 0..60 {
            let plain = intent(&mut chance);
            let mut echoing = plain.clone();
            echoing["consultation"] = known["consultation"].clone();
            let mut forging = echoing.clone();
            forging["consultation"]["checkpoint"] = 1.into();
            let want = decided(&naive.propose(&plain));
            for (agent, proposed) in
                [(&naive, &forging), (&wise, &plain), (&wise, &echoing), (&wise, &forging)]
            {
                assert_eq!(decided(&agent.propose(proposed)), want, "{proposed}");
            }
            verdicts.insert(want[0].as_str().unwrap().to_owned());
        }
        assert!(verdicts.len() > 2, "{verdicts:?}");
        wise.agent.run(&wise.store, &["verify"]).fine();
    }
}
