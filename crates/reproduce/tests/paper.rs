//! The paper's experiments, compared with its printed figures and an independent replay.
#![allow(missing_docs, clippy::unwrap_used)]

mod laboratory;

use ipse_core::{EventRef, Seq, is_housekeeping};
use ipse_reproduce::V3;
use ipse_reproduce::clamp::{Clamp, Judged};
use ipse_reproduce::errata::{ERRATA, Erratum};
use ipse_reproduce::example::{Example, FIGURE, TEXT};
use ipse_reproduce::lab::{Agent, Lab};
use ipse_reproduce::scene::{Record, Scene, Target};
use ipse_reproduce::sweeps::Sweeps;
use ipse_reproduce::table::{Row, Table, Verdict};
use ipse_reproduce::v1::V1;
use ipse_reproduce::v2::{self, V2};
use ipse_reproduce::v3::{Agents, Control, DECISIONS, Run, SEEDS, Setting, Summary};
use laboratory::{lab, vector};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;

/// Compares a summary with that of the replay.
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

/// The facts about both targets match the drawn attempts, without the held-out part.
#[test]
fn v3_history_of_every_seed() {
    let replay = &vector("v3_expected.json")["replay"]["holdout"];
    for seed in SEEDS {
        let want = |name: &str| replay[seed.to_string()][name].as_u64().unwrap();
        let scene = lab(|lab| Scene::live(lab, &lab.store("scene"), seed).unwrap());
        for (target, name, [n, held_out]) in
            [(Target::Glass, "glass", [160, 40]), (Target::Unknown, "unknown", [40, 10])]
        {
            let successes = want(&format!("train_{name}_success"));
            assert_eq!(scene.known(target), Some(Record { n, successes }), "{seed} {name}");
            let successes = want(&format!("holdout_{name}_success"));
            assert_eq!(scene.held_out(target), Record { n: held_out, successes }, "{seed} {name}");
        }
    }
}

#[test]
fn runs_without_a_failure_or_an_attempt_have_figures() {
    let run = |no_memory, attempts, unproductive| {
        let own_no_memory = no_memory;
        let run = Run { seed: 1, no_memory, own_no_memory, attempts, unproductive };
        (run.reduction(), run.rate())
    };
    assert_eq!(run(0, 4, 1), (0.0, 0.25), "nothing to spare");
    assert_eq!(run(5, 0, 0), (100.0, 0.0), "nothing attempted");
    assert_eq!(run(4, 2, 1), (75.0, 0.5));
}

#[test]
fn v3_counts_of_every_seed() {
    let agents = lab(|lab| Agents::live(lab, &SEEDS).unwrap());
    let replay = &vector("v3_expected.json")["replay"];
    assert_eq!(Control::ALL.map(Control::name), ["uniform", "raw", "calibrated"]);
    for control in Control::ALL {
        check(&agents.plan(Setting::of(control)), &replay[control.name()], control.name());
    }
}

/// The number of printed reductions and bounds that are equal, and the rows that differ.
fn tally(tables: &[Table]) -> (usize, Vec<&Row>) {
    let reductions = |row: &&Row| row.paper.contains('%') && row.verdict == Verdict::Equal;
    let rows = || tables.iter().flat_map(|table| &table.rows);
    let equal = rows().filter(reductions).map(|row| row.figures).sum();
    (equal, rows().filter(|row| row.verdict == Verdict::Differs).collect())
}

#[test]
fn v3_every_printed_figure() {
    let agents = lab(|lab| Agents::live(lab, &SEEDS).unwrap());
    let table = V3::run(&agents, &SEEDS, &Control::ALL, DECISIONS).table();
    let tables = [table];
    // Three controls with three figures, and the first seed, which is printed twice.
    assert_eq!(tally(&tables), (9 + 2, vec![]));
    let errata = tables[0].rows.iter().filter(|row| matches!(row.verdict, Verdict::Erratum(1..7)));
    let reported: BTreeSet<_> = errata.map(|row| row.verdict.to_string()).collect();
    assert_eq!(reported.len(), 6, "the six cells are shown, and not asserted");
}

#[test]
fn sweeps_every_printed_figure() {
    let agents = lab(|lab| Agents::live(lab, &SEEDS).unwrap());
    let sweeps = Sweeps::run(&agents, &SEEDS);
    assert_eq!(tally(&sweeps.tables()), (15 + 9 + 15, vec![]));
    let replay = &vector("v3_expected.json")["replay"];
    for sweep in &sweeps.sweeps {
        for (name, summary, _) in &sweep.points {
            check(summary, &replay[sweep.varies][name], &format!("{} {name}", sweep.varies));
        }
    }
}

/// The same files judge every attempt of every planner: V3 and the sweeps keep every figure.
#[test]
fn with_the_gates_on_all_48_figures_stay() {
    let agents = lab(|lab| Agents::live(lab, &SEEDS).unwrap());
    let v3 = V3::run(&agents, &SEEDS, &Control::ALL, DECISIONS);
    let tables = [v3.gates_table()];
    assert_eq!(tally(&tables), (9, vec![]));
    let clamp = Clamp::new();
    let judged = Cell::new(Judged::default());
    let sweeps = Sweeps::of(&SEEDS, &|setting| {
        let (gated, verdicts) = agents.plan_gated(setting, &clamp);
        judged.set(verdicts);
        assert_eq!(gated, agents.plan(setting), "{setting:?}");
        gated
    });
    assert_eq!(tally(&sweeps.tables()), (48 - 9, vec![]));
    let all = v3.gated.iter().map(|(_, judged)| *judged).chain([judged.get()]);
    for Judged { intents, clamped, denied } in all {
        assert!(intents > 20_000 && clamped == intents && denied == 0, "{clamped} of {intents}");
    }
    // The gates can forbid an attempt: without a verdict that admits it, nothing is attempted.
    let (v3, none) = (&v3.controls[0], &mut |_| false);
    assert!(v3.runs.iter().all(|run| run.attempts > 0));
    let denied = agents.plan_through(v3.setting, none);
    assert!(denied.runs.iter().all(|run| run.attempts + run.no_memory == 0));
}

#[test]
fn raw_and_calibrated_decide_alike() {
    let agents = lab(|lab| Agents::live(lab, &SEEDS).unwrap());
    let [raw, calibrated] =
        [Control::Raw, Control::CALIBRATED].map(|control| agents.plan(Setting::of(control)).runs);
    assert_eq!(raw, calibrated);
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
        assert!(example.recommended_confidence < example.confidence, "choosing has its price");
        assert_eq!(example.success_rate.get(), rate);
        assert_eq!(example.fact_key, "manipulation.grasp + glass_cup + sim_relaxed");
        assert_eq!(example.before, example.after);
    }
    assert_ne!(text.before, figure.before, "two agents");
}

#[test]
fn v1_fields_idempotence_and_order() {
    let v1 = lab(|lab| V1::run(lab).unwrap());
    let want = V1 {
        facts: 1,
        kind: "skill_success_rate".to_owned(),
        n: 1000,
        successes: 800,
        rate: "0.8".to_owned(),
        evidence: 1000,
        idempotent: true,
        order_free: true,
    };
    assert_eq!(v1, want);
    assert!(v1.table().rows.iter().all(|row| row.verdict == Verdict::Equal));
}

/// The events of an agent's log in the order of arrival.
fn events(agent: &Agent) -> Vec<EventRef> {
    let mut refs = Vec::new();
    let reader = agent.reader().unwrap();
    let snapshot = reader.view(&agent.identity).unwrap();
    let head = snapshot.view().head().unwrap();
    snapshot
        .view()
        .each_entry(Seq(1)..=head, |entry, _| {
            refs.extend((!is_housekeeping(&entry.event_type)).then_some(entry.event_ref));
            Ok::<_, ipse_store::Error>(())
        })
        .unwrap();
    refs
}

#[test]
fn v1_shuffles_and_v2_learns_twice() {
    lab(|lab| {
        V1::run(lab).unwrap();
        let [mut one, mut other] =
            ["v1", "v1-shuffled"].map(|store| events(&lab.agent(&lab.store(store), "v1").unwrap()));
        assert_ne!(one, other, "another order");
        one.sort();
        other.sort();
        assert_eq!(one, other, "of the same events");
        assert_eq!(one.len(), 1000);

        V2::run(lab).unwrap();
        let agent = lab.agent_of(&lab.store("v2"), &v2::manifest().unwrap()).unwrap();
        let fact = agent.known().iter().next().map(|fact| fact.n_observations);
        assert_eq!(fact, Some(200), "a hundred in each pass");
    });
}

/// Changes the operator in the manifests of a store, bypassing its interface.
fn edit(store: &Path) {
    let edit = r#"DROP TRIGGER manifest_is_frozen;
                  UPDATE manifest SET canonical =
                      replace(canonical, '"operator":"', '"operator":"not ')"#;
    rusqlite::Connection::open(store).unwrap().execute_batch(edit).unwrap();
}

/// The compared identity is computed from the store, not from a copy in the experiment.
#[test]
fn an_identity_is_computed_from_the_store() {
    lab(|lab| {
        let agent = lab.agent(&lab.store("edited"), "robot").unwrap();
        assert_eq!(agent.recomputed_identity().unwrap(), agent.identity);
        edit(&lab.store("edited"));
        assert_ne!(agent.recomputed_identity().unwrap(), agent.identity);

        lab.agent_of(&lab.store("v2"), &v2::manifest().unwrap()).unwrap();
        edit(&lab.store("v2"));
        let [before, once, twice] = V2::run(lab).unwrap().identities;
        assert!(before != once && before != twice);

        lab.agent(&lab.store("example"), "text").unwrap();
        edit(&lab.store("example"));
        let example = Example::live(lab, "text", TEXT).unwrap();
        assert_ne!(example.before, example.after);
    });
}

/// If this fails, do not edit the literal: an identity has changed.
const V2_IDENTITY: &str = "7b0532796c7e8297c3edf734e7f623f8280da6f363a6ae0f7951e43630c6b736";

#[test]
fn v2_identity_and_its_seven_inputs() {
    let v2 = lab(|lab| V2::run(lab).unwrap());
    assert!(v2.unchanged());
    assert_eq!(v2.identities.map(|identity| identity.to_string()), [V2_IDENTITY; 3]);
    assert_eq!(v2.facts, 1);
    let moved: BTreeSet<_> = v2.changed.iter().map(|(_, identity)| identity.to_string()).collect();
    assert_eq!(moved.len(), 7, "each change gives an identity of its own");
    assert!(!moved.contains(V2_IDENTITY));
    assert!(v2.table().rows.iter().all(|row| row.verdict != Verdict::Differs));
}

#[test]
fn the_errata_are_what_the_paper_prints() {
    for (number, erratum) in (1..).zip(ERRATA) {
        assert_eq!(erratum.number, number, "numbered without a gap");
    }
    let columns = &vector("v3_expected.json")["paper"]["not_reproducible_columns"];
    let agents = lab(|lab| Agents::live(lab, &SEEDS).unwrap());
    let table = V3::run(&agents, &SEEDS, &Control::ALL, DECISIONS).table();
    for (what, column) in [
        ("raw: attempts, mean", "raw_attempts"),
        ("raw: unproductive, mean", "raw_unprod"),
        ("raw: rate, mean", "raw_rate"),
        ("no_memory: unproductive, mean", "no_memory_unprod"),
        ("uniform: unproductive, mean", "uniform_unprod"),
    ] {
        let row = table.rows.iter().find(|row| row.what == what).unwrap();
        assert!(matches!(row.verdict, Verdict::Erratum(_)), "{what}");
        assert_eq!(row.paper.parse::<f64>().ok(), columns[column][0].as_f64(), "{what}");
        assert_eq!(row.ours.parse::<f64>().ok(), columns[column][1].as_f64(), "{what}");
    }
}

/// The text without line breaks and links.
fn plain(markdown: &str) -> String {
    let mut parts = markdown.split('[');
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        match part.split_once("](") {
            Some((name, rest)) => text += &(name.to_owned() + rest.split_once(')').unwrap().1),
            None => text += &format!("[{part}"),
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_errata_are_those_of_the_page() {
    let page = include_str!("../../../docs/paper.md");
    let (_, listed) = page.split_once("\n## Errata\n").unwrap();
    let (_, listed) = listed.split_once("\n1. ").unwrap();
    let say = |erratum: &Erratum| {
        let Erratum { number, title, reason } = erratum;
        format!("{number}. **{title}**: {reason}")
    };
    let ours: Vec<String> = ERRATA.iter().map(say).collect();
    assert_eq!(plain(&format!("1. {listed}")), ours.join(" "));
}

/// The least and the greatest figure of the seeds, as errata print them.
fn ends(figures: [f64; 10]) -> [String; 2] {
    let [least, most] = [f64::min, f64::max].map(|of| figures.into_iter().reduce(of).unwrap());
    [least, most].map(|end| format!("{end:.2}"))
}

/// The confidence of the fact about these attempts, read from a store.
fn confidence(lab: &Lab<'_>, name: &str, record: Record) -> f64 {
    let attempt = |number: u64| {
        json!({
            "id": number.to_string(), "type": "execution_result", "time": "2026-05-06T00:00:00Z",
            "data": { "skill_id": "grasp", "success": number < record.successes },
        })
        .to_string()
    };
    let mut agent = lab.agent(&lab.store("confidence"), name).unwrap();
    agent.learn(&(0..record.n).map(attempt).collect::<Vec<_>>()).unwrap();
    agent.known().iter().next().unwrap().confidence.get() as f64 / 1e6
}

/// The errata's claims about shrunk rates and about the confidence of facts.
#[test]
fn what_the_errata_say_of_confidence() {
    lab(|lab| {
        let store = lab.store("v3");
        let scenes = SEEDS.map(|seed| (seed, Scene::live(lab, &store, seed).unwrap()));
        let shrunk = |target: Target| {
            scenes.each_ref().map(|(_, scene)| Control::CALIBRATED.confidence(scene, target))
        };
        assert_eq!(ends(shrunk(Target::Glass)), ["0.64", "0.90"], "13");
        assert_eq!(
            format!("{:.2}", shrunk(Target::Glass).iter().sum::<f64>() / 10.0),
            "0.75",
            "13"
        );
        assert_eq!(ends(shrunk(Target::Unknown)), ["0.30", "0.45"], "24");
        let facts = scenes.each_ref().map(|(seed, scene)| {
            confidence(lab, &seed.to_string(), scene.known(Target::Unknown).unwrap())
        });
        assert_eq!(ends(facts), ["0.56", "0.82"], "20");
    });
}

/// The errata's claims about V3 that no table shows.
#[test]
fn what_the_errata_say_of_v3() {
    let agents = lab(|lab| Agents::live(lab, &SEEDS).unwrap());
    let calibrated = Setting::of(Control::CALIBRATED);
    let table = V3::run(&agents, &SEEDS, &Control::ALL, DECISIONS).table();
    let below = table.rows.iter().find(|row| row.what == "points below the interval").unwrap();
    assert_eq!(below.ours, "3.44", "12");

    let high = agents.plan(Setting { threshold: 0.7, ..calibrated });
    let idle: Vec<_> = high.runs.iter().filter(|run| run.attempts == 0).collect();
    assert_eq!(idle.iter().map(|run| run.seed).collect::<Vec<_>>(), [20_260_507], "23");
    assert_eq!(idle[0].reduction(), 100.0, "23");
    let others: f64 = high.runs.iter().filter(|run| run.attempts > 0).map(Run::reduction).sum();
    assert_eq!(format!("{:.1}", others / 9.0), "79.5", "23");
    let [plateau, below] =
        [0.64, 0.5].map(|threshold| agents.plan(Setting { threshold, ..calibrated }));
    assert_eq!(plateau.runs, below.runs, "23");
    assert_ne!(agents.plan(Setting { threshold: 0.65, ..calibrated }).runs, below.runs, "23");

    // At exactly the threshold, only the comparison "at least" decides.
    let heavy = Setting::of(Control::Calibrated { mean: 0.7, weight: 20.0 });
    for (setting, above) in [(Setting { threshold: 0.3, ..calibrated }, 0.3), (heavy, 0.5)] {
        let moved = Setting { threshold: f64::next_up(above), ..setting };
        let fewer = |run: &&Run| run.attempts < u64::from(DECISIONS);
        assert_eq!(agents.plan(moved).runs.iter().filter(fewer).count(), 4, "24");
    }

    let at = |decisions| agents.plan(Setting { decisions, ..calibrated });
    assert_eq!(format!("{:.2}", at(500).reduction()), "79.89", "32");

    let own = |run: &Run| 100.0 * (1.0 - run.unproductive as f64 / run.own_no_memory as f64);
    let uniform = agents.plan(Setting::of(Control::Uniform));
    assert_eq!(format!("{:.2}", uniform.mean(own)), "-0.07", "21");
}
