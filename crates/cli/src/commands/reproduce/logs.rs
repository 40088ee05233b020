//! The real logs of `evaluate` and `reproduce real`: read completely, with distinct names.

use crate::terminal::{Terminal, shown};
use anyhow::Context as _;
use ipse_door::{MAX_EVENT_BYTES, Origin, admit};
use ipse_exchange::{Line, Lines};
use ipse_reproduce::evaluate::Source;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

/// The number of rejected lines of a log that are printed.
const REPORTED: usize = 5;

/// Reads a log completely, and prints the lines that the door rejects. The experiment admits and
/// counts the lines itself.
pub(crate) fn read(terminal: &mut Terminal<'_>, path: &Path) -> anyhow::Result<Source> {
    let name = shown(path);
    let attempt = || format!("could not read {name}");
    let file = File::open(path).with_context(attempt)?;
    let mut source = Source { name: stem(path), lines: Vec::new(), too_long: 0 };
    let mut refusals = Vec::new();
    for (number, line) in (1_u64..).zip(Lines::new(file).with_context(attempt)?) {
        match line {
            Line::Whole(line) => {
                let refused = admit(&line, Origin::Producer, || [0; 16]).err();
                let refused = refused.filter(|_| !line.trim_ascii().is_empty());
                refusals.extend(refused.map(|refusal| (number, refusal.to_string())));
                source.lines.push(line);
            }
            Line::TooLong(bytes) => {
                refusals.push((number, format!("{bytes} bytes; at most {MAX_EVENT_BYTES}")));
                source.too_long += 1;
            }
            Line::Broken(error) => {
                return Err(error).with_context(|| format!("could not read {name}, line {number}"));
            }
        }
    }
    for (number, refusal) in refusals.iter().take(REPORTED) {
        writeln!(terminal.err, "{name}, line {number}: {refusal}")?;
    }
    if let more @ 1.. = refusals.len().saturating_sub(REPORTED) {
        writeln!(terminal.err, "{name}: {more} more lines refused")?;
    }
    Ok(source)
}

/// The name of a log: its file name up to the first dot.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or("log");
    ipse_door::printable(stem)
}

/// Numbers logs whose table would have the name of an earlier one.
pub(crate) fn tell_apart(logs: &mut [Source]) {
    let mut met = BTreeSet::new();
    for log in logs {
        let name = log.name.clone();
        for times in 2_u64.. {
            // Some file systems ignore the case of names.
            if met.insert(log.table_name().to_ascii_lowercase()) {
                break;
            }
            log.name = format!("{name} {times}");
        }
    }
}
