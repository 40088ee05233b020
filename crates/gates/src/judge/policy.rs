//! The second gate: denies forbidden intents, and clamps numbers into the allowed range.
//!
//! **Invariants:** prohibitions are checked against the requested parameters, and again after the
//! clamps: no clamp makes a forbidden value allowed, and none moves a value into a forbidden range.
//! If several clamps apply to an intent, the tightest bounds win.

use super::{about, close};
use crate::intent::Intent;
use crate::params::{Datum, Params};
use crate::policy::{Clamp, Forbid, Forbidden, Policy, RateLimit, SkillPolicy};
use crate::verdict::{Code, Finding, Gate};
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::Micro;

pub(crate) fn judge(
    policy: &Policy,
    intent: &Intent<'_>,
    asked: Params,
    recent: u64,
    gates: &mut Vec<Gate>,
) -> Option<Params> {
    let (params, findings) = match policy.skill(&intent.skill_id) {
        Some(skill) => apply(skill, intent, asked, recent),
        None if policy.denies_unlisted => {
            let detail = format!("the policy does not name {}", intent.skill_id);
            (asked, Vec::from([Finding::new(Code::UnlistedSkill, detail).by("unlisted_skills")]))
        }
        None => (asked, Vec::new()),
    };
    close("policy", findings, gates)?;
    Some(params)
}

fn apply(
    skill: &SkillPolicy,
    intent: &Intent<'_>,
    mut params: Params,
    recent: u64,
) -> (Params, Vec<Finding>) {
    let mut findings = find_forbidden(skill, intent, &params);
    findings.extend(skill.rate_limit.and_then(|limit| rate(skill, intent, limit, recent)));
    if !findings.is_empty() {
        return (params, findings);
    }
    findings.extend(clamp_all(skill, intent, &mut params));
    findings.extend(find_forbidden(skill, intent, &params));
    (params, findings)
}

/// Whether a single number passes without a finding.
pub(crate) fn keeps(policy: &Policy, intent: &Intent<'_>, param: &str, number: Micro) -> bool {
    let asked = Params([(param.into(), Datum::Number(number))].into_iter().collect());
    match policy.skill(&intent.skill_id) {
        Some(skill) => {
            find_forbidden(skill, intent, &asked).is_empty()
                && clamp_all(skill, intent, &mut asked.clone()).is_empty()
        }
        None => !policy.denies_unlisted,
    }
}

fn rate(
    skill: &SkillPolicy,
    intent: &Intent<'_>,
    limit: RateLimit,
    recent: u64,
) -> Option<Finding> {
    let RateLimit { intents, seconds } = limit;
    (recent >= intents).then(|| {
        let detail = format!(
            "{recent} intents of {} were let through in {seconds} s; at most {intents} are",
            intent.skill_id
        );
        Finding::new(Code::RateLimited, detail).by(skill.rate_rule())
    })
}

/// Every rule that forbids this intent with these parameters.
fn find_forbidden(skill: &SkillPolicy, intent: &Intent<'_>, params: &Params) -> Vec<Finding> {
    let in_scope = skill.forbids.iter().filter(|forbid| forbid.scope.holds(intent));
    in_scope.filter_map(|forbid| forbidden(forbid, intent, params)).collect()
}

fn forbidden(forbid: &Forbid, intent: &Intent<'_>, params: &Params) -> Option<Finding> {
    let scope = forbid.scope.words();
    let (finding, param) = match &forbid.what {
        Forbidden::Skill => {
            let detail = format!("{} is forbidden{scope}", intent.skill_id);
            (Finding::new(Code::Forbidden, detail), None)
        }
        Forbidden::Range { param, from, to } => {
            let number = params.number(&param.value)?;
            let (from, to) = (from.as_ref().map(|it| it.value), to.as_ref().map(|it| it.value));
            let inside = from.is_none_or(|from| from <= number) && to.is_none_or(|to| number <= to);
            let detail = format!("{} is forbidden {}{scope}", param.value, range_words(from, to));
            (inside.then(|| Finding::new(Code::ForbiddenRange, detail))?, Some(&param.value))
        }
        Forbidden::Value { param, equals } => {
            let equal = params.get(&param.value)?.equals(&equals.value);
            let detail = format!("this value of {} is forbidden{scope}", param.value);
            (equal.then(|| Finding::new(Code::ForbiddenValue, detail))?, Some(&param.value))
        }
    };
    let mut finding = finding.by(forbid.rule.as_str());
    if let Some(reason) = &forbid.reason {
        finding.detail = format!("{}: {reason}", finding.detail);
    }
    Some(match param {
        Some(param) => about(finding, param, intent, params),
        None => finding,
    })
}

fn range_words(from: Option<Micro>, to: Option<Micro>) -> String {
    let from = from.map(|from| format!("from {from}"));
    let to = to.map(|to| format!("to {to}"));
    let words: Vec<String> = [from, to].into_iter().flatten().collect();
    words.join(" ")
}

/// Moves every number into the bounds of its clamps.
fn clamp_all(skill: &SkillPolicy, intent: &Intent<'_>, params: &mut Params) -> Vec<Finding> {
    let in_scope = skill.clamps.iter().filter(|clamp| clamp.scope.holds(intent));
    let clamps: Vec<&Clamp> = in_scope.collect();
    let names: BTreeSet<&String> = clamps.iter().map(|clamp| &clamp.param.value).collect();
    names.into_iter().filter_map(|name| clamp_one(&clamps, name, intent, params)).collect()
}

fn clamp_one(
    clamps: &[&Clamp],
    name: &str,
    intent: &Intent<'_>,
    params: &mut Params,
) -> Option<Finding> {
    let asked = params.number(name)?;
    let of_it = || clamps.iter().filter(|clamp| clamp.param.value == name);
    let mins = of_it().filter_map(|clamp| Some((clamp.min.as_ref()?.value, *clamp)));
    let maxs = of_it().filter_map(|clamp| Some((clamp.max.as_ref()?.value, *clamp)));
    // Of equal bounds, name the first in the file.
    let min = mins.reduce(|best, next| if next.0 > best.0 { next } else { best });
    let max = maxs.reduce(|best, next| if next.0 < best.0 { next } else { best });
    let (code, (bound, clamp), word) = match (min, max) {
        (Some(min), _) if asked < min.0 => (Code::BelowMinimum, min, "raised"),
        (_, Some(max)) if asked > max.0 => (Code::AboveMaximum, max, "lowered"),
        _ => return None,
    };
    let given = Datum::Number(bound);
    let scope = clamp.scope.words();
    let finding = Finding::new(code, format!("{name} is {word} from {asked} to {bound}{scope}"))
        .on(name, intent.params.get(name))
        .given(&given)
        .by(clamp.rule.as_str());
    params.0.insert(name.into(), given);
    Some(finding)
}
