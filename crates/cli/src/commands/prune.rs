//! `prune`: forgets events by their age or their number.

use crate::CommandResult;
use crate::context::Context;
use crate::forgetting;
use crate::hints::shell_word;
use crate::retention::{RETENTION, retention};
use crate::terminal::Terminal;
use anyhow::{Context as _, bail};
use ipse_core::Time;
use ipse_engine::Selection;

/// Forget old events: all before a time, or all but the newest
///
/// Works as `ipse forget` on every event and intent in the range; pass records, forget events
/// and confirmations stay. --before selects by the time of an event, --keep by its position in
/// the log.
///
/// Example: ipse prune --before 2026-05-01 --dry-run
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    range: Range,
    /// Show the facts that would change or be removed, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
struct Range {
    /// Forget all events before this time: RFC 3339, or a date, which means midnight UTC
    #[arg(long, value_name = "TIME", value_parser = time_or_date)]
    before: Option<Time>,
    /// Forget all but the newest N events, not counting housekeeping; intents are included
    #[arg(long, value_name = "N")]
    keep: Option<u64>,
    /// Forget all events older than the retention of their identity (`ipse config retention`), in
    /// every identity that has one or in the one of --identity
    #[arg(long)]
    retention: bool,
}

fn time_or_date(text: &str) -> Result<Time, &'static str> {
    Time::parse(text).or_else(|_| Time::parse(&format!("{text}T00:00:00Z"))).map_err(
        |_| "expected RFC 3339, such as 2026-05-06T10:00:00Z, or a date, in the years 1970 to 9999",
    )
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let which = match (&args.range.before, args.range.keep) {
        (Some(time), _) => Selection::Before(*time),
        (_, Some(kept)) => Selection::AllBut(kept),
        _ => return too_old(context, terminal, args),
    };
    if let Selection::Before(time) = which {
        writeln!(terminal.err, "note: events before {time}")?;
    }
    let identity = forgetting::whose(context, terminal, args.dry_run)?;
    forgetting::forget(context, terminal, &[(identity, which)], args.dry_run, args.yes)
}

/// Forgets the events of each identity that are older than its retention.
fn too_old(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    if !args.dry_run {
        context.store_to_write(terminal)?;
    }
    let mut chosen = Vec::new();
    let identities = context.identities()?;
    for &identity in &identities {
        let Some(kept) = retention(&context.store()?.reader()?, &identity)? else { continue };
        let end = Time::from_micros(context.now().micros().saturating_sub(kept.micros()).max(0));
        let end = end.context("the retention reaches beyond 1970")?;
        writeln!(terminal.err, "note: events before {end}, of {identity}")?;
        chosen.push((identity, Selection::Before(end)));
    }
    if chosen.is_empty() {
        let store = shell_word(&context.location.to_string());
        let first = identities.first().map(ToString::to_string).unwrap_or_default();
        bail!(
            "no {RETENTION} is set; set one, such as: ipse --store {store} --identity {first:.8} \
             config {RETENTION} 180d"
        );
    }
    forgetting::forget(context, terminal, &chosen, args.dry_run, args.yes)
}
