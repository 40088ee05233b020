//! The audit gate. It checks whether the log confirms the consultation that a planner echoes, and
//! whether the same query returns the same facts now.
//!
//! **Invariant:** the audit changes no verdict. It is the last gate of the record.

use ipse_core::json::Members;
use ipse_engine::{Claim, Error, Memory, Status};
use ipse_inspect::Look;
use ipse_inspect::answer::rule_version;

/// The result of the audit gate, as JSON of the record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Audit(pub(crate) String);

impl Audit {
    /// The audit of a claim, if it needs no read of the log: nothing is claimed, or the claim is
    /// correct and its facts are still in memory.
    pub(crate) fn in_memory(memory: &Memory, look: &Look, claim: Option<&Claim>) -> Option<Self> {
        let Some(claim) = claim else {
            return Some(Audit(gate().text("result", "none").finish()));
        };
        let then = memory.known_at(claim.checkpoint())?;
        let then = Some(then).filter(|it| rule_version(it.rule_version()) == claim.rule_version());
        let then = then?.choose(claim.filter());
        let possible = claim.is_possible(claim.checkpoint());
        if !possible || !claim.is_answered_by(look.identity(), &then) {
            return None;
        }
        Some(Self::written(memory, claim, Status::Verified, &then))
    }

    /// The audit of a claim, from the log.
    pub(crate) fn of(memory: &Memory, look: &Look, claim: &Claim) -> Result<Self, Error> {
        let now = memory.known();
        let (status, then) = look.claim(claim, Some(&now))?;
        Ok(Self::written(memory, claim, status, &then))
    }

    fn written(
        memory: &Memory,
        claim: &Claim,
        status: Status,
        then: &[std::sync::Arc<ipse_engine::facts::ScoredFact>],
    ) -> Self {
        let now = memory.known();
        let gate = gate()
            .text("result", status.name())
            .raw("checkpoint", claim.checkpoint())
            .raw("known", now.checkpoint());
        Audit(match status {
            Status::Verified => gate.raw("stale", now.choose(claim.filter()) != then).finish(),
            _ => gate.finish(),
        })
    }
}

fn gate() -> Members {
    Members::new().text("gate", "audit")
}
