//! The desk of one agent audits, judges and records intents.
//!
//! **Invariants**
//! - An intent of a skill with a rate limit or a contract is judged with its past and recorded in
//!   one transaction. If two arrive at the same time, also in two processes, the second counts the
//!   first.
//! - An intent of any other skill can be committed together with other events, since its verdict
//!   does not depend on them.

use crate::attempts::{Attempts, Preceding};
use crate::audit::Audit;
use crate::request::{IntentError, Request};
use crate::windows::Windows;
use ipse_core::intent::INTENT;
use ipse_core::json::{Members, list, quoted};
use ipse_core::judge::{EndedAttempt, GATES_VERSION, Past};
use ipse_core::{Admitted, Time, hex};
use ipse_door::{Rule, admit_own};
use ipse_engine::{Appended, Claim, Echo, Error, EventRecord, Host, Memory, Proposal};
use ipse_gates::{Gates, Planner, Ruling, Verdict};
use ipse_inspect::Look;
use std::sync::Arc;

/// The gates of one agent, with its memory, its log and its rate windows.
pub struct Desk {
    memory: Memory,
    look: Look,
    gates: Arc<Gates>,
    windows: Windows,
    attempts: Attempts,
}

/// The past of an intent in the log.
#[derive(Default)]
struct Known {
    /// The number of recent intents, if the skill has a rate limit.
    recent: Option<u64>,
    /// The attempts that decide the lines of the skill's contract, if it has one.
    preceding: Preceding,
}

impl Known {
    fn past(&self) -> Past<'_> {
        Past { recent: self.recent.unwrap_or_default(), holds: &self.preceding.holds }
    }

    /// The names of the attempts, as the intent records them.
    fn contract(&self) -> Option<String> {
        let name = |ended: &Option<EndedAttempt>| {
            ended.map_or("null".to_owned(), |ended| quoted(&ended.event_ref.to_string()))
        };
        let newest = &self.preceding.newest;
        (!newest.is_empty()).then(|| list(newest.iter().map(name)))
    }
}

impl Desk {
    /// Creates the desk of an agent that is bound to these gates.
    pub fn new(memory: Memory, look: Look, gates: Arc<Gates>) -> Self {
        let attempts = Attempts::new(&gates);
        Desk { memory, look, gates, windows: Windows::default(), attempts }
    }

    /// The audit of a request, if it needs no read of the log.
    pub fn audit_in_memory(&self, request: &Request<'_>) -> Option<Audit> {
        Audit::in_memory(&self.memory, &self.look, request.echo())
    }

    /// Audits a consultation. This may read much of the log. A consultation that cannot be derived
    /// is rejected.
    pub fn audit(&self, echo: &Echo) -> Result<Result<Audit, IntentError>, Error> {
        Audit::of(&self.memory, &self.look, echo)
    }

    /// The gates that judge intents.
    pub fn gates(&self) -> &Gates {
        &self.gates
    }

    /// Whether the verdict depends on the log: the requested skill has a rate limit or a contract.
    pub fn needs_past(&self, request: &Request<'_>) -> bool {
        let skill = &*request.intent.skill_id;
        self.gates.rate_limit(skill).is_some() || !self.gates.contract(skill).is_empty()
    }

    /// Judges an intent whose verdict does not depend on the log. The caller must append the event
    /// before it returns the verdict.
    pub fn judge(
        &self,
        request: &Request<'_>,
        audit: &Audit,
        by: &str,
        host: &mut dyn Host,
    ) -> Result<Judgement, IntentError> {
        let now = host.now();
        Judgement::new(&self.gates, request, audit, (by, now, &Known::default()), host)
    }

    /// Judges an intent and records it, durably. `by` names the proposer in the record.
    pub fn record(
        &self,
        request: &Request<'_>,
        audit: &Audit,
        by: &str,
        host: &mut dyn Host,
    ) -> Result<Result<Proposal, IntentError>, Error> {
        let (skill, target) = (&*request.intent.skill_id, request.intent.target_class.as_deref());
        let (limit, lines) = (self.gates.rate_limit(skill), self.gates.contract(skill));
        // Read the log before the transaction, so that other writers do not wait for it.
        let prepared = limit.map(|_| self.windows.prepare(&self.look, host.now())).transpose()?;
        let has_lines = (!lines.is_empty()).then_some(());
        let caught_up = has_lines.map(|()| self.attempts.catch_up(&self.look)).transpose()?;
        let done = self.memory.append_judged(|past| {
            let now = host.now();
            let mut known = Known::default();
            if let Some((limit, prepared)) = limit.zip(prepared) {
                let count = self.windows.count(prepared, past, skill, now, limit.seconds)?;
                known.recent = Some(count);
            }
            if let Some(caught_up) = caught_up {
                let asked = (lines, target, now);
                known.preceding = self.attempts.look_up(caught_up, past, asked)?;
            }
            let judged = Judgement::new(&self.gates, request, audit, (by, now, &known), host);
            Ok(judged.map(|judged| (judged.event, judged.ruling)))
        })?;
        Ok(done.map(|(event, appended, ruling)| {
            let proposed = Judgement { event, ruling }.recorded(appended);
            proposed.expect("BUG: an intent with a random name was already in the log")
        }))
    }

    /// Reads, audits, judges and records an intent.
    pub fn propose(
        &self,
        body: &[u8],
        by: &str,
        host: &mut dyn Host,
    ) -> Result<Result<Proposal, IntentError>, Error> {
        let request = match Request::read(body) {
            Ok(request) => request,
            Err(rejected) => return Ok(Err(rejected)),
        };
        let audit = match (self.audit_in_memory(&request), request.echo()) {
            (None, Some(echo)) => match self.audit(echo)? {
                Ok(audit) => audit,
                Err(rejected) => return Ok(Err(rejected)),
            },
            (audit, _) => audit.expect("BUG: an intent without a claim needs no read of the log"),
        };
        self.record(&request, &audit, by, host)
    }
}

/// An intent with its verdict, not yet recorded.
#[must_use = "a verdict that is not recorded must not be acted on"]
pub struct Judgement {
    /// The event that records it.
    pub event: Admitted,
    /// The most severe result of the gates.
    pub ruling: Ruling,
}

impl Judgement {
    fn new(
        gates: &Gates,
        request: &Request<'_>,
        audit: &Audit,
        (by, now, known): (&str, Time, &Known),
        host: &mut dyn Host,
    ) -> Result<Self, IntentError> {
        let verdict = gates.judge(&request.intent, &known.past());
        let data = record(gates, request, &verdict, audit, (by, now, known));
        let id = format!("intent:{}", hex::encode(&host.salt()));
        let event = admit_own(INTENT, &id, now, &data, host.salt()).map_err(|refusal| {
            let (rule, field) = (refusal.rule, refusal.field);
            match rule {
                Rule::TooLarge => IntentError::TooLarge,
                _ => IntentError::Bad { rule: rule.code(), field, message: refusal.message },
            }
        })?;
        Ok(Judgement { event, ruling: verdict.ruling })
    }

    /// The intent as it is stored, after the append. Its name is random, so `None` means that
    /// another event has the same name.
    pub fn recorded(self, appended: Appended) -> Option<Proposal> {
        let Appended::New(seq) = appended else { return None };
        let Admitted { event_ref, time, event_type, canonical, .. } = self.event;
        let (outcome, canonical) = (None, Some(canonical));
        Proposal::fresh(EventRecord { seq, event_ref, event_type, time, outcome, canonical })
    }
}

/// The `data` of the event that records an intent and its verdict.
fn record(
    gates: &Gates,
    request: &Request<'_>,
    verdict: &Verdict,
    audit: &Audit,
    (by, now, known): (&str, Time, &Known),
) -> String {
    let Request { intent, echo } = request;
    let (claim, basis) = match (&audit.derived, echo) {
        (Some((claim, basis)), _) => (Some(claim), Some(basis)),
        (None, Some(Echo::Whole(claim))) => (Some(claim), None),
        (None, _) => (None, None),
    };
    let text = |part: &Option<std::borrow::Cow<'_, str>>| part.as_deref().map(quoted);
    let mut params = String::new();
    intent.params.write(&mut params);
    let waits = verdict.ruling == Ruling::NeedsConfirmation;
    let within = gates.confirm_within().filter(|_| waits);
    let confirm_by = within.and_then(|seconds| later(now, seconds));
    Members::new()
        .text("skill_id", &intent.skill_id)
        .optional("target_class", text(&intent.target_class))
        .optional("environment", text(&intent.environment))
        .raw("params", params)
        .optional("consultation", claim.map(Claim::json))
        .optional("consultation_basis", basis.map(|basis| quoted(basis.name())))
        .optional("consultation_id", claim.map(|claim| quoted(&claim.id())))
        .optional("planner", intent.planner.as_ref().map(planner))
        .text("token_id", by)
        .text("verdict", verdict.ruling.name())
        .optional("admitted_params", verdict.admitted_params())
        .optional("confirm_by", confirm_by.map(|time| quoted(&time.to_string())))
        .optional("recent", known.recent)
        .optional("contract", known.contract())
        .raw("gates", list(verdict.gates().chain([audit.gate.clone()])))
        .raw("gates_version", GATES_VERSION)
        .finish()
}

fn planner(planner: &Planner<'_>) -> String {
    Members::new().text("name", &planner.name).text("version", &planner.version).finish()
}

fn later(now: Time, seconds: u64) -> Option<Time> {
    let micros = i64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
    Time::from_micros(now.micros().checked_add(micros)?)
}
