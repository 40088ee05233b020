//! `reproduce`: the paper's experiments, each figure beside the paper's.
//!
//! **Invariants:** experiments live in scratch stores, and the store of the command line is not
//! touched; a directory that cannot be written to is refused before anything runs.

use super::Exit;
use super::context::Context;
use super::instruments::Machine;
use super::lines::{Line, Lines};
use super::output::{Output, shown};
use super::reproduce_args::{ReproduceArgs, What};
use super::terminal::Terminal;
use anyhow::{Context as _, bail};
use indicatif::ProgressBar;
use ipse::SystemHost;
use ipse_engine::Host;
use ipse_reproduce::errata::{ERRATA, Erratum};
use ipse_reproduce::lab::Lab;
use ipse_reproduce::real::{PROTOCOL, Source};
use ipse_reproduce::report;
use ipse_reproduce::results::{Results, Verdicts};
use ipse_reproduce::table::Verdict;
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
    let mut logs = args.files.iter().map(|file| read(file)).collect::<Result<Vec<_>, _>>()?;
    tell_apart(&mut logs);
    if let Some(out) = &args.out {
        prepare(out)?;
    }
    let directory = tempfile::tempdir().context("could not make a temporary directory")?;
    let host = || Box::new(SystemHost::new()) as Box<dyn Host>;
    let lab = Lab { directory: directory.path(), host: &host };
    let mut bar = Bar { terminal, what: String::new(), bar: ProgressBar::hidden() };
    let mut progress = |what: &str, done, of| bar.show(what, done, of);
    let results = Results::of(&lab, &plan, &logs, &Machine::new(), &mut progress)?;
    bar.bar.finish_and_clear();
    if context.json {
        terminal.json(&results.json_with_timings())?;
    } else {
        show(terminal, &results, args.experiment == What::All)?;
    }
    if let Some(out) = &args.out {
        write(context, &results, out, &args.files)?;
        writeln!(terminal.err, "report: {}", shown(&out.join(report::PAGE)))?;
    } else if !context.json {
        writeln!(terminal.err, "--out DIR writes this as a report, with figures")?;
    }
    Ok(Exit::fine_if(results.verdicts().different == 0))
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

/// Reads a log whole: lines are admitted and counted by the experiment.
fn read(path: &Path) -> anyhow::Result<Source> {
    let name = shown(path);
    let attempt = || format!("could not read {name}");
    let file = File::open(path).with_context(attempt)?;
    let mut source = Source { name: stem(path), lines: Vec::new(), too_long: 0 };
    for (number, line) in (1_u64..).zip(Lines::new(file).with_context(attempt)?) {
        match line {
            Line::Whole(line) => source.lines.push(line),
            Line::TooLong(_) => source.too_long += 1,
            Line::Broken(error) => {
                return Err(error).with_context(|| format!("could not read {name}, line {number}"));
            }
        }
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

fn prepare(out: &Path) -> anyhow::Result<()> {
    if out.exists() && !out.is_dir() {
        bail!("could not write {}: it is not a directory", shown(out));
    }
    std::fs::create_dir_all(out).with_context(|| format!("could not make {}", shown(out)))?;
    // A file that goes at once: whoever waits for results must not lose them.
    let probe = tempfile::tempfile_in(out);
    probe.map(drop).with_context(|| format!("could not write to {}", shown(out)))
}

fn write(context: &Context, results: &Results, out: &Path, logs: &[PathBuf]) -> anyhow::Result<()> {
    let logs: Vec<&Path> = logs.iter().map(PathBuf::as_path).collect();
    for file in report::files(results)? {
        let mut output = Output::create(context, &out.join(&file.name), &logs)?;
        output.write_all(&file.bytes).with_context(|| format!("could not write {}", file.name))?;
        output.finish()?;
    }
    Ok(())
}

fn show(terminal: &mut Terminal<'_>, results: &Results, whole: bool) -> anyhow::Result<()> {
    for sheet in results.sheets() {
        writeln!(terminal.out, "{}\n", sheet.title)?;
        terminal.table(&sheet.head, &sheet.rows)?;
        if !sheet.note.is_empty() {
            writeln!(terminal.out, "\n{}", sheet.note)?;
        }
        writeln!(terminal.out)?;
    }
    if !results.real.is_empty() {
        writeln!(terminal.out, "{PROTOCOL}\n")?;
    }
    show_errata(terminal, results, whole)?;
    if !results.tables().is_empty() {
        writeln!(terminal.out, "{}", summary(results.verdicts()))?;
    }
    Ok(())
}

/// Why the paper is not followed where it is not: in what was shown, or in everything.
fn show_errata(terminal: &mut Terminal<'_>, results: &Results, whole: bool) -> anyhow::Result<()> {
    let tables = results.tables();
    let met: BTreeSet<u8> = tables
        .iter()
        .flat_map(|table| &table.rows)
        .filter_map(|row| match row.verdict {
            Verdict::Erratum(number) => Some(number),
            _ => None,
        })
        .collect();
    let shown = ERRATA.iter().filter(|erratum| whole || met.contains(&erratum.number));
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() {
        return Ok(());
    }
    let row = |erratum: &&Erratum| {
        vec![erratum.number.to_string(), format!("{}: {}", erratum.title, erratum.reason)]
    };
    terminal.table(&["", "errata of the paper"], &shown.iter().map(row).collect::<Vec<_>>())?;
    writeln!(terminal.out)?;
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
