//! V3: does what an agent has learned spare its planner attempts that fail?
//!
//! **Invariants:** every decision reads the facts of the agent's store again; reductions are
//! against the no-memory count of the raw run of the same seed and length, as in the paper.

use crate::Error;
use crate::bca::bca;
use crate::lab::Lab;
use crate::normal::mean;
use crate::scene::{Scene, Target};

/// The paper's seeds.
pub const SEEDS: [i128; 10] = [
    20_260_506, 20_260_507, 20_260_513, 20_260_517, 20_260_519, 20_260_523, 20_260_529, 20_260_531,
    20_260_601, 20_260_607,
];
/// The paper's decisions for each seed and control.
pub const DECISIONS: u32 = 1000;
/// The paper's threshold: a planner attempts what it holds for at least so likely.
pub const THRESHOLD: f64 = 0.5;

/// How a grounded planner weighs what is known of a skill.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Control {
    /// The success rate of the fact as it is.
    Raw,
    /// 1 for everything that is known at all.
    Uniform,
    /// The rate of the held-out part, shrunk towards a prior.
    Calibrated {
        /// The prior's mean.
        mean: f64,
        /// The attempts that it weighs.
        weight: f64,
    },
}

impl Control {
    /// Calibrated as the paper does by default.
    pub const CALIBRATED: Control = Control::Calibrated { mean: 0.5, weight: 10.0 };
    /// The grounded controls, in the order of the paper's table.
    pub const ALL: [Control; 3] = [Control::Uniform, Control::Raw, Control::CALIBRATED];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Control::Raw => "raw",
            Control::Uniform => "uniform",
            Control::Calibrated { .. } => "calibrated",
        }
    }

    /// What the planner makes of the facts about a target; 0 if it knows none.
    pub fn confidence(self, scene: &Scene, target: Target) -> f64 {
        let Some(known) = scene.known(target) else { return 0.0 };
        match self {
            Control::Raw => known.rate(),
            Control::Uniform => 1.0,
            Control::Calibrated { mean, weight } => {
                let held_out = scene.held_out(target);
                (weight * mean + held_out.successes as f64) / (weight + held_out.n as f64)
            }
        }
    }
}

/// What is varied.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    /// How the planner weighs facts.
    pub control: Control,
    /// It attempts what it holds for at least so likely.
    pub threshold: f64,
    /// Decisions of a run.
    pub decisions: u32,
}

impl Setting {
    /// The paper's defaults.
    pub fn of(control: Control) -> Self {
        Setting { control, threshold: THRESHOLD, decisions: DECISIONS }
    }
}

/// What became of one seed's decisions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Run {
    /// The seed.
    pub seed: i128,
    /// Attempts that failed without memory, in the raw run: what reductions are against.
    pub no_memory: u64,
    /// The same in this very run, which draws other numbers.
    pub own_no_memory: u64,
    /// Attempts of the grounded planner.
    pub attempts: u64,
    /// Those that failed.
    pub unproductive: u64,
}

impl Run {
    /// How many percent fewer attempts failed. Nothing to spare is no reduction.
    pub fn reduction(&self) -> f64 {
        if self.no_memory == 0 {
            return 0.0;
        }
        100.0 * (1.0 - self.unproductive as f64 / self.no_memory as f64)
    }

    /// The share of attempts that failed; 0 if there was none.
    pub fn rate(&self) -> f64 {
        if self.attempts == 0 { 0.0 } else { self.unproductive as f64 / self.attempts as f64 }
    }
}

/// What became of all seeds under one setting.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    /// The setting.
    pub setting: Setting,
    /// One run for each seed.
    pub runs: Vec<Run>,
    /// The BCa interval of the mean reduction, if reductions differ.
    pub interval: Option<[f64; 2]>,
}

impl Summary {
    /// The mean over the seeds of what a run has.
    pub fn mean(&self, of: impl Fn(&Run) -> f64) -> f64 {
        mean(&self.runs.iter().map(of).collect::<Vec<_>>())
    }

    /// The mean reduction.
    pub fn reduction(&self) -> f64 {
        self.mean(Run::reduction)
    }
}

/// Agents that have lived through the history of their seeds, ready to plan.
pub struct Agents(Vec<(i128, Scene)>);

impl Agents {
    /// One agent for each seed, all in one store.
    pub fn live(lab: &Lab<'_>, seeds: &[i128]) -> Result<Self, Error> {
        let store = lab.store("v3");
        let one = |seed: &i128| Ok((*seed, Scene::live(lab, &store, *seed)?));
        Ok(Agents(seeds.iter().map(one).collect::<Result<_, Error>>()?))
    }

    /// Lets them all plan under a setting.
    pub fn plan(&self, setting: Setting) -> Summary {
        let one = |(seed, scene): &(i128, Scene)| {
            let (own_no_memory, attempts, unproductive) = decide(scene, setting);
            let raw = Setting::of(Control::Raw);
            let (no_memory, ..) = decide(scene, Setting { decisions: setting.decisions, ..raw });
            Run { seed: *seed, no_memory, own_no_memory, attempts, unproductive }
        };
        let runs: Vec<Run> = self.0.iter().map(one).collect();
        let reductions: Vec<f64> = runs.iter().map(Run::reduction).collect();
        let interval = bca(&reductions).map(|bca| bca.interval);
        Summary { setting, runs, interval }
    }

    /// The least and the greatest confidence that a control has in a target, over the seeds.
    pub fn confidence(&self, control: Control, target: Target) -> [f64; 2] {
        let all = self.0.iter().map(|(_, scene)| control.confidence(scene, target));
        let nothing = [f64::INFINITY, f64::NEG_INFINITY];
        all.fold(nothing, |[least, most], one| [least.min(one), most.max(one)])
    }
}

/// Attempts that fail without memory, those of the grounded planner, and those of them that fail.
fn decide(scene: &Scene, setting: Setting) -> (u64, u64, u64) {
    let mut random = scene.random();
    let (mut no_memory, mut attempts, mut unproductive) = (0, 0, 0);
    for _ in 0..setting.decisions {
        let target = Target::ALL[random.below(2) as usize];
        no_memory += u64::from(!target.holds(&mut random));
        if setting.control.confidence(scene, target) >= setting.threshold {
            attempts += 1;
            unproductive += u64::from(!target.holds(&mut random));
        }
    }
    (no_memory, attempts, unproductive)
}
