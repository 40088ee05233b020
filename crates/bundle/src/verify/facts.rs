//! The facts, derived again from the events and compared byte for byte.

use super::events::Walked;
use crate::archive::Archive;
use crate::name::Name;
use crate::report::{Report, counted};
use crate::source::Lines;
use ipse_consolidate::RuleSet;
use ipse_core::{Fact, FactKey, FactKind, Seq, json_parse};
use std::io;

/// The longest line of a fact: the rules know no limit, so it is that of a member.
const MAX_LINE: usize = usize::MAX;
/// Nesting of a fact at most.
const DEPTH: usize = 16;

/// A fact as it stands in the bundle.
struct Row {
    number: u64,
    line: Vec<u8>,
    /// Its key, if it can be read.
    key: Option<FactKey>,
}

pub(super) fn check<R: RuleSet>(
    rules: &R,
    archive: &Archive<'_>,
    walked: Walked<R::Tally>,
    checkpoint: Seq,
    report: &mut Report,
) -> io::Result<()> {
    let Some(part) = archive.part(Name::Facts) else { return Ok(()) };
    if walked.forgets.lost(Seq(1)..=checkpoint) {
        report.limit("facts.jsonl", "not derived again: content that facts rest on is gone");
        return Ok(());
    }
    let mut stored = Stored { lines: part.lines(MAX_LINE), next: None };
    stored.step()?;
    let before = report.fails();
    let mut count = 0;
    for (key, group) in walked.groups.into_whole(rules) {
        match group.publish(rules, &key) {
            Ok(None) => {}
            Ok(Some(fact)) => {
                count += 1;
                stored.compare(&fact, report)?;
            }
            Err(limit) => report.fail("facts.jsonl", limit.to_string()),
        }
    }
    while let Some(row) = stored.next.take() {
        extra(&row, report);
        stored.step()?;
    }
    if report.fails() == before {
        let facts = counted(count, "fact");
        let message = format!(
            "{facts} re-derived from the events up to seq {checkpoint}: equal, byte for byte"
        );
        report.pass("facts.jsonl", message);
    }
    Ok(())
}

struct Stored<'a> {
    lines: Lines<'a>,
    next: Option<Row>,
}

impl Stored<'_> {
    fn step(&mut self) -> io::Result<()> {
        let line = self.lines.next()?.map(|line| line.unwrap_or_default().to_vec());
        let number = self.lines.number();
        self.next = line.map(|line| Row { number, key: None, line });
        Ok(())
    }

    /// Compares the next stored facts with one that follows from the log.
    fn compare(&mut self, fact: &Fact, report: &mut Report) -> io::Result<()> {
        let line = fact.snapshot_line();
        while let Some(mut row) = self.next.take() {
            if row.line == line.as_bytes() {
                return self.step();
            }
            row.key = key_of(&row.line);
            match &row.key {
                Some(key) if *key == fact.key => {
                    report.fail(place(&row), "is not what the log gives");
                    return self.step();
                }
                Some(key) if *key > fact.key => {
                    missing(&fact.key, report);
                    self.next = Some(row);
                    return Ok(());
                }
                _ => extra(&row, report),
            }
            self.step()?;
        }
        missing(&fact.key, report);
        Ok(())
    }
}

fn missing(key: &FactKey, report: &mut Report) {
    report.fail("facts.jsonl", format!("the {} fact `{}` is missing", key.kind(), key.text()));
}

fn extra(row: &Row, report: &mut Report) {
    let message = match row.key.clone().or_else(|| key_of(&row.line)) {
        Some(_) => "does not follow from the log",
        None => "is no fact",
    };
    report.fail(place(row), message);
}

fn place(row: &Row) -> String {
    let number = row.number;
    match row.key.clone().or_else(|| key_of(&row.line)) {
        Some(key) => format!("facts.jsonl, line {number}: {} fact `{}`", key.kind(), key.text()),
        None => format!("facts.jsonl, line {number}"),
    }
}

fn key_of(line: &[u8]) -> Option<FactKey> {
    let value = json_parse::parse(line, DEPTH).ok()?;
    let object = value.as_object()?;
    let text = |name: &str| object.get(name)?.as_text();
    let key = text("fact_key")?.to_string();
    Some(FactKey::from_text(FactKind::parse(text("fact_kind")?)?, key))
}
