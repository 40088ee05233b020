//! Pass records and the rows that list them: ranges without gap or overlap.

use super::Report;
use super::ground::{Record, Walked};
use crate::Error;
use ipse_consolidate::RuleSet;
use ipse_core::json::{Object, Value};
use ipse_core::{EventRef, Seq, hex, json_parse, sha256};
use ipse_door::MAX_DEPTH;
use ipse_store::sqlite::{RawPass, View};

/// Compares passes and records; says whether the newest pass is what its record says, so that the
/// facts can be compared.
pub(super) fn check<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    walked: &Walked<'_, R>,
    report: &mut Report,
) -> Result<bool, Error> {
    let before_passes = report.findings.len();
    let rows = view.raw_passes()?;
    rows_and_records(&rows, &walked.records, report);
    let mut before = Before::Nothing;
    for record in &walked.records {
        let place = format!("pass record at seq {}", record.seq);
        let Some(covered) = Covered::read(record) else {
            report.critical(place, "cannot be read");
            before = Before::Unreadable;
            continue;
        };
        for wrong in covered.contradictions(&before, walked) {
            report.error(place.clone(), wrong);
        }
        if let Ok(place) = rows.binary_search_by_key(&record.seq, |row| row.seq) {
            covered.compare(&rows[place], report);
        }
        before = Before::Pass(covered);
    }
    for (row, next) in rows.iter().zip(rows.iter().skip(1)) {
        if next.tallied < row.tallied && next.rule_set == row.rule_set && next.first != Seq(1) {
            report.error(
                format!("pass at seq {}", next.seq),
                "its tallies reach less far than before",
            );
        }
    }
    if let Some(row) = rows.last() {
        if row.tallied > row.last || row.last >= row.seq {
            report.error(format!("pass at seq {}", row.seq), "reaches beyond its own range");
        }
        if row.rule_set != sha256(&[rules.descriptor().as_bytes()]) {
            let (theirs, ours) = (&row.rule_version, rules.version());
            let note =
                format!("the facts follow other rules ({theirs}) than this program's {ours}");
            report.notes.push(note);
        }
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
    Ok(!doubted)
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

/// What stands before a pass record.
enum Before {
    Nothing,
    Pass(Covered),
    Unreadable,
}

/// What a pass record says that it covered.
struct Covered {
    seq: Seq,
    first: Seq,
    last: Seq,
    processed: u64,
    skipped: u64,
    /// Events before the record, housekeeping aside.
    counted: u64,
    first_name: Option<EventRef>,
    last_name: Option<EventRef>,
    rule_version: String,
    rule_set: String,
}

impl Covered {
    fn read(record: &Record) -> Option<Self> {
        let value = json_parse::parse(record.canonical.as_bytes(), MAX_DEPTH).ok()?;
        let data = value.as_object()?.get("data")?.as_object()?;
        let count = |name: &str| data.get(name).and_then(Value::as_count);
        let text = |data: &Object<'_>, name: &str| data.get(name)?.as_text().map(str::to_string);
        let name = |member: &str| text(data, member).and_then(|text| EventRef::parse(&text));
        Some(Covered {
            seq: record.seq,
            first: Seq(count("first_seq")?),
            last: Seq(count("last_seq")?),
            processed: count("events_processed")?,
            skipped: count("events_skipped")?,
            counted: record.counted,
            first_name: name("first_processed_event_id"),
            last_name: name("last_processed_event_id"),
            rule_version: text(data, "rule_version")?,
            rule_set: text(data, "rule_set_sha256")?,
        })
    }

    /// What does not fit the pass before it, or the log.
    fn contradictions<R: RuleSet>(
        &self,
        before: &Before,
        walked: &Walked<'_, R>,
    ) -> Vec<&'static str> {
        // What was forgotten by then it did not count.
        let missed = walked.forgets.missed(self.first..=self.last, self.seq);
        let (joined, counted) = match before {
            // A new rule set, or derived state that was made again, begins from the start.
            _ if self.first == Seq(1) => (true, self.counted),
            Before::Pass(before) => {
                (self.first == before.last.next(), self.counted - before.counted)
            }
            Before::Unreadable => (true, self.processed + missed),
            Before::Nothing => (false, self.processed + missed),
        };
        let name_at = |seq: Seq| walked.names.get((seq.0 as usize).wrapping_sub(1)).copied();
        let rules = [
            (!joined, "its range leaves a gap or overlaps the one before it"),
            (self.last.next() != self.seq, "its range does not end right before it"),
            (
                self.processed + missed != counted,
                "counts another number of events than its range holds",
            ),
            (self.skipped > self.processed, "counts more events as skipped than there were"),
            (
                self.first_name != name_at(self.first) || self.last_name != name_at(self.last),
                "names other events than those that its range begins and ends with",
            ),
        ];
        rules.into_iter().filter(|(wrong, _)| *wrong).map(|(_, message)| message).collect()
    }

    fn compare(&self, row: &RawPass, report: &mut Report) {
        let same = (row.first, row.last) == (self.first, self.last)
            && row.rule_version == self.rule_version
            && hex::encode(&row.rule_set) == self.rule_set;
        if !same {
            report.error(format!("pass at seq {}", row.seq), "differs from its record in the log");
        }
    }
}
