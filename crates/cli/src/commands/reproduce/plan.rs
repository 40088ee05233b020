//! The arguments of `reproduce`, as a plan of experiments.
//!
//! **Invariant:** an argument that would have no effect is an error.

use super::{Args, Selection, Weighting};
use anyhow::bail;
use ipse_reproduce::results::{Experiment, Plan};
use ipse_reproduce::v3::{Control, SEEDS};

/// The most seeds of one run: more would take minutes and hardly narrow the interval.
const MAX_SEEDS: usize = 1000;

impl Weighting {
    fn control(self) -> Control {
        match self {
            Weighting::Raw => Control::Raw,
            Weighting::Uniform => Control::Uniform,
            Weighting::Calibrated => Control::CALIBRATED,
        }
    }
}

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
        if self.quick && self.experiment == Real {
            bail!("real logs are always read completely: leave --quick out");
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
        let (files, confidence_weighting, out) = (Vec::new(), None, None);
        Args { experiment, files, seed, confidence_weighting, quick, out }
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
