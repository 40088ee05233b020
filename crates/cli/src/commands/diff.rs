//! `diff`: shows how the facts changed between two positions of the log.

use crate::context::Context;
use crate::position::within;
use crate::terminal::Terminal;
use crate::vocabulary::position;
use crate::{CommandResult, Exit};
use ipse_core::json::Members;
use ipse_inspect::diff as compare;

/// Show how the facts changed between two positions of the log
///
/// Lists added and removed facts, and every figure that changed with its difference. Positions
/// are those of `ipse log` and `ipse passes`; 0 is before the first event.
///
/// Example: ipse diff 0 15
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Start from this position
    #[arg(value_name = "FROM", allow_negative_numbers = true,
          value_parser = position)]
    from: u64,
    /// Compare with this position
    #[arg(value_name = "TO", allow_negative_numbers = true,
          value_parser = position)]
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
