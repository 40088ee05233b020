//! `demo`: shows the paper's glass-cup week in a real store, on one screen.

use super::export;
use crate::context::Context;
use crate::pass_report::pass_words;
use crate::scratch::Scratch;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use anyhow::{Context as _, ensure};
use clap::parser::ValueSource;
use ipse::{Manifest, SystemHost};
use ipse_bundle::{Trust, verify};
use ipse_core::event::EXECUTION_RESULT;
use ipse_core::json::Members;
use ipse_core::{Admitted, Fact, Identity, sha256};
use ipse_door::{Origin, admit};
use ipse_engine::facts::Filter;
use ipse_engine::grounding::{body, grounding, two_decimals};
use ipse_engine::{Log, NextStep, Trigger};
use ipse_inspect::explain::Explanation;
use ipse_store::{Location, Store};
use std::path::Path;

const SKILL: &str = "manipulation.grasp";
const TARGET: &str = "glass_cup";
/// A stand-in for the agent's policy file.
const POLICY: &str = "max_force_n = 40";
/// Commands that work in this order as printed (a test runs them).
const TRY_NEXT: [&str; 5] = [
    "ipse manifest new > agent.toml",
    "ipse init --manifest agent.toml",
    "ipse record --skill grasp --target cup --param force_n=25 --success",
    "ipse facts",
    "ipse export -o agent.ipse",
];

/// Show a week of learning in a temporary store
///
/// Record fifteen grasps of a glass cup, learn from them, explain the fact, verify everything
/// without the store, and compare the identity before and after: it is byte-equal. An edited policy
/// gives another identity.
#[derive(clap::Args, Debug)]
pub(crate) struct Args;

/// Runs the demo; with `--json` it prints only the result.
pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, _: &Args) -> CommandResult {
    ensure!(
        context.given("store") != Some(ValueSource::CommandLine),
        "the demo uses a temporary store; leave out --store"
    );
    let json = context.json;
    let mut reported = Vec::new();
    let mut quiet = Terminal::plain(&mut reported, terminal.err);
    let identity = match json {
        true => show(&mut quiet)?,
        false => show(terminal)?,
    };
    if json {
        let json = Members::new()
            .text("identity_before", &identity.to_string())
            .text("identity_after", &identity.to_string())
            .raw("byte_equal", true)
            .finish();
        terminal.json(&json)?;
    }
    Ok(Exit::Fine)
}

fn show(terminal: &mut Terminal<'_>) -> anyhow::Result<Identity> {
    let directory = Scratch::new()?;
    let context = Context::on(Location::file(directory.path().join("demo.db")));
    let before =
        Store::create(&context.location)?.register(&manifest(POLICY)?.canonical())?.identity;
    context.keys().create(&before, &mut SystemHost::random, None)?;
    writeln!(terminal.out, "One week with a glass cup, in a temporary store.\n")?;
    writeln!(terminal.out, "identity  {before}")?;
    let mut log = context.write(terminal)?;
    let done = log.append(&week()?, NextStep::Nothing)?;
    writeln!(
        terminal.out,
        "lived     {} grasps: 3 at 15 N slipped, 12 at 25 N held",
        done.appended.len()
    )?;
    let pass = log.consolidate(Trigger::Manual)?;
    writeln!(terminal.out, "learned   {}\n", pass_words(pass.as_ref()))?;
    let fact = show_fact(terminal, context.store()?, &before)?;
    show_why(terminal, context.store()?, &before, &fact)?;
    show_proof(terminal, &context, directory.path())?;
    finish(terminal, context.store()?, &mut log, &before)
}

/// The manifest of an agent with this policy file.
fn manifest(policy: &str) -> anyhow::Result<Manifest> {
    let value = |field: &str| match field {
        "agent_id" => "ward-robot-01".to_string(),
        "operator" => "St. Example Hospital".to_string(),
        "embodiment" => "two-arm-mobile/rev-c".to_string(),
        "commissioned_at" => "2026-04-20T08:00:00Z".to_string(),
        "policy_hash" => ipse_core::hex::encode(&sha256(&[policy.as_bytes()])),
        file => ipse_core::hex::encode(&sha256(&[file.as_bytes()])),
    };
    Ok(Manifest::new(|field| Some(value(field)))?)
}

/// Fifteen attempts, two a day.
fn week() -> anyhow::Result<Vec<Admitted>> {
    (0..15).map(attempt).collect()
}

fn attempt(number: u32) -> anyhow::Result<Admitted> {
    let slipped = number < 3;
    let reason = slipped.then(|| ipse_core::json::quoted("slip"));
    let force = Members::new().raw("force_n", if slipped { 15 } else { 25 }).finish();
    let data = Members::new()
        .text("skill_id", SKILL)
        .text("target_class", TARGET)
        .text("environment", "sim_relaxed")
        .raw("params", force)
        .raw("success", !slipped)
        .optional("failure_reason", reason)
        .finish();
    let (day, hour) = (20 + number / 2, 9 + 6 * (number % 2));
    let event = Members::new()
        .text("id", &format!("grasp-{:02}", number + 1))
        .text("source", "robot-7")
        .text("type", EXECUTION_RESULT)
        .text("time", &format!("2026-04-{day}T{hour:02}:00:00Z"))
        .raw("data", data)
        .finish();
    let mut salt = [0; 16];
    getrandom::fill(&mut salt).context("the system's random generator failed")?;
    Ok(admit(event.as_bytes(), Origin::Producer, || salt)?)
}

fn show_fact(
    terminal: &mut Terminal<'_>,
    store: &Store,
    identity: &Identity,
) -> anyhow::Result<Fact> {
    let reader = store.reader()?;
    let facts = reader.view(identity)?.view().facts()?;
    let filter = Filter {
        skill: Some(SKILL.to_string()),
        kind: Some(ipse::FactKind::SkillSuccessRate),
        ..Filter::default()
    };
    let chosen = filter.chosen(facts)?;
    let fact = chosen.facts.first().context("BUG: the pass made no fact")?;
    let (confidence, n) = (two_decimals(fact.confidence), fact.n_observations);
    writeln!(terminal.out, "the fact  {}", fact.fact.key.text())?;
    writeln!(terminal.out, "  {}", body(fact))?;
    writeln!(terminal.out, "  confidence {confidence}, {n} observations\n")?;
    writeln!(terminal.out, "what a planner reads, ready for its prompt:")?;
    for line in grounding(identity, "v1", &chosen).lines() {
        writeln!(terminal.out, "  {line}")?;
    }
    Ok(fact.fact.clone())
}

/// Shows the evidence of the fact, as `ipse explain` does.
fn show_why(
    terminal: &mut Terminal<'_>,
    store: &Store,
    identity: &Identity,
    fact: &Fact,
) -> anyhow::Result<()> {
    let reader = store.reader()?;
    let snapshot = reader.view(identity)?;
    let why = Explanation::of(snapshot.view(), identity, fact, Some(1))?;
    writeln!(terminal.out, "\nwhy (ipse explain):")?;
    for words in &why.words {
        terminal.prose(2, words)?;
    }
    for line in why.charts.iter().flat_map(|chart| chart.lines()) {
        writeln!(terminal.out, "  {line}")?;
    }
    Ok(())
}

/// Exports everything as one bundle, and verifies it without the store.
fn show_proof(
    terminal: &mut Terminal<'_>,
    context: &Context,
    directory: &Path,
) -> anyhow::Result<()> {
    let mut words = std::io::sink();
    let mut reported = std::io::sink();
    let (output, cosigned) = (directory.join("demo.ipse"), false);
    let (force, gates, from, to) = (false, None, None, None);
    let args = export::Args { output: output.clone(), force, gates, from, to, cosigned };
    export::run(context, &mut Terminal::plain(&mut reported, &mut words), &args)?;
    let keys = context.keys();
    let mut trust = Trust::default();
    for key in ["log.vkey", "operator.pub"] {
        trust.add(&std::fs::read_to_string(keys.path().join(key))?)?;
    }
    let bundle = std::fs::read(&output)?;
    let report = verify(&bundle, &trust, &[], &mut |_, _| {})?;
    ensure!(report.passed(), "BUG: a bundle does not verify: {}", report.json());
    let entries = report.size.unwrap_or_default();
    writeln!(
        terminal.out,
        "\nall of it as one signed file of {} kB, verified without the store:\n  \
         {entries} entries under one signed tree head, the facts re-derived byte for byte",
        bundle.len().div_ceil(1000)
    )?;
    Ok(())
}

fn finish(
    terminal: &mut Terminal<'_>,
    store: &Store,
    log: &mut Log,
    before: &Identity,
) -> anyhow::Result<Identity> {
    let again = log.consolidate(Trigger::Manual)?;
    ensure!(again.is_none(), "BUG: a second pass found something new");
    writeln!(terminal.out, "\nlearning again from the same log: {}", pass_words(None))?;
    let stored = store.reader()?.manifests()?;
    let after = Manifest::from_canonical(stored[0].1.as_bytes())?.identity();
    ensure!(after == *before, "BUG: the identity moved");
    writeln!(terminal.out, "identity  {after}")?;
    writeln!(terminal.out, "          byte-equal: it learned, and is the same agent")?;
    let edited = manifest("max_force_n = 41")?.identity();
    ensure!(edited != *before, "BUG: an edited policy did not change the identity");
    writeln!(terminal.out, "\none number of its policy file edited:")?;
    writeln!(terminal.out, "identity  {edited}")?;
    writeln!(terminal.out, "          another agent, with an empty log of its own\n")?;
    writeln!(terminal.out, "try next:")?;
    for command in TRY_NEXT {
        writeln!(terminal.out, "  {command}")?;
    }
    Ok(after)
}
