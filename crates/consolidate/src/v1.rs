//! Rule set `v1`: four kinds of facts, one tally for all of them.
//!
//! **Invariants:** an event's contribution is a function of its typed columns alone; a value is a
//! function of the sum and the last supporting event alone. A change of any published byte is a new
//! rule set with a new version, never an edit of this one.

use crate::confidence::{self, BASE, wilson};
use crate::histogram::Histogram;
use crate::recommend::Recommended;
use crate::rules::{Contribution, LimitError, MAX_OBSERVATIONS, RuleSet, Skip};
use crate::tally::{Component, Tally};
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use ipse_core::decimal::quotient;
use ipse_core::fact::ANY;
use ipse_core::json::{Members, quoted};
use ipse_core::wire::Wire;
use ipse_core::{Columns, Event, EventKind, FactKey, FactKind, Outcome, Property, Support};

/// The rule set of `docs/formats/fact.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct V1;

/// Parameters with fewer usable values do not count among those that could have been chosen.
const COMPETING_FROM: i64 = 3;

/// The name under which the numbers of an object's property are kept.
const PROPERTY: &str = "";

/// Everything v1 counts for a fact, of whichever kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// Attempts that worked.
    pub successes: i64,
    /// Attempts that failed.
    pub failures: i64,
    /// Incidents.
    pub incidents: i64,
    /// Attempts that ended otherwise.
    pub uncounted: BTreeMap<Outcome, i64>,
    /// Parameters by name; the numbers of an object's property under no name.
    pub numbers: BTreeMap<String, Histogram>,
    /// Failure reasons, or the texts of an object's property.
    pub texts: BTreeMap<String, i64>,
}

impl Tally for Observed {
    fn add(&mut self, other: &Self) {
        self.successes += other.successes;
        self.failures += other.failures;
        self.incidents += other.incidents;
        self.uncounted.add(&other.uncounted);
        self.numbers.add(&other.numbers);
        self.texts.add(&other.texts);
    }

    fn negated(&self) -> Self {
        Observed {
            successes: -self.successes,
            failures: -self.failures,
            incidents: -self.incidents,
            uncounted: self.uncounted.negated(),
            numbers: self.numbers.negated(),
            texts: self.texts.negated(),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.successes.encode(out);
        self.failures.encode(out);
        self.incidents.encode(out);
        self.uncounted.encode(out);
        self.numbers.encode(out);
        self.texts.encode(out);
    }

    fn decode(wire: &mut Wire<'_>) -> Option<Self> {
        Some(Observed {
            successes: Tally::decode(wire)?,
            failures: Tally::decode(wire)?,
            incidents: Tally::decode(wire)?,
            uncounted: Tally::decode(wire)?,
            numbers: Tally::decode(wire)?,
            texts: Tally::decode(wire)?,
        })
    }
}

impl Component for Outcome {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn decode(wire: &mut Wire<'_>) -> Option<Self> {
        Outcome::ALL.get(usize::from(wire.byte()?)).copied()
    }
}

impl RuleSet for V1 {
    type Tally = Observed;

    fn version(&self) -> &'static str {
        "v1"
    }

    fn descriptor(&self) -> String {
        String::from(include_str!("../../../vectors/rule-set-v1.json"))
    }

    fn contributions(&self, event: &Event<'_>) -> Result<Vec<Contribution<Observed>>, Skip> {
        let columns = &event.columns;
        let kind = EventKind::of(event.event_type);
        let mut all = match kind {
            EventKind::Housekeeping => return Err(Skip::Housekeeping),
            EventKind::ExecutionResult => attempt(columns),
            EventKind::Incident => incident(columns),
            EventKind::Other => Vec::new(),
        };
        all.extend(properties(columns));
        if all.is_empty() { Err(why_nothing(kind, columns)) } else { Ok(all) }
    }

    fn publish(
        &self,
        key: &FactKey,
        tally: &Observed,
        last: &Support,
    ) -> Result<Option<String>, LimitError> {
        let (n, confidence, members) = match key.kind() {
            FactKind::SkillSuccessRate => skill_success_rate(tally),
            FactKind::InteractionPattern => interaction_pattern(tally),
            FactKind::ZoneRisk => zone_risk(tally),
            FactKind::ObjectProperty => object_property(tally),
        };
        if n <= 0 {
            return Ok(None);
        }
        if n.unsigned_abs() > MAX_OBSERVATIONS {
            return Err(LimitError { key: key.clone() });
        }
        let value = members
            .raw("n_observations", n)
            .raw("confidence", confidence::text(confidence))
            .text("last_supporting_event_id", &last.event_ref.to_string())
            .text("rule_version", self.version())
            .finish();
        Ok(Some(value))
    }
}

// What an event contributes.

fn attempt(columns: &Columns<'_>) -> Vec<Contribution<Observed>> {
    let Some(outcome) = columns.outcome else { return Vec::new() };
    let counted = matches!(outcome, Outcome::Success | Outcome::Failed);
    let mut all = Vec::new();
    if let Some(skill) = columns.skill {
        let target = columns.target.unwrap_or(ANY);
        let environment = columns.environment.unwrap_or(ANY);
        let key = FactKey::new(FactKind::SkillSuccessRate, &[skill, target, environment]);
        let mut tally = ended(outcome, columns.reason);
        if counted {
            tally.numbers = params(columns);
        }
        all.push(Contribution { key, tally, supports: counted });
        if let (Outcome::Failed, Some(reason)) = (outcome, columns.reason) {
            let key = FactKey::new(FactKind::InteractionPattern, &[skill, target, reason]);
            let tally = Observed { failures: 1, numbers: params(columns), ..Observed::default() };
            all.push(Contribution { key, tally, supports: true });
        }
    }
    if let (true, Some(zone)) = (counted, columns.zone) {
        let key = FactKey::new(FactKind::ZoneRisk, &[zone]);
        all.push(Contribution { key, tally: ended(outcome, columns.reason), supports: true });
    }
    all
}

fn incident(columns: &Columns<'_>) -> Vec<Contribution<Observed>> {
    let Some(zone) = columns.zone else { return Vec::new() };
    let key = FactKey::new(FactKind::ZoneRisk, &[zone]);
    let tally = Observed { incidents: 1, texts: one(columns.reason), ..Observed::default() };
    Vec::from([Contribution { key, tally, supports: true }])
}

fn properties(columns: &Columns<'_>) -> Vec<Contribution<Observed>> {
    let Some(target) = columns.target else { return Vec::new() };
    let contribution = |(name, property): &(&str, Property<'_>)| {
        let key = FactKey::new(FactKind::ObjectProperty, &[target, name]);
        let mut tally = Observed::default();
        match property {
            Property::Number(value) => {
                tally.numbers.insert(PROPERTY.to_string(), Histogram::of(*value, None));
            }
            Property::Text(text) => tally.texts = one(Some(text)),
            Property::Bool(value) => tally.texts = one(Some(if *value { "true" } else { "false" })),
        }
        Contribution { key, tally, supports: true }
    };
    columns.properties.iter().map(contribution).collect()
}

/// One attempt that ended so; its reason counts only if it failed.
fn ended(outcome: Outcome, reason: Option<&str>) -> Observed {
    let mut tally = Observed::default();
    match outcome {
        Outcome::Success => tally.successes = 1,
        Outcome::Failed => {
            tally.failures = 1;
            tally.texts = one(reason);
        }
        _ => {
            tally.uncounted.insert(outcome, 1);
        }
    }
    tally
}

fn one(text: Option<&str>) -> BTreeMap<String, i64> {
    text.map(|text| (text.to_string(), 1)).into_iter().collect()
}

fn params(columns: &Columns<'_>) -> BTreeMap<String, Histogram> {
    let observed =
        |(name, value): &(&str, _)| ((*name).to_string(), Histogram::of(*value, columns.outcome));
    columns.params.iter().map(observed).collect()
}

fn why_nothing(kind: EventKind, columns: &Columns<'_>) -> Skip {
    match (kind, columns.outcome) {
        (EventKind::Housekeeping, _) => Skip::Housekeeping,
        (EventKind::Incident, _) => Skip::NoZone,
        (EventKind::Other, _) => Skip::NoObject,
        (EventKind::ExecutionResult, None) => Skip::NoOutcome,
        (EventKind::ExecutionResult, Some(Outcome::Success | Outcome::Failed)) => {
            Skip::NoSkillOrZone
        }
        (EventKind::ExecutionResult, Some(_)) => Skip::OutcomeNotCounted,
    }
}

// How a sum is published: n_observations, confidence, and the members of that kind.

type Published = (i64, i64, Members);

fn skill_success_rate(tally: &Observed) -> Published {
    let (successes, failures) = (tally.successes, tally.failures);
    let n = successes + failures;
    let competitors = tally.numbers.values().filter(|h| h.n() >= COMPETING_FROM).count();
    let mut confidence = wilson(successes.max(failures), n, BASE);
    let mut params = Members::new();
    for (name, histogram) in &tally.numbers {
        let recommended = Recommended::search(histogram, competitors);
        if let (Some(recommended), true) = (&recommended, histogram.n() == n) {
            confidence = confidence.max(recommended.agreement(failures, n, competitors));
        }
        let json = recommended.map(|recommended| recommended.json());
        let members = histogram.members().optional("recommended", json);
        params = params.raw(name.as_str(), members.finish());
    }
    let members = Members::new()
        .raw("successes", successes)
        .raw("failures", failures)
        .raw("success_rate", rate(successes, n))
        .optional("params", finished(params))
        .optional("top_failure_reason", top(&tally.texts, "reason"))
        .optional("uncounted", finished(uncounted(tally)));
    (n, confidence, members)
}

fn interaction_pattern(tally: &Observed) -> Published {
    let n = tally.failures;
    let params = tally.numbers.iter().fold(Members::new(), |params, (name, histogram)| {
        params.raw(name.as_str(), histogram.members().finish())
    });
    (n, wilson(n, n, BASE), Members::new().optional("params", finished(params)))
}

fn zone_risk(tally: &Observed) -> Published {
    let adverse = tally.failures + tally.incidents;
    let n = tally.successes + adverse;
    let members = Members::new()
        .raw("adverse", adverse)
        .raw("failures", tally.failures)
        .raw("incidents", tally.incidents)
        .raw("risk", rate(adverse, n))
        .optional("top_reason", top(&tally.texts, "reason"));
    (n, wilson(adverse.max(n - adverse), n, BASE), members)
}

fn object_property(tally: &Observed) -> Published {
    let numeric = tally.numbers.get(PROPERTY);
    let texts: i64 = tally.texts.values().sum();
    let n = numeric.map_or(0, Histogram::n) + texts;
    let agreeing = numeric.map_or(0, Histogram::near_median).max(most(&tally.texts).1);
    let categorical = top(&tally.texts, "value")
        .map(|top| Members::new().raw("n", texts).raw("top", top).finish());
    let members = Members::new()
        .optional("numeric", numeric.map(|histogram| histogram.members().finish()))
        .optional("categorical", categorical);
    (n, wilson(agreeing, n, BASE), members)
}

fn rate(part: i64, n: i64) -> String {
    if n > 0 { quotient(part.into(), n.into(), 6) } else { String::from("0") }
}

fn finished(members: Members) -> Option<String> {
    (!members.is_empty()).then(|| members.finish())
}

fn uncounted(tally: &Observed) -> Members {
    let count = |members: Members, (outcome, n): (&Outcome, &i64)| members.raw(outcome.name(), n);
    tally.uncounted.iter().fold(Members::new(), count)
}

/// The most common text: highest count, then smallest by UTF-8 bytes.
fn most(texts: &BTreeMap<String, i64>) -> (&str, i64) {
    texts.iter().fold(
        ("", 0),
        |best, (text, n)| {
            if *n > best.1 { (text.as_str(), *n) } else { best }
        },
    )
}

fn top(texts: &BTreeMap<String, i64>, name: &str) -> Option<String> {
    match most(texts) {
        (_, 0) => None,
        (text, n) => Some(Members::new().raw(name, quoted(text)).raw("n", n).finish()),
    }
}
