//! `passes`: lists the passes with their events, changed facts and skipped events.

use crate::context::Context;
use crate::terminal::Terminal;
use crate::vocabulary::Newest;
use crate::{CommandResult, Exit};
use ipse_core::Seq;
use ipse_inspect::Look;

/// List the passes with their events, changed facts and skipped events
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    newest: Newest,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let (_, identity) = context.read()?;
    let limit = args.newest.limit.unwrap_or(u64::MAX);
    let mut page = Look::at(context.store()?, identity).passes(Seq(u64::MAX), limit)?;
    if page.passes.is_empty() {
        writeln!(terminal.err, "no passes yet: run `ipse consolidate`")?;
        return Ok(Exit::Found);
    }
    // Oldest first, as in `ipse log`.
    page.passes.reverse();
    match context.json {
        true => page.passes.iter().try_for_each(|pass| terminal.json(&pass.json().finish()))?,
        false => terminal.page(&page.page())?,
    }
    Ok(Exit::Fine)
}
