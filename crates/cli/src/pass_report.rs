//! The message about a pass.

use crate::terminal::counted;
use ipse_engine::PassReport;

/// The number of reasons for skipping in the message, the most frequent first.
const MOST_REASONS: usize = 5;

/// A reason code in words. The codes are those of pass records.
fn in_words(code: &str) -> &str {
    match code {
        "no_outcome" => "no outcome",
        "outcome_not_counted" => "an outcome that is not counted, and no skill",
        "no_skill_or_zone" => "no skill and no zone",
        "no_zone" => "no zone",
        "no_object" => "no object of a target class",
        other => other,
    }
}

/// Describes a pass in a sentence.
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
                reasons.iter().map(move |(code, n)| (*n, format!("{n} {kind}: {}", in_words(code))))
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
