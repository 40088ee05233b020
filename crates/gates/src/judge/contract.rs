//! The third gate: may the agent do this alone, or must a person confirm first?
//!
//! **Invariant:** it reads the parameters after the policy's clamps, never the requested ones; and
//! no confirmation overrides the ethical floor or the contract of a skill.

use super::{about, close};
use crate::contract::Contract;
use crate::intent::Intent;
use crate::params::Params;
use crate::registry::Skill;
use crate::temperament::{Condition, HumanCheck, Temperament};
use crate::verdict::{Code, Finding, Gate};
use alloc::format;
use alloc::vec::Vec;
use ipse_core::judge::Past;

pub(crate) fn judge(
    temperament: &Temperament,
    intent: &Intent<'_>,
    skill: &Skill,
    params: &Params,
    past: &Past<'_>,
    gates: &mut Vec<Gate>,
) -> Option<()> {
    let mut findings = Vec::new();
    let Temperament { risk_appetite, ethical_floor, checks, .. } = temperament;
    let (skill_id, risk, ethics) = (&intent.skill_id, skill.risk, skill.ethics);
    if ethics < *ethical_floor {
        let detail = format!("{skill_id} has ethics {ethics}, below the floor of {ethical_floor}");
        findings.push(Finding::new(Code::BelowEthicalFloor, detail).by("ethical_floor"));
    }
    findings.extend(not_after(skill_id, &skill.contract, past));
    if risk > *risk_appetite {
        let detail = format!("{skill_id} has risk {risk}, above the appetite of {risk_appetite}");
        findings.push(Finding::new(Code::RiskAboveAppetite, detail).by("risk_appetite"));
    }
    let checks = checks.iter().filter(|it| it.concerns(skill_id) && it.scope.holds(intent));
    findings.extend(checks.filter_map(|check| human_check(check, intent, params)));
    close("contract", findings, gates)
}

/// The lines of a contract that do not hold.
fn not_after<'f>(
    skill_id: &'f str,
    contract: &'f Contract,
    past: &'f Past<'_>,
) -> impl Iterator<Item = Finding> + 'f {
    let holds = past.holds.iter().copied().chain(core::iter::repeat(false));
    let broken = contract.lines().iter().zip(holds).filter(|(_, holds)| !holds);
    broken.map(move |(line, _)| {
        let target = if line.same_target { " on the same target class" } else { "" };
        let detail = format!(
            "{skill_id} must follow a success of {} within {} s{target}",
            line.skill, line.within_s
        );
        Finding::new(Code::NotAfter, detail).by(line.rule.as_str())
    })
}

fn human_check(check: &HumanCheck, intent: &Intent<'_>, params: &Params) -> Option<Finding> {
    let scope = check.scope.words();
    let (detail, param) = match &check.when {
        Condition::Always => (format!("a person must confirm {}{scope}", intent.skill_id), None),
        Condition::Beyond { param, above, below } => {
            let number = params.number(&param.value)?;
            let (bound, word) = match (above, below) {
                (Some(above), _) if number > above.value => (above.value, "above"),
                (_, Some(below)) if number < below.value => (below.value, "below"),
                _ => return None,
            };
            let name = &param.value;
            (format!("a person must confirm {name} {word} {bound}{scope}"), Some(name))
        }
        Condition::Equal { param, equals } => {
            let datum = params.get(&param.value)?;
            let name = &param.value;
            let detail = format!("a person must confirm this value of {name}{scope}");
            (datum.equals(&equals.value).then_some(detail)?, Some(name))
        }
    };
    let detail = match &check.reason {
        Some(reason) => format!("{detail}: {reason}"),
        None => detail,
    };
    let finding = Finding::new(Code::HumanCheck, detail).by(check.rule.as_str());
    Some(match param {
        Some(param) => about(finding, param, intent, params),
        None => finding,
    })
}
