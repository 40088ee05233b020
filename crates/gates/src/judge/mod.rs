//! The three gates, in the order in which they run.
//!
//! **Invariant:** each gate gets the output of the previous one, adds its findings, and returns
//! `None` if it denies.

pub(crate) mod admission;
pub(crate) mod contract;
pub(crate) mod policy;

use crate::intent::Intent;
use crate::params::{Datum, Params};
use crate::verdict::{Finding, Gate};
use alloc::vec::Vec;
use ipse_core::Ruling;
use ipse_core::json::Value;

/// Records the findings of a gate; `Some` if the intent passes.
fn close(name: &'static str, findings: Vec<Finding>, gates: &mut Vec<Gate>) -> Option<()> {
    let gate = Gate::new(name, findings);
    let passed = gate.ruling < Ruling::Denied;
    gates.push(gate);
    passed.then_some(())
}

/// A finding about a parameter, with the requested value and the clamped one.
fn about(finding: Finding, param: &str, intent: &Intent<'_>, params: &Params) -> Finding {
    let asked = intent.params.get(param);
    let finding = finding.on(param, asked);
    match params.get(param) {
        Some(datum @ Datum::Number(number)) if asked.and_then(Value::as_micro) != Some(*number) => {
            finding.given(datum)
        }
        _ => finding,
    }
}
