//! The paper's experiments, against its printed figures and the counts of an independent replay.
#![allow(missing_docs, clippy::unwrap_used)]

mod laboratory;

use ipse_reproduce::example::{Example, FIGURE, TEXT};
use ipse_reproduce::v3::{Agents, Control, SEEDS, Setting, Summary};
use laboratory::{lab, vector};
use serde_json::Value;

/// A summary against the replay's.
fn check(ours: &Summary, want: &Value, what: &str) {
    let near = |ours: f64, want: &Value, figure: &str| {
        let want = want.as_f64().unwrap();
        assert!((ours - want).abs() < 1e-9, "{what}, {figure}: {ours} is not {want}");
    };
    near(ours.reduction(), &want["mean_reduction"], "mean reduction");
    for end in 0..2 {
        near(ours.interval.unwrap()[end], &want["ci"][end], "interval");
    }
    near(ours.mean(|run| run.attempts as f64), &want["att_mean"], "attempts");
    near(ours.mean(|run| run.unproductive as f64), &want["unprod_mean"], "unproductive");
    near(ours.mean(|run| run.no_memory as f64), &want["nm_mean"], "no memory");
    near(ours.mean(|run| run.rate()), &want["rate_mean"], "rate");
    for (run, want) in ours.runs.iter().zip(want["per_seed"].as_array().unwrap()) {
        let counts = [run.no_memory, run.attempts, run.unproductive];
        let names = ["no_memory_unproductive", "attempts", "unproductive"];
        assert_eq!(counts, names.map(|name| want[name].as_u64().unwrap()), "{what}: {run:?}");
        assert_eq!(run.seed, i128::from(want["seed"].as_i64().unwrap()));
    }
}

#[test]
fn v3_counts_of_every_seed() {
    let agents = lab(|lab| Agents::live(lab, &SEEDS).unwrap());
    let replay = &vector("v3_expected.json")["replay"];
    for control in Control::ALL {
        check(&agents.plan(Setting::of(control)), &replay[control.name()], control.name());
    }
}

#[test]
fn the_worked_example_twice() {
    let [text, figure] = lab(|lab| {
        [("text", TEXT), ("figure", FIGURE)]
            .map(|(name, week)| Example::live(lab, name, week).unwrap())
    });
    for (example, n, confidence, rate) in
        [(&text, 15, 833_300, 800_000), (&figure, 16, 842_100, 750_000)]
    {
        assert_eq!(example.n_observations, n);
        assert_eq!(example.recommended.get(), 25_000_000);
        assert_eq!(example.confidence.get(), confidence);
        assert_eq!(example.success_rate.get(), rate);
        assert_eq!(example.fact_key, "manipulation.grasp + glass_cup + sim_relaxed");
        assert_eq!(example.before, example.after);
    }
    assert_ne!(text.before, figure.before, "two agents");
}
