//! A robot that learns which grip force to use: consult, act, record.
#![allow(clippy::print_stdout)]

use ipse::{Agent, Event, Manifest, Query, Result};

fn main() -> Result<()> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let manifest = Manifest::new(|field| match field {
        "commissioned_at" => Some("2026-05-01T00:00:00Z".into()),
        hash if hash.ends_with("_hash") => Some("1".repeat(64)),
        name => Some(format!("example {name}")),
    })?;
    let agent = Agent::register(directory.path().join("robot.db"), &manifest)?;
    let before = agent.identity();

    for round in 0..60 {
        let known = agent.fact("grasp", "glass_cup", "ward3");
        let recommended = known.and_then(|fact| fact.recommended("force_n"));
        let force = recommended.map_or(f64::from(10 + round % 4 * 5), |it| it.value);
        let attempt = Event::attempt("grasp").target("glass_cup").environment("ward3");
        let attempt = attempt.param("force_n", force);
        // The world: below 20 N the cup slips.
        let event = if force < 20.0 { attempt.failed("slip") } else { attempt.success() };
        agent.record(event)?;
        agent.consolidate()?;
    }

    for fact in agent.facts(&Query::skill("grasp")) {
        println!("{} {:?}", fact.key().text(), fact.recommended("force_n"));
    }
    assert_eq!(agent.identity(), before);
    println!("still the same agent: {before}");
    Ok(())
}
