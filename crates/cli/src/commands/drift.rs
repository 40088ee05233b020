//! `drift`: asks whether success rates have changed, for operators.

use crate::context::Context;
use crate::position::note_pending;
use crate::terminal::Terminal;
use crate::vocabulary::day;
use crate::{CommandResult, Exit};
use ipse_consolidate::days::Day;
use ipse_inspect::{DriftSeries, drift, drift_page};

/// Show whether the success rates of the last week have left those of the weeks before
///
/// Compares the last 7 days with the 56 days before, over all success rates of skills. A day of a
/// fact counts for at most 4 attempts, so that a storm of retries is not taken for drift. The last
/// day is the newest day with an attempt: no clock is read. Exit 1 on drift.
///
/// With --series it prints one row for each fact and one digit for each week: the tenths of the
/// success rate.
///
/// Examples: ipse drift; ipse drift --day 2026-11-01; ipse drift --series
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Report as of this day instead of the newest
    #[arg(long, value_name = "YYYY-MM-DD", value_parser = day, conflicts_with = "series")]
    day: Option<Day>,
    /// Print the weeks of each fact
    #[arg(long)]
    series: bool,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    note_pending(terminal, snapshot.view(), &snapshot.view().progress()?)?;
    if args.series {
        let series = DriftSeries::read(snapshot.view(), &identity)?;
        match context.json {
            true => terminal.json(&series.json())?,
            false => terminal.page(&series.page())?,
        }
        return Ok(Exit::Fine);
    }
    let report = drift(snapshot.view(), &identity, args.day)?;
    match context.json {
        true => terminal.json(&report.json())?,
        false => terminal.page(&drift_page(&report))?,
    }
    Ok(Exit::fine_if(!report.drift))
}
