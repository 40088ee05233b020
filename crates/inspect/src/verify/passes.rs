//! Pass records and the rows that list them: ranges without gap or overlap.

use super::Report;
use super::ground::{Record, Walked};
use crate::Error;
use ipse_consolidate::RuleSet;
use ipse_core::{Seq, hex, sha256};
use ipse_ledger::account::{Before, Claimed};
use ipse_store::sqlite::{RawPass, View};

/// Compares passes and records. Returns the reason why facts cannot be compared, if the newest pass
/// differs from its record or follows other rules.
pub(super) fn check<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    walked: &Walked<'_, R>,
    report: &mut Report,
) -> Result<Option<&'static str>, Error> {
    let before_passes = report.findings.len();
    let rows = view.raw_passes()?;
    rows_and_records(&rows, &walked.records, report);
    let mut before = Before::Nothing;
    for record in &walked.records {
        let place = format!("pass record at seq {}", record.seq);
        let payload = record.canonical.as_bytes();
        let Some(claimed) = Claimed::read(record.seq, payload, record.counted) else {
            report.critical(place, "cannot be read");
            before = Before::Unreadable;
            continue;
        };
        for wrong in claimed.contradictions(&before, &walked.names, &walked.forgets) {
            report.error(place.clone(), wrong);
        }
        if let Ok(place) = rows.binary_search_by_key(&record.seq, |row| row.seq) {
            compare(&claimed, &rows[place], report);
        }
        before = Before::Pass(claimed);
    }
    for (row, next) in rows.iter().zip(rows.iter().skip(1)) {
        if next.tallied < row.tallied && next.rule_set == row.rule_set && next.first != Seq(1) {
            report.error(
                format!("pass at seq {}", next.seq),
                "its tallies reach less far than before",
            );
        }
    }
    let beyond = |row: &&RawPass| row.tallied > row.last || row.last >= row.seq;
    if let Some(row) = rows.last().filter(beyond) {
        report.error(format!("pass at seq {}", row.seq), "reaches beyond its own range");
    }
    let newest = |seq: Option<Seq>| seq.map(|seq| format!("at seq {seq}"));
    let last_row = newest(rows.last().map(|row| row.seq));
    let last_record = newest(walked.records.last().map(|record| record.seq));
    let doubted = report.findings[before_passes..].iter().any(|finding| {
        let about = |place: &Option<String>| {
            place.as_ref().is_some_and(|place| finding.place.ends_with(place.as_str()))
        };
        about(&last_row) || about(&last_record)
    });
    if doubted {
        return Ok(Some("the newest pass is in doubt"));
    }
    let Some(row) = rows.last().filter(|row| !follows(row, rules)) else { return Ok(None) };
    let version = ipse_door::printable(&row.rule_version);
    let message = format!("follows rule set `{version}`, which this ipse does not have");
    report.error_of_rules(format!("pass at seq {}", row.seq), message);
    Ok(Some("their rules are unknown"))
}

/// Whether a pass followed these rules.
fn follows<R: RuleSet>(row: &RawPass, rules: &R) -> bool {
    row.rule_version == rules.version() && row.rule_set == sha256(&[rules.descriptor().as_bytes()])
}

fn rows_and_records(rows: &[RawPass], records: &[Record], report: &mut Report) {
    // Both are in the order of the log.
    let recorded = |seq: Seq| records.binary_search_by_key(&seq, |record| record.seq).is_ok();
    let listed = |seq: Seq| rows.binary_search_by_key(&seq, |row| row.seq).is_ok();
    for row in rows.iter().filter(|row| !recorded(row.seq)) {
        report.error(format!("pass at seq {}", row.seq), "there is no such record in the log");
    }
    // Rows were deleted and the log was folded anew, if the oldest row covers it from the start.
    let since = rows.first().filter(|row| row.first == Seq(1)).map_or(Seq(0), |row| row.seq);
    for record in records.iter().filter(|record| record.seq >= since) {
        if !listed(record.seq) {
            report.error(format!("pass record at seq {}", record.seq), "is not listed as a pass");
        }
    }
}

fn compare(claimed: &Claimed, row: &RawPass, report: &mut Report) {
    let same = (row.first, row.last) == (claimed.first, claimed.last)
        && row.rule_version == claimed.rule_version
        && hex::encode(&row.rule_set) == claimed.rule_set;
    if !same {
        report.error(format!("pass at seq {}", row.seq), "differs from its record in the log");
    }
}
