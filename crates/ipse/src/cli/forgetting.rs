//! `forget` and `prune`: events leave for good, by name or by age.
//!
//! **Invariants:** a ref that is no ref, or that the log does not have, changes nothing; on a
//! terminal nothing is forgotten before a person has said yes.

use super::Exit;
use super::args::{ForgetArgs, PruneArgs};
use super::config::{RETENTION, retention};
use super::context::Context;
use super::looking::{diff_members, tell_diff};
use super::terminal::{Terminal, counted};
use anyhow::{Context as _, bail};
use ipse_core::json::Members;
use ipse_core::{EventRef, Time};
use ipse_engine::{Error, Forgotten, Preview, Which};
use ipse_store::sqlite::Reader;
use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::path::Path;

pub(crate) fn forget(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &ForgetArgs,
) -> anyhow::Result<Exit> {
    let mut given: Vec<(String, String)> =
        args.refs.iter().map(|text| (String::new(), text.clone())).collect();
    if let Some(file) = &args.from_file {
        given.extend(lines(file)?);
    }
    let mut refs = Vec::with_capacity(given.len());
    for (place, text) in given {
        let Some(name) = EventRef::parse(&text) else {
            let text = ipse_door::printable(&text);
            writeln!(
                terminal.err,
                "{place}`{text}` is no event ref; nothing was changed\n\
                 hint: ev_ and 32 digits, as `ipse log` and `ipse explain` show them"
            )?;
            return Ok(Exit::Found);
        };
        refs.push(name);
    }
    if refs.is_empty() {
        writeln!(terminal.err, "note: there was no event ref in the input")?;
        return Ok(Exit::Fine);
    }
    run(context, terminal, &Which::Refs(refs), args.dry_run, args.yes)
}

/// The refs of a file, one a line, each with the place it stands at.
fn lines(file: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let name = file.display();
    let input: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).with_context(|| format!("could not open {name}"))?)
    };
    let mut refs = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(input).lines()) {
        let line = line.with_context(|| format!("could not read {name}"))?;
        if !line.trim().is_empty() {
            refs.push((format!("line {number}: "), line.trim().to_string()));
        }
    }
    Ok(refs)
}

pub(crate) fn prune(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &PruneArgs,
) -> anyhow::Result<Exit> {
    let which = match (&args.range.before, args.range.keep) {
        (Some(time), _) => Which::Before(*time),
        (_, Some(kept)) => Which::AllBut(kept),
        _ => Which::Before(end_of_retention(context)?),
    };
    if let Which::Before(time) = which {
        writeln!(terminal.err, "note: what happened before {time}")?;
    }
    run(context, terminal, &which, args.dry_run, args.yes)
}

/// The time before which events are too old to keep.
fn end_of_retention(context: &Context) -> anyhow::Result<Time> {
    let Some(kept) = retention(&Reader::open(&context.store)?)? else {
        bail!("no {RETENTION} is set; set one, such as: ipse config {RETENTION} 180d");
    };
    let end = Time::from_micros(context.now().micros().saturating_sub(kept.micros()).max(0));
    end.context("the retention reaches beyond 1970")
}

/// Forgets, or shows what that would do; asks first, if a person is there.
fn run(
    context: &Context,
    terminal: &mut Terminal<'_>,
    which: &Which,
    dry_run: bool,
    yes: bool,
) -> anyhow::Result<Exit> {
    let mut log = context.write()?;
    let asks = !yes && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let preview = if dry_run || asks { log.preview(which).map(Some) } else { Ok(None) };
    let done = match preview {
        Ok(Some(preview)) if dry_run => return tell_preview(context, terminal, &preview),
        Ok(Some(preview)) if preview.events > 0 && !says_yes(terminal, &preview)? => {
            writeln!(terminal.err, "nothing was changed")?;
            return Ok(Exit::Found);
        }
        Ok(_) => log.forget(which),
        Err(error) => Err(error),
    };
    match done {
        Ok(done) => tell(context, terminal, &done),
        Err(error @ (Error::UnknownEvent(_) | Error::NeverForgotten(..))) => {
            writeln!(terminal.err, "{error}; nothing was changed")?;
            Ok(Exit::Found)
        }
        Err(error) => Err(error.into()),
    }
}

fn says_yes(terminal: &mut Terminal<'_>, preview: &Preview) -> anyhow::Result<bool> {
    let Preview { events, facts } = preview;
    let (events, gone) = (counted(*events, "event"), counted(facts.gone.len() as u64, "fact"));
    let changed = counted(facts.changed.len() as u64, "fact");
    write!(
        terminal.err,
        "Forget {events} for good? {changed} will change, {gone} will go, and nothing brings them \
         back. [y/N] "
    )?;
    terminal.err.flush()?;
    let mut answer = String::new();
    if std::io::stdin().read_line(&mut answer)? == 0 {
        writeln!(terminal.err)?;
    }
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn tell(context: &Context, terminal: &mut Terminal<'_>, done: &Forgotten) -> anyhow::Result<Exit> {
    let rows_touched = done.pass.as_ref().map_or(0, |pass| pass.committed.rows_touched);
    if context.json {
        let json = Members::new()
            .raw("forgotten", done.events)
            .raw("rows_touched", rows_touched)
            .raw("erase_pending", done.erase_pending);
        terminal.json(&json.finish())?;
    } else if let Some(pass) = &done.pass {
        let (events, gone) = (counted(done.events, "event"), pass.gone.len() as u64);
        let changed = counted(rows_touched - gone, "fact");
        let gone = counted(gone, "fact");
        writeln!(terminal.out, "forgot {events}; {changed} changed, {gone} gone")?;
    } else {
        writeln!(terminal.out, "nothing to forget")?;
    }
    if done.already > 0 {
        let already = counted(done.already, "event");
        writeln!(terminal.err, "note: {already} had been forgotten before")?;
    }
    if done.erase_pending {
        writeln!(
            terminal.err,
            "erase pending: somebody is reading the store, or the disk is full, so old bytes may \
             still be in its files\nhint: the next command that writes erases them; or run this \
             one again once the reader has gone"
        )?;
    }
    Ok(Exit::fine_if(!done.erase_pending))
}

fn tell_preview(
    context: &Context,
    terminal: &mut Terminal<'_>,
    preview: &Preview,
) -> anyhow::Result<Exit> {
    let Preview { events, facts } = preview;
    if context.json {
        let (_, identity) = context.read()?;
        let json = Members::new().raw("would_forget", events);
        terminal.json(&diff_members(json, &identity, facts).finish())?;
        return Ok(Exit::Fine);
    }
    tell_diff(terminal, facts)?;
    let (events, gone) = (counted(*events, "event"), counted(facts.gone.len() as u64, "fact"));
    let changed = counted(facts.changed.len() as u64, "fact");
    let words = "nothing was changed";
    writeln!(terminal.err, "would forget {events}: {changed} change, {gone} gone; {words}")?;
    Ok(Exit::Fine)
}
