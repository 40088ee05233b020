//! `snapshot`: prints the canonical bytes of all facts.
//!
//! **Invariant:** the same events give the same bytes, in any order and on any machine.

use crate::context::Context;
use crate::position::progress_at;
use crate::terminal::Terminal;
use crate::vocabulary::moment;
use crate::{CommandResult, Exit};
use ipse_consolidate::snapshot as snapshot_bytes;
use ipse_engine::as_of;
use ipse_inspect::Moment;

/// Print the canonical bytes of all facts
///
/// The same events give the same bytes, in any order, on any machine. Example: ipse snapshot |
/// sha256sum
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print the facts that follow from the log up to this position, time or date
    #[arg(long, value_name = "WHEN", allow_negative_numbers = true, value_parser = moment)]
    as_of: Option<Moment>,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let view = snapshot.view();
    let (progress, _) = progress_at(terminal, view, args.as_of)?;
    let facts = match args.as_of {
        None => view.facts()?,
        Some(_) => as_of(view, progress.checkpoint)?.facts,
    };
    terminal.out.write_all(snapshot_bytes(&facts).as_bytes())?;
    Ok(Exit::Fine)
}
