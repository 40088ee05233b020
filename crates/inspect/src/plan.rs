//! Advice for planners: whether to make an attempt, and which value of a parameter to try.
//!
//! **Invariants:** an answer follows from the facts at one checkpoint and from the question, which
//! it repeats, so that it can be derived again. It is part of no fact and of no grounding text. No
//! gate reads it.

use crate::answer::{clean, counted};
use crate::{Error, Page};
use ipse_consolidate::Rules;
use ipse_consolidate::days::day_text;
use ipse_consolidate::v2::Verdict;
use ipse_consult::Consultation;
use ipse_core::decimal::SCALE;
use ipse_core::fact::ANY;
use ipse_core::json::{Members, Value, quoted};
use ipse_core::{Fact, FactId, FactKey, FactKind, Identity, Micro, Seq};
use ipse_engine::facts::{Filter, ScoredFact};
use ipse_engine::{FactTable, rules_of, skill_sum};
use ipse_gates::{Gates, Intent, Registry};
use ipse_plan::{
    BadCandidates, Candidates, Knowledge, Question, Reason, Standing, Suggestion, may_attempt,
    suggest,
};
use ipse_store::View;
use std::borrow::Cow;
use std::sync::Arc;

/// The attempt that a planner is about to make.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PlannedAttempt {
    /// The skill.
    pub skill: String,
    /// The class of the target; `None` means none, which is `*` in a key.
    pub target: Option<String>,
    /// The environment; `None` means none, which is `*` in a key.
    pub environment: Option<String>,
}

impl PlannedAttempt {
    /// An attempt of a skill.
    pub fn new(skill: &str, target: Option<&str>, environment: Option<&str>) -> Self {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let (target, environment) = (owned(target), owned(environment));
        PlannedAttempt { skill: skill.to_owned(), target, environment }
    }

    fn parts(&self) -> [&str; 3] {
        let [target, environment] = [&self.target, &self.environment];
        [&self.skill, target.as_deref().unwrap_or(ANY), environment.as_deref().unwrap_or(ANY)]
    }

    /// The key of its fact. There is no fallback to another key.
    fn key(&self) -> FactKey {
        FactKey::new(FactKind::SkillSuccessRate, &self.parts())
    }

    fn advice_key(&self) -> FactKey {
        FactKey::new(FactKind::SkillAdvice, &[&self.skill])
    }

    /// The query that chooses its fact alone.
    fn filter(&self) -> Filter {
        let [skill, target, environment] = self.parts().map(|part| Some(part.to_owned()));
        let kind = Some(FactKind::SkillSuccessRate);
        Filter { skill, target, environment, kind, ..Filter::default() }
    }
}

/// The facts about a planned attempt at a checkpoint.
struct PlanFacts {
    identity: Identity,
    checkpoint: Seq,
    rules: Rules,
    fact: Option<Arc<ScoredFact>>,
    advice: Option<Arc<ScoredFact>>,
}

impl PlanFacts {
    /// From the facts in memory; `None` if this build does not have their rules.
    fn known(identity: &Identity, table: &FactTable, planned: &PlannedAttempt) -> Option<Self> {
        Some(PlanFacts {
            identity: *identity,
            checkpoint: table.checkpoint(),
            rules: Rules::of_version(table.rule_version())?,
            fact: table.get(&planned.key()).cloned(),
            advice: table.get(&planned.advice_key()).cloned(),
        })
    }

    /// From the store.
    fn read(view: View<'_>, identity: &Identity, planned: &PlannedAttempt) -> Result<Self, Error> {
        let ids = [planned.key(), planned.advice_key()].map(|key| FactId::new(identity, &key));
        let scored = |fact: Option<Fact>| fact.map(ScoredFact::new).transpose();
        let [fact, advice] = [view.fact(&ids[0])?, view.fact(&ids[1])?];
        Ok(PlanFacts {
            identity: *identity,
            checkpoint: view.progress()?.checkpoint,
            rules: rules_of(view)?,
            fact: scored(fact)?.map(Arc::new),
            advice: scored(advice)?.map(Arc::new),
        })
    }

    fn knowledge(&self) -> Knowledge {
        let misleads = |advice: &Arc<ScoredFact>| {
            advice.value().get("verdict").and_then(Value::as_text) == Some("misleading")
        };
        let misleads = self.advice.as_ref().is_some_and(misleads);
        Knowledge {
            rules: self.rules,
            fact: self.fact.as_ref().and_then(|fact| Standing::read(&fact.value())),
            verdict: misleads.then_some(Verdict::Misleading),
        }
    }

    fn members(&self) -> Members {
        Members::new()
            .text("identity_hash", &self.identity.to_string())
            .raw("checkpoint", self.checkpoint)
            .text("rule_version", self.rules.version())
    }

    fn json_of(&self, fact: Option<&Arc<ScoredFact>>) -> String {
        fact.map_or("null".to_owned(), |fact| fact.said(&self.identity).json.clone())
    }
}

/// Whether to make an attempt, and why.
pub struct AttemptAdvice {
    facts: PlanFacts,
    planned: PlannedAttempt,
    question: Question,
    /// The first reason that holds.
    pub reason: Reason,
}

impl AttemptAdvice {
    /// From the facts in memory; `None` if this build does not have their rules.
    pub fn known(
        identity: &Identity,
        table: &FactTable,
        planned: &PlannedAttempt,
        question: &Question,
    ) -> Option<Self> {
        Some(Self::of(PlanFacts::known(identity, table, planned)?, planned, question))
    }

    /// From the store.
    pub fn read(
        view: View<'_>,
        identity: &Identity,
        planned: &PlannedAttempt,
        question: &Question,
    ) -> Result<Self, Error> {
        Ok(Self::of(PlanFacts::read(view, identity, planned)?, planned, question))
    }

    fn of(facts: PlanFacts, planned: &PlannedAttempt, question: &Question) -> Self {
        let reason = may_attempt(&facts.knowledge(), question);
        AttemptAdvice { facts, planned: planned.clone(), question: *question, reason }
    }

    /// Whether to make the attempt.
    pub fn attempt(&self) -> bool {
        self.reason.attempt()
    }

    /// The fact that was used, if there is one.
    pub fn fact(&self) -> Option<&Arc<ScoredFact>> {
        self.facts.fact.as_ref()
    }

    /// The answer as JSON. It repeats the question, because it is valid for this time only.
    pub fn json(&self) -> String {
        let misled = self.reason == Reason::Misleading;
        let advice = misled.then(|| self.facts.json_of(self.facts.advice.as_ref()));
        self.facts
            .members()
            .raw("attempt", self.attempt())
            .text("reason", self.reason.name())
            .raw("fact", self.facts.json_of(self.fact()))
            .optional("advice", advice)
            .text("now", &self.question.now.to_string())
            .raw("threshold", self.question.threshold.get())
            .raw("quorum", self.question.quorum)
            .finish()
    }

    /// The answer as text.
    pub fn page(&self) -> Page {
        let mut page = Page::new();
        let verb = if self.attempt() { "attempt" } else { "skip" };
        page.line(format!("{verb} {} ({})", clean(self.planned.key().text()), self.reason.name()));
        page.prose(2, self.why());
        page
    }

    /// The reason as a sentence.
    fn why(&self) -> String {
        let known = self.facts.knowledge().fact;
        let high = known.and_then(|fact| match self.question.quorum {
            true => fact.robust_high,
            false => Some(fact.high),
        });
        let high = high.map(|high| high.to_string()).unwrap_or_default();
        let due = known.map(|fact| fact.retry_after.to_string()).unwrap_or_default();
        let threshold = self.question.threshold.get();
        match self.reason {
            Reason::RulesV1 => "The log follows rule set v1, whose facts do not say when a failed \
                                attempt is due again."
                .to_owned(),
            Reason::NoFact => {
                "No attempt of this skill, target and environment is known.".to_owned()
            }
            Reason::Misleading => "Facts of this skill do not predict its outcomes.".to_owned(),
            Reason::NoRobust => {
                "Fewer than two sources have reported, so there is no quorum.".to_owned()
            }
            Reason::HighEnough => format!(
                "The success rate may be as high as {high}, which is not below {threshold}."
            ),
            Reason::SucceededLast => format!(
                "The success rate is at most {high}, below {threshold}, but the last attempt \
                 worked."
            ),
            Reason::FutureFact => format!(
                "The fact is due at {due}, more than 7 days ahead: it rests on an event that is \
                 dated in the future."
            ),
            Reason::RetryDue => {
                format!("The last attempt failed, and another one is due since {due}.")
            }
            Reason::Skip => format!(
                "The success rate is at most {high}, below {threshold}, and the last attempt \
                 failed. Another one is due at {due}."
            ),
        }
    }
}

/// The value of a parameter to try next.
pub struct ValueAdvice {
    facts: PlanFacts,
    planned: PlannedAttempt,
    param: String,
    /// The suggestion; `None` under `v1`, which keeps no days.
    pub suggestion: Option<Suggestion>,
}

impl ValueAdvice {
    /// Reads the values of a parameter, and chooses a candidate.
    pub fn read(
        view: View<'_>,
        identity: &Identity,
        planned: &PlannedAttempt,
        param: &str,
        candidates: &Candidates,
        prefer: Option<Micro>,
    ) -> Result<Self, Error> {
        let facts = PlanFacts::read(view, identity, planned)?;
        let suggestion = match facts.rules {
            Rules::V1 => None,
            Rules::V2 => {
                let sum = skill_sum(view, identity, &planned.key())?;
                let values = sum.params.get(param).map(|values| Cow::Borrowed(values.days()));
                Some(suggest(&values.unwrap_or_default(), candidates, prefer))
            }
        };
        Ok(ValueAdvice { facts, planned: planned.clone(), param: param.to_owned(), suggestion })
    }

    /// The value to try: the suggestion, or under `v1` the recommendation, if there is one.
    pub fn value(&self) -> Option<Micro> {
        self.suggestion.map_or_else(|| self.recommended(), |found| Some(found.value))
    }

    /// The recommended value in the fact.
    fn recommended(&self) -> Option<Micro> {
        let fact = self.facts.fact.as_ref()?;
        let value = fact.value();
        let param = value.get("params")?.as_object()?.get(&self.param)?.as_object()?;
        param.get("recommended")?.as_object()?.get("value")?.as_micro()
    }

    /// The consultation of the fact, for an intent that follows the advice.
    pub fn consultation(&self) -> Consultation {
        let PlanFacts { identity, checkpoint, rules, fact, .. } = &self.facts;
        let facts: Vec<_> = fact.iter().cloned().collect();
        let filter = self.planned.filter();
        Consultation::of(identity, *checkpoint, rules.version(), &filter, &facts)
    }

    /// The answer as JSON.
    pub fn json(&self) -> String {
        let consultation = self.consultation();
        let value = self.value().map_or("null".to_owned(), |value| value.to_string());
        let members = self
            .facts
            .members()
            .text("param", &self.param)
            .raw("value", value)
            .text("consultation_id", &consultation.id())
            .raw("consultation", &consultation.json);
        let Some(found) = &self.suggestion else {
            return members.text("reason", Reason::RulesV1.name()).finish();
        };
        let since = found.window.since.map(|day| quoted(&day_text(day)));
        let window = Members::new()
            .raw("since", since.unwrap_or_else(|| "null".to_owned()))
            .raw("n", found.window.n)
            .finish();
        members
            .raw("anchor", found.anchor)
            .raw("n", found.rate.n)
            .raw("successes", found.rate.s)
            .raw("high", bound(found.high))
            .raw("tried", found.rate.n > 0)
            .raw("window", window)
            .text("why", &found.why())
            .finish()
    }

    /// The answer as text.
    pub fn page(&self) -> Page {
        let mut page = Page::new();
        let (key, param) = (clean(self.planned.key().text()), clean(&self.param));
        match (&self.suggestion, self.value()) {
            (Some(found), _) => {
                page.line(format!("try {param} = {} for {key}", found.value));
                page.prose(2, format!("{}.", found.why()));
                page.prose(2, evidence(found, &param));
            }
            (None, Some(value)) => page.line(format!("take {param} = {value} for {key}")),
            (None, None) => page.line(format!("no value of {param} is recommended for {key}")),
        }
        if self.suggestion.is_none() {
            page.note("rule set v1 keeps no days: this is the recommended value, not a trial");
        }
        page
    }
}

/// What a suggestion rests on, as a sentence.
fn evidence(found: &Suggestion, param: &str) -> String {
    let Some(since) = found.window.since.map(day_text) else {
        return format!("No value of {param} is known yet.");
    };
    let (values, high) = (counted(found.window.n.unsigned_abs(), "value"), bound(found.high));
    format!("{values} since {since}; the success rate of {} is at most {high}.", found.value)
}

/// A bound in steps of 1/10⁴.
fn bound(steps: i64) -> Micro {
    Micro::new(steps * (SCALE / 10_000)).unwrap_or_default()
}

/// The default candidates: values between the bounds that the registry gives the parameter, without
/// those that the policy would change or deny.
pub fn default_candidates(
    registry: &Registry,
    gates: Option<&Gates>,
    planned: &PlannedAttempt,
    param: &str,
) -> Result<Candidates, BadCandidates> {
    let params = registry.params(&planned.skill).unwrap_or_default();
    let listed = params.iter().find(|listed| listed.name == param);
    let bounds = listed.and_then(|listed| listed.min.zip(listed.max));
    let (min, max) = bounds.ok_or(BadCandidates::None)?;
    let intent = Intent {
        skill_id: Cow::Borrowed(&planned.skill),
        target_class: planned.target.as_deref().map(Cow::Borrowed),
        environment: planned.environment.as_deref().map(Cow::Borrowed),
        params: Default::default(),
        consultation: None,
        planner: None,
    };
    let keeps = |value| gates.is_none_or(|gates| gates.keeps(&intent, param, value));
    Candidates::between(min, max, keeps)
}
