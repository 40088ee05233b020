//! Why a parameter has no recommendation, and how many successes it is away from one; and whether a
//! recommended range is better than the values outside of it.
//!
//! **Invariant:** every number comes from the sum of the fact and the functions that publish it.

use super::words::{About, Units, micro};
use crate::answer::{clean, counted};
use ipse_consolidate::confidence::BASE;
use ipse_consolidate::days::Rate;
use ipse_consolidate::distance::{Distance, MAX_TRIED, Nearest};
use ipse_consolidate::histogram::Cell;
use ipse_consolidate::stretch::bounds;
use ipse_core::json::{Members, list};

/// The maximum number of parameters that get a sentence of their own.
const NAMED: usize = 8;

/// The rules that a distance belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// Sums without days.
    Sum,
    /// Sums by day: further successes count on a day of their own.
    Day,
}

/// The distance of a parameter from a recommendation, without its sum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissingRecommendation {
    /// The name of the parameter.
    pub name: String,
    /// All attempts with a value.
    pub tried: Cell,
    /// The nearest recommendation, if a few hundred successes at one value would give one.
    pub nearest: Option<Nearest>,
    /// Whether the rate inside a range that is clearly better changed.
    pub changed: bool,
}

impl From<Distance<'_>> for MissingRecommendation {
    fn from(Distance { name, tried, nearest, changed }: Distance<'_>) -> Self {
        MissingRecommendation { name: name.to_owned(), tried, nearest, changed }
    }
}

impl MissingRecommendation {
    fn words(&self, by: By, units: &Units) -> String {
        let (name, unit) = (clean(&self.name), units.after(&self.name));
        let so_far = match (&self.nearest, self.tried.n) {
            (_, 1 | 2) => format!("only {} a value", has(self.tried.n)),
            (Some(nearest), _) => {
                format!("{} of {}", nearest.inside.successes, part(nearest, &unit))
            }
            (None, n) => format!("{} of {n} attempts with a value worked", self.tried.successes),
        };
        let why = match (self.changed, self.nearest) {
            (true, _) => ", but the rate there changed between two days",
            (false, Some(it)) if it.inside.successes <= it.inside.failures() => {
                ", and no tried value clearly works"
            }
            _ => "",
        };
        let later = if by == By::Day { " on one later day" } else { "" };
        let enough = match self.nearest {
            Some(Nearest { value, more, .. }) => format!(
                "{} at {}{unit}{later}, without a failure, would be enough",
                counted_more(more),
                micro(value)
            ),
            None => format!("Even {MAX_TRIED} more successes{later} would not be enough"),
        };
        format!("No recommendation for {name} yet: {so_far}{why}. {enough}.")
    }

    fn json(&self) -> String {
        let nearest = self.nearest.map(|nearest| {
            let Nearest { value, more, inside, tried: (low, high) } = nearest;
            Members::new()
                .raw("value", micro(value))
                .raw("more", more)
                .raw("n", inside.n)
                .raw("successes", inside.successes)
                .raw("low", micro(low))
                .raw("high", micro(high))
                .finish()
        });
        Members::new()
            .text("param", &self.name)
            .raw("n", self.tried.n)
            .raw("changed", self.changed)
            .raw("nearest", nearest.unwrap_or_else(|| "null".to_owned()))
            .finish()
    }
}

/// The parameters without a recommendation, one sentence each.
pub(super) fn sentences(about: &About<'_>, by: By) -> Vec<String> {
    let About { missing, units } = about;
    let each = missing.iter().take(NAMED).map(|it| it.words(by, units));
    let mut words: Vec<String> = each.collect();
    let more = missing.len().saturating_sub(NAMED);
    if more > 0 {
        let parameters = counted(more as u64, "other parameter");
        words.push(format!("No recommendation for {parameters} either."));
    }
    words
}

/// The distances as a JSON array.
pub(super) fn json(missing: &[MissingRecommendation]) -> String {
    list(missing.iter().map(MissingRecommendation::json))
}

/// Whether a recommended range is shown to be better than the other values; nothing if it is.
pub(super) fn outside(inside: Cell, all: Cell) -> Option<String> {
    let rest = Rate { n: all.n - inside.n, s: all.successes - inside.successes };
    if rest.n == 0 {
        let words = "It holds every value that was tried, so no value is shown to be worse.";
        return Some(words.to_owned());
    }
    let (low, _) = bounds(Rate { n: inside.n, s: inside.successes }, BASE);
    let (_, high) = bounds(rest, BASE);
    (high >= low).then(|| {
        format!(
            "Outside of it {} of {} worked, which is not clearly less.",
            rest.s,
            counted(rest.n.unsigned_abs(), "attempt")
        )
    })
}

/// `18 within 20..25 worked`
fn part(nearest: &Nearest, unit: &str) -> String {
    let Nearest { inside, tried: (low, high), .. } = nearest;
    match low == high {
        true => format!("{} at {}{unit} worked", inside.n, micro(*low)),
        false => format!("{} within {}..{}{unit} worked", inside.n, micro(*low), micro(*high)),
    }
}

fn has(n: i64) -> String {
    let verb = if n == 1 { "has" } else { "have" };
    format!("{} {verb}", counted(n.unsigned_abs(), "attempt"))
}

fn counted_more(more: i64) -> String {
    let successes = if more == 1 { "success" } else { "successes" };
    format!("{more} more {successes}")
}
