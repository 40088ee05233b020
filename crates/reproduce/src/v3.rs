//! V3: does memory reduce the failed attempts of a planner?
//!
//! **Invariants:** every decision reads the facts of the agent's store again. Reductions are
//! against the no-memory count of the raw run with the same seed and length, as in the paper.

use crate::Error;
use crate::bca::bca;
use crate::clamp::{Clamp, Judged};
use crate::lab::Lab;
use crate::normal::mean;
use crate::scene::{Scene, Target};

/// The paper's seeds.
pub const SEEDS: [i128; 10] = [
    20_260_506, 20_260_507, 20_260_513, 20_260_517, 20_260_519, 20_260_523, 20_260_529, 20_260_531,
    20_260_601, 20_260_607,
];
/// The number of decisions for each seed and control in the paper.
pub const DECISIONS: u32 = 1000;
/// The paper's threshold: a planner attempts a skill if its confidence is at least this.
pub const THRESHOLD: f64 = 0.5;

/// The method by which a grounded planner weighs facts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Control {
    /// The success rate of the fact, unchanged.
    Raw,
    /// 1 for every known skill.
    Uniform,
    /// The rate of the held-out part, shrunk towards a prior.
    Calibrated {
        /// The mean of the prior.
        mean: f64,
        /// The weight of the prior, in attempts.
        weight: f64,
    },
}

impl Control {
    /// The calibrated control with the paper's defaults.
    pub const CALIBRATED: Control = Control::Calibrated { mean: 0.5, weight: 10.0 };
    /// The grounded controls, in the order of the paper's table.
    pub const ALL: [Control; 3] = [Control::Uniform, Control::Raw, Control::CALIBRATED];

    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Control::Raw => "raw",
            Control::Uniform => "uniform",
            Control::Calibrated { .. } => "calibrated",
        }
    }

    /// The planner's confidence in a target; 0 if there is no fact about it.
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

/// The settings of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    /// The method by which the planner weighs facts.
    pub control: Control,
    /// The least confidence at which the planner attempts a skill.
    pub threshold: f64,
    /// The number of decisions.
    pub decisions: u32,
}

impl Setting {
    /// Whether these are the paper's defaults, with this number of decisions.
    pub fn is_papers(&self, decisions: u32) -> bool {
        let prior = match self.control {
            Control::Calibrated { .. } => self.control == Control::CALIBRATED,
            Control::Raw | Control::Uniform => true,
        };
        prior && *self == Setting { decisions, ..Setting::of(self.control) }
    }

    /// The paper's defaults for a control.
    pub fn of(control: Control) -> Self {
        Setting { control, threshold: THRESHOLD, decisions: DECISIONS }
    }
}

/// The results of one seed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Run {
    /// The seed of the run.
    pub seed: i128,
    /// Attempts that failed without memory in the raw run; reductions are relative to it.
    pub no_memory: u64,
    /// The same count in this run, which draws other numbers.
    pub own_no_memory: u64,
    /// Attempts of the grounded planner.
    pub attempts: u64,
    /// Attempts of the grounded planner that failed.
    pub unproductive: u64,
}

impl Run {
    /// The reduction of failed attempts in percent; 0 if none failed without memory.
    pub fn reduction(&self) -> f64 {
        if self.no_memory == 0 {
            return 0.0;
        }
        100.0 * (1.0 - self.unproductive as f64 / self.no_memory as f64)
    }

    /// The share of attempts that failed; 0 without attempts.
    pub fn rate(&self) -> f64 {
        if self.attempts == 0 { 0.0 } else { self.unproductive as f64 / self.attempts as f64 }
    }
}

/// The results of all seeds under one setting.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    /// The setting of the runs.
    pub setting: Setting,
    /// One run for each seed.
    pub runs: Vec<Run>,
    /// The BCa interval of the mean reduction, if reductions differ.
    pub interval: Option<[f64; 2]>,
}

impl Summary {
    /// The mean of a value over the seeds.
    pub fn mean(&self, of: impl Fn(&Run) -> f64) -> f64 {
        mean(&self.runs.iter().map(of).collect::<Vec<_>>())
    }

    /// The mean reduction.
    pub fn reduction(&self) -> f64 {
        self.mean(Run::reduction)
    }
}

/// Agents with the recorded history of their seeds.
pub struct Agents(Vec<(i128, Scene)>);

impl Agents {
    /// Creates one agent for each seed, all in one store.
    pub fn live(lab: &Lab<'_>, seeds: &[i128]) -> Result<Self, Error> {
        let store = lab.store("v3");
        let one = |seed: &i128| Ok((*seed, Scene::live(lab, &store, *seed)?));
        Ok(Agents(seeds.iter().map(one).collect::<Result<_, Error>>()?))
    }

    /// Runs all agents under a setting.
    pub fn plan(&self, setting: Setting) -> Summary {
        self.plan_through(setting, &mut |_| true)
    }

    /// The same with the gates on: every attempt of every planner is judged first.
    pub fn plan_gated(&self, setting: Setting, clamp: &Clamp) -> (Summary, Judged) {
        let mut judged = Judged::default();
        let summary = self.plan_through(setting, &mut |target| clamp.admits(target, &mut judged));
        (summary, judged)
    }

    /// The same with any gate: an attempt that it does not admit is not made.
    pub fn plan_through(&self, setting: Setting, gate: &mut dyn FnMut(Target) -> bool) -> Summary {
        let one = |(seed, scene): &(i128, Scene)| {
            let (own_no_memory, attempts, unproductive) = decide(scene, setting, gate);
            let raw = Setting { decisions: setting.decisions, ..Setting::of(Control::Raw) };
            let (no_memory, ..) = decide(scene, raw, gate);
            Run { seed: *seed, no_memory, own_no_memory, attempts, unproductive }
        };
        let runs: Vec<Run> = self.0.iter().map(one).collect();
        let reductions: Vec<f64> = runs.iter().map(Run::reduction).collect();
        let interval = bca(&reductions).map(|bca| bca.interval);
        Summary { setting, runs, interval }
    }

    /// The least and the greatest confidence of a control in a target, over the seeds.
    pub fn confidence(&self, control: Control, target: Target) -> [f64; 2] {
        let all = self.0.iter().map(|(_, scene)| control.confidence(scene, target));
        let nothing = [f64::INFINITY, f64::NEG_INFINITY];
        all.fold(nothing, |[least, most], one| [least.min(one), most.max(one)])
    }
}

/// Counts failed attempts without memory, attempts of the grounded planner, and its failures. The
/// outcome of an attempt does not depend on the force that the gates admit.
fn decide(
    scene: &Scene,
    setting: Setting,
    gate: &mut dyn FnMut(Target) -> bool,
) -> (u64, u64, u64) {
    let mut random = scene.random();
    let (mut no_memory, mut attempts, mut unproductive) = (0, 0, 0);
    for _ in 0..setting.decisions {
        let target = Target::ALL[random.below(2) as usize];
        if gate(target) {
            no_memory += u64::from(!target.holds(&mut random));
        }
        if setting.control.confidence(scene, target) >= setting.threshold && gate(target) {
            attempts += 1;
            unproductive += u64::from(!target.holds(&mut random));
        }
    }
    (no_memory, attempts, unproductive)
}
