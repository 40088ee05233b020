//! `reproduce`: runs the paper's experiments and compares each figure with the paper's.
//!
//! **Invariants:** experiments use temporary stores; the store of the command line is not opened. A
//! directory that is not writable is rejected before any experiment runs.

mod directory;
pub(crate) mod logs;
mod plan;

use crate::context::Context;
use crate::experiments::Machine;
use crate::scratch::Scratch;
use crate::terminal::{Terminal, shown};
use crate::{CommandResult, Exit};
use anyhow::Context as _;
use indicatif::ProgressBar;
use ipse::SystemHost;
use ipse_engine::Host;
use ipse_reproduce::errata::Erratum;
use ipse_reproduce::evaluate::PROTOCOL;
use ipse_reproduce::lab::Lab;
use ipse_reproduce::report;
use ipse_reproduce::results::{Results, Verdicts};
use std::path::{Path, PathBuf};

/// Run the paper's experiments and compare each figure with the paper's
///
/// Uses real stores in a temporary directory; the store of the command line is not opened. Exit 1
/// if a figure differs that should be equal. Errata of the paper are listed with their reasons
/// and never asserted.
///
/// Examples: ipse reproduce v3; ipse reproduce v3 --threshold 0.4 --decisions 500; ipse reproduce
/// --out report; ipse reproduce real week.jsonl
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Run this experiment
    #[arg(value_enum, default_value = "all", hide_default_value = true)]
    experiment: Selection,

    /// Evaluate these logs, with `real` or `all`: JSON Lines, plain or .gz
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Use these seeds in V3 and the sweeps, as in Python's random.Random; the paper's ten if
    /// absent
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',',
          allow_negative_numbers = true, value_parser = plan::a_seed)]
    seed: Vec<i128>,

    /// Set how the planner of V3 weighs facts; all in turn if absent
    #[arg(long, value_enum, value_name = "HOW")]
    confidence_weighting: Option<Weighting>,

    /// Attempt a skill in V3 if the planner's confidence in it is at least this, from 0 to 1; the
    /// paper's 0.5 if absent
    #[arg(long, value_name = "RATE", value_parser = plan::a_share)]
    threshold: Option<f64>,

    /// Shrink towards this rate in the calibrated control of V3, from 0 to 1; the paper's 0.5 if
    /// absent
    #[arg(long, value_name = "RATE", value_parser = plan::a_share)]
    prior_mean: Option<f64>,

    /// Give that rate the weight of this many attempts; the paper's 10 if absent
    #[arg(long, value_name = "N", value_parser = plan::a_weight)]
    prior_weight: Option<f64>,

    /// Make this many decisions with each seed and control of V3; the paper's 1000 if absent
    #[arg(long, value_name = "N", conflicts_with = "quick", value_parser = plan::decisions)]
    decisions: Option<u32>,

    /// Run a short version: 100 decisions of the raw control in V3, sweeps and runtime only if
    /// named, runtime up to 10⁴ events
    #[arg(long)]
    quick: bool,

    /// Write a report to this directory: report.html, results.json, one JSON for each run of V3 and
    /// the sweeps, tables as CSV, figures as SVG and PNG, and SHA256SUMS over the files that are
    /// byte-equal in every run
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Selection {
    /// All experiments of the paper
    All,
    /// Fields, idempotence and order of one pass
    V1,
    /// The identity across passes, and its seven inputs
    V2,
    /// Grounded planners against one without memory
    V3,
    /// V3 over thresholds, priors and numbers of decisions
    Sweeps,
    /// The cost of a pass and of a query, up to 10⁶ events; takes a minute
    Runtime,
    /// What facts would have spared you on your own logs, as `ipse evaluate`
    Real,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Weighting {
    /// The success rate of the fact
    Raw,
    /// 1 for every known fact
    Uniform,
    /// The rate of held-out attempts, shrunk towards one half
    Calibrated,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let plan = args.plan()?;
    let mut sources = Vec::new();
    for file in &args.files {
        sources.push(logs::read(terminal, file)?);
    }
    logs::tell_apart(&mut sources);
    let inputs: Vec<&Path> = args.files.iter().map(PathBuf::as_path).collect();
    if let Some(out) = &args.out {
        directory::prepare(context, out, &inputs)?;
    }
    let scratch = Scratch::new()?;
    let at = || format!("an experiment failed in {} (from TMPDIR)", shown(scratch.path()));
    let host = || Box::new(SystemHost::new()) as Box<dyn Host>;
    let lab = Lab { directory: scratch.path(), host: &host };
    let mut bar = Bar { terminal, what: String::new(), bar: ProgressBar::hidden() };
    let mut progress = |what: &str, done, of| bar.show(what, done, of);
    let results =
        Results::of(&lab, &plan, &sources, &Machine::new(), &mut progress).with_context(at)?;
    bar.bar.finish_and_clear();
    if context.json {
        terminal.json(&results.json_with_timings())?;
    } else {
        show(terminal, &results)?;
    }
    if let Some(out) = &args.out {
        directory::write(context, &results, out, &inputs)?;
        writeln!(terminal.err, "report: {}", shown(&out.join(report::PAGE)))?;
    } else if !context.json {
        writeln!(terminal.err, "--out DIR writes this as a report")?;
    }
    Ok(exit(&results))
}

/// Exit 1 if a figure differs, or if a log has nothing to decide on.
fn exit(results: &Results) -> Exit {
    let answered = results.evaluations.iter().all(|one| one.later.decisions > 0);
    Exit::fine_if(results.verdicts().different == 0 && answered)
}

/// Progress bars, one at a time.
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
    if !results.evaluations.is_empty() {
        terminal.prose(0, PROTOCOL)?;
        writeln!(terminal.out)?;
    }
    show_errata(terminal, results)?;
    if !results.tables().is_empty() {
        writeln!(terminal.out, "{}", summary(results.verdicts()))?;
    }
    Ok(())
}

/// Lists the errata of the paper with the reasons why it is not followed there.
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
