//! `diff`: shows how the facts changed between two positions or times of the log.

use crate::context::Context;
use crate::position::within;
use crate::terminal::Terminal;
use crate::vocabulary::moment;
use crate::{CommandResult, Exit};
use ipse_core::json::Members;
use ipse_inspect::{Moment, diff as compare};

/// Show how the facts changed between two positions or times of the log
///
/// Lists added and removed facts, and every figure that changed with its difference. Positions
/// are those of `ipse log` and `ipse passes`; 0 is before the first event. A time is the last
/// position that ipse recorded by then, and a date is the end of that day in UTC.
///
/// Example: ipse diff 0 15; ipse diff 2026-05-02 2026-05-03
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Start from this position, time or date
    #[arg(value_name = "FROM", allow_negative_numbers = true, value_parser = moment)]
    from: Moment,
    /// Compare with this position, time or date
    #[arg(value_name = "TO", allow_negative_numbers = true, value_parser = moment)]
    to: Moment,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let view = snapshot.view();
    let (begin, end) = (within(terminal, view, args.from)?, within(terminal, view, args.to)?);
    let (from, to) = (begin.seq, end.seq);
    let found = compare(view, from, to)?;
    if context.json {
        let json = Members::new().raw("from", from).raw("to", to);
        let json = json.optional("from_as_of", begin.json()).optional("to_as_of", end.json());
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
