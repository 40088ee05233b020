//! The summary of an import: counts, hints about members that feed no fact, and the pass.

use super::{Args, MAX_PRINTED};
use crate::context::Context;
use crate::pass_report::pass_words;
use crate::terminal::{Terminal, counted};
use ipse::{Refusal, Rule};
use ipse_engine::TYPE_HINT;
use ipse_exchange::{Imported, ImportedFiles, MAX_LISTED};

/// Prints the summary.
pub(super) fn print(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &Args,
    all: &ImportedFiles,
    refused: u64,
) -> anyhow::Result<()> {
    if refused > MAX_PRINTED {
        let more = refused - MAX_PRINTED;
        writeln!(terminal.err, "… and {more} more such lines (--json lists {MAX_LISTED})")?;
    }
    notes(terminal, args, all)?;
    hints(terminal, all)?;
    if context.json {
        return Ok(terminal.json(&all.json())?);
    }
    let several = all.files.len() > 1;
    for (file, done) in all.files.iter().filter(|_| several) {
        writeln!(terminal.out, "{file}: {}", counts(|count| count(done), all.dry_run))?;
    }
    let label = if several { format!("{} files: ", all.files.len()) } else { String::new() };
    let total = counts(|count| all.total(count), all.dry_run);
    let signed = match args.signed {
        true => format!(", {} signed", all.total(|done| done.signed)),
        false => String::new(),
    };
    writeln!(terminal.out, "{label}{total}{signed}")?;
    match (all.dry_run, args.no_consolidate) {
        (true, _) => writeln!(terminal.out, "dry run: nothing was stored")?,
        (_, false) => writeln!(terminal.out, "{}", pass_words(all.pass.as_ref()))?,
        _ => {}
    }
    Ok(())
}

/// `3 appended, 0 duplicates, 1 conflict, 0 refused`
fn counts(total: impl Fn(fn(&Imported) -> u64) -> u64, dry_run: bool) -> String {
    let verb = if dry_run { "to append" } else { "appended" };
    let duplicates = counted(total(|done| done.duplicates), "duplicate");
    let conflicts = counted(total(|done| done.conflicts), "conflict");
    let (appended, refused) = (total(|done| done.appended), total(|done| done.refused));
    format!("{appended} {verb}, {duplicates}, {conflicts}, {refused} refused")
}

/// Notes about signatures and inputs without events.
fn notes(terminal: &mut Terminal<'_>, args: &Args, all: &ImportedFiles) -> anyhow::Result<()> {
    let envelope = |refusal: &Refusal| refusal.rule == Rule::WrongSignature;
    if !args.signed && all.listed().any(|(_, _, refusal)| envelope(refusal)) {
        writeln!(terminal.err, "hint: the file has signatures; --signed verifies and stores them")?;
    }
    let stored = all.total(|done| done.appended + done.duplicates);
    let unsigned = stored.saturating_sub(all.total(|done| done.signed));
    if args.signed && unsigned > 0 {
        writeln!(
            terminal.err,
            "note: {} without a valid signature. Signing the same events again gives them new \
             salts, so earlier signatures do not match",
            counted(unsigned, "event")
        )?;
    }
    let several = all.files.len() > 1;
    for (file, done) in &all.files {
        if done.appended + done.duplicates + done.conflicts + done.refused == 0 {
            let input = if several { file.as_str() } else { "the input" };
            writeln!(terminal.err, "note: {input} holds no event")?;
        }
    }
    Ok(())
}

/// Hints about stored events that feed less than they should.
fn hints(terminal: &mut Terminal<'_>, all: &ImportedFiles) -> anyhow::Result<()> {
    let (misnamed, several) = (all.total(|done| done.misnamed), all.files.len() > 1);
    if misnamed > 0 {
        let events = counted(misnamed, "event");
        let (err, hint) = (&mut terminal.err, TYPE_HINT);
        writeln!(err, "hint: {events} of a type that ends in .execution_result: {hint}")?;
    }
    for (unused, it) in all.unused() {
        let (events, lines) = (counted(it.count, "event"), it.places.text());
        let line = if it.places.count == 1 { "line" } else { "lines" };
        let place = match several {
            true => format!("first in {}, {line} {lines}", it.file),
            false => format!("{line} {lines}"),
        };
        writeln!(terminal.err, "hint: {unused} ({events}: {place})")?;
    }
    let omitted = all.total(|done| done.unused.omitted);
    if omitted > 0 {
        let more = counted(omitted, "other member");
        writeln!(terminal.err, "hint: {more} feed no fact either")?;
    }
    Ok(())
}
