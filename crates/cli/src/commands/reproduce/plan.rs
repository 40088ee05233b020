//! The arguments of `reproduce`, as a plan of experiments.
//!
//! **Invariant:** an argument that would have no effect is an error.

use super::{Args, Selection, Weighting};
use anyhow::bail;
use ipse_reproduce::results::{Experiment, Plan};
use ipse_reproduce::v3::{Control, SEEDS, THRESHOLD};

/// The most seeds of one run: more would take minutes and hardly narrow the interval.
const MAX_SEEDS: usize = 1000;

/// The heaviest prior: far above any held-out part, so that only the prior counts.
const MAX_WEIGHT: f64 = 1e6;
/// The most decisions of one seed and control: a hundred times as many as in the paper.
const MAX_DECISIONS: u32 = 1_000_000;

impl Args {
    /// The experiments to run; an error if an argument would have no effect.
    pub(super) fn plan(&self) -> anyhow::Result<Plan> {
        use Selection::{All, Real, Sweeps, V3};
        match self.experiment {
            Real if self.files.is_empty() => {
                bail!("`reproduce real` needs logs: give files of JSON Lines");
            }
            All | Real => {}
            _ if !self.files.is_empty() => bail!("logs need `real` or `all`"),
            _ => {}
        }
        if !self.seed.is_empty() && !matches!(self.experiment, All | V3 | Sweeps) {
            bail!("--seed needs v3 or sweeps: nothing else uses random numbers");
        }
        if self.confidence_weighting.is_some() && !matches!(self.experiment, All | V3) {
            bail!("--confidence-weighting needs v3");
        }
        let settings = [
            ("--threshold", self.threshold.is_some()),
            ("--prior-mean", self.prior_mean.is_some()),
            ("--prior-weight", self.prior_weight.is_some()),
            ("--decisions", self.decisions.is_some()),
        ];
        let given = settings.iter().find(|(_, given)| *given);
        if let Some((name, _)) = given.filter(|_| self.experiment != V3) {
            bail!("{name} needs v3: ipse reproduce v3 {name} VALUE");
        }
        if self.quick && self.experiment == Real {
            bail!("real logs are always read completely: leave --quick out");
        }
        let (controls, threshold) = (self.controls()?, self.threshold.unwrap_or(THRESHOLD));
        let (experiments, seeds) = (self.experiments(), self.seeds()?);
        let (decisions, quick) = (self.decisions, self.quick);
        Ok(Plan { experiments, seeds, controls, threshold, decisions, quick })
    }

    /// The controls of V3, with the prior that was given.
    fn controls(&self) -> anyhow::Result<Vec<Control>> {
        let Control::Calibrated { mean, weight } = Control::CALIBRATED else {
            unreachable!("BUG: the calibrated control has a prior")
        };
        let (mean, weight) = (self.prior_mean.unwrap_or(mean), self.prior_weight.unwrap_or(weight));
        let calibrated = Control::Calibrated { mean, weight };
        let controls = match self.confidence_weighting {
            Some(Weighting::Raw) => vec![Control::Raw],
            Some(Weighting::Uniform) => vec![Control::Uniform],
            Some(Weighting::Calibrated) => vec![calibrated],
            None if self.quick => vec![Control::Raw],
            None => vec![Control::Uniform, Control::Raw, calibrated],
        };
        let prior = self.prior_mean.is_some() || self.prior_weight.is_some();
        if prior && !controls.contains(&calibrated) {
            bail!("a prior needs the calibrated control: --confidence-weighting calibrated");
        }
        Ok(controls)
    }

    fn experiments(&self) -> Vec<Experiment> {
        use Experiment::{Example, Runtime, Sweeps, V1, V2, V3};
        match self.experiment {
            Selection::All if self.quick => vec![Example, V1, V2, V3],
            Selection::All => vec![Example, V1, V2, V3, Sweeps, Runtime],
            Selection::V1 => vec![V1],
            Selection::V2 => vec![V2],
            Selection::V3 => vec![V3],
            Selection::Sweeps => vec![Sweeps],
            Selection::Runtime => vec![Runtime],
            Selection::Real => vec![],
        }
    }

    fn seeds(&self) -> anyhow::Result<Vec<i128>> {
        if self.seed.is_empty() {
            return Ok(SEEDS.to_vec());
        }
        if self.seed.len() > MAX_SEEDS {
            bail!("{} seeds; one run takes at most {MAX_SEEDS}", self.seed.len());
        }
        // As in Python, the sign of a seed has no effect.
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

/// Parses a rate.
pub(super) fn a_share(text: &str) -> Result<f64, &'static str> {
    let share = text.parse().ok().filter(|share: &f64| (0.0..=1.0).contains(share));
    share.ok_or("must be a number from 0 to 1")
}

/// Parses the weight of a prior.
pub(super) fn a_weight(text: &str) -> Result<f64, String> {
    let weight = text.parse().ok().filter(|weight: &f64| (0.0..=MAX_WEIGHT).contains(weight));
    weight.ok_or_else(|| format!("must be a number from 0 to {MAX_WEIGHT}"))
}

/// Parses a number of decisions.
pub(super) fn decisions(text: &str) -> Result<u32, String> {
    let decisions = text.parse().ok().filter(|number| (1..=MAX_DECISIONS).contains(number));
    decisions.ok_or_else(|| format!("must be a whole number from 1 to {MAX_DECISIONS}"))
}

/// Parses a seed.
pub(super) fn a_seed(text: &str) -> Result<i128, String> {
    let number = text.parse::<i128>();
    let wanted = "a seed is a whole number of at most 127 bits; give the experiment before --seed";
    number.map_err(|_| format!("{wanted}: ipse reproduce v3 --seed 1 2 3"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(experiment: Selection, quick: bool, seeds: usize) -> Args {
        let seed = (1..).take(seeds).collect();
        Args {
            experiment,
            files: Vec::new(),
            seed,
            confidence_weighting: None,
            threshold: None,
            prior_mean: None,
            prior_weight: None,
            decisions: None,
            quick,
            out: None,
        }
    }

    #[test]
    fn all_is_all_and_quick_leaves_out_what_takes_long() {
        use Experiment::{Example, Runtime, Sweeps, V1, V2, V3};
        let planned = |quick| args(Selection::All, quick, 0).plan().map(|plan| plan.experiments);
        assert_eq!(planned(false).ok(), Some(vec![Example, V1, V2, V3, Sweeps, Runtime]));
        assert_eq!(planned(true).ok(), Some(vec![Example, V1, V2, V3]));
    }

    #[test]
    fn as_many_seeds_as_the_limit_says() {
        let seeds = |count| args(Selection::V3, false, count).plan().map(|plan| plan.seeds.len());
        assert_eq!(seeds(0).ok(), Some(10), "the paper's");
        assert_eq!(seeds(MAX_SEEDS).ok(), Some(MAX_SEEDS));
        assert!(seeds(MAX_SEEDS + 1).is_err());
    }
}
