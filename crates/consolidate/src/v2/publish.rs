//! Turns a sum of `v2` into a value.
//!
//! **Invariant:** members are written in canonical order (`Object` checks it in debug builds).

use super::{Advice, Dated, Values};
use crate::confidence::{BASE, wilson};
use crate::days::{DAY_MICROS, Day, Days, Rate, day_of, day_text};
use crate::histogram::{Cell, Histogram};
use crate::publish::{COMPETING_FROM, Object, Param, most_of, undated, write_params};
use crate::recommend::{Recommended, UsedDays};
use crate::stretch::{Cut, bounds, robust, stretch};
use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use ipse_core::{FactKind, Support, Time};

/// The newest days that a recommendation may rest on, if those before do not hold.
const RUNGS: [usize; 4] = [64, 32, 16, 8];
/// The shortest and the longest time until a failed attempt is due again.
const RETRY_MICROS: (i64, i64) = (3_600_000_000, 7 * DAY_MICROS);

/// The value of a sum with at least one observation.
pub(super) fn value(kind: FactKind, tally: &Dated, last: &Support, version: &str) -> String {
    let mut out = Object::new();
    match kind {
        FactKind::SkillSuccessRate => skill_success_rate(tally, last, version, &mut out),
        FactKind::ZoneRisk => zone_risk(tally, last, version, &mut out),
        FactKind::SkillAdvice => skill_advice(&tally.advice, last, version, &mut out),
        FactKind::InteractionPattern | FactKind::ObjectProperty => {
            undated(kind, &tally.undated, last, version, &mut out);
        }
    }
    out.finish()
}

/// The counts of the newest stretch and of the days before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Newest {
    /// The first day of the stretch.
    pub since: Day,
    /// The attempts of the stretch.
    pub rate: Rate,
    /// The attempts of all older days.
    pub before: Rate,
    /// The number of sources with an observation in the stretch.
    pub sources: usize,
    /// The boundary before the stretch, if there is one.
    pub cut: Option<Cut>,
}

impl Newest {
    /// The newest stretch of a sum.
    pub fn of(tally: &Dated) -> Self {
        let days = tally.by_day();
        let (start, cut) = stretch(days.all());
        let since = days.all().get(start).map_or(0, |(day, _)| *day);
        let sum = |days: &[(Day, Rate)]| {
            days.iter().fold(Rate::default(), |sum, (_, rate)| sum.plus(*rate))
        };
        let rate = sum(days.from(since));
        let seen = |days: &&Days<Rate>| !days.from(since).is_empty();
        let sources = tally.sources.values().filter(seen).count();
        Newest { since, rate, before: sum(days.all()).minus(rate), sources, cut }
    }

    /// The most common text of the stretch and its count.
    fn most<'t>(&self, texts: &'t BTreeMap<String, Days<i64>>) -> (&'t str, i64) {
        let count = |days: &Days<i64>| days.from(self.since).iter().map(|(_, n)| n).sum();
        most_of(texts.iter().map(|(text, days)| (text.as_str(), count(days))))
    }
}

fn skill_success_rate(t: &Dated, last: &Support, version: &str, out: &mut Object) {
    let newest = Newest::of(t);
    let Rate { n, s } = newest.rate;
    let f = newest.rate.f();
    let (tried, competitors) = Tried::of(t);
    let bands = tried.iter().filter_map(|param| param.agreement(&newest, competitors));
    let confidence = bands.fold(wilson(s.max(f), n, BASE), i64::max);
    let (low, high) = bounds(newest.rate, BASE);
    if newest.before.n > 0 {
        out.object("before", |inner| {
            inner.integer("n", newest.before.n);
            inner.integer("successes", newest.before.s);
        });
    }
    out.confidence(confidence);
    out.integer("failures", f);
    out.steps("high", high);
    out.text("last_outcome", if last.worked { "success" } else { "failed" });
    out.support_id(last);
    out.steps("low", low);
    out.integer("n_observations", n);
    write_params(tried.into_iter().map(Param::from).collect(), out);
    out.text("retry_after", &retry_after(last.time, newest.since).to_string());
    if let Some(robust) = robust(t.sources.values().map(Days::all)) {
        let (low, high) = bounds(robust.rate, BASE);
        out.object("robust", |inner| {
            inner.steps("high", high);
            inner.steps("low", low);
            inner.integer("n", robust.rate.n);
            inner.count("sources", robust.sources);
            inner.integer("successes", robust.rate.s);
        });
    }
    out.text("rule_version", version);
    out.text("since", &day_text(newest.since));
    out.count("sources", newest.sources);
    out.rate("success_rate", s, n);
    out.integer("successes", s);
    out.most_common("top_failure_reason", "reason", newest.most(&t.reasons));
    out.uncounted(&t.undated.uncounted);
}

/// A parameter of a skill, and its recommendation.
pub struct Tried<'t> {
    /// The name.
    pub name: &'t str,
    /// The values by day.
    pub days: &'t Days<Histogram>,
    /// The values of all days.
    pub all: &'t Histogram,
    /// The recommendation, with the days that it uses.
    pub recommended: Option<(Recommended, UsedDays)>,
}

impl<'t> Tried<'t> {
    /// The parameters of a sum, and the number of them that compete.
    pub fn of(tally: &'t Dated) -> (Vec<Self>, usize) {
        let named = |(name, values): (&'t String, &'t Values)| {
            let (days, all) = (values.days(), values.all());
            Tried { name, days, all, recommended: None }
        };
        let mut tried: Vec<Self> = tally.params.iter().map(named).collect();
        let competitors = tried.iter().filter(|param| param.all.n() >= COMPETING_FROM).count();
        for param in &mut tried {
            param.recommended = param.search(competitors);
        }
        (tried, competitors)
    }

    fn search(&self, competitors: usize) -> Option<(Recommended, UsedDays)> {
        let (found, since) = recommended(self.days.all(), self.all, competitors)?;
        let day_n = |(_, day): &(Day, Histogram)| day.n();
        let used =
            since.map_or(self.all.n(), |since| self.days.from(since).iter().map(day_n).sum());
        let outside = used - found.inside().n;
        Some((found, UsedDays { outside, since }))
    }

    /// The confidence that attempts work inside the window and fail outside of it, if the
    /// recommendation and the stretch use all days and every attempt has a value.
    pub fn agreement(&self, newest: &Newest, competitors: usize) -> Option<i64> {
        let (found, used) = self.recommended.as_ref()?;
        let all = used.since.is_none() && newest.before.n == 0 && self.all.n() == newest.rate.n;
        all.then(|| found.agreement(newest.rate.f(), newest.rate.n, competitors))
    }
}

impl<'t> From<Tried<'t>> for Param<'t> {
    fn from(Tried { name, all, recommended, .. }: Tried<'t>) -> Self {
        let recommended = recommended.map(|(found, used)| (found, Some(used)));
        Param { name, histogram: Cow::Borrowed(all), recommended }
    }
}

/// The first recommendation that holds on the days it uses: all days, else ever fewer of the
/// newest. The day is the first one used, if not all are.
pub(crate) fn recommended(
    days: &[(Day, Histogram)],
    all: &Histogram,
    competitors: usize,
) -> Option<(Recommended, Option<Day>)> {
    if let Some(found) = Recommended::search(all, competitors).filter(|it| holds(it, days)) {
        return Some((found, None));
    }
    for rung in RUNGS.into_iter().filter(|rung| *rung < days.len()) {
        let used = &days[days.len() - rung..];
        let sum = Histogram::total(used.iter().map(|(_, day)| day));
        if let Some(found) = Recommended::search(&sum, competitors).filter(|it| holds(it, used)) {
            return Some((found, Some(used[0].0)));
        }
    }
    None
}

/// Whether the rate inside the band did not change over these days.
fn holds(recommended: &Recommended, days: &[(Day, Histogram)]) -> bool {
    let (low, high) = recommended.window();
    let inside = |(day, histogram): &(Day, Histogram)| {
        let fine = histogram.fine();
        let (from, to) = (
            fine.partition_point(|(value, _)| *value < low),
            fine.partition_point(|(value, _)| *value <= high),
        );
        let sum = fine[from..to].iter().fold(Cell::default(), |sum, (_, cell)| sum.plus(*cell));
        (*day, Rate { n: sum.n, s: sum.successes })
    };
    let days: Vec<(Day, Rate)> = days.iter().map(inside).filter(|(_, rate)| rate.n > 0).collect();
    stretch(&days).1.is_none()
}

fn zone_risk(t: &Dated, last: &Support, version: &str, out: &mut Object) {
    let newest = Newest::of(t);
    let adverse = newest.rate.f();
    let n = newest.rate.n;
    let incidents: i64 = t.incidents.from(newest.since).iter().map(|(_, n)| n).sum();
    let (low, high) = bounds(Rate { n, s: adverse }, BASE);
    out.integer("adverse", adverse);
    if newest.before.n > 0 {
        out.object("before", |inner| {
            inner.integer("adverse", newest.before.f());
            inner.integer("n", newest.before.n);
        });
    }
    out.confidence(wilson(adverse.max(n - adverse), n, BASE));
    out.integer("failures", adverse - incidents);
    out.steps("high", high);
    out.integer("incidents", incidents);
    out.support_id(last);
    out.steps("low", low);
    out.integer("n_observations", n);
    out.rate("risk", adverse, n);
    out.text("rule_version", version);
    out.text("since", &day_text(newest.since));
    out.count("sources", newest.sources);
    out.most_common("top_reason", "reason", newest.most(&t.reasons));
}

fn skill_advice(advice: &Advice, last: &Support, version: &str, out: &mut Object) {
    let total = advice.total();
    let (low, high) = bounds(total, BASE);
    let judged = advice.judge();
    out.confidence(wilson(total.s.max(total.f()), total.n, BASE));
    out.integer("failures", total.f());
    out.steps("high", high);
    out.integer("keys", advice.keys() as i64);
    out.support_id(last);
    out.steps("low", low);
    out.integer("n_observations", total.n);
    out.text("rule_version", version);
    if let Some((skill, _)) = judged {
        out.steps("skill", skill);
    }
    out.rate("success_rate", total.s, total.n);
    out.integer("successes", total.s);
    if let Some((_, verdict)) = judged {
        out.text("verdict", verdict.name());
    }
}

/// The time from which a failed attempt is due again: the longer the rate holds, the later.
pub fn retry_after(last: Time, since: Day) -> Time {
    let held = (day_of(last) - since).saturating_mul(DAY_MICROS);
    let wait = held.clamp(RETRY_MICROS.0, RETRY_MICROS.1);
    Time::from_micros(last.micros().saturating_add(wait)).unwrap_or(Time::LAST)
}
