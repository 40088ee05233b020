//! `forget` and `prune`: events leave for good, by name or by age.
//!
//! **Invariants:** a ref that is no ref, or that the log does not have, changes nothing; whoever is
//! asked on a terminal agrees to certain events, and those and no others are forgotten.

use super::Exit;
use super::args::{ForgetArgs, PruneArgs};
use super::asking;
use super::config::{RETENTION, retention};
use super::context::{Context, STILL_THERE};
use super::looking::{diff_members, tell_diff};
use super::terminal::{Terminal, counted};
use anyhow::{Context as _, bail};
use ipse_consolidate::V1;
use ipse_core::json::Members;
use ipse_core::{EventRef, Identity, Time};
use ipse_engine::{Error, Preview, Which, preview};
use ipse_store::sqlite::Reader;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// The longest line that is looked at for a ref, which has 35 bytes.
const MAX_LINE: u64 = 256;

/// Why nothing was forgotten.
struct Refused {
    name: String,
    reason: &'static str,
    message: String,
}

impl Refused {
    fn no_ref(place: &str, text: &[u8]) -> Self {
        let name = ipse_door::printable(&String::from_utf8_lossy(text));
        let message = format!(
            "{place}`{name}` is no event ref; nothing was changed\n\
             hint: ev_ and 32 lower-case hex digits, as `ipse log` shows them"
        );
        Refused { name, reason: "not_a_ref", message }
    }

    fn by_log(error: &Error) -> Option<Self> {
        let (name, reason) = match error {
            Error::UnknownEvent(name) => (name, "unknown"),
            Error::NeverForgotten(name, _) => (name, "never_forgotten"),
            _ => return None,
        };
        let message = format!("{error}; nothing was changed");
        Some(Refused { name: name.to_string(), reason, message })
    }

    fn tell(&self, context: &Context, terminal: &mut Terminal<'_>) -> anyhow::Result<Exit> {
        if context.json {
            let refused =
                Members::new().text("event_ref", &self.name).text("reason", self.reason).finish();
            let json = Members::new().raw("forgotten", 0).raw("refused", refused);
            terminal.json(&json.raw("rows_touched", 0).finish())?;
        }
        writeln!(terminal.err, "{}", self.message)?;
        Ok(Exit::Found)
    }
}

pub(crate) fn forget(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &ForgetArgs,
) -> anyhow::Result<Exit> {
    if args.refs.is_empty() && args.from_file.is_none() {
        bail!("which events? give EVENT_REF…, or --from-file FILE");
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
        writeln!(terminal.err, "note: there was no event ref in the input")?;
    }
    let identity = whose(context, args.dry_run)?;
    let which = Which::Refs(refs.into_iter().collect());
    run(context, terminal, &[identity], &which, args.dry_run, args.yes)
}

/// Whose log is meant. To look, a store is not even brought up to date.
fn whose(context: &Context, dry_run: bool) -> anyhow::Result<Identity> {
    let (_, identity) = if dry_run { context.read()? } else { context.read_or_migrate()? };
    Ok(identity)
}

/// Adds the refs of a file, one a line.
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
    // The retention is the store's, so it goes for all of its identities.
    let identities = match args.range.retention {
        true => context.identities()?,
        false => vec![whose(context, args.dry_run)?],
    };
    run(context, terminal, &identities, &which, args.dry_run, args.yes)
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
    identities: &[Identity],
    which: &Which,
    dry_run: bool,
    yes: bool,
) -> anyhow::Result<Exit> {
    let asks = !yes && asking::is_seen();
    let (mut agreed, mut sum, mut all_signed) = (Vec::new(), Done::default(), true);
    if dry_run || asks {
        match previews(context, identities, which) {
            Ok(seen) if dry_run => return tell_previews(context, terminal, &seen),
            Ok(seen) if !says_yes(terminal, &seen)? => {
                writeln!(terminal.err, "nothing was changed")?;
                return Ok(Exit::Found);
            }
            // What comes in meanwhile was not agreed to.
            Ok(seen) => {
                sum.already = seen.iter().map(|(_, seen)| seen.already).sum();
                agreed.extend(seen.into_iter().map(|(_, seen)| Which::Refs(seen.events)));
            }
            Err(error) => return told_as_refused(context, terminal, error),
        }
    }
    for (place, identity) in identities.iter().enumerate() {
        let mut log = context.write_as(terminal, *identity)?;
        match log.forget(agreed.get(place).unwrap_or(which)) {
            Ok(done) => sum.add(&done),
            Err(error) => return told_as_refused(context, terminal, error.into()),
        }
        all_signed &= context.tell_head(terminal, &mut log)?;
    }
    let told = sum.tell(context, terminal)?;
    Ok(if all_signed { told } else { Exit::Found })
}

fn told_as_refused(
    context: &Context,
    terminal: &mut Terminal<'_>,
    error: anyhow::Error,
) -> anyhow::Result<Exit> {
    match error.downcast_ref::<Error>().and_then(Refused::by_log) {
        Some(refused) => refused.tell(context, terminal),
        None => Err(error),
    }
}

/// What forgetting would do, for each identity; reads only.
fn previews(
    context: &Context,
    identities: &[Identity],
    which: &Which,
) -> anyhow::Result<Vec<(Identity, Preview)>> {
    let reader = Reader::open(&context.store)?;
    let seen = |identity: &Identity| {
        let snapshot = reader.view(identity)?;
        Ok((*identity, preview(snapshot.view(), &V1, which)?))
    };
    identities.iter().map(seen).collect()
}

/// `forget 2 events, change 3 facts and remove 1`.
fn in_words(seen: &[(Identity, Preview)]) -> String {
    let sum = |count: fn(&Preview) -> usize| {
        seen.iter().map(|(_, preview)| count(preview) as u64).sum::<u64>()
    };
    let events = counted(sum(|preview| preview.events.len()), "event");
    let changed = sum(|preview| preview.facts.changed.len() + preview.facts.added.len());
    let gone = sum(|preview| preview.facts.gone.len());
    format!("forget {events}, change {} and remove {gone}", counted(changed, "fact"))
}

/// Asks, if there is anything to ask about.
fn says_yes(terminal: &mut Terminal<'_>, seen: &[(Identity, Preview)]) -> anyhow::Result<bool> {
    if seen.iter().all(|(_, preview)| preview.events.is_empty()) {
        return Ok(true);
    }
    asking::agrees(terminal, &format!("This will {} for good.", in_words(seen)))
}

fn tell_previews(
    context: &Context,
    terminal: &mut Terminal<'_>,
    seen: &[(Identity, Preview)],
) -> anyhow::Result<Exit> {
    for (identity, preview) in seen {
        if context.json {
            let json = Members::new().raw("would_forget", preview.events.len());
            let json = match seen {
                [_] => json,
                _ => json.text("identity_hash", &identity.to_string()),
            };
            terminal.json(&diff_members(json, identity, &preview.facts).finish())?;
        } else {
            if seen.len() > 1 {
                writeln!(terminal.out, "identity {identity}")?;
            }
            tell_diff(terminal, &preview.facts)?;
        }
    }
    writeln!(terminal.err, "would {}; nothing was changed", in_words(seen))?;
    Ok(Exit::Fine)
}

/// What was done, over all identities.
#[derive(Default)]
struct Done {
    events: u64,
    already: u64,
    rows_touched: u64,
    gone: u64,
    erase_pending: bool,
}

impl Done {
    fn add(&mut self, done: &ipse_engine::Forgotten) {
        self.events += done.events;
        self.already += done.already;
        self.rows_touched += done.pass.as_ref().map_or(0, |pass| pass.committed.rows_touched);
        self.gone += done.pass.as_ref().map_or(0, |pass| pass.gone.len() as u64);
        self.erase_pending |= done.erase_pending;
    }

    fn tell(&self, context: &Context, terminal: &mut Terminal<'_>) -> anyhow::Result<Exit> {
        if context.json {
            let json = Members::new()
                .raw("forgotten", self.events)
                .raw("rows_touched", self.rows_touched)
                .raw("erase_pending", self.erase_pending);
            terminal.json(&json.finish())?;
        } else if self.events > 0 {
            let (events, gone) = (counted(self.events, "event"), counted(self.gone, "fact"));
            let changed = counted(self.rows_touched - self.gone, "fact");
            writeln!(terminal.out, "forgot {events}; {changed} changed, {gone} gone")?;
        } else {
            writeln!(terminal.out, "nothing to forget")?;
        }
        if self.already > 0 {
            let already = counted(self.already, "event");
            writeln!(terminal.err, "note: {already} had been forgotten before")?;
        }
        if self.erase_pending {
            writeln!(
                terminal.err,
                "erase pending: forgotten bytes are still in the store's files: {STILL_THERE}\n\
                 hint: the next command that writes erases them, once nobody is in the way"
            )?;
        }
        Ok(Exit::fine_if(!self.erase_pending))
    }
}
