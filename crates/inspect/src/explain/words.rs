//! A fact's arithmetic as sentences, and a parameter's attempts as a chart.
//!
//! **Invariant:** every number comes from the sum of the fact and from the functions that publish
//! it. Nothing is estimated.

use super::distance::{self, By, MissingRecommendation};
use crate::Error;
use crate::answer::{clean, counted};
use ipse_consolidate::confidence::{BASE, lg, wilson};
use ipse_consolidate::days::{Days, Rate, day_text};
use ipse_consolidate::distance::Distance;
use ipse_consolidate::histogram::{Cell, Histogram};
use ipse_consolidate::recommend::{Recommended, UsedDays};
use ipse_consolidate::stretch::{bounds, robust};
use ipse_consolidate::v1::Observed;
use ipse_consolidate::v2::{Advice, Dated, Newest, Tried, Verdict};
use ipse_core::decimal::{quotient, write_micro};
use ipse_core::judge::gate_hashes;
use ipse_core::{FactKind, Outcome};
use ipse_gates::{ListedParam, Registry};
use ipse_store::View;
use std::collections::BTreeMap;

/// The columns of a chart.
const STRIP: usize = 48;
/// What fits a fact whose confidence comes from a window.
const INSIDE: &str = " (inside the window works, outside fails)";
const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The units of parameters by name, as the ECM registry gives them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Units(BTreeMap<String, String>);

impl Units {
    /// The units of the parameters of a skill; none if the registry does not know it.
    pub fn of(registry: &Registry, skill_id: &str) -> Self {
        let params = registry.params(skill_id).unwrap_or_default().into_iter();
        let unit = |param: ListedParam<'_>| {
            let unit = param.unit.filter(|unit| *unit != "1")?;
            Some((param.name.to_owned(), clean(unit)))
        };
        Units(params.filter_map(unit).collect())
    }

    /// The same, from the registry that is stored with the log and that its manifest names; none if
    /// it is not stored, or is no registry.
    pub fn stored(view: View<'_>, manifest: &str, skill_id: &str) -> Result<Self, Error> {
        let [registry, ..] = gate_hashes(manifest);
        let bytes = registry.map(|hash| view.artefact(&hash)).transpose()?.flatten();
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let registry = text.and_then(|text| Registry::parse(&text).ok());
        Ok(registry.map(|registry| Units::of(&registry, skill_id)).unwrap_or_default())
    }

    /// The unit as it follows a value: ` N`, or nothing.
    pub(super) fn after(&self, name: &str) -> String {
        self.0.get(name).map(|unit| format!(" {unit}")).unwrap_or_default()
    }

    /// The unit as it follows a name: ` [N]`, or nothing.
    fn bracketed(&self, name: &str) -> String {
        self.0.get(name).map(|unit| format!(" [{unit}]")).unwrap_or_default()
    }
}

/// What the words about a skill need besides its sum.
pub(super) struct About<'a> {
    pub(super) missing: &'a [MissingRecommendation],
    pub(super) units: &'a Units,
}

/// The number of parameters that compete, and the units.
type Among<'a> = (usize, &'a Units);

/// A sum that can be explained as text.
pub(super) trait Arithmetic {
    /// The arithmetic of a fact of this kind, one sentence each.
    fn words(&self, kind: FactKind, about: &About<'_>) -> Vec<String>;

    /// The charts of the first parameters, up to `most`.
    fn charts(&self, most: usize, units: &Units) -> Vec<String>;

    /// The parameters without a recommendation, and how far they are from one.
    fn missing(&self, kind: FactKind) -> Vec<MissingRecommendation>;
}

impl Arithmetic for Observed {
    fn words(&self, kind: FactKind, about: &About<'_>) -> Vec<String> {
        match kind {
            FactKind::SkillSuccessRate => skill(self, about),
            FactKind::InteractionPattern => {
                let n = self.failures;
                vec![format!("{n} attempts failed for this reason."), agreement(n, n, BASE, "")]
            }
            FactKind::ZoneRisk => zone(self),
            FactKind::ObjectProperty => property(self),
            // `v1` has no facts of this kind.
            FactKind::SkillAdvice => Vec::new(),
        }
    }

    fn charts(&self, most: usize, units: &Units) -> Vec<String> {
        let numbers = self.numbers.iter().filter(|(name, _)| !name.is_empty());
        numbers.map(|(name, histogram)| strip(name, histogram, units)).take(most).collect()
    }

    fn missing(&self, kind: FactKind) -> Vec<MissingRecommendation> {
        match kind {
            FactKind::SkillSuccessRate => {
                Distance::of_observed(self).into_iter().map(Into::into).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Arithmetic for Dated {
    fn words(&self, kind: FactKind, about: &About<'_>) -> Vec<String> {
        match kind {
            FactKind::SkillSuccessRate => dated_skill(self, about),
            FactKind::ZoneRisk => dated_zone(self),
            FactKind::SkillAdvice => advice(&self.advice),
            FactKind::InteractionPattern | FactKind::ObjectProperty => {
                self.undated.words(kind, about)
            }
        }
    }

    fn charts(&self, most: usize, units: &Units) -> Vec<String> {
        let (tried, _) = Tried::of(self);
        let params = tried.iter().map(|param| strip(param.name, param.all, units)).take(most);
        params.chain(self.undated.charts(most, units)).take(most).collect()
    }

    fn missing(&self, kind: FactKind) -> Vec<MissingRecommendation> {
        match kind {
            FactKind::SkillSuccessRate => {
                Distance::of_dated(self).into_iter().map(Into::into).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// `S of N attempts since DAY worked: success_rate R, between LOW and HIGH.`
fn newest_rate(newest: &Newest, what: &str, name: &str, counts: Rate) -> String {
    let (low, high) = bounds(counts, BASE);
    format!(
        "{} of {} {what} since {}: {name} {}, between {} and {}.",
        counts.s,
        counts.n,
        day_text(newest.since),
        rate(counts.s, counts.n),
        steps(low),
        steps(high),
    )
}

fn dated_skill(tally: &Dated, about: &About<'_>) -> Vec<String> {
    let newest = Newest::of(tally);
    let Rate { n, s } = newest.rate;
    let agreeing = s.max(n - s);
    let mut words = vec![newest_rate(&newest, "attempts worked", "success_rate", newest.rate)];
    words.extend(uncounted(&tally.undated.uncounted));
    let (tried, competitors) = Tried::of(tally);
    let mut best = (wilson(agreeing, n, BASE), agreeing, BASE, "");
    for param in &tried {
        let Some((found, used)) = &param.recommended else {
            continue;
        };
        words.push(dated_window(param, found, used, (competitors, about.units)));
        if let Some(confidence) = param.agreement(&newest, competitors).filter(|it| *it > best.0) {
            let agreeing = found.inside().successes + newest.rate.f() - found.inside().failures();
            best = (confidence, agreeing, BASE + 2 * lg(competitors), INSIDE);
        }
    }
    words.extend(distance::sentences(about, By::Day));
    if let Some(robust) = robust(tally.sources.values().map(Days::all)) {
        let (low, high) = bounds(robust.rate, BASE);
        words.push(format!(
            "If no source counts for more than the median of the {} sources, {} of {} worked: \
             between {} and {}.",
            robust.sources,
            robust.rate.s,
            robust.rate.n,
            steps(low),
            steps(high)
        ));
    }
    words.push(agreement(best.1, n, best.2, best.3));
    words
}

/// The window of a parameter over the days that its recommendation uses.
fn dated_window(
    param: &Tried<'_>,
    found: &Recommended,
    used: &UsedDays,
    among: Among<'_>,
) -> String {
    let Some(since) = used.since else {
        return window(param.name, param.all, found, among);
    };
    let days = param.days.from(since);
    let histogram = Histogram::total(days.iter().map(|(_, day)| day));
    let window = window(param.name, &histogram, found, among);
    let n = days.len();
    format!("{window} It uses the newest {n} days with a value, since {}.", day_text(since))
}

fn dated_zone(tally: &Dated) -> Vec<String> {
    let newest = Newest::of(tally);
    let (n, adverse) = (newest.rate.n, newest.rate.f());
    let incidents: i64 = tally.incidents.from(newest.since).iter().map(|(_, n)| n).sum();
    let what = format!(
        "observations adverse ({} failed attempts, {incidents} incidents)",
        adverse - incidents
    );
    vec![
        newest_rate(&newest, &what, "risk", Rate { n, s: adverse }),
        agreement(adverse.max(n - adverse), n, BASE, ""),
    ]
}

fn advice(advice: &Advice) -> Vec<String> {
    let total = advice.total();
    let mut words = vec![format!(
        "{} of {} attempts of this skill worked, under {}.",
        total.s,
        total.n,
        counted(u64::try_from(advice.keys()).unwrap_or_default(), "key")
    )];
    words.extend(advice.judge().map(|(gain, verdict)| {
        let how = match verdict {
            Verdict::Informative => "predict its outcomes better than the skill's own rate",
            Verdict::Misleading => "predict its outcomes worse than the skill's own rate",
            Verdict::Unproven => "are not shown to predict its outcomes better or worse",
        };
        format!("The facts of its keys {how}: gain {}.", steps(gain))
    }));
    words.push(agreement(total.s.max(total.f()), total.n, BASE, ""));
    words
}

/// The attempts that neither worked nor failed, if there are any.
fn uncounted(uncounted: &BTreeMap<Outcome, i64>) -> Option<String> {
    let each = |(outcome, n): (&Outcome, &i64)| format!("{n} {}", outcome.name());
    let listed: Vec<String> = uncounted.iter().map(each).collect();
    let words =
        || format!("Not counted, since they neither worked nor failed: {}.", listed.join(", "));
    (!listed.is_empty()).then(words)
}

fn skill(tally: &Observed, about: &About<'_>) -> Vec<String> {
    let (s, f) = (tally.successes, tally.failures);
    let n = s + f;
    let mut words = vec![format!("{s} of {n} attempts worked: success_rate {}.", rate(s, n))];
    words.extend(uncounted(&tally.uncounted));
    let competitors = tally.numbers.values().filter(|h| h.n() >= 3).count();
    let base = (wilson(s.max(f), n, BASE), s.max(f), BASE, "");
    let mut best = base;
    for (name, histogram) in &tally.numbers {
        let Some(found) = Recommended::search(histogram, competitors) else {
            continue;
        };
        words.push(window(name, histogram, &found, (competitors, about.units)));
        if histogram.n() == n {
            let agreeing = found.inside().successes + f - found.inside().failures();
            let k = BASE + 2 * lg(competitors);
            let confidence = found.agreement(f, n, competitors);
            if confidence > best.0 {
                best = (confidence, agreeing, k, INSIDE);
            }
        }
    }
    words.extend(distance::sentences(about, By::Sum));
    words.push(agreement(best.1, n, best.2, best.3));
    words
}

/// `12 of 12 at 25 worked, 3 of 3 below failed; window 25..25; recommended 25, confidence …`
fn window(
    name: &str,
    histogram: &Histogram,
    found: &Recommended,
    (competitors, units): Among<'_>,
) -> String {
    let unit = units.after(name);
    let (low, high) = found.window();
    let inside = found.inside();
    let held = || histogram.fine().iter().map(|(value, _)| *value).filter(|v| found.holds(*v));
    let (from, to) = (held().min().unwrap_or(low), held().max().unwrap_or(high));
    let place = match from == to {
        true => format!("at {}{unit}", micro(from)),
        false => format!("within {}..{}{unit}", micro(from), micro(to)),
    };
    let mut parts = vec![format!("{} of {} {place} worked", inside.successes, inside.n)];
    for (word, keep) in [("below", i64::MIN..from), ("above", to.saturating_add(1)..i64::MAX)] {
        let cells = histogram.fine().iter().filter(|(value, _)| keep.contains(value));
        let cell = cells.fold(Cell::default(), |sum, (_, cell)| sum.plus(*cell));
        if cell.n > 0 {
            parts.push(format!("{} of {} {word} failed", cell.failures(), cell.n));
        }
    }
    // Values at its edges that mostly failed are counted but not recommended.
    let what = if (from, to) == (low, high) { "window" } else { "what mostly worked there" };
    let cells = histogram.coarse().len();
    let k = BASE + 2 * (lg(competitors) + lg(cells));
    let lowered = match k == BASE {
        true => String::new(),
        false => {
            let compared = counted(competitors as u64, "parameter");
            format!(
                " (lowered because {compared} and {} were compared)",
                counted(cells as u64, "range")
            )
        }
    };
    format!(
        "{}: {}; {what} {}..{}{unit}; recommended {}{unit}, confidence {}{lowered}.",
        clean(name),
        parts.join(", "),
        micro(low),
        micro(high),
        micro(found.value()),
        fraction(inside.successes, inside.n, k),
    ) + &beside(inside, histogram)
}

/// A sentence about the values outside of a window, if they are not clearly worse.
fn beside(inside: Cell, histogram: &Histogram) -> String {
    let cells = histogram.fine().iter().map(|(_, cell)| *cell);
    let all = cells.fold(Cell::default(), Cell::plus);
    distance::outside(inside, all).map(|words| format!(" {words}")).unwrap_or_default()
}

fn zone(tally: &Observed) -> Vec<String> {
    let adverse = tally.failures + tally.incidents;
    let n = tally.successes + adverse;
    let (failures, incidents) = (tally.failures, tally.incidents);
    vec![
        format!(
            "{adverse} of {n} observations were adverse ({failures} failed attempts, {incidents} \
             incidents): risk {}.",
            rate(adverse, n)
        ),
        agreement(adverse.max(n - adverse), n, BASE, ""),
    ]
}

fn property(tally: &Observed) -> Vec<String> {
    let mut words = Vec::new();
    let texts: i64 = tally.texts.values().sum();
    let numbers = tally.numbers.values().next();
    let n = texts + numbers.map_or(0, Histogram::n);
    let mut agreeing = 0;
    if let Some(histogram) = numbers {
        let near = histogram.near_median();
        let median = micro(histogram.quartiles()[1]);
        words.push(format!(
            "{near} of {} numbers lie within 10 % of the median {median}.",
            histogram.n()
        ));
        agreeing = near;
    }
    let most = tally
        .texts
        .iter()
        .fold(("", 0), |best, (text, n)| if *n > best.1 { (text.as_str(), *n) } else { best });
    if most.1 > 0 {
        words.push(format!("{} of {texts} texts say `{}`.", most.1, clean(most.0)));
    }
    words.push(agreement(agreeing.max(most.1), n, BASE, ""));
    words
}

fn agreement(agreeing: i64, n: i64, k: i128, how: &str) -> String {
    format!(
        "{agreeing} of {n} observations fit this{how}: confidence {}.",
        fraction(agreeing, n, k)
    )
}

/// A confidence with its computation: `15/(15+3) = 0.8333` if nothing contradicts.
fn fraction(agreeing: i64, n: i64, k: i128) -> String {
    let bound = steps(wilson(agreeing, n, k));
    if agreeing == n {
        format!("{n}/({n}+{k}) = {bound}")
    } else {
        format!("{bound} (Wilson lower bound of {agreeing}/{n}, z² = {k})")
    }
}

/// A number in steps of 1/10⁴, as text.
pub(super) fn steps(steps: i64) -> String {
    let mut text = String::new();
    ipse_consolidate::confidence::write(steps, &mut text);
    text
}

fn rate(part: i64, n: i64) -> String {
    quotient(part.into(), i128::from(n.max(1)), 6)
}

/// A number in micro-units, as text.
pub(super) fn micro(value: i64) -> String {
    let mut text = String::new();
    write_micro(value, &mut text);
    text
}

/// A chart of attempts by value: successes and failures, in ascending order of the value.
fn strip(name: &str, histogram: &Histogram, units: &Units) -> String {
    let fine = histogram.fine();
    let (Some((least, _)), Some((greatest, _))) = (fine.first(), fine.last()) else {
        return String::new();
    };
    let width = i128::from(greatest - least).max(1);
    let columns = if least == greatest { 1 } else { STRIP };
    let mut sums = vec![Cell::default(); columns];
    for (value, cell) in fine {
        let place = i128::from(value - least) * (columns as i128 - 1) / width;
        let place = usize::try_from(place).unwrap_or(0);
        sums[place] = sums[place].plus(*cell);
    }
    let most = sums.iter().map(|cell| cell.successes.max(cell.failures())).max().unwrap_or(1);
    let row = |count: &dyn Fn(&Cell) -> i64| -> String {
        let height = |cell: &Cell| {
            let n = count(cell);
            // Round up, so that even one attempt is visible.
            let height = (n * 8 + most - 1) / most.max(1);
            HEIGHTS[usize::try_from(height).unwrap_or(0).min(8)]
        };
        sums.iter().map(height).collect()
    };
    let (from, to) = (micro(*least), micro(*greatest));
    let gap = " ".repeat(columns.saturating_sub(from.chars().count() + to.chars().count()));
    let axis = if least == greatest { from } else { format!("{from}{gap}{to}") };
    format!(
        "{}{}, {}, {most} in the tallest column\n  worked {}\n  failed {}\n         {axis}\n",
        clean(name),
        units.bracketed(name),
        counted(histogram.n().unsigned_abs(), "attempt"),
        row(&|cell| cell.successes).trim_end(),
        row(&|cell| cell.failures()).trim_end(),
    )
}
