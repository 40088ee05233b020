//! `reproduce`: the paper's experiments, each figure beside the paper's.
//!
//! **Invariants:** experiments live in scratch stores, and the store of the command line is not
//! touched; a directory that cannot be written to is refused before anything runs.

use super::Exit;
use super::context::Context;
use super::instruments::Machine;
use super::lines::{Line, Lines};
use super::output::{self, Output, shown};
use super::reproduce_args::ReproduceArgs;
use super::scratch::Scratch;
use super::terminal::Terminal;
use anyhow::{Context as _, bail};
use indicatif::ProgressBar;
use ipse::{SystemHost, files};
use ipse_door::{MAX_EVENT_BYTES, Origin, admit};
use ipse_engine::Host;
use ipse_reproduce::errata::Erratum;
use ipse_reproduce::lab::Lab;
use ipse_reproduce::real::{PROTOCOL, Source};
use ipse_reproduce::report;
use ipse_reproduce::results::{Results, Verdicts};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn run(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &ReproduceArgs,
) -> anyhow::Result<Exit> {
    let plan = args.plan()?;
    let mut logs = Vec::new();
    for file in &args.files {
        logs.push(read(terminal, file)?);
    }
    tell_apart(&mut logs);
    let inputs: Vec<&Path> = args.files.iter().map(PathBuf::as_path).collect();
    if let Some(out) = &args.out {
        prepare(context, out, &inputs)?;
    }
    let directory = Scratch::new()?;
    let at = || format!("an experiment failed in {} (TMPDIR moves it)", shown(directory.path()));
    let host = || Box::new(SystemHost::new()) as Box<dyn Host>;
    let lab = Lab { directory: directory.path(), host: &host };
    let mut bar = Bar { terminal, what: String::new(), bar: ProgressBar::hidden() };
    let mut progress = |what: &str, done, of| bar.show(what, done, of);
    let results =
        Results::of(&lab, &plan, &logs, &Machine::new(), &mut progress).with_context(at)?;
    bar.bar.finish_and_clear();
    if context.json {
        terminal.json(&results.json_with_timings())?;
    } else {
        show(terminal, &results)?;
    }
    if let Some(out) = &args.out {
        write(context, &results, out, &inputs)?;
        writeln!(terminal.err, "report: {}", shown(&out.join(report::PAGE)))?;
    } else if !context.json {
        writeln!(terminal.err, "--out DIR writes this as a report")?;
    }
    Ok(exit(&results))
}

/// A figure that differs is a finding; a log on which nothing could be decided is nothing found.
fn exit(results: &Results) -> Exit {
    let answered = results.real.iter().all(|real| real.later.decisions > 0);
    Exit::fine_if(results.verdicts().different == 0 && answered)
}

/// One bar at a time.
struct Bar<'b, 't> {
    terminal: &'b Terminal<'t>,
    what: String,
    bar: ProgressBar,
}

impl Bar<'_, '_> {
    fn show(&mut self, what: &str, done: u64, of: u64) {
        if self.what != what {
            self.bar.finish_and_clear();
            self.what = what.to_owned();
            self.bar = self.terminal.bar(&format!("steps of {what}"));
        }
        self.bar.set_length(of);
        self.bar.set_position(done);
    }
}

/// Refused lines of a log that are told.
const TOLD: usize = 5;

/// Reads a log whole. Lines are admitted and counted by the experiment; which ones the door
/// refuses, and why, is told here.
fn read(terminal: &mut Terminal<'_>, path: &Path) -> anyhow::Result<Source> {
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
    for (number, refusal) in refusals.iter().take(TOLD) {
        writeln!(terminal.err, "{name}, line {number}: {refusal}")?;
    }
    if let more @ 1.. = refusals.len().saturating_sub(TOLD) {
        writeln!(terminal.err, "{name}: {more} more lines refused")?;
    }
    Ok(source)
}

/// The name of a log: its file's, without what follows the first dot.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or("log");
    ipse_door::printable(stem)
}

/// Numbers logs whose table would have the name of one before them.
fn tell_apart(logs: &mut [Source]) {
    let mut met = BTreeSet::new();
    for log in logs {
        let name = log.name.clone();
        for times in 2_u64.. {
            // There are file systems on which capitals tell no files apart.
            if met.insert(log.table_name().to_ascii_lowercase()) {
                break;
            }
            log.name = format!("{name} {times}");
        }
    }
}

fn prepare(context: &Context, out: &Path, inputs: &[&Path]) -> anyhow::Result<()> {
    if out.exists() && !out.is_dir() {
        bail!("could not write {}: it is not a directory", shown(out));
    }
    std::fs::create_dir_all(out).with_context(|| format!("could not make {}", shown(out)))?;
    let there = names(out)?;
    if let Some(other) = there.iter().find(|name| !is_ours(name)) {
        let (out, other) = (shown(out), shown(Path::new(other)));
        bail!("{out} holds {other}, which is no part of a report: name another directory");
    }
    // An earlier report is removed, and this one is written: neither may hit a file that is needed.
    for name in there.iter().map(String::as_str).chain([report::PAGE]) {
        output::check_free(context, &out.join(name), inputs)?;
    }
    // A file that goes at once: whoever waits for results must not lose them.
    let probe = tempfile::tempfile_in(out);
    probe.map(drop).with_context(|| format!("could not write to {}", shown(out)))
}

/// Whether a file is of an earlier report, or was left unfinished by one that was killed.
fn is_ours(name: &str) -> bool {
    report::belongs(name) || name.starts_with(files::UNFINISHED)
}

/// What is in a directory.
fn names(directory: &Path) -> anyhow::Result<Vec<String>> {
    let attempt = || format!("could not look into {}", shown(directory));
    let entries = std::fs::read_dir(directory).with_context(attempt)?;
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| entry.map(name).with_context(attempt)).collect()
}

fn write(context: &Context, results: &Results, out: &Path, inputs: &[&Path]) -> anyhow::Result<()> {
    let files = report::files(results)?;
    // An earlier report goes, so that what is there belongs together.
    for name in names(out)?.iter().filter(|name| is_ours(name)) {
        let old = out.join(name);
        std::fs::remove_file(&old).with_context(|| format!("could not remove {}", shown(&old)))?;
    }
    for file in files {
        let mut output = Output::create(context, &out.join(&file.name), inputs)?;
        output.write_all(&file.bytes).with_context(|| format!("could not write {}", file.name))?;
        output.finish()?;
    }
    Ok(())
}

fn show(terminal: &mut Terminal<'_>, results: &Results) -> anyhow::Result<()> {
    for sheet in results.sheets() {
        writeln!(terminal.out, "{}\n", sheet.title)?;
        terminal.table(&sheet.head, &sheet.rows)?;
        if !sheet.note.is_empty() {
            writeln!(terminal.out)?;
            terminal.prose(0, &sheet.note)?;
        }
        writeln!(terminal.out)?;
    }
    if !results.real.is_empty() {
        terminal.prose(0, PROTOCOL)?;
        writeln!(terminal.out)?;
    }
    show_errata(terminal, results)?;
    if !results.tables().is_empty() {
        writeln!(terminal.out, "{}", summary(results.verdicts()))?;
    }
    Ok(())
}

/// Why the paper is not followed where it is not.
fn show_errata(terminal: &mut Terminal<'_>, results: &Results) -> anyhow::Result<()> {
    let row = |erratum: &Erratum| {
        vec![erratum.number.to_string(), format!("{}: {}", erratum.title, erratum.reason)]
    };
    let rows: Vec<_> = results.errata().into_iter().map(row).collect();
    if !rows.is_empty() {
        terminal.table(&["", "errata of the paper"], &rows)?;
        writeln!(terminal.out)?;
    }
    Ok(())
}

fn summary(verdicts: Verdicts) -> String {
    let Verdicts { equal, different, errata, measured } = verdicts;
    let mut parts =
        vec![format!("{equal} figures equal as printed"), format!("{different} differ")];
    if errata > 0 {
        parts.push(format!("{errata} cells are errata"));
    }
    if measured > 0 {
        parts.push(format!("{measured} measured"));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipse_reproduce::v1::V1;

    #[test]
    fn one_figure_that_differs_is_a_finding() {
        let v1 = |n: u64| V1 {
            facts: 1,
            kind: "skill_success_rate".to_owned(),
            n,
            successes: 800,
            rate: "0.8".to_owned(),
            evidence: 1000,
            idempotent: true,
            order_free: true,
        };
        let results = |n: u64| Results { v1: Some(v1(n)), ..Results::default() };
        assert_eq!(exit(&results(1000)), Exit::Fine);
        assert_eq!(exit(&results(999)), Exit::Found);
        assert_eq!(summary(results(999).verdicts()), "7 figures equal as printed, 1 differ");
        let all = Verdicts { equal: 1, different: 0, errata: 2, measured: 3 };
        let words = "1 figures equal as printed, 0 differ, 2 cells are errata, 3 measured";
        assert_eq!(summary(all), words);
    }
}
