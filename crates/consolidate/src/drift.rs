//! The drift monitor: have the rates of the last week left those of the eight weeks before?
//!
//! **Invariants:** a function of attempts by day alone, in exact integers. No clock is read: the
//! day is an argument, or the newest day with an attempt. One day of one fact counts for at most
//! [`DAY_LIMIT`] attempts, so a storm of retries is not taken for drift.

use crate::days::{Day, Days, Rate, day_text};
use crate::stretch::share;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::FactKey;
use ipse_core::decimal::quotient_floor;
use ipse_core::json::{Members, list, quoted};

/// The days of the last week: the day of the report and six before it.
pub const RECENT_DAYS: i64 = 7;
/// The days before them that they are compared with.
pub const REFERENCE_DAYS: i64 = 56;
/// The most attempts that one day of one fact counts for.
pub const DAY_LIMIT: i64 = 4;
/// The most facts that a report names.
const NAMED: usize = 3;
const MILLION: i128 = 1_000_000;
/// The square of the number of standard deviations that is an alarm.
const ALARM: i128 = 9;

/// Attempts by day of the skill facts of a log.
pub struct Monitor(Vec<Fact>);

/// The running totals of one fact's limited counts.
struct Fact {
    key: FactKey,
    /// Each day with the total up to its end.
    totals: Vec<(Day, Rate)>,
}

impl Fact {
    fn of(key: FactKey, days: &Days<Rate>) -> Self {
        let mut total = Rate::default();
        let totals = days.all().iter().filter(|(_, rate)| rate.n > 0).map(|(day, rate)| {
            total = total.plus(limited(*rate));
            (*day, total)
        });
        Fact { key, totals: totals.collect() }
    }

    /// The total of all days before `end`.
    fn before(&self, end: Day) -> Rate {
        let place = self.totals.partition_point(|(day, _)| *day < end);
        place.checked_sub(1).map_or(Rate::default(), |place| self.totals[place].1)
    }

    /// How far the last week is from the weeks before, and the spread of that distance. `None` if
    /// they cannot be compared.
    fn departure(&self, day: Day) -> Option<Departure> {
        let first_recent = day.saturating_sub(RECENT_DAYS - 1);
        let (end, middle, start) = (
            self.before(day.saturating_add(1)),
            self.before(first_recent),
            self.before(first_recent.saturating_sub(REFERENCE_DAYS)),
        );
        let (recent, reference) = (end.minus(middle), middle.minus(start));
        let whole = recent.plus(reference);
        if recent.n == 0 || reference.n == 0 || whole.s == 0 || whole.f() == 0 {
            return None;
        }
        let [n_r, s_r, n_b] = [recent.n, recent.s, reference.n].map(i128::from);
        let [n, s, f] = [whole.n, whole.s, whole.f()].map(i128::from);
        let distance = s_r * n - n_r * s;
        let e = MILLION * distance * distance / (n * n);
        let v = MILLION * n_r * n_b * s * f / (n * n * (n - 1));
        Some(Departure { e, v, recent, reference })
    }
}

/// The distance of a fact's last week from the weeks before, its spread, and both counts.
struct Departure {
    e: i128,
    v: i128,
    recent: Rate,
    reference: Rate,
}

/// The counts of a day, reduced to the limit.
fn limited(rate: Rate) -> Rate {
    match rate.n > DAY_LIMIT {
        true => Rate { n: DAY_LIMIT, s: share(rate.s, DAY_LIMIT, rate.n) },
        false => rate,
    }
}

/// The report of the monitor for one day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriftReport {
    /// The day.
    pub day: Day,
    /// The number of facts that were compared.
    pub facts: u64,
    /// Whether the rates have left those of the weeks before.
    pub drift: bool,
    /// The square of the distance in standard deviations, with its sign, as text.
    pub z2: String,
    /// The facts that moved most.
    pub most: Vec<Moved>,
}

/// A fact that moved, with its limited counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Moved {
    /// The key of the fact.
    pub key: FactKey,
    /// The attempts of the last week.
    pub recent: Rate,
    /// The attempts of the weeks before.
    pub reference: Rate,
}

impl DriftReport {
    /// The report as JSON.
    pub fn json(&self) -> String {
        let most = self.most.iter().map(|moved| quoted(moved.key.text()));
        Members::new()
            .text("day", &day_text(self.day))
            .raw("drift", self.drift)
            .raw("facts", self.facts)
            .raw("most", list(most))
            .raw("z2", &self.z2)
            .finish()
    }
}

impl Monitor {
    /// A monitor over the attempts by day of each fact.
    pub fn of<'d>(facts: impl IntoIterator<Item = (FactKey, &'d Days<Rate>)>) -> Self {
        Monitor(facts.into_iter().map(|(key, days)| Fact::of(key, days)).collect())
    }

    /// The newest day with an attempt; 1970-01-01 without one.
    pub fn newest(&self) -> Day {
        self.0.iter().filter_map(|fact| Some(fact.totals.last()?.0)).max().unwrap_or(0)
    }

    /// The report for a day.
    pub fn report(&self, day: Day) -> DriftReport {
        let departures = self.0.iter().filter_map(|fact| Some((&fact.key, fact.departure(day)?)));
        let (mut facts, mut x, mut spread) = (0, 0, 0);
        let mut most: Vec<(i128, &FactKey, Rate, Rate)> = Vec::new();
        for (key, Departure { e, v, recent, reference }) in departures {
            facts += 1;
            x += e - v;
            spread += 2 * v * v + MILLION * v;
            if e > v {
                most.push((v - e, key, recent, reference));
            }
        }
        most.sort_unstable_by_key(|(distance, key, ..)| (*distance, *key));
        let named = most.into_iter().take(NAMED).map(|(_, key, recent, reference)| Moved {
            key: key.clone(),
            recent,
            reference,
        });
        DriftReport {
            day,
            facts,
            drift: x > 0 && x * x >= ALARM * spread,
            z2: if spread == 0 { "0".into() } else { quotient_floor(x * x.abs(), spread, 2) },
            most: named.collect(),
        }
    }

    /// The days with an alarm whose day before had none, ascending.
    pub fn alarms(&self) -> Vec<Day> {
        let newest = self.newest();
        let after = |day: Day| day..=day.saturating_add(RECENT_DAYS - 1).min(newest);
        let days = self.0.iter().flat_map(|fact| &fact.totals).flat_map(|(day, _)| after(*day));
        let mut last = None;
        let mut begins = |day: &Day| {
            let begins = last.is_none_or(|last: Day| last + 1 != *day);
            last = Some(*day);
            begins
        };
        let on = days.collect::<BTreeSet<_>>().into_iter().filter(|day| self.report(*day).drift);
        on.filter(|day| begins(day)).collect()
    }
}
