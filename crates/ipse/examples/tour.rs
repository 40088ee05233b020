//! The whole library in one program: register, record, import, consult, propose, explain, forget,
//! export, verify, and move the log to another store.
#![allow(clippy::print_stdout)]

use ipse::{
    Agent, Answer, Attempt, Decision, Event, GateFile, GateFiles, Intent, IntentStanding, Manifest,
    Opening, Query, Result, import_bundle, verify_bundle,
};
use std::fs;
use std::path::Path;

fn main() -> Result<()> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    tour(directory.path())
}

fn tour(directory: &Path) -> Result<()> {
    // Register: the manifest names the gate files by their hashes.
    let [registry, policy, temperament] = GateFile::ALL.map(GateFile::example);
    let gates = GateFiles::new(registry, policy, temperament)?;
    let manifest = manifest(&gates)?;
    let opening = Opening { gates: Some(gates), ..Opening::default() };
    let store = directory.join("robot.db");
    let agent = Agent::register_with(&store, &manifest, opening)?;
    println!("identity {}", agent.identity());

    // Record one event, and import a file of them.
    let receipt = agent.record(grasp().param("force_n", 12).failed("slip"))?;
    println!("recorded {} at seq {}", receipt.event_ref, receipt.seq);
    let week: String = (1..=20).map(line).collect();
    let imported = agent.import(week.as_bytes())?;
    println!("imported {} events, rejected {}", imported.appended, imported.refused);

    // Consult: facts for code, a grounding text for a prompt.
    let answer = agent.consult(&Query::skill("manipulation.grasp").target("glass_cup"));
    print!("{}", answer.grounding());
    let fact = agent.fact("manipulation.grasp", "glass_cup", "ward3").expect("21 attempts");
    let force = fact.recommended("force_n").expect("20 of them worked").value;

    act(&agent, &answer, force)?;

    // Explain, forget, and check that the fact has changed.
    print!("{}", agent.explain(&fact.id(), 1)?.page());
    agent.forget([receipt.event_ref])?;
    let after =
        agent.fact("manipulation.grasp", "glass_cup", "ward3").expect("22 attempts are left");
    assert_eq!(after.success_rate(), Some(1.0));

    // Export, verify, and import the log into another store.
    let bundle = directory.join("robot.ipse");
    let mut file = fs::File::create(&bundle).map_err(|source| at(&bundle, source))?;
    println!("exported {} events", agent.export(&mut file)?.events);
    assert!(agent.verify()?.findings.is_empty());
    let keys = directory.join("robot.db.keys");
    let key = |name: &str| fs::read_to_string(keys.join(name)).map_err(|source| at(&keys, source));
    let (log, operator) = (key("log.vkey")?, key("operator.pub")?);
    let trusted = [log.as_str(), operator.as_str()];
    assert!(verify_bundle(&bundle, &trusted, &[])?.passed());
    let copy = directory.join("copy.db");
    drop(Agent::register(&copy, &manifest)?);
    let taken = import_bundle(&copy, &bundle, &trusted)?;
    let copied = Agent::open(&copy, taken.identity)?;
    assert_eq!(copied.facts(&Query::new()), agent.facts(&Query::new()));
    println!("the same facts in another store, of the same agent {}", copied.identity());
    Ok(())
}

fn grasp() -> Attempt {
    Event::attempt("manipulation.grasp").target("glass_cup").environment("ward3")
}

/// Proposes intents. The gates judge and record them before the agent acts, and the agent uses the
/// value that they admitted.
fn act(agent: &Agent, answer: &Answer, force: f64) -> Result<()> {
    let intent = Intent::new("manipulation.grasp").target("glass_cup").environment("ward3");
    let intent = intent.consulted(answer);
    let recommended = agent.propose(&intent.clone().param("force_n", force))?;
    // This force needs a person's decision.
    let waiting = agent.propose(&intent.param("force_n", 45))?;
    assert_eq!((waiting.standing(), waiting.may_act()), (IntentStanding::Waiting, false));
    let decided = agent.decide(&waiting.event_ref(), Decision::Confirmed)?;
    for proposed in [recommended, decided] {
        println!("the gates say {}", proposed.standing().name());
        if proposed.may_act() {
            let force = proposed.admitted("force_n").expect("the skill requires it");
            let attempt = grasp().intent(proposed.event_ref()).param("force_n", force);
            agent.record(attempt.success())?;
        }
    }
    agent.consolidate()?;
    Ok(())
}

fn manifest(gates: &GateFiles) -> Result<Manifest> {
    let fields = ipse::GATE_FIELDS;
    Ok(Manifest::new(|field| {
        let gate = fields.iter().position(|name| *name == field);
        Some(match (field, gate) {
            (_, Some(place)) => gates.hashes()[place].clone(),
            ("commissioned_at", _) => "2026-05-01T00:00:00Z".into(),
            (name, _) => format!("example {name}"),
        })
    })?)
}

/// One grasp that worked, as a line of a file.
fn line(number: u32) -> String {
    format!(
        "{{\"id\":\"{number}\",\"source\":\"arm\",\"type\":\"execution_result\",\
         \"time\":\"2026-05-06T10:{number:02}:00Z\",\"data\":{{\"skill_id\":\
         \"manipulation.grasp\",\"target_class\":\"glass_cup\",\"environment\":\"ward3\",\
         \"params\":{{\"force_n\":25}},\"success\":true}}}}\n"
    )
}

fn at(path: &Path, source: std::io::Error) -> ipse::Error {
    ipse::Error::File { path: path.display().to_string(), source }
}
