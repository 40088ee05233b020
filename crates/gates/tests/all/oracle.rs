//! The same judgement by another road: plain TOML, plain JSON, doubles scaled to integers.
//!
//! **Invariant:** nothing of the crate under test is used here.

use serde_json::Value as Json;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// The result of an intent, and the parameters that may be used.
pub(crate) type Judgement = (&'static str, Option<BTreeMap<String, Json>>);

pub(crate) struct Oracle {
    registry: Table,
    policy: Table,
    temperament: Table,
}

impl Oracle {
    pub(crate) fn new(registry: &str, policy: &str, temperament: &str) -> Self {
        let [registry, policy, temperament] =
            [registry, policy, temperament].map(|text| text.parse().unwrap());
        Oracle { registry, policy, temperament }
    }

    pub(crate) fn judge(&self, intent: &Json, recent: i64) -> Judgement {
        self.judge_after(intent, recent, 0, &[])
    }

    /// The same, after these attempts, oldest first, at a time in microseconds.
    pub(crate) fn judge_after(
        &self,
        intent: &Json,
        recent: i64,
        now: i64,
        attempts: &[Attempt],
    ) -> Judgement {
        let skill_id = intent["skill_id"].as_str().unwrap();
        let nothing = serde_json::Map::new();
        let params = intent["params"].as_object().unwrap_or(&nothing);
        let Some(skill) = self.registry["skills"].get(skill_id) else { return ("denied", None) };
        let known = |(name, value): (&String, &Json)| {
            skill.get("params").and_then(|all| all.get(name)).is_some_and(|it| fits(it, value))
        };
        if !has_place(skill, intent) || !has_required(skill, params) || !params.iter().all(known) {
            return ("denied", None);
        }
        let Some(given) = self.given(skill_id, intent, params, recent) else {
            return ("denied", None);
        };
        let number = |value: &Value| scaled_toml(value).unwrap();
        if number(&skill["ethics"]) < number(&self.temperament["ethical_floor"]) {
            return ("denied", None);
        }
        let lines = skill.get("contract").map(|contract| &contract["after"]);
        let mut lines = lines.and_then(Value::as_array).into_iter().flatten();
        if !lines.all(|line| follows(line, intent, now, attempts)) {
            return ("denied", None);
        }
        let risky = number(&skill["risk"]) > number(&self.temperament["risk_appetite"]);
        let checks = self.temperament.get("human_check").and_then(Value::as_array);
        let mut checks = checks.into_iter().flatten();
        let checked = checks.any(|check| {
            let concerns = check.get("skill_id").is_none_or(|it| it.as_str() == Some(skill_id));
            concerns && in_scope(check, intent) && is_checked(check, &given)
        });
        let asked = params.iter().map(|(name, value)| (name.clone(), exact(value)));
        let moved = asked.collect::<BTreeMap<_, _>>() != given;
        let ruling = match (risky || checked, moved) {
            (true, _) => "needs_confirmation",
            (false, true) => "clamped",
            (false, false) => "admitted",
        };
        (ruling, Some(given))
    }

    /// What the policy leaves; `None` if it denies.
    fn given(
        &self,
        skill_id: &str,
        intent: &Json,
        params: &serde_json::Map<String, Json>,
        recent: i64,
    ) -> Option<BTreeMap<String, Json>> {
        let asked = params.iter().map(|(name, value)| (name.clone(), exact(value)));
        let mut given: BTreeMap<String, Json> = asked.collect();
        let Some(policy) = self.policy.get("skills").and_then(|all| all.get(skill_id)) else {
            return (self.policy["unlisted_skills"].as_str() == Some("admit")).then_some(given);
        };
        let limit = policy.get("rate_limit").map(|it| it["intents"].as_integer().unwrap());
        if forbids(policy, intent, &given) || limit.is_some_and(|limit| recent >= limit) {
            return None;
        }
        for clamp in rules(policy, "clamp").filter(|clamp| in_scope(clamp, intent)) {
            let Some(value) = given.get_mut(clamp["param"].as_str().unwrap()) else { continue };
            let mut number = scaled(value).unwrap();
            number = clamp.get("min").map_or(number, |min| number.max(scaled_toml(min).unwrap()));
            number = clamp.get("max").map_or(number, |max| number.min(scaled_toml(max).unwrap()));
            *value = unscaled(number);
        }
        (!forbids(policy, intent, &given)).then_some(given)
    }
}

/// An attempt that ended: skill, target class, success, time in microseconds.
pub(crate) type Attempt = (String, Option<String>, bool, i64);

/// Whether the last attempt that a line of a contract asks for succeeded, and lately.
fn follows(line: &Value, intent: &Json, now: i64, attempts: &[Attempt]) -> bool {
    let same = line.get("same_target").and_then(Value::as_bool) == Some(true);
    let mut asked = attempts.iter().filter(|(skill, target, ..)| {
        line["skill"].as_str() == Some(skill)
            && (!same || (target.is_some() && target.as_deref() == intent["target_class"].as_str()))
    });
    let oldest = now - line["within_s"].as_integer().unwrap() * 1_000_000;
    asked.next_back().is_some_and(|(_, _, success, time)| *success && *time >= oldest)
}

fn rules<'t>(holder: &'t Value, name: &str) -> impl Iterator<Item = &'t Value> {
    holder.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn forbids(policy: &Value, intent: &Json, params: &BTreeMap<String, Json>) -> bool {
    rules(policy, "forbid").filter(|rule| in_scope(rule, intent)).any(|rule| {
        let Some(param) = rule.get("param") else { return true };
        let Some(value) = params.get(param.as_str().unwrap()) else { return false };
        match rule.get("equals") {
            Some(wanted) => same(wanted, value),
            None => {
                let number = scaled(value).unwrap();
                let from = rule.get("from").map_or(i64::MIN, |it| scaled_toml(it).unwrap());
                let to = rule.get("to").map_or(i64::MAX, |it| scaled_toml(it).unwrap());
                (from..=to).contains(&number)
            }
        }
    })
}

fn is_checked(check: &Value, params: &BTreeMap<String, Json>) -> bool {
    let Some(param) = check.get("param") else { return true };
    let Some(value) = params.get(param.as_str().unwrap()) else { return false };
    match check.get("equals") {
        Some(wanted) => same(wanted, value),
        None => {
            let number = scaled(value).unwrap();
            let above = check.get("above").map_or(i64::MAX, |it| scaled_toml(it).unwrap());
            let below = check.get("below").map_or(i64::MIN, |it| scaled_toml(it).unwrap());
            number > above || number < below
        }
    }
}

fn in_scope(rule: &Value, intent: &Json) -> bool {
    ["target_class", "environment"]
        .iter()
        .all(|part| rule.get(part).is_none_or(|wanted| wanted.as_str() == intent[*part].as_str()))
}

fn has_place(skill: &Value, intent: &Json) -> bool {
    let required = |part| {
        let list = skill.get("requires").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|it| it.as_str() == Some(part)))
    };
    let known = |list: &str, name: &str| {
        let list = skill.get(list).and_then(Value::as_array);
        list.is_none_or(|list| list.iter().any(|it| it.as_str() == Some(name)))
    };
    [("target_class", "targets"), ("environment", "environments")].iter().all(|(part, list)| {
        intent[*part].as_str().map_or(!required(*part), |name| known(list, name))
    })
}

fn has_required(skill: &Value, params: &serde_json::Map<String, Json>) -> bool {
    let declared = skill.get("params").and_then(Value::as_table);
    declared.into_iter().flatten().all(|(name, param)| {
        let required = param.get("required").and_then(Value::as_bool).unwrap_or(false);
        !required || params.contains_key(name)
    })
}

fn fits(param: &Value, value: &Json) -> bool {
    let inside = |number: i64| {
        let min = param.get("min").map_or(i64::MIN, |min| scaled_toml(min).unwrap());
        let max = param.get("max").map_or(i64::MAX, |max| scaled_toml(max).unwrap());
        (min..=max).contains(&number)
    };
    match param["type"].as_str().unwrap() {
        "number" => scaled(value).is_some_and(inside),
        "integer" => {
            let whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
            whole && scaled(value).is_some_and(inside)
        }
        "boolean" => value.is_boolean(),
        _ => {
            let choices = param.get("one_of").and_then(Value::as_array);
            value.as_str().is_some_and(|text| {
                choices.is_none_or(|list| list.iter().any(|it| it.as_str() == Some(text)))
            })
        }
    }
}

fn same(wanted: &Value, value: &Json) -> bool {
    match wanted {
        Value::Boolean(wanted) => value.as_bool() == Some(*wanted),
        wanted => wanted.as_str() == value.as_str(),
    }
}

/// Micro-units of a double, if it is usable.
fn scale(number: f64) -> Option<i64> {
    (number.abs() <= 1e9).then(|| (number * 1e6).round() as i64)
}

fn scaled(value: &Json) -> Option<i64> {
    scale(value.as_f64()?)
}

fn scaled_toml(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(whole) => Some(whole * 1_000_000),
        value => scale(value.as_float()?),
    }
}

fn unscaled(number: i64) -> Json {
    Json::from(number as f64 / 1e6)
}

/// Numbers to the micro-unit, everything else as it is.
fn exact(value: &Json) -> Json {
    scaled(value).map_or(value.clone(), unscaled)
}
