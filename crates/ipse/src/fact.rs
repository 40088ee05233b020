//! Facts as typed figures instead of JSON.
//!
//! **Invariant:** a figure is copied from the published value; nothing is computed from it.

use ipse_core::decimal::SCALE;
use ipse_core::json::{Object, Value};
use ipse_core::{EventRef, FactId, FactKey, FactKind, Identity, Micro, Outcome, Time};
use ipse_engine::MAX_FACTS;
use ipse_engine::facts::{Filter, ScoredFact};
use std::fmt;
use std::sync::Arc;

/// A filter for the facts of an agent. A fact matches if all given parts match.
///
/// ```
/// use ipse::{FactKind, Query};
/// let all = Query::new();
/// let grasps = Query::skill("grasp").target("cup").limit(5);
/// let risks = Query::new().kind(FactKind::ZoneRisk);
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Query(pub(crate) Filter);

impl Query {
    /// All facts.
    pub fn new() -> Self {
        Query::default()
    }

    /// Facts about a skill.
    pub fn skill(skill: impl Into<String>) -> Self {
        Query(Filter { skill: Some(skill.into()), ..Filter::default() })
    }

    /// Restricts the query to a class of objects.
    pub fn target(mut self, class: impl Into<String>) -> Self {
        self.0.target = Some(class.into());
        self
    }

    /// Restricts the query to an environment.
    pub fn environment(mut self, environment: impl Into<String>) -> Self {
        self.0.environment = Some(environment.into());
        self
    }

    /// Restricts the query to a zone.
    pub fn zone(mut self, zone: impl Into<String>) -> Self {
        self.0.zone = Some(zone.into());
        self
    }

    /// Restricts the query to one kind of fact.
    pub fn kind(mut self, kind: FactKind) -> Self {
        self.0.kind = Some(kind);
        self
    }

    /// Returns at most this many facts, the most confident ones. The limit is clamped to 1 to 1000,
    /// because an intent may echo no other ([`Intent::consulted`](crate::Intent::consulted)).
    pub fn limit(mut self, limit: usize) -> Self {
        self.0.limit = Some(limit.clamp(1, MAX_FACTS));
        self
    }
}

/// A fact: the knowledge in the log about one key.
#[derive(Clone)]
pub struct Fact {
    id: FactId,
    inner: Arc<ScoredFact>,
}

/// A value of a parameter that worked, with the window around it.
///
/// Facts store a parameter to 6 decimals and windows to 4 significant digits, both rounded
/// half-even. The recommended value can therefore differ from the tried value: 12345.6 is
/// recommended as 12350, and 0.0000004 as 0. A number beyond ±10^9 feeds no fact.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Recommended {
    /// The recommended value of the parameter.
    pub value: f64,
    /// The lower end of the window.
    pub low: f64,
    /// The upper end of the window.
    pub high: f64,
    /// The confidence in the window, from 0 to 1.
    pub confidence: f64,
}

impl Fact {
    pub(crate) fn new(identity: &Identity, inner: Arc<ScoredFact>) -> Self {
        Fact { id: FactId::new(identity, &inner.fact.key), inner }
    }

    /// The fact id, computed from identity and key.
    pub fn id(&self) -> FactId {
        self.id
    }

    /// The kind of the fact, such as a success rate.
    pub fn kind(&self) -> FactKind {
        self.inner.fact.key.kind()
    }

    /// The key: what the fact is about.
    pub fn key(&self) -> &FactKey {
        &self.inner.fact.key
    }

    /// The confidence from 0 to 1: it grows with observations and falls with contradictions.
    pub fn confidence(&self) -> f64 {
        float(self.inner.confidence)
    }

    /// The number of observations behind the fact.
    pub fn observations(&self) -> u64 {
        self.inner.n_observations
    }

    /// The rate of successful attempts; `None` unless the fact is about a skill.
    pub fn success_rate(&self) -> Option<f64> {
        self.figure("success_rate")
    }

    /// The risk of a zone; `None` unless the fact is about a zone.
    pub fn risk(&self) -> Option<f64> {
        self.figure("risk")
    }

    /// The most frequent failure reason, if any.
    pub fn top_failure_reason(&self) -> Option<String> {
        let value = self.inner.value();
        let top = value.get("top_failure_reason").or_else(|| value.get("top_reason"))?;
        let text = match top {
            Value::Object(object) => object.get("reason").or_else(|| object.get("value"))?,
            top => top,
        };
        text.as_text().map(str::to_owned)
    }

    /// The recommended value of a parameter, if the log supports one.
    pub fn recommended(&self, param: &str) -> Option<Recommended> {
        let value = self.inner.value();
        let param = value.get("params")?.as_object()?.get(param)?.as_object()?;
        let found = param.get("recommended")?.as_object()?;
        let figure = |name: &str| read(found, name);
        let (value, low, high) = (figure("value")?, figure("low")?, figure("high")?);
        Some(Recommended { value, low, high, confidence: figure("confidence")? })
    }

    /// The lower and the upper bound of the rate or risk; `None` under rule set v1.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        self.figure("low").zip(self.figure("high"))
    }

    /// The same bounds if no source counts for more than the median source; `None` with fewer than
    /// two sources, and under rule set v1.
    pub fn robust_bounds(&self) -> Option<(f64, f64)> {
        let value = self.inner.value();
        let robust = value.get("robust")?.as_object()?;
        read(robust, "low").zip(read(robust, "high"))
    }

    /// The begin of the newest stretch of days, which the fact counts; `None` under rule set v1.
    pub fn since(&self) -> Option<Time> {
        self.inner.fact.evidence_key().since
    }

    /// The outcome of the last attempt; `None` under rule set v1.
    pub fn last_outcome(&self) -> Option<Outcome> {
        let value = self.inner.value();
        match value.get("last_outcome")?.as_text()? {
            "success" => Some(Outcome::Success),
            _ => Some(Outcome::Failed),
        }
    }

    /// The time from which an attempt is due again after a failure; `None` under rule set v1.
    pub fn retry_after(&self) -> Option<Time> {
        Time::parse(self.inner.value().get("retry_after")?.as_text()?).ok()
    }

    /// The time of the last supporting event.
    pub fn last_updated(&self) -> Time {
        self.inner.fact.last.time
    }

    /// The last supporting event.
    pub fn last_event(&self) -> EventRef {
        self.inner.fact.last.event_ref
    }

    /// A number in the fact's value by its name, such as `failures`.
    pub fn figure(&self, name: &str) -> Option<f64> {
        read(&self.inner.value(), name)
    }

    /// The value as canonical JSON, with everything that has no method here.
    pub fn json(&self) -> &str {
        &self.inner.fact.value
    }
}

impl PartialEq for Fact {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.inner == other.inner
    }
}

impl fmt::Debug for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.kind(), self.key().text(), self.json())
    }
}

fn read(object: &Object<'_>, name: &str) -> Option<f64> {
    object.get(name)?.as_micro().map(float)
}

fn float(micro: Micro) -> f64 {
    micro.get() as f64 / SCALE as f64
}
