//! Commands that only read: `facts`, `snapshot`, `log`, `passes`, `rebuild`.

use super::Exit;
use super::args::{FactsArgs, Format};
use super::context::Context;
use super::looking::within;
use super::terminal::Terminal;
use anyhow::Context as _;
use ipse::{Consulted, Filter};
use ipse_consolidate::{RuleSet, V1, snapshot as snapshot_bytes};
use ipse_core::decimal::quotient;
use ipse_core::json::{Members, Object, Value};
use ipse_core::{Seq, Time, json_parse};
use ipse_engine::answer::{self, clean, counted, rule_version, written};
use ipse_engine::grounding::{body, escaped_controls, grounding, two_decimals};
use ipse_engine::{Signers, as_of, chosen_as_of, rebuild as rebuild_facts};
use ipse_store::sqlite::View;
use ipse_store::{Progress, Stored};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

pub(crate) fn facts(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: FactsArgs,
) -> anyhow::Result<Exit> {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let (format, position) = (args.format, args.as_of);
    let (view, filter) = (snapshot.view(), filter(args));
    let progress = progress_at(terminal, view, position)?;
    let facts = match position {
        None => filter.choose(view.facts()?)?,
        Some(_) => chosen_as_of(view, &V1, progress.checkpoint, &filter, None)?.facts,
    };
    match format {
        Format::Json => {
            let version = rule_version(&progress.rule_version);
            let answer = answer::facts(&identity, progress.checkpoint, version, &facts);
            terminal.json(&answer.finish())?;
        }
        Format::Grounding => {
            let text = grounding(&identity, rule_version(&progress.rule_version), &facts);
            terminal.out.write_all(text.as_bytes())?;
        }
        Format::Table => facts_table(terminal, &facts)?,
    }
    if facts.is_empty() {
        let why = if position == Some(0) {
            "before the first event nothing is known"
        } else if progress.checkpoint.0 == 0 {
            "no facts yet: import events, or run `ipse consolidate`"
        } else {
            "no fact matches"
        };
        writeln!(terminal.err, "{why}")?;
    }
    Ok(Exit::fine_if(!facts.is_empty()))
}

/// How far the stored facts have come, or those of an earlier position.
fn progress_at(
    terminal: &mut Terminal<'_>,
    view: View<'_>,
    position: Option<u64>,
) -> anyhow::Result<Progress> {
    let mut progress = view.progress()?;
    let Some(seq) = position else {
        note_pending(terminal, view.head()?, &progress)?;
        return Ok(progress);
    };
    progress.checkpoint = within(view, seq)?;
    progress.rule_version = V1.version().to_string();
    let recorded = match view.pass_before(progress.checkpoint)? {
        Some(pass) => format!("the last pass recorded by then ended at seq {}", pass.last),
        None => "no pass was recorded by then".to_string(),
    };
    writeln!(terminal.err, "note: what the log up to seq {seq} gives; {recorded}")?;
    Ok(progress)
}

/// Says so if events are past the checkpoint. Right after a pass only its own record is.
fn note_pending(terminal: &mut Terminal<'_>, head: Seq, progress: &Progress) -> anyhow::Result<()> {
    let folded = progress.checkpoint.0 + u64::from(progress.checkpoint.0 > 0);
    if head.0 > folded {
        let events = counted(head.0 - folded, "event");
        writeln!(terminal.err, "note: {events} not folded yet: `ipse consolidate` does it")?;
    }
    Ok(())
}

fn filter(args: FactsArgs) -> Filter {
    Filter {
        skill: args.skill,
        target: args.target,
        environment: args.env,
        zone: args.zone,
        kind: args.kind,
        limit: args.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
    }
}

fn facts_table(terminal: &mut Terminal<'_>, facts: &[Arc<Consulted>]) -> anyhow::Result<()> {
    let row = |fact: &Arc<Consulted>| {
        vec![
            two_decimals(fact.confidence),
            fact.n_observations.to_string(),
            fact.fact.key.kind().to_string(),
            clean(fact.fact.key.text()),
            clean(&body(fact)),
        ]
    };
    let rows: Vec<_> = facts.iter().map(row).collect();
    if !rows.is_empty() {
        terminal.table(&["CONF", "N", "KIND", "KEY", "SAYS"], &rows)?;
    }
    Ok(())
}

pub(crate) fn snapshot(
    context: &Context,
    terminal: &mut Terminal<'_>,
    position: Option<u64>,
) -> anyhow::Result<Exit> {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let view = snapshot.view();
    let progress = progress_at(terminal, view, position)?;
    let facts = match position {
        None => view.facts()?,
        Some(_) => as_of(view, &V1, progress.checkpoint)?.facts,
    };
    terminal.out.write_all(snapshot_bytes(&facts).as_bytes())?;
    Ok(Exit::Fine)
}

pub(crate) fn log(
    context: &Context,
    terminal: &mut Terminal<'_>,
    limit: Option<u64>,
) -> anyhow::Result<Exit> {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let head = snapshot.view().head()?;
    if head.0 == 0 {
        writeln!(terminal.err, "the log is empty: `ipse import` or `ipse record` fills it")?;
        return Ok(Exit::Found);
    }
    // Streamed row by row: a log may be larger than memory.
    let width = head.to_string().len().max(3);
    if !context.json {
        writeln!(terminal.out, "{:>width$} {:<35} {:<20} TYPE", "SEQ", "EVENT", "TIME")?;
    }
    let signers = Signers::of(snapshot.view())?;
    snapshot.view().each_stored(false, limit, |stored| -> anyhow::Result<_> {
        let names = signers.names(stored.seq);
        if context.json {
            terminal.json(&answer::event(&stored, &names).finish())?;
        } else {
            let gone = if stored.is_forgotten() { " (forgotten)" } else { "" };
            let signed = signed_words(&names);
            let Stored { seq, time, event_type, event_ref, .. } = stored;
            let (seq, time) = (seq.to_string(), to_seconds(time));
            let said = format!("{}{gone}{signed}", clean(&event_type));
            writeln!(terminal.out, "{seq:>width$} {event_ref} {time:<20} {said}")?;
        }
        Ok(if terminal.unread.get() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(Exit::Fine)
}

/// A time for people, cut to the second; programs get the rest.
pub(crate) fn to_seconds(time: Time) -> String {
    let text = time.to_string();
    text.split_once('.').map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// Who signed an event, if anybody did.
fn signed_words(names: &BTreeSet<&str>) -> String {
    let names: Vec<String> = names.iter().map(|name| clean(name)).collect();
    if names.is_empty() { String::new() } else { format!(" (signed by {})", names.join(", ")) }
}

pub(crate) fn passes(
    context: &Context,
    terminal: &mut Terminal<'_>,
    limit: Option<u64>,
) -> anyhow::Result<Exit> {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let mut rows = Vec::new();
    snapshot.view().each_stored(true, limit, |stored| -> anyhow::Result<_> {
        let value = json_parse::parse(stored.canonical.as_bytes(), ipse_door::MAX_DEPTH).ok();
        let data = value.as_ref().and_then(|value| value.as_object()?.get("data")?.as_object());
        let data =
            data.with_context(|| format!("the pass record at seq {} is damaged", stored.seq))?;
        if context.json {
            terminal.json(&answer::pass(&stored, data).finish())?;
        }
        rows.push(pass_row(&stored, data));
        Ok(ControlFlow::Continue(()))
    })?;
    if !rows.is_empty() && !context.json {
        let header = ["SEQ", "TIME", "RANGE", "EVENTS", "FACTS", "TRIGGER", "FED NO FACT"];
        terminal.table(&header, &rows)?;
    }
    if rows.is_empty() {
        writeln!(terminal.err, "no passes yet: `ipse consolidate` runs one")?;
    }
    Ok(Exit::fine_if(!rows.is_empty()))
}

fn pass_row(stored: &Stored, data: &Object<'_>) -> Vec<String> {
    let figure = |name: &str| match data.get(name) {
        Some(Value::Text(text)) => text.to_string(),
        Some(value) => written(value),
        None => String::new(),
    };
    let skipped = match data.get("skipped").and_then(Value::as_object) {
        Some(types) if !types.is_empty() => {
            let count = |(name, reasons): (&str, &Value<'_>)| {
                let reasons = reasons.as_object()?.iter();
                let words = reasons.map(|(code, n)| format!("{} {name}: {code}", written(n)));
                Some(words.collect::<Vec<_>>().join(", "))
            };
            types.iter().filter_map(count).collect::<Vec<_>>().join(", ")
        }
        _ => String::from("-"),
    };
    vec![
        stored.seq.to_string(),
        to_seconds(stored.time),
        format!("{}..{}", figure("first_seq"), figure("last_seq")),
        figure("events_processed"),
        figure("rows_touched"),
        figure("trigger"),
        escaped_controls(&skipped),
    ]
}

pub(crate) fn rebuild(context: &Context, terminal: &mut Terminal<'_>) -> anyhow::Result<Exit> {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let view = snapshot.view();
    let progress = view.progress()?;
    let checkpoint = progress.checkpoint;
    note_pending(terminal, view.head()?, &progress)?;
    let before = cpu_micros();
    let rebuilt = rebuild_facts(view, &V1, checkpoint)?;
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
             Keep a copy of the file before anything else"
        )?;
    }
    Ok(Exit::fine_if(equal))
}

/// CPU time of this process so far.
pub(crate) fn cpu_micros() -> i128 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    i128::from(time.tv_sec) * 1_000_000 + i128::from(time.tv_nsec) / 1000
}
