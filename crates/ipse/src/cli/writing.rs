//! `consolidate`, and how a pass is told.

use super::Exit;
use super::context::Context;
use super::terminal::{Terminal, counted};
use ipse_core::json::Members;
use ipse_engine::{PassReport, Trigger};

pub(crate) fn consolidate(context: &Context, terminal: &mut Terminal<'_>) -> anyhow::Result<Exit> {
    let mut log = context.write(terminal)?;
    let report = log.consolidate(Trigger::Manual)?;
    if context.json {
        let checkpoint = match &report {
            Some(report) => report.committed.last_seq,
            None => {
                let (reader, identity) = context.read()?;
                reader.view(&identity)?.view().progress()?.checkpoint
            }
        };
        terminal.json(&pass_json(report.as_ref()).raw("checkpoint", checkpoint).finish())?;
    } else {
        writeln!(terminal.out, "{}", pass_words(report.as_ref()))?;
    }
    Ok(Exit::fine_if(context.tell_head(terminal, &mut log)?))
}

/// The figures of a pass; zeros and nulls if there was nothing new.
pub(crate) fn pass_json(report: Option<&PassReport>) -> Members {
    let null = || "null".to_string();
    let figure = |read: fn(&PassReport) -> u64| report.map_or(0, read);
    Members::new()
        .raw("events_processed", figure(|report| report.events_processed))
        .raw("events_skipped", figure(|report| report.events_skipped))
        .raw("rows_touched", figure(|report| report.committed.rows_touched))
        .raw("first_seq", report.map_or_else(null, |r| r.committed.first_seq.to_string()))
        .raw("last_seq", report.map_or_else(null, |r| r.committed.last_seq.to_string()))
}

/// Reasons for skipping that are told, the most frequent ones.
const MOST_REASONS: usize = 5;

/// A pass in a sentence.
pub(crate) fn pass_words(report: Option<&PassReport>) -> String {
    let Some(report) = report else { return "nothing new".to_string() };
    let committed = &report.committed;
    let (first, last) = (committed.first_seq, committed.last_seq);
    let events = counted(report.events_processed, "event");
    let facts = counted(committed.rows_touched, "fact");
    let mut words = format!("one pass over {events} (seq {first}..{last}) touched {facts}");
    if report.events_skipped > 0 {
        let mut reasons: Vec<(u64, String)> = report
            .skipped
            .iter()
            .flat_map(|(kind, reasons)| {
                let kind = ipse_door::printable(kind);
                reasons.iter().map(move |(code, n)| (*n, format!("{n} {kind}: {code}")))
            })
            .collect();
        reasons.sort_by_key(|(n, _)| std::cmp::Reverse(*n));
        let more = if reasons.len() > MOST_REASONS { ", …" } else { "" };
        let reasons: Vec<String> =
            reasons.into_iter().take(MOST_REASONS).map(|(_, words)| words).collect();
        let skipped = counted(report.events_skipped, "event");
        words.push_str(&format!("; {skipped} fed no fact ({}{more})", reasons.join(", ")));
    }
    words
}
