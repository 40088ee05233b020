//! `rebuild`: computes all facts from the log and compares them with the stored ones.
//!
//! **Invariant:** nothing is repaired.

use crate::context::Context;
use crate::cpu_time::cpu_micros;
use crate::position::note_pending;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use ipse_core::decimal::quotient;
use ipse_core::json::Members;
use ipse_engine::rebuild as rebuild_facts;

/// Recompute all facts from the log and compare them; repair nothing
///
/// Reads the typed columns that are stored with each event, sums them again and computes every
/// fact up to the checkpoint. Exit 1 if a single byte differs from the stored facts.
#[derive(clap::Args, Debug)]
pub(crate) struct Args;

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, _: &Args) -> CommandResult {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let view = snapshot.view();
    let progress = view.progress()?;
    let checkpoint = progress.checkpoint;
    note_pending(terminal, view, &progress)?;
    let before = cpu_micros();
    let rebuilt = rebuild_facts(view, checkpoint)?;
    let cpu_ms = quotient(cpu_micros() - before, 1000, 3);
    let stored = view.facts()?;
    let equal = rebuilt.equals(&stored);
    let (events, facts) = (rebuilt.events, rebuilt.facts.len());
    if context.json {
        let json = Members::new()
            .raw("events", events)
            .raw("facts", facts)
            .raw("equal", equal)
            .raw("cpu_ms", cpu_ms)
            .finish();
        terminal.json(&json)?;
    } else {
        let verdict = if equal { "equal, byte for byte" } else { "NOT equal to the stored facts" };
        writeln!(terminal.out, "{facts} facts from {events} events in {cpu_ms} ms CPU: {verdict}")?;
    }
    if !equal {
        for key in rebuilt.differences(&stored).into_iter().take(5) {
            writeln!(terminal.err, "differs: {} {}", key.kind(), ipse_door::printable(key.text()))?;
        }
        writeln!(
            terminal.err,
            "hint: the stored facts do not follow from the log; nothing was repaired. \
             Copy the file before any other step"
        )?;
    }
    Ok(Exit::fine_if(equal))
}
