//! `evaluate`: says what facts would have spared the owner of a log.
//!
//! **Invariants:** no store is opened. A log without a decision is no success: the command exits 1.

use crate::commands::reproduce::logs;
use crate::context::Context;
use crate::output::{Output, OverwriteRule};
use crate::terminal::{Terminal, shown};
use crate::vocabulary::at_least_one;
use crate::{CommandResult, Exit};
use anyhow::{Context as _, bail};
use ipse_core::json::list;
use ipse_reproduce::evaluate::worlds::worlds;
use ipse_reproduce::evaluate::{DecisionLog, Evaluation, History, PROTOCOL, evaluate};
use ipse_reproduce::figures::Figure;
use ipse_reproduce::table::Sheet;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The seeds of the closed-loop worlds, if the user gives no number.
const SEEDS: u64 = 20;
/// The most seeds of the closed-loop worlds: about an hour.
const MAX_SEEDS: u64 = 1000;

/// Say what facts would have spared you, on your own log
///
/// Replays the attempts of a log with planners that try everything, stop after failures in a row
/// (a circuit breaker), or consult facts of v1 or v2. For each it prints the failures avoided and
/// the successes lost. A skipped attempt teaches nothing. Exit 1 if a log has nothing to decide
/// on. See docs/guide/evaluate.md.
///
/// With --worlds it runs planners that choose a value, in made worlds that answer.
///
/// Examples: ipse evaluate week.jsonl; ipse evaluate --history 0 *.jsonl.gz; ipse evaluate
/// --worlds --seeds 5
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Evaluate these logs: JSON Lines, plain or .gz
    #[arg(value_name = "LOG", required_unless_present = "worlds")]
    logs: Vec<PathBuf>,
    /// Let this share of the decisions, in percent, be known before the first one; 0 decides on
    /// the whole log
    #[arg(long, value_name = "PERCENT", default_value = "50", value_parser = history)]
    history: History,
    /// Run the closed-loop worlds
    #[arg(long, conflicts_with_all = ["logs", "history"])]
    worlds: bool,
    /// Run each world with this many seeds [default: 20]
    #[arg(long, value_name = "N", value_parser = seeds, conflicts_with = "logs")]
    seeds: Option<u64>,
    /// Write a plot of each table, as SVG, to this directory
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

fn history(text: &str) -> Result<History, String> {
    let percent = text.parse().ok().and_then(History::percent);
    percent.ok_or_else(|| format!("must be a whole percentage from 0 to {}", History::MAX))
}

fn seeds(text: &str) -> Result<u64, String> {
    let seeds = at_least_one(text).ok().filter(|seeds| *seeds <= MAX_SEEDS);
    seeds.ok_or_else(|| format!("must be a whole number from 1 to {MAX_SEEDS}"))
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    if let Some(directory) = &args.plots {
        let attempt = || format!("could not make {}", shown(directory));
        std::fs::create_dir_all(directory).with_context(attempt)?;
    }
    match args.worlds {
        true => run_worlds(context, terminal, args),
        false => run_logs(context, terminal, args),
    }
}

fn run_logs(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let mut sources = Vec::new();
    for path in &args.logs {
        if path.is_dir() {
            bail!("{} is a directory: give the logs in it by name", shown(path));
        }
        sources.push(logs::read(terminal, path)?);
    }
    logs::tell_apart(&mut sources);
    let mut found: Vec<Evaluation> = Vec::new();
    for source in &sources {
        let bar = terminal.bar("decisions");
        let log = DecisionLog::read(&source.lines, source.too_long);
        found.push(evaluate(&source.name, &log, args.history, &mut |done, of| {
            bar.set_length(of);
            bar.set_position(done);
        }));
        bar.finish_and_clear();
    }
    if context.json {
        terminal.json(&list(found.iter().map(Evaluation::json)))?;
    } else {
        for one in &found {
            show(terminal, &one.sheet())?;
        }
        terminal.prose(0, PROTOCOL)?;
    }
    for one in &found {
        plot(context, terminal, args, &one.sheet().name, || one.figure())?;
    }
    let decided = |one: &Evaluation| one.runs.iter().any(|run| run.counts.decisions > 0);
    Ok(Exit::fine_if(found.iter().all(decided)))
}

fn run_worlds(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let bar = terminal.bar("cells of the table");
    let found = worlds(args.seeds.unwrap_or(SEEDS), &|done, of| {
        bar.set_length(of);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    match context.json {
        true => terminal.json(&found.json())?,
        false => {
            show(terminal, &found.sheet())?;
            show(terminal, &found.recovery())?;
        }
    }
    plot(context, terminal, args, "evaluate-worlds", || found.figure())?;
    Ok(Exit::Fine)
}

fn show(terminal: &mut Terminal<'_>, sheet: &Sheet) -> anyhow::Result<()> {
    terminal.prose(0, &sheet.title)?;
    writeln!(terminal.out)?;
    terminal.table(&sheet.head, &sheet.rows)?;
    if !sheet.note.is_empty() {
        writeln!(terminal.out)?;
        terminal.prose(0, &sheet.note)?;
    }
    Ok(writeln!(terminal.out)?)
}

/// Writes a plot, if plots are wanted.
fn plot(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &Args,
    name: &str,
    figure: impl FnOnce() -> Result<Figure, ipse_reproduce::Error>,
) -> anyhow::Result<()> {
    let Some(directory) = &args.plots else { return Ok(()) };
    let path = directory.join(format!("{name}.svg"));
    let inputs: Vec<&Path> = args.logs.iter().map(PathBuf::as_path).collect();
    let mut output = Output::create(context, &path, &inputs, OverwriteRule::Anything)?;
    let attempt = || format!("could not write {}", shown(&path));
    output.write_all(figure()?.svg.as_bytes()).with_context(attempt)?;
    output.finish()?;
    Ok(writeln!(terminal.err, "plot: {}", shown(&path))?)
}
