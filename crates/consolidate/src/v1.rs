//! Rule set `v1`: four kinds of facts, one tally for all of them.
//!
//! **Invariants:** an event's contribution is a function of its typed columns alone; a value is a
//! function of the sum and the last supporting event alone. A change to any published byte is a new
//! rule set with a new version, never an edit of this one.

use crate::bulk::Bulk;
use crate::feed::{Part, Seen, Sink, Trait, feed, key_length};
use crate::histogram::Histogram;
use crate::publish;
use crate::rules::{BulkFold, Contribution, LimitError, MAX_OBSERVATIONS, RuleSet, Skip, Wanted};
use crate::tally::{Component, Tally};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use ipse_core::fact::ANY;
use ipse_core::wire::Wire;
use ipse_core::{Columns, Event, EventKind, FactKey, FactKind, Micro, Outcome, Property, Support};

/// The rule set of `docs/formats/fact.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct V1;

/// The name under which the numbers of an object's property are kept.
pub(crate) const PROPERTY: &str = "";

/// All counts of v1 for a fact of any kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Observed {
    /// Attempts that worked.
    pub successes: i64,
    /// Attempts that failed.
    pub failures: i64,
    /// Incidents.
    pub incidents: i64,
    /// Attempts with another outcome.
    pub uncounted: BTreeMap<Outcome, i64>,
    /// Parameters by name; the numbers of an object's property have an empty name.
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
        String::from(include_str!("rule-set-v1.json"))
    }

    fn contributions(&self, event: &Event<'_>) -> Result<Vec<Contribution<Observed>>, Skip> {
        let mut sink = Contributions { columns: &event.columns, all: Vec::new() };
        feed(&seen(event), properties(&event.columns), &mut sink)?;
        Ok(sink.all)
    }

    fn skip(&self, event: &Event<'_>) -> Option<Skip> {
        feed(&seen(event), properties(&event.columns), &mut Nothing).err()
    }

    fn bulk<'w>(&self, wanted: Wanted<'w>) -> Option<Box<dyn BulkFold<Observed> + 'w>> {
        Some(Box::new(Bulk::<Observed>::of(wanted)))
    }

    fn publish(
        &self,
        key: &FactKey,
        tally: &Observed,
        last: &Support,
    ) -> Result<Option<String>, LimitError> {
        let n = publish::observations(key.kind(), tally);
        if n <= 0 {
            return Ok(None);
        }
        if n.unsigned_abs() > MAX_OBSERVATIONS {
            return Err(LimitError { key: key.clone() });
        }
        Ok(Some(publish::value(key.kind(), tally, last, self.version())))
    }
}

/// The fields of an event that rules look at.
pub(crate) fn seen<'e>(event: &Event<'e>) -> Seen<&'e str> {
    let columns = &event.columns;
    Seen {
        kind: EventKind::of(event.event_type),
        outcome: columns.outcome,
        skill: columns.skill,
        target: columns.target,
        environment: columns.environment,
        zone: columns.zone,
        reason: columns.reason,
    }
}

/// The observed properties of an event.
pub(crate) fn properties<'e>(
    columns: &Columns<'e>,
) -> impl Iterator<Item = (&'e str, Trait<&'e str>)> {
    columns.properties.iter().map(|(name, property)| (*name, observed(property)))
}

/// Drops all contributions: only the reason for having none is wanted.
struct Nothing;

impl<'e> Sink<&'e str> for Nothing {
    fn any(&self) -> &'e str {
        ANY
    }

    fn add(&mut self, _: FactKind, _: [&'e str; 3], _: Part<&'e str>, _: bool, _: bool) {}
}

/// The contributions of one event, each as a sum.
struct Contributions<'e> {
    columns: &'e Columns<'e>,
    all: Vec<Contribution<Observed>>,
}

impl<'e> Sink<&'e str> for Contributions<'e> {
    fn any(&self) -> &'e str {
        ANY
    }

    fn add(
        &mut self,
        kind: FactKind,
        key: [&'e str; 3],
        part: Part<&'e str>,
        params: bool,
        supports: bool,
    ) {
        let mut tally = single(part);
        if params {
            let success = self.columns.outcome == Some(Outcome::Success);
            let observed =
                |(name, value): &(&str, _)| ((*name).to_string(), Histogram::of(*value, success));
            tally.numbers = self.columns.params.iter().map(observed).collect();
        }
        let key = FactKey::new(kind, &key[..key_length(kind)]);
        self.all.push(Contribution { key, tally, supports });
    }
}

/// The sum over one part.
pub(crate) fn single(part: Part<&str>) -> Observed {
    let mut tally = Observed::default();
    match part {
        Part::Ended(Outcome::Success, _) => tally.successes = 1,
        Part::Ended(Outcome::Failed, reason) => {
            tally.failures = 1;
            tally.texts = one(reason);
        }
        Part::Ended(outcome, _) => tally.uncounted = BTreeMap::from([(outcome, 1)]),
        Part::Failure => tally.failures = 1,
        Part::Incident(reason) => {
            tally.incidents = 1;
            tally.texts = one(reason);
        }
        Part::Property(Trait::Text(text)) => tally.texts = one(Some(text)),
        Part::Property(Trait::Number(value)) => {
            let histogram = Histogram::of(Micro::new(value).unwrap_or_default(), false);
            tally.numbers = BTreeMap::from([(PROPERTY.to_string(), histogram)]);
        }
    }
    tally
}

fn one(text: Option<&str>) -> BTreeMap<String, i64> {
    text.map(|text| (text.to_string(), 1)).into_iter().collect()
}

fn observed<'e>(property: &Property<'e>) -> Trait<&'e str> {
    match property {
        Property::Number(value) => Trait::Number(value.get()),
        Property::Text(text) => Trait::Text(text),
        Property::Bool(true) => Trait::Text("true"),
        Property::Bool(false) => Trait::Text("false"),
    }
}
