//! One JSON file for each run: one seed under one setting.
//!
//! **Invariant:** the name of a file says experiment, setting and seed, and no two runs of a report
//! have the same name.

use crate::results::Results;
use crate::v3::{Control, Run, Setting, Summary};
use crate::v3_table::seed_json;
use ipse_core::json::Members;

/// The prefix of the names of these files.
pub(super) const PREFIX: &str = "run-";

/// Names and contents, in the order of the experiments.
pub(super) fn files(results: &Results) -> Vec<(String, String)> {
    let mut files = Vec::new();
    if let Some(v3) = &results.v3 {
        for summary in &v3.controls {
            let name = format!("v3-{}", summary.setting.control.name());
            add(&mut files, &name, summary, &|run| run.raw("gates", false));
        }
        for (summary, _) in &v3.gated {
            let name = format!("v3-gates-{}", summary.setting.control.name());
            add(&mut files, &name, summary, &|run| run.raw("gates", true));
        }
    }
    for sweep in results.sweeps.iter().flat_map(|sweeps| &sweeps.sweeps) {
        for (point, summary, _) in &sweep.points {
            let name = format!("{}-{}", sweep.name, point.replace('/', "-"));
            add(&mut files, &name, summary, &|run| run.text("sweep", sweep.varies));
        }
    }
    files
}

fn add(
    files: &mut Vec<(String, String)>,
    name: &str,
    summary: &Summary,
    more: &dyn Fn(Members) -> Members,
) {
    for run in &summary.runs {
        let json = more(of_run(&summary.setting, run)).finish();
        files.push((format!("{PREFIX}{name}-{}.json", run.seed), json + "\n"));
    }
}

fn of_run(setting: &Setting, run: &Run) -> Members {
    let (mean, weight) = match setting.control {
        Control::Calibrated { mean, weight } => (Some(mean), Some(weight)),
        Control::Raw | Control::Uniform => (None, None),
    };
    Members::new()
        .text("control", setting.control.name())
        .raw("threshold", setting.threshold)
        .raw("decisions", setting.decisions)
        .optional("prior_mean", mean.map(|mean| mean.to_string()))
        .optional("prior_weight", weight.map(|weight| weight.to_string()))
        .raw("seed", seed_json(run.seed))
        .raw("no_memory_unproductive", run.no_memory)
        .raw("attempts", run.attempts)
        .raw("unproductive", run.unproductive)
        .raw("rate", run.rate())
        .raw("reduction_pct", run.reduction())
}
