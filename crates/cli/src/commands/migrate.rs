//! `migrate`: brings the schema of a store up to date.

use crate::context::Context;
use crate::erasure::note_pending_erase;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use ipse_core::json::Members;
use ipse_store::{Erased, Migrated, Patience, Store};

/// Bring the schema of a store up to date
///
/// Commands that write migrate automatically. Commands that only read reject an older schema and
/// name this command. Events, facts and keys are not changed. An older ipse cannot open the store
/// afterwards: copy the file first if you may want to go back. If the command is interrupted, run
/// it again: it continues. It may rewrite the file once, which needs as much free space.
///
/// Example: ipse --store ipse.db migrate
#[derive(clap::Args, Debug)]
pub(crate) struct Args {}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, _: &Args) -> CommandResult {
    let migrated = Store::migrate(&context.location)?;
    if migrated.is_some() {
        // A migration may leave copies of rows behind; erasing them may rewrite the file.
        let erased = Store::open(&context.location)?.finish_erasing(Patience::Some)?;
        note_pending_erase(terminal, erased != Erased::Gone)?;
    }
    if context.json {
        let number = |version: Option<usize>| version.map_or("null".into(), |it| it.to_string());
        let json = Members::new()
            .raw("from", number(migrated.map(|migrated| migrated.from)))
            .raw("to", number(migrated.map(|migrated| migrated.to)));
        terminal.json(&json.finish())?;
        return Ok(Exit::Fine);
    }
    match migrated {
        Some(Migrated { from, to }) => writeln!(terminal.out, "schema {from} -> {to}")?,
        None => writeln!(terminal.out, "the schema is up to date")?,
    }
    Ok(Exit::Fine)
}
