//! `forget`: forgets events by their refs.

use crate::CommandResult;
use crate::context::Context;
use crate::forgetting::{self, Refused};
use crate::terminal::Terminal;
use anyhow::{Context as _, bail};
use ipse_core::EventRef;
use ipse_engine::Selection;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The longest line that is read for a ref, which has 35 bytes.
const MAX_LINE: u64 = 256;

/// Forget events permanently: facts become as if they had never been in the log
///
/// Content, salt, typed columns and their share of the facts are erased from the store, the
/// write-ahead log and free pages; ref, type, time and salted digest stay, and a forgotten event
/// that is sent again is rejected. The log records a forget event and a pass. On a terminal it asks
/// first.
///
/// A ref that the log does not have changes nothing (exit 1); a ref that is already forgotten is
/// no error. `erase pending` (exit 1): the events are forgotten, but their bytes are still in the
/// files because another process reads the store; the next command that writes erases them.
///
/// Example: ipse forget ev_0b1e5a6f2d3c4b5a69788796a5b4c3d2
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Forget these events
    #[arg(value_name = "EVENT_REF")]
    refs: Vec<String>,
    /// Read more refs from this file, one on each line; - for standard input
    #[arg(long, value_name = "FILE")]
    from_file: Option<PathBuf>,
    /// Show the facts that would change or be removed, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    if args.refs.is_empty() && args.from_file.is_none() {
        bail!("no events: give EVENT_REF…, or --from-file FILE");
    }
    let mut refs = BTreeSet::new();
    for text in &args.refs {
        match EventRef::parse(text) {
            Some(name) => refs.insert(name),
            None => return Refused::no_ref("", text.as_bytes()).tell(context, terminal),
        };
    }
    if let Some(file) = &args.from_file
        && let Err(refused) = read_refs(file, &mut refs)?
    {
        return refused.tell(context, terminal);
    }
    if refs.is_empty() {
        writeln!(terminal.err, "note: the input holds no event ref")?;
    }
    let identity = forgetting::whose(context, terminal, args.dry_run)?;
    let which = Selection::Refs(refs.into_iter().collect());
    forgetting::forget(context, terminal, &[(identity, which)], args.dry_run, args.yes)
}

/// Adds the refs of a file, one on each line.
fn read_refs(file: &Path, refs: &mut BTreeSet<EventRef>) -> anyhow::Result<Result<(), Refused>> {
    let name = file.display();
    let input: Box<dyn Read> = if file == Path::new("-") {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).with_context(|| format!("could not open {name}"))?)
    };
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let read = (&mut input).take(MAX_LINE).read_until(b'\n', &mut line);
        if read.with_context(|| format!("could not read {name}"))? == 0 {
            break;
        }
        let mark = if number == 1 { "\u{feff}".as_bytes() } else { b"" };
        let text = line.strip_prefix(mark).unwrap_or(&line).trim_ascii();
        if text.is_empty() && line.len() < MAX_LINE as usize {
            continue;
        }
        match std::str::from_utf8(text).ok().and_then(EventRef::parse) {
            Some(name) => refs.insert(name),
            None => return Ok(Err(Refused::no_ref(&format!("line {number}: "), text))),
        };
    }
    Ok(Ok(()))
}
