//! Arguments of `reproduce`, and what they ask for. The doc comments are the help texts.

use anyhow::bail;
use clap::{Args as ClapArgs, ValueEnum};
use ipse_reproduce::results::{Experiment, Plan};
use ipse_reproduce::v3::{Control, SEEDS};
use std::path::PathBuf;

/// Seeds of one run: an interval over more would take minutes, and say no more.
const MAX_SEEDS: usize = 1000;

#[derive(ClapArgs, Debug)]
pub(crate) struct ReproduceArgs {
    /// Which experiment
    #[arg(value_enum, default_value = "all", hide_default_value = true)]
    pub(crate) experiment: What,

    /// Logs to put V3's question to, with `real` or `all`: JSON Lines, .gz too
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Seeds of V3 and of the sweeps, as in Python's random.Random; the paper's ten if absent
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',',
          allow_negative_numbers = true, value_parser = a_seed)]
    pub(crate) seed: Vec<i128>,

    /// How the planner of V3 weighs facts; each in turn if absent
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) confidence_weighting: Option<Weighting>,

    /// A smoke run: 100 decisions of the raw control in V3, and neither sweeps nor runtime unless
    /// they are asked for; runtime up to 10⁴ events
    #[arg(long)]
    pub(crate) quick: bool,

    /// Write a report there: report.html, results.json, tables as CSV, figures as SVG and PNG, and
    /// SHA256SUMS over what every run makes byte-equal
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// Everything that the paper has
    All,
    /// Fields, idempotence and order of one pass
    V1,
    /// The identity across passes, and its seven inputs
    V2,
    /// Grounded planners against one without memory
    V3,
    /// V3 over thresholds, priors and numbers of decisions
    Sweeps,
    /// What a pass and a query cost, to 10⁶ events; takes a minute
    Runtime,
    /// V3's question to real logs
    Real,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Weighting {
    /// The success rate of the fact
    Raw,
    /// 1 for whatever is known
    Uniform,
    /// The rate of held-out attempts, shrunk towards one half
    Calibrated,
}

impl Weighting {
    fn control(self) -> Control {
        match self {
            Weighting::Raw => Control::Raw,
            Weighting::Uniform => Control::Uniform,
            Weighting::Calibrated => Control::CALIBRATED,
        }
    }
}

impl ReproduceArgs {
    /// What is to be run; refuses what would be passed over.
    pub(crate) fn plan(&self) -> anyhow::Result<Plan> {
        use What::{All, Real, Sweeps, V3};
        match self.experiment {
            Real if self.files.is_empty() => {
                bail!("`reproduce real` needs logs: name files of JSON Lines");
            }
            All | Real => {}
            _ if !self.files.is_empty() => bail!("logs go with `real` or `all` only"),
            _ => {}
        }
        if !self.seed.is_empty() && !matches!(self.experiment, All | V3 | Sweeps) {
            bail!("--seed goes with v3 and sweeps: nothing else draws");
        }
        if self.confidence_weighting.is_some() && !matches!(self.experiment, All | V3) {
            bail!("--confidence-weighting goes with v3");
        }
        if self.quick && self.experiment == Real {
            bail!("real logs are asked whole: leave --quick out");
        }
        let controls = match self.confidence_weighting {
            Some(weighting) => vec![weighting.control()],
            None if self.quick => vec![Control::Raw],
            None => Control::ALL.to_vec(),
        };
        let (experiments, seeds) = (self.experiments(), self.seeds()?);
        Ok(Plan { experiments, seeds, controls, quick: self.quick })
    }

    fn experiments(&self) -> Vec<Experiment> {
        use Experiment::{Example, Runtime, Sweeps, V1, V2, V3};
        match self.experiment {
            What::All if self.quick => vec![Example, V1, V2, V3],
            What::All => vec![Example, V1, V2, V3, Sweeps, Runtime],
            What::V1 => vec![V1],
            What::V2 => vec![V2],
            What::V3 => vec![V3],
            What::Sweeps => vec![Sweeps],
            What::Runtime => vec![Runtime],
            What::Real => vec![],
        }
    }

    fn seeds(&self) -> anyhow::Result<Vec<i128>> {
        if self.seed.is_empty() {
            return Ok(SEEDS.to_vec());
        }
        if self.seed.len() > MAX_SEEDS {
            bail!("{} seeds; one run takes at most {MAX_SEEDS}", self.seed.len());
        }
        // As in Python the sign makes no difference.
        let twice = |(at, seed): (usize, &i128)| {
            let same = |other: &&i128| other.unsigned_abs() == seed.unsigned_abs();
            self.seed[..at].iter().find(same).map(|other| (*other, *seed))
        };
        match self.seed.iter().enumerate().find_map(twice) {
            Some((one, same)) if one == same => bail!("seed {one} is given twice"),
            Some((one, same)) => bail!("seeds {one} and {same} draw the same numbers"),
            None => Ok(self.seed.clone()),
        }
    }
}

/// A seed, or words on what one is.
fn a_seed(text: &str) -> Result<i128, String> {
    let number = text.parse::<i128>();
    let wanted = "a seed is a whole number of at most 127 bits, and the experiment goes before it";
    number.map_err(|_| format!("{wanted}: ipse reproduce v3 --seed 1 2 3"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(experiment: What, quick: bool, seeds: usize) -> ReproduceArgs {
        let seed = (1..).take(seeds).collect();
        let (files, confidence_weighting, out) = (Vec::new(), None, None);
        ReproduceArgs { experiment, files, seed, confidence_weighting, quick, out }
    }

    #[test]
    fn all_is_all_and_quick_leaves_out_what_takes_long() {
        use Experiment::{Example, Runtime, Sweeps, V1, V2, V3};
        let planned = |quick| args(What::All, quick, 0).plan().map(|plan| plan.experiments);
        assert_eq!(planned(false).ok(), Some(vec![Example, V1, V2, V3, Sweeps, Runtime]));
        assert_eq!(planned(true).ok(), Some(vec![Example, V1, V2, V3]));
    }

    #[test]
    fn as_many_seeds_as_the_limit_says() {
        let seeds = |count| args(What::V3, false, count).plan().map(|plan| plan.seeds.len());
        assert_eq!(seeds(0).ok(), Some(10), "the paper's");
        assert_eq!(seeds(MAX_SEEDS).ok(), Some(MAX_SEEDS));
        assert!(seeds(MAX_SEEDS + 1).is_err());
    }
}
