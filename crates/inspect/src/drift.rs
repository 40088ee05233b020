//! The drift monitor for operators: a report for one day, and a series of weeks.
//!
//! **Invariants:** the report depends on attempts by day alone, whatever rules the log follows. The
//! series shows the recommendations of the rules in force. No clock is read.

use crate::answer::{clean, counted};
use crate::{Error, Page};
use ipse_consolidate::Rules;
use ipse_consolidate::days::{Day, Days, Rate, day_of, day_text};
use ipse_consolidate::drift::{
    DAY_LIMIT, DriftReport, Monitor, Moved, RECENT_DAYS, REFERENCE_DAYS,
};
use ipse_consolidate::recommend::Recommended;
use ipse_consolidate::v2::Dated;
use ipse_consolidate::v2::series::{Series, Week, WeekOfParam, monday};
use ipse_core::json::{Members, list, quoted};
use ipse_core::{FactId, FactKey, Identity, Micro, Time};
use ipse_engine::{rules_of, skill_sums, skill_sums_until};
use ipse_store::View;
use std::collections::{BTreeMap, BTreeSet};

/// The most weeks of a series: ten years, the newest.
const MAX_WEEKS: i64 = 520;
/// The most facts of a series: those with the most attempts.
const MAX_FACTS: usize = 1000;
/// The weeks of a picture in text: a year.
const SHOWN_WEEKS: usize = 53;

/// The attempts by day of all skill facts.
fn attempts(sums: &BTreeMap<FactKey, Dated>) -> Vec<(FactKey, Days<Rate>)> {
    sums.iter().map(|(key, sum)| (key.clone(), sum.by_day())).collect()
}

fn monitor(attempts: &[(FactKey, Days<Rate>)]) -> Monitor {
    Monitor::of(attempts.iter().map(|(key, days)| (key.clone(), days)))
}

/// Whether a server watches for drift under these rules. Only rules that keep days have the sums in
/// the store; for others every report walks over the log.
pub fn watches_drift(rule_version: &str) -> bool {
    rule_version == Rules::V2.version()
}

/// The report of the drift monitor for a day, or for the newest day with an attempt.
pub fn drift(view: View<'_>, identity: &Identity, day: Option<Day>) -> Result<DriftReport, Error> {
    let attempts = attempts(&skill_sums(view, identity)?);
    let monitor = monitor(&attempts);
    Ok(monitor.report(day.unwrap_or_else(|| monitor.newest())))
}

/// The days with an alarm whose day before had none, over all attempts of the log.
pub(crate) fn drift_alarms(view: View<'_>, identity: &Identity) -> Result<Vec<Day>, Error> {
    let sums = skill_sums_until(view, identity, view.head()?)?;
    Ok(monitor(&attempts(&sums)).alarms())
}

/// A report as text.
pub fn drift_page(report: &DriftReport) -> Page {
    let mut page = Page::new();
    let verdict = match (report.drift, report.facts) {
        (true, _) => "DRIFT",
        (false, 0) => "nothing to compare",
        (false, _) => "no drift",
    };
    page.line(format!("{verdict} as of {} (z² = {})", day_text(report.day), report.z2));
    page.prose(
        2,
        format!(
            "The success rates of the last {RECENT_DAYS} days, compared with the \
             {REFERENCE_DAYS} days before, in {} that can be compared.",
            counted(report.facts, "fact")
        ),
    );
    if !report.most.is_empty() {
        page.line("\nMoved most");
        for Moved { key, recent, reference } in &report.most {
            page.line(format!("  {}", clean(key.text())));
            let part = |rate: &Rate| format!("{} of {} worked", rate.s, rate.n);
            page.prose(4, format!("{}; before, {}", part(recent), part(reference)));
        }
        page.note(format!("a day of a fact counts for at most {DAY_LIMIT} attempts"));
    }
    page
}

/// The skill facts of a log week by week.
pub struct DriftSeries {
    identity: Identity,
    rules: Rules,
    /// The weeks, the oldest first; all between the first and the last.
    weeks: Vec<Week>,
    /// The facts, by key.
    facts: Vec<FactSeries>,
    /// The number of facts, with those beyond the limit.
    total: usize,
}

struct FactSeries {
    key: FactKey,
    attempts: BTreeMap<Week, Rate>,
    params: BTreeMap<String, BTreeMap<Week, ParamWeek>>,
    last_outside: Option<Day>,
}

/// A week of a parameter.
struct ParamWeek {
    attempts: Rate,
    recommended: Option<(i64, i64, i64)>,
    inside: i64,
    outside: Option<i64>,
}

impl ParamWeek {
    fn of(week: &WeekOfParam) -> Self {
        let shown = |found: &Recommended| (found.value(), found.window().0, found.window().1);
        ParamWeek {
            attempts: week.attempts,
            recommended: week.recommended.as_ref().map(shown),
            inside: week.inside,
            outside: week.outside(),
        }
    }

    fn json(&self, week: Week) -> String {
        let recommended = self.recommended.map_or("null".to_owned(), |(value, low, high)| {
            let micro = |value: i64| Micro::new(value).unwrap_or_default().to_string();
            Members::new()
                .raw("high", micro(high))
                .raw("low", micro(low))
                .raw("value", micro(value))
                .finish()
        });
        let inside = self.outside.map(|_| self.inside);
        Members::new()
            .text("week", &week_text(week))
            .raw("n", self.attempts.n)
            .raw("successes", self.attempts.s)
            .raw("recommended", recommended)
            .raw("inside", or_null(inside))
            .raw("outside", or_null(self.outside))
            .finish()
    }
}

fn or_null(number: Option<i64>) -> String {
    number.map_or("null".to_owned(), |number| number.to_string())
}

/// A week as in ISO 8601: `2026-W47`. Its year is that of its Thursday.
fn week_text(week: Week) -> String {
    let thursday = monday(week) + 3;
    let year: String = day_text(thursday).chars().take(4).collect();
    let first = Time::parse(&format!("{year}-01-01T00:00:00Z"));
    let first = first.map_or(0, day_of);
    format!("{year}-W{:02}", (thursday - first) / 7 + 1)
}

/// How many facts recommend another value than the week before, one more or one less.
#[derive(Default)]
struct WeekChanges {
    changed: u64,
    added: u64,
    gone: u64,
}

impl FactSeries {
    fn of(key: FactKey, sum: &Dated, rules: Rules) -> Self {
        let Series { attempts, params } = Series::of(sum, rules);
        let weeks = params.values().flat_map(BTreeMap::values);
        let last_outside = weeks.filter_map(|week| week.last_outside).max();
        let week = |(week, it): (&Week, &WeekOfParam)| (*week, ParamWeek::of(it));
        let params = params
            .iter()
            .map(|(name, weeks)| ((*name).to_owned(), weeks.iter().map(week).collect()))
            .collect();
        FactSeries { key, attempts, params, last_outside }
    }

    fn count(&self) -> i64 {
        self.attempts.values().map(|rate| rate.n).sum()
    }

    /// The recommended values by parameter as of the end of a week.
    fn recommended(&self, week: Week) -> BTreeMap<&str, i64> {
        let newest = |weeks: &BTreeMap<Week, ParamWeek>| {
            weeks.range(..=week).next_back().and_then(|(_, it)| Some(it.recommended?.0))
        };
        let named = |(name, weeks)| Some((String::as_str(name), newest(weeks)?));
        self.params.iter().filter_map(named).collect()
    }

    fn json(&self, identity: &Identity, first: Week) -> String {
        let attempts = self.attempts.range(first..).map(|(week, rate)| {
            Members::new()
                .text("week", &week_text(*week))
                .raw("n", rate.n)
                .raw("successes", rate.s)
                .finish()
        });
        let param = |(name, weeks): (&String, &BTreeMap<Week, ParamWeek>)| {
            let weeks = weeks.range(first..).map(|(week, it)| it.json(*week));
            Members::new().text("name", name).raw("weeks", list(weeks)).finish()
        };
        let last_outside = self.last_outside.map(|day| quoted(&day_text(day)));
        Members::new()
            .text("fact_id", &FactId::new(identity, &self.key).to_string())
            .text("fact_key", self.key.text())
            .raw("weeks", list(attempts))
            .raw("params", list(self.params.iter().map(param)))
            .raw("last_outside", last_outside.unwrap_or_else(|| "null".to_owned()))
            .finish()
    }

    /// One digit for each week: the tenths of its rate, at most 9; `.` without attempts.
    fn digits(&self, weeks: &[Week]) -> String {
        let digit = |week: &Week| match self.attempts.get(week) {
            Some(rate) if rate.n > 0 => {
                let tenths = u32::try_from(10 * rate.s / rate.n).unwrap_or_default();
                char::from_digit(tenths.min(9), 10).unwrap_or('.')
            }
            _ => '.',
        };
        weeks.iter().map(digit).collect()
    }
}

impl DriftSeries {
    /// The series of all skill facts up to the checkpoint.
    pub fn read(view: View<'_>, identity: &Identity) -> Result<Self, Error> {
        let rules = rules_of(view)?;
        let sums = skill_sums(view, identity)?;
        let mut facts: Vec<FactSeries> =
            sums.into_iter().map(|(key, sum)| FactSeries::of(key, &sum, rules)).collect();
        let total = facts.len();
        facts.sort_by_key(|fact| std::cmp::Reverse(fact.count()));
        facts.truncate(MAX_FACTS);
        facts.sort_by(|a, b| a.key.cmp(&b.key));
        let all: BTreeSet<Week> =
            facts.iter().flat_map(|fact| fact.attempts.keys()).copied().collect();
        let weeks = match (all.first(), all.last()) {
            (Some(first), Some(last)) => (*first.max(&(last - MAX_WEEKS + 1))..=*last).collect(),
            _ => Vec::new(),
        };
        Ok(DriftSeries { identity: *identity, rules, weeks, facts, total })
    }

    /// The changes of recommendations in each week.
    fn changes(&self) -> Vec<WeekChanges> {
        let changes = |week: &Week| {
            let mut changes = WeekChanges::default();
            for fact in &self.facts {
                let (before, after) = (fact.recommended(week - 1), fact.recommended(*week));
                let differs = |(name, value): (&&str, &i64)| {
                    after.get(name).is_some_and(|other| other != value)
                };
                changes.changed += u64::from(before.iter().any(differs));
                changes.added += u64::from(after.keys().any(|name| !before.contains_key(name)));
                changes.gone += u64::from(before.keys().any(|name| !after.contains_key(name)));
            }
            changes
        };
        self.weeks.iter().map(changes).collect()
    }

    /// The series as JSON.
    pub fn json(&self) -> String {
        let week = |(week, changes): (&Week, WeekChanges)| {
            Members::new()
                .text("week", &week_text(*week))
                .text("from", &day_text(monday(*week).max(0)))
                .text("to", &day_text((monday(week + 1) - 1).min(day_of(Time::LAST))))
                .raw("changed", changes.changed)
                .raw("added", changes.added)
                .raw("gone", changes.gone)
                .finish()
        };
        let first = self.weeks.first().copied().unwrap_or_default();
        Members::new()
            .text("step", "week")
            .text("rule_version", self.rules.version())
            .raw("total", self.total)
            .raw("weeks", list(self.weeks.iter().zip(self.changes()).map(week)))
            .raw("facts", list(self.facts.iter().map(|fact| fact.json(&self.identity, first))))
            .finish()
    }

    /// The series as a picture: one row for each fact, one digit for each week.
    pub fn page(&self) -> Page {
        let mut page = Page::new();
        let weeks = &self.weeks[self.weeks.len().saturating_sub(SHOWN_WEEKS)..];
        let (Some(first), Some(last)) = (weeks.first(), weeks.last()) else {
            page.line("no attempts yet");
            return page;
        };
        page.line(format!("{} to {}, one digit a week", week_text(*first), week_text(*last)));
        for fact in &self.facts {
            page.line(format!("{}  {}", fact.digits(weeks), clean(fact.key.text())));
        }
        if self.total > self.facts.len() {
            let more = (self.total - self.facts.len()) as u64;
            page.line(format!("… and {}", counted(more, "more fact")));
        }
        let older = self.weeks.len() - weeks.len();
        if older > 0 {
            page.note(format!(
                "{} are not shown; --json has them",
                counted(older as u64, "older week")
            ));
        }
        page.note("9: at least nine of ten attempts worked; 0: fewer than one; .: no attempt");
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipse_consolidate::v2::series::week_of;

    #[test]
    fn weeks_are_those_of_iso_8601() {
        for (day, week) in [
            ("1970-01-01", "1970-W01"),
            ("2020-12-31", "2020-W53"),
            ("2021-01-03", "2020-W53"),
            ("2021-01-04", "2021-W01"),
            ("2024-12-30", "2025-W01"),
            ("2026-11-18", "2026-W47"),
        ] {
            let time = Time::parse(&format!("{day}T12:00:00Z")).unwrap();
            assert_eq!(week_text(week_of(day_of(time))), week, "{day}");
        }
    }
}
