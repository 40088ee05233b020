//! `log`: lists the events of an identity, oldest first.

use crate::context::Context;
use crate::terminal::Terminal;
use crate::vocabulary::Newest;
use crate::{CommandResult, Exit};
use ipse_inspect::{LogRow, Signers};
use std::ops::ControlFlow;

/// List the events, oldest first
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    newest: Newest,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let head = snapshot.view().head()?;
    if head.0 == 0 {
        writeln!(terminal.err, "the log is empty: run `ipse import` or `ipse record`")?;
        return Ok(Exit::Found);
    }
    // Streamed row by row: a log may be larger than memory.
    let width = head.to_string().len().max(3);
    if !context.json {
        writeln!(terminal.out, "{}", LogRow::header(width))?;
    }
    let signers = Signers::of(snapshot.view())?;
    snapshot.view().each_stored(false, args.newest.limit, |stored| -> anyhow::Result<_> {
        let row = LogRow::new(stored, &signers);
        match context.json {
            true => terminal.json(&row.json().finish())?,
            false => writeln!(terminal.out, "{}", row.line(width))?,
        }
        Ok(if terminal.unread.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(Exit::Fine)
}
