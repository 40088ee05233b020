//! The default candidates of a suggestion, from the registry and the policy.

use super::Gated;
use serde_json::Value;

/// The example registry bounds `force_n` by 0 and 140. The policy clamps it to 5..40 for glass cups
/// and to at most 100 for others.
#[test]
fn a_server_with_gates_makes_the_candidates() {
    let gated = Gated::under_v2();
    let ask = |target: &str| -> Value {
        let path = "/api/agent/suggest?skill_id=manipulation.grasp&environment=ward3";
        let path = format!("{path}&param=force_n&target_class={target}");
        gated.server.get(&path, &gated.agent.planner).ok().json()["value"].clone()
    };
    assert_eq!(ask("glass_cup"), 21, "the middle of 7, 14, 21, 28, 35");
    assert_eq!(ask("steel_cup"), 49, "the middle of 0, 7, … 98");
    let unbounded = "/api/agent/suggest?skill_id=manipulation.grasp&param=colour";
    let answer = gated.server.get(unbounded, &gated.agent.planner);
    answer.problem(400, "bad_candidates");
}

/// What is suggested by default passes the gates unchanged.
#[test]
fn the_gates_let_default_candidates_through_unchanged() {
    let gated = Gated::under_v2();
    for prefer in [0, 20, 40, 60, 140] {
        let path = "/api/agent/suggest?skill_id=manipulation.grasp&environment=ward3&param=force_n";
        let path = format!("{path}&target_class=glass_cup&prefer={prefer}");
        let force = gated.server.get(&path, &gated.agent.planner).ok().json()["value"].clone();
        let intent = gated.propose(&super::grasp(force.clone()));
        assert_ne!(intent["verdict"], "denied", "{intent}");
        assert_ne!(intent["verdict"], "clamped", "{intent}");
    }
}
