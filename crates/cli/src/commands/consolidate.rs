//! `consolidate`: runs a pass over the events that are not folded yet.

use crate::context::Context;
use crate::pass_report::pass_words;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use ipse_engine::{Trigger, consolidated_json};

/// Run a pass: fold new events into the facts
#[derive(clap::Args, Debug)]
pub(crate) struct Args;

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, _: &Args) -> CommandResult {
    let mut log = context.write(terminal)?;
    let report = log.consolidate(Trigger::Manual)?;
    if context.json {
        let checkpoint = match &report {
            Some(report) => report.committed.last_seq,
            None => {
                let (reader, identity) = context.read()?;
                reader.view(&identity)?.view().progress()?.checkpoint
            }
        };
        terminal.json(&consolidated_json(report.as_ref(), checkpoint))?;
    } else {
        writeln!(terminal.out, "{}", pass_words(report.as_ref()))?;
    }
    Ok(Exit::fine_if(context.tell_head(terminal, &mut log)?))
}
