//! `may-attempt`: asks whether to make an attempt or to skip it.

use crate::context::Context;
use crate::position::note_pending;
use crate::terminal::Terminal;
use crate::vocabulary::{Planned, threshold, time};
use crate::{CommandResult, Exit};
use ipse_core::Time;
use ipse_inspect::AttemptAdvice;
use ipse_plan::{Question, Threshold};

/// Say whether to make an attempt, or to skip it until it is due again
///
/// An attempt is skipped only while the upper bound of its success rate is below the threshold, the
/// last attempt failed, and the time is before `retry_after` of its fact. Without a fact, or if
/// facts of the skill mislead, the answer is to try. It is advice: gates never see it. Exit 0:
/// attempt. 1: skip. See docs/guide/planning.md.
///
/// Example: ipse may-attempt --skill manipulation.grasp --target glass_cup --environment ward3
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    planned: Planned,
    /// Skip only if the success rate is below this, from 0 to 1
    #[arg(long, value_name = "RATE", default_value = "0.5", value_parser = threshold)]
    threshold: Threshold,
    /// Let no source count for more than the median source (needs two sources)
    #[arg(long)]
    quorum: bool,
    /// Ask as of this time instead of now
    #[arg(long, value_name = "TIME", value_parser = time)]
    now: Option<Time>,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    note_pending(terminal, snapshot.view(), &snapshot.view().progress()?)?;
    let question = Question {
        now: args.now.unwrap_or_else(|| context.now()),
        threshold: args.threshold,
        quorum: args.quorum,
    };
    let advice =
        AttemptAdvice::read(snapshot.view(), &identity, &args.planned.attempt(), &question)?;
    match context.json {
        true => terminal.json(&advice.json())?,
        false => terminal.page(&advice.page())?,
    }
    Ok(Exit::fine_if(advice.attempt()))
}
