//! Rule set `v2`: `v1` by day and by source, so that a fact can report the newest stretch of days
//! since a rate changed.
//!
//! **Invariants:** as for `v1`: a contribution is a function of one event's type, time and columns;
//! a value is a function of the sum and the last supporting event. No clock is read: when time
//! passes and no event arrives, no fact changes.

mod advice;
mod publish;
pub mod series;

pub use advice::{Advice, Verdict};
pub(crate) use publish::recommended;
pub use publish::{Newest, Tried, retry_after};

use crate::bulk::{Bulk, FromSums, Sums};
use crate::days::{Day, Days, Rate, day_of};
use crate::feed::{Part, Sink, feed, key_length};
use crate::histogram::Histogram;
use crate::rules::{BulkFold, Contribution, LimitError, MAX_OBSERVATIONS, RuleSet, Skip, Wanted};
use crate::tally::Tally;
use crate::v1::{Observed, V1, properties, seen, single};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use ipse_core::fact::ANY;
use ipse_core::wire::Wire;
use ipse_core::{Event, FactKey, FactKind, Outcome, Support};

/// The rule set of `docs/formats/fact.md`, part `v2`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct V2;

/// The source of an event that names none.
const NO_SOURCE: &str = "import";

/// All counts of v2 for a fact of any kind.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Dated {
    /// Attempts and successes by source and day. In a zone, an event that is not adverse is a
    /// success.
    pub sources: BTreeMap<String, Days<Rate>>,
    /// Incidents by day.
    pub incidents: Days<i64>,
    /// Reasons by day.
    pub reasons: BTreeMap<String, Days<i64>>,
    /// Parameters by name and day.
    pub params: BTreeMap<String, Values>,
    /// The counts of `v1`, for kinds without days; for a skill, its uncounted outcomes.
    pub undated: Observed,
    /// The sums over the facts of a skill.
    pub advice: Advice,
}

/// The values of a parameter by day, with their sum. Every publication asks for the sum of all
/// days; it follows from the days and is not encoded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Values {
    days: Days<Histogram>,
    all: Histogram,
}

impl Values {
    /// The values of these days.
    pub fn of(days: Days<Histogram>) -> Self {
        Values { all: days.total(), days }
    }

    /// The values by day.
    pub fn days(&self) -> &Days<Histogram> {
        &self.days
    }

    /// The values of all days.
    pub fn all(&self) -> &Histogram {
        &self.all
    }
}

impl Tally for Values {
    fn add(&mut self, other: &Self) {
        self.days.add(&other.days);
        self.all.add(&other.all);
    }

    fn negated(&self) -> Self {
        Values { days: self.days.negated(), all: self.all.negated() }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.days.encode(out);
    }

    fn decode(wire: &mut Wire<'_>) -> Option<Self> {
        Days::decode(wire).map(Values::of)
    }
}

impl Dated {
    /// Attempts and successes by day, of all sources.
    pub fn by_day(&self) -> Days<Rate> {
        let mut days = self.sources.values();
        let mut all = days.next().cloned().unwrap_or_default();
        days.for_each(|days| all.add(days));
        all
    }

    /// Attempts and successes of all days.
    pub fn total(&self) -> Rate {
        let days = self.sources.values().flat_map(Days::all);
        days.fold(Rate::default(), |sum, (_, rate)| sum.plus(*rate))
    }
}

impl Tally for Dated {
    fn add(&mut self, other: &Self) {
        self.sources.add(&other.sources);
        self.incidents.add(&other.incidents);
        self.reasons.add(&other.reasons);
        self.params.add(&other.params);
        self.undated.add(&other.undated);
        self.advice.add(&other.advice);
    }

    fn negated(&self) -> Self {
        Dated {
            sources: self.sources.negated(),
            incidents: self.incidents.negated(),
            reasons: self.reasons.negated(),
            params: self.params.negated(),
            undated: self.undated.negated(),
            advice: self.advice.negated(),
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        self.sources.encode(out);
        self.incidents.encode(out);
        self.reasons.encode(out);
        self.params.encode(out);
        self.undated.encode(out);
        self.advice.encode(out);
    }

    fn decode(wire: &mut Wire<'_>) -> Option<Self> {
        Some(Dated {
            sources: Tally::decode(wire)?,
            incidents: Tally::decode(wire)?,
            reasons: Tally::decode(wire)?,
            params: Tally::decode(wire)?,
            undated: Tally::decode(wire)?,
            advice: Tally::decode(wire)?,
        })
    }
}

impl RuleSet for V2 {
    type Tally = Dated;

    fn version(&self) -> &'static str {
        "v2"
    }

    fn descriptor(&self) -> String {
        String::from(include_str!("../rule-set-v2.json"))
    }

    fn contributions(&self, event: &Event<'_>) -> Result<Vec<Contribution<Dated>>, Skip> {
        let mut sink = Contributions { event, day: day_of(event.time), all: Vec::new() };
        feed(&seen(event), properties(&event.columns), &mut sink)?;
        Ok(sink.all)
    }

    fn skip(&self, event: &Event<'_>) -> Option<Skip> {
        V1.skip(event)
    }

    fn bulk<'w>(&self, wanted: Wanted<'w>) -> Option<Box<dyn BulkFold<Dated> + 'w>> {
        Some(Box::new(Bulk::<Dated>::of(wanted)))
    }

    fn bulk_without<'w>(
        &self,
        wanted: Wanted<'w>,
        source: &str,
    ) -> Option<Box<dyn BulkFold<Dated> + 'w>> {
        Some(Box::new(Bulk::<Dated>::without(wanted, source)))
    }

    fn derives(&self) -> bool {
        true
    }

    fn is_derived(&self, key: &FactKey) -> bool {
        key.kind() == FactKind::SkillAdvice
    }

    fn derived(&self, key: &FactKey, whole: &Dated) -> Vec<(FactKey, Dated)> {
        if key.kind() != FactKind::SkillSuccessRate {
            return Vec::new();
        }
        let advice = Advice::of(whole.total());
        let skill = FactKey::new(FactKind::SkillAdvice, &[&key.parts()[0]]);
        Vec::from([(skill, Dated { advice, ..Dated::default() })])
    }

    fn publish(
        &self,
        key: &FactKey,
        tally: &Dated,
        last: &Support,
    ) -> Result<Option<String>, LimitError> {
        let n = match key.kind() {
            FactKind::SkillSuccessRate | FactKind::ZoneRisk => tally.total().n,
            FactKind::SkillAdvice => tally.advice.total().n,
            FactKind::InteractionPattern | FactKind::ObjectProperty => {
                crate::publish::observations(key.kind(), &tally.undated)
            }
        };
        if n <= 0 {
            return Ok(None);
        }
        if n.unsigned_abs() > MAX_OBSERVATIONS {
            return Err(LimitError { key: key.clone() });
        }
        Ok(Some(publish::value(key.kind(), tally, last, self.version())))
    }
}

/// The contributions of one event, each as a sum.
struct Contributions<'e> {
    event: &'e Event<'e>,
    day: Day,
    all: Vec<Contribution<Dated>>,
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
        let mut tally = Dated::default();
        let columns = &self.event.columns;
        let source = columns.source.unwrap_or(NO_SOURCE);
        match is_dated(kind) {
            true => tally.count(source, self.day, part, 1),
            false => tally.undated = single(part),
        }
        if params {
            let worked = columns.outcome == Some(Outcome::Success);
            for (name, value) in &columns.params {
                let (name, one) = ((*name).to_string(), Histogram::of(*value, worked));
                match is_dated(kind) {
                    true => drop(tally.params.insert(name, Values::of(Days::one(self.day, one)))),
                    false => drop(tally.undated.numbers.insert(name, one)),
                }
            }
        }
        let key = FactKey::new(kind, &key[..key_length(kind)]);
        self.all.push(Contribution { key, tally, supports });
    }
}

/// Whether the counts of a kind are kept by day.
fn is_dated(kind: FactKind) -> bool {
    matches!(kind, FactKind::SkillSuccessRate | FactKind::ZoneRisk)
}

impl Dated {
    /// Counts a part of a dated fact `times` times.
    fn count(&mut self, source: &str, day: Day, part: Part<&str>, times: i64) {
        let (s, reason) = match part {
            Part::Ended(Outcome::Success, _) => (times, None),
            Part::Ended(Outcome::Failed, reason) => (0, reason),
            Part::Incident(reason) => {
                self.incidents.put(day, &times);
                (0, reason)
            }
            Part::Ended(outcome, _) => {
                *self.undated.uncounted.entry(outcome).or_default() += times;
                return;
            }
            Part::Failure | Part::Property(_) => return,
        };
        under(&mut self.sources, source).put(day, &Rate { n: times, s });
        if let Some(reason) = reason {
            under(&mut self.reasons, reason).put(day, &times);
        }
    }
}

/// The sum under a name.
fn under<'m, T: Default>(all: &'m mut BTreeMap<String, T>, name: &str) -> &'m mut T {
    if !all.contains_key(name) {
        all.insert(name.to_string(), T::default());
    }
    all.entry(name.to_string()).or_default()
}

impl FromSums for Dated {
    const DATED: bool = true;

    fn from_sums(sums: Sums<'_>) -> Self {
        if !is_dated(sums.kind()) {
            return Dated { undated: Observed::from_sums(sums), ..Dated::default() };
        }
        let mut tally = Dated::default();
        sums.each_day(|source, day, part, times| {
            tally.count(source.unwrap_or(NO_SOURCE), day, part, times);
        });
        tally.params = sums.into_params().map(|(name, days)| (name, Values::of(days))).collect();
        tally
    }
}
