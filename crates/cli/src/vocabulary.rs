//! Arguments that several commands share: a word of a closed vocabulary, a command with
//! subcommands, the length of a list.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use ipse_consolidate::Rules;
use ipse_consolidate::days::{Day, read_day};
use ipse_core::Time;
use ipse_inspect::{DayEdge, Moment, MomentError, PlannedAttempt, read_time};
use ipse_plan::Threshold;
use std::str::FromStr;

// Doc comments of arguments are help texts, so the types that commands share have none.

#[derive(clap::Args, Debug)]
#[command(subcommand_required = true)]
pub(crate) struct Nested<A: clap::Subcommand> {
    #[command(subcommand)]
    pub(crate) action: A,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Newest {
    /// Show only the newest N
    #[arg(long, value_name = "N", value_parser = at_least_one::<u64>)]
    pub(crate) limit: Option<u64>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Planned {
    /// Ask about this skill
    #[arg(long, value_name = "SKILL_ID")]
    skill: String,
    /// Ask about this class of objects [default: attempts that name none]
    #[arg(long, value_name = "TARGET_CLASS")]
    target: Option<String>,
    /// Ask about this environment [default: attempts that name none]
    #[arg(long, visible_alias = "env")]
    environment: Option<String>,
}

impl Planned {
    pub(crate) fn attempt(&self) -> PlannedAttempt {
        let (target, environment) = (self.target.as_deref(), self.environment.as_deref());
        PlannedAttempt::new(&self.skill, target, environment)
    }
}

/// A parser for the words of a closed vocabulary.
pub(crate) fn words<T: Clone + Send + Sync + 'static>(
    words: impl IntoIterator<Item = &'static str>,
    parse: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    let unknown = "BUG: a word of the vocabulary has no meaning";
    PossibleValuesParser::new(words).try_map(move |word| parse(&word).ok_or(unknown))
}

/// The names that a mistyped one may stand for are at least this similar to it.
const SIMILAR: f64 = 0.8;

/// The name that was probably meant.
pub(crate) fn nearest<'n>(
    typed: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<&'n str> {
    let similarity = |name: &&str| strsim::jaro_winkler(typed, name);
    let best = names.into_iter().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    best.filter(|name| similarity(name) > SIMILAR)
}

/// Parses a whole number of at least 1 into an unsigned type.
pub(crate) fn at_least_one<N>(text: &str) -> Result<N, &'static str>
where
    N: FromStr + PartialEq + Default,
{
    let number = text.parse().ok().filter(|number| *number != N::default());
    number.ok_or("must be a whole number of at least 1")
}

/// Parses a day in UTC.
pub(crate) fn day(text: &str) -> Result<Day, &'static str> {
    read_day(text).ok_or("must be a day from 1970 on, such as 2026-11-18")
}

/// Parses the version of a rule set of this build.
pub(crate) fn rule_set(version: &str) -> Result<Rules, String> {
    let unknown = || format!("this ipse has the rule sets {}", Rules::versions());
    Rules::of_version(version).ok_or_else(unknown)
}

/// Parses a success rate.
pub(crate) fn threshold(text: &str) -> Result<Threshold, &'static str> {
    Threshold::parse(text).ok_or("must be a rate from 0 to 1, such as 0.5")
}

/// Parses a time.
pub(crate) fn time(text: &str) -> Result<Time, String> {
    Time::parse(text).map_err(|error| format!("{error}; give a time such as 2026-05-06T10:00:00Z"))
}

/// Parses a position of the log.
pub(crate) fn position(text: &str) -> Result<u64, &'static str> {
    text.parse().map_err(|_| "must be a position of the log, such as 15; `ipse log` lists them")
}

/// Parses a position, a time or a date.
pub(crate) fn moment(text: &str) -> Result<Moment, MomentError> {
    text.parse()
}

/// Parses a time, or a date as its beginning.
pub(crate) fn since(text: &str) -> Result<Time, String> {
    time_or_date(text, DayEdge::Start)
}

/// Parses a time, or a date as its end.
pub(crate) fn until(text: &str) -> Result<Time, String> {
    time_or_date(text, DayEdge::End)
}

fn time_or_date(text: &str, edge: DayEdge) -> Result<Time, String> {
    let hint = "give a time such as 2026-05-03T10:00:00Z, or a date such as 2026-05-03";
    read_time(text, edge).map_err(|error| format!("{error}; {hint}"))
}
