//! `diff`: how the facts moved between two positions of the log.

use crate::context::Context;
use crate::position::within;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use ipse_core::json::Members;
use ipse_inspect::diff as compare;

/// Show how the facts moved between two positions of the log
///
/// What was added, what is gone, and every figure that moved and how far. Positions are those
/// of `ipse log` and `ipse passes`; 0 is before the first event.
///
/// Example: ipse diff 0 15
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The position to begin from
    #[arg(value_name = "SEQ", allow_negative_numbers = true)]
    from: u64,
    /// The position to compare it with
    #[arg(value_name = "SEQ", allow_negative_numbers = true)]
    to: u64,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let view = snapshot.view();
    let (from, to) = (within(view, args.from)?, within(view, args.to)?);
    let found = compare(view, from, to)?;
    if context.json {
        let json = Members::new().raw("from", from).raw("to", to);
        terminal.json(&found.json(json, &identity).finish())?;
        return Ok(Exit::Fine);
    }
    terminal.page(&found.page())?;
    let (added, gone, changed) = (found.added.len(), found.gone.len(), found.changed.len());
    writeln!(
        terminal.err,
        "from seq {from} to seq {to}: {added} added, {gone} gone, {changed} changed"
    )?;
    Ok(Exit::Fine)
}
