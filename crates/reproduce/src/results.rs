//! Runs the requested experiments and keeps their results for terminal, JSON and report.
//!
//! **Invariant:** only [`Results::timings`] contains values measured by a clock. All other output
//! is byte-equal in every run.

use crate::errata::{ERRATA, Erratum};
use crate::evaluate::{DecisionLog, Evaluation, History, Source, evaluate};
use crate::example::{self, Example};
use crate::lab::Lab;
use crate::runtime::{Instruments, Runtime};
use crate::sweeps::Sweeps;
use crate::table::{Row, Sheet, Table, Verdict};
use crate::v1::V1;
use crate::v2::V2;
use crate::v3::{Agents, Control, DECISIONS, Setting};
use crate::v3_table::{QUICK, V3};
use crate::{Error, runtime};
use ipse_core::json::{Members, list};
use std::collections::BTreeSet;

/// The experiments to run, with their settings.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The experiments.
    pub experiments: Vec<Experiment>,
    /// The seeds of V3 and of the sweeps.
    pub seeds: Vec<i128>,
    /// The grounded controls of V3.
    pub controls: Vec<Control>,
    /// The least confidence at which a planner of V3 attempts a skill.
    pub threshold: f64,
    /// The number of decisions of V3, if it is not that of the paper or of a quick run.
    pub decisions: Option<u32>,
    /// Whether to use smaller samples.
    pub quick: bool,
}

/// An experiment of the paper.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Experiment {
    /// The worked example of the introduction.
    Example,
    /// Fields, idempotence, order.
    V1,
    /// The identity across passes.
    V2,
    /// Grounding against no memory.
    V3,
    /// The sensitivity of V3 to its settings.
    Sweeps,
    /// The cost of a pass.
    Runtime,
}

/// The results of the experiments that ran.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Results {
    /// The worked example as in the paper's text, and as in its figure.
    pub example: Option<[Example; 2]>,
    /// Fields, idempotence, order.
    pub v1: Option<V1>,
    /// The identity across passes.
    pub v2: Option<V2>,
    /// Grounding against no memory.
    pub v3: Option<V3>,
    /// The sweeps D.
    pub sweeps: Option<Sweeps>,
    /// The runtime G.
    pub runtime: Option<Runtime>,
    /// The evaluations of logs.
    pub evaluations: Vec<Evaluation>,
}

/// Receives the progress: the current experiment, the work done, and the total.
pub type Progress<'p> = dyn FnMut(&str, u64, u64) + 'p;

impl Results {
    /// Runs a plan, and evaluates logs.
    pub fn of(
        lab: &Lab<'_>,
        plan: &Plan,
        logs: &[Source],
        instruments: &dyn Instruments,
        progress: &mut Progress<'_>,
    ) -> Result<Self, Error> {
        let mut results = Results::default();
        let needs_agents = |one: &Experiment| matches!(one, Experiment::V3 | Experiment::Sweeps);
        if plan.experiments.iter().any(needs_agents) {
            results.plan(&Agents::live(lab, &plan.seeds)?, plan);
        }
        for experiment in &plan.experiments {
            results.add(lab, plan, *experiment, instruments, progress)?;
        }
        for log in logs {
            let read = DecisionLog::read(&log.lines, log.too_long);
            let mut report = |done, of| progress(&log.name, done, of);
            let found = evaluate(&log.name, &read, History::default(), &mut report);
            results.evaluations.push(found);
        }
        Ok(results)
    }

    /// Runs the experiments in which agents plan.
    fn plan(&mut self, agents: &Agents, plan: &Plan) {
        let usual = if plan.quick { QUICK } else { DECISIONS };
        let (threshold, decisions) = (plan.threshold, plan.decisions.unwrap_or(usual));
        if plan.experiments.contains(&Experiment::V3) {
            let setting = |control: &Control| Setting { control: *control, threshold, decisions };
            let settings: Vec<_> = plan.controls.iter().map(setting).collect();
            self.v3 = Some(V3::of(agents, &plan.seeds, &settings));
        }
        if plan.experiments.contains(&Experiment::Sweeps) {
            self.sweeps = Some(Sweeps::run(agents, &plan.seeds));
        }
    }

    fn add(
        &mut self,
        lab: &Lab<'_>,
        plan: &Plan,
        experiment: Experiment,
        instruments: &dyn Instruments,
        progress: &mut Progress<'_>,
    ) -> Result<(), Error> {
        match experiment {
            Experiment::Example => {
                let text = Example::live(lab, "worked example, text", example::TEXT)?;
                let figure = Example::live(lab, "worked example, figure", example::FIGURE)?;
                self.example = Some([text, figure]);
            }
            Experiment::V1 => self.v1 = Some(V1::run(lab)?),
            Experiment::V2 => self.v2 = Some(V2::run(lab)?),
            // Already run by `plan`, with agents that both share.
            Experiment::V3 | Experiment::Sweeps => {}
            Experiment::Runtime => {
                let mut reported = |done, of| progress("runtime", done, of);
                self.runtime = Some(runtime::measure(lab, instruments, plan.quick, &mut reported)?);
            }
        }
        Ok(())
    }

    /// All tables that compare the paper with ours.
    pub fn tables(&self) -> Vec<Table> {
        let mut tables = Vec::new();
        tables.extend(self.example.as_ref().map(example::table));
        tables.extend(self.v1.as_ref().map(V1::table));
        tables.extend(self.v2.as_ref().map(V2::table));
        tables.extend(self.v3.as_ref().map(V3::table));
        tables.extend(self.v3.as_ref().map(V3::gates_table));
        tables.extend(self.sweeps.iter().flat_map(Sweeps::tables));
        tables.extend(self.runtime.iter().flat_map(Runtime::tables));
        tables
    }

    /// All tables as text, including those of evaluated logs.
    pub fn sheets(&self) -> Vec<Sheet> {
        let papers = self.tables();
        papers
            .iter()
            .map(Table::sheet)
            .chain(self.evaluations.iter().map(Evaluation::sheet))
            .collect()
    }

    /// Counts the verdicts of all comparisons.
    pub fn verdicts(&self) -> Verdicts {
        let mut verdicts = Verdicts::default();
        for row in self.tables().iter().flat_map(|table| &table.rows) {
            match row.verdict {
                Verdict::Equal => verdicts.equal += row.figures,
                Verdict::Differs => verdicts.different += row.figures,
                Verdict::Erratum(_) => verdicts.errata += 1,
                Verdict::Measured => verdicts.measured += 1,
                Verdict::Ours => {}
            }
        }
        verdicts
    }

    /// All results without timings: the bytes of `results.json`.
    pub fn json(&self) -> String {
        self.members().finish()
    }

    /// All results, with the timings if there are any.
    pub fn json_with_timings(&self) -> String {
        self.members().optional("timings", self.timings()).finish()
    }

    /// The values that a clock measured.
    pub fn timings(&self) -> Option<String> {
        let measured = |row: &Row| row.verdict == Verdict::Measured;
        let comparisons = || list(self.compared(measured));
        self.runtime.as_ref().map(|it| it.json().raw("comparisons", comparisons()).finish())
    }

    fn members(&self) -> Members {
        let examples = self.example.as_ref().map(|all| list(all.each_ref().map(Example::json)));
        let evaluations = &self.evaluations;
        let evaluations =
            (!evaluations.is_empty()).then(|| list(evaluations.iter().map(Evaluation::json)));
        Members::new()
            .text("ipse", env!("CARGO_PKG_VERSION"))
            .optional("example", examples)
            .optional("v1", self.v1.as_ref().map(V1::json))
            .optional("v2", self.v2.as_ref().map(V2::json))
            .optional("v3", self.v3.as_ref().map(V3::json))
            .optional("sweeps", self.sweeps.as_ref().map(Sweeps::json))
            .optional("runtime", self.runtime.as_ref().map(|it| it.rows_json().finish()))
            .optional("evaluate", evaluations)
            .raw("comparisons", list(self.compared(|row| row.verdict != Verdict::Measured)))
            .raw("errata", list(self.errata().into_iter().map(Erratum::json)))
    }

    /// The selected rows that have a value of the paper, as JSON.
    fn compared(&self, which: impl Fn(&Row) -> bool) -> Vec<String> {
        let tables = self.tables();
        let rows = tables.iter().flat_map(|table| table.rows.iter().map(move |row| (table, row)));
        let json = |(table, row): (&Table, &Row)| {
            Members::new()
                .text("table", table.name)
                .text("figure", &row.what)
                .text("paper", &row.paper)
                .text("ours", &row.ours)
                .text("verdict", &row.verdict.to_string())
                .raw("figures", row.figures)
                .finish()
        };
        rows.filter(|(_, row)| !row.paper.is_empty() && which(row)).map(json).collect()
    }

    /// The errata about the experiments that ran; all errata if all but the runtime ran.
    pub fn errata(&self) -> Vec<&'static Erratum> {
        let whole = self.example.is_some() && self.v1.is_some() && self.v2.is_some();
        let about: BTreeSet<u8> = self.tables().iter().flat_map(Table::errata).collect();
        let whole = whole && self.v3.is_some();
        ERRATA.iter().filter(|erratum| whole || about.contains(&erratum.number)).collect()
    }
}

/// The number of comparisons by verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Verdicts {
    /// Figures that are equal at printed precision.
    pub equal: usize,
    /// Figures that differ.
    pub different: usize,
    /// Cells in which the paper contradicts itself.
    pub errata: usize,
    /// Measurements.
    pub measured: usize,
}
