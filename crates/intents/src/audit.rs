//! The audit gate. It checks whether the log confirms the consultation that a planner echoes, and
//! whether the same query returns the same facts now. If the planner gives only checkpoint and
//! query, it derives the consultation.
//!
//! **Invariant:** the audit changes no verdict. It is the last gate of the record.

use crate::request::IntentError;
use ipse_core::Seq;
use ipse_core::json::Members;
use ipse_engine::facts::{Filter, ScoredFact};
use ipse_engine::{Basis, Claim, Echo, Error, MAX_FACTS, Memory, Status};
use ipse_inspect::{Derivation, Look};
use std::sync::Arc;

/// The result of the audit gate, as JSON of the record; and the derived consultation, if the
/// planner gave only a part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Audit {
    pub(crate) gate: String,
    pub(crate) derived: Option<(Claim, Basis)>,
}

impl Audit {
    /// The audit of a consultation, if it needs no read of the log: there is none, or it is correct
    /// and its facts are still in memory.
    pub(crate) fn in_memory(memory: &Memory, look: &Look, echo: Option<&Echo>) -> Option<Self> {
        let Some(echo) = echo else {
            return Some(Audit { gate: gate().text("result", "none").finish(), derived: None });
        };
        match echo {
            Echo::Whole(claim) => {
                let then = memory.known_at(claim.checkpoint())?;
                let then =
                    Some(&then).filter(|then| then.rule_version() == claim.rule_version())?;
                let then = then.choose(claim.filter());
                if !claim.is_answered_by(look.identity(), &then) {
                    return None;
                }
                Some(Self::written(memory, claim, Status::Verified, &then))
            }
            Echo::Query { checkpoint, filter } => {
                let then = memory.known_at(*checkpoint)?;
                let (version, facts) = (then.rule_version(), then.choose(filter));
                let claim = Claim::derived(look.identity(), *checkpoint, version, filter, &facts)?;
                let audit = Self::written(memory, &claim, Status::Verified, &facts);
                Some(Audit { derived: Some((claim, Basis::Query)), ..audit })
            }
        }
    }

    /// The audit of a consultation, from the log.
    pub(crate) fn of(
        memory: &Memory,
        look: &Look,
        echo: &Echo,
    ) -> Result<Result<Self, IntentError>, Error> {
        match echo {
            Echo::Whole(claim) => {
                let (status, then) = look.claim(claim, Some(&memory.known()))?;
                Ok(Ok(Self::written(memory, claim, status, &then)))
            }
            Echo::Query { checkpoint, filter } => Self::derive(memory, look, *checkpoint, filter),
        }
    }

    fn derive(
        memory: &Memory,
        look: &Look,
        checkpoint: Seq,
        filter: &Filter,
    ) -> Result<Result<Self, IntentError>, Error> {
        let derivation = look.derived(checkpoint, filter, Some(&memory.known()))?;
        Ok(match derivation {
            Derivation::Of { claim, status, facts } => {
                let audit = Self::written(memory, &claim, status, &facts);
                Ok(Audit { derived: Some((claim, Basis::Query)), ..audit })
            }
            Derivation::TooMany(n) => Err(IntentError::bad_consultation(format!(
                "`query` chooses {n} facts, more than {MAX_FACTS}: give its `limit`"
            ))),
        })
    }

    fn written(memory: &Memory, claim: &Claim, status: Status, then: &[Arc<ScoredFact>]) -> Self {
        let now = memory.known();
        let gate = gate()
            .text("result", status.name())
            .raw("checkpoint", claim.checkpoint())
            .raw("known", now.checkpoint());
        let gate = match status {
            Status::Verified => gate.raw("stale", now.choose(claim.filter()) != then).finish(),
            _ => gate.finish(),
        };
        Audit { gate, derived: None }
    }
}

fn gate() -> Members {
    Members::new().text("gate", "audit")
}
