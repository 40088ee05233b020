//! A skill fact week by week: the attempts of each week, and the recommendation as of its end.
//!
//! **Invariants:** a function of the sum and of the rules alone. A recommendation of a week rests
//! on the days up to the end of that week; the attempts of a week are those of its own days.

use super::Dated;
use super::publish::recommended;
use crate::Rules;
use crate::days::{Day, Rate};
use crate::histogram::{Cell, Histogram};
use crate::publish::COMPETING_FROM;
use crate::recommend::Recommended;
use crate::tally::Tally;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A week: the number of weeks since the one that holds 1970-01-01, from Monday to Sunday in UTC.
pub type Week = i64;

/// 1970-01-01 was a Thursday.
const DAYS_AFTER_MONDAY: i64 = 3;

/// The week of a day.
pub fn week_of(day: Day) -> Week {
    (day + DAYS_AFTER_MONDAY).div_euclid(7)
}

/// The first day of a week, a Monday.
pub fn monday(week: Week) -> Day {
    week.saturating_mul(7) - DAYS_AFTER_MONDAY
}

/// One week of one parameter.
pub struct WeekOfParam {
    /// The attempts of the week with a value.
    pub attempts: Rate,
    /// The recommendation as of the end of the week.
    pub recommended: Option<Recommended>,
    /// The values of the week within `low..high` of the recommendation, and all others.
    pub inside: i64,
    /// The last day of the week with a value outside of `low..high`.
    pub last_outside: Option<Day>,
}

/// The weeks of one skill fact that have attempts or values.
pub struct Series<'t> {
    /// The attempts of each week.
    pub attempts: BTreeMap<Week, Rate>,
    /// The weeks of each parameter by name.
    pub params: BTreeMap<&'t str, BTreeMap<Week, WeekOfParam>>,
}

impl<'t> Series<'t> {
    /// The series of a fact, with the recommendations of these rules.
    pub fn of(tally: &'t Dated, rules: Rules) -> Self {
        let mut attempts: BTreeMap<Week, Rate> = BTreeMap::new();
        for (day, rate) in tally.by_day().all() {
            attempts.entry(week_of(*day)).or_default().add(rate);
        }
        let mut weeks: Vec<Week> = attempts.keys().copied().collect();
        let days = tally.params.values().flat_map(|values| values.days().all());
        weeks.extend(days.map(|(day, _)| week_of(*day)));
        weeks.sort_unstable();
        weeks.dedup();
        let mut series = Series { attempts, params: BTreeMap::new() };
        let mut totals: BTreeMap<&str, Histogram> = BTreeMap::new();
        for week in weeks {
            series.add_week(tally, rules, week, &mut totals);
        }
        series
    }

    /// Adds one week of every parameter that has a value in it. The number of competing parameters
    /// is that of the week's end, too.
    fn add_week(
        &mut self,
        tally: &'t Dated,
        rules: Rules,
        week: Week,
        totals: &mut BTreeMap<&'t str, Histogram>,
    ) {
        for (name, values) in &tally.params {
            for (_, day) in within(values.days().all(), week) {
                totals.entry(name.as_str()).or_default().add(day);
            }
        }
        let competitors = totals.values().filter(|all| all.n() >= COMPETING_FROM).count();
        for (name, values) in &tally.params {
            let days = values.days();
            let (own, Some(all)) = (within(days.all(), week), totals.get(name.as_str())) else {
                continue;
            };
            if own.is_empty() {
                continue;
            }
            let until =
                &days.all()[..days.all().partition_point(|(day, _)| *day < monday(week + 1))];
            let found = match rules {
                Rules::V2 => recommended(until, all, competitors).map(|(found, _)| found),
                _ => Recommended::search(all, competitors),
            };
            self.params.entry(name).or_default().insert(week, WeekOfParam::of(own, found));
        }
    }
}

/// The days of a week.
fn within<T>(days: &[(Day, T)], week: Week) -> &[(Day, T)] {
    let from = days.partition_point(|(day, _)| *day < monday(week));
    let to = days.partition_point(|(day, _)| *day < monday(week + 1));
    &days[from..to]
}

impl WeekOfParam {
    fn of(own: &[(Day, Histogram)], recommended: Option<Recommended>) -> Self {
        let mut week =
            WeekOfParam { attempts: Rate::default(), recommended, inside: 0, last_outside: None };
        let window = week.recommended.as_ref().map(Recommended::window);
        for (day, histogram) in own {
            for (value, Cell { n, successes }) in histogram.fine() {
                week.attempts.add(&Rate { n: *n, s: *successes });
                let Some((low, high)) = window else { continue };
                match (low..=high).contains(value) {
                    true => week.inside += n,
                    false => week.last_outside = Some(*day),
                }
            }
        }
        week
    }

    /// The values of the week outside of `low..high`; `None` without a recommendation.
    pub fn outside(&self) -> Option<i64> {
        self.recommended.as_ref().map(|_| self.attempts.n - self.inside)
    }
}
