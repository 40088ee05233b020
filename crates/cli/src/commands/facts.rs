//! `facts`: what the agent knows, as a table, as JSON or as a block for a prompt.

use crate::context::Context;
use crate::position::progress_at;
use crate::terminal::Terminal;
use crate::vocabulary::words;
use crate::{CommandResult, Exit};
use ipse_core::FactKind;
use ipse_engine::chosen_as_of;
use ipse_engine::facts::{Filter, ScoredFact};
use ipse_engine::grounding::{body, grounding, two_decimals};
use ipse_inspect::answer::{self, clean, rule_version};
use std::sync::Arc;

/// Show what the agent knows
///
/// Facts by confidence, the best first. A filter leaves out kinds of facts whose key has no
/// such part. The grounding format is one line per fact for a planner's prompt; its bytes
/// change only when a fact in it changes, so that a prompt cache keeps it.
///
/// Example: ipse facts --skill manipulation.grasp --format grounding
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Only facts about this skill
    #[arg(long, value_name = "SKILL_ID")]
    skill: Option<String>,
    /// Only facts about this class of objects
    #[arg(long, value_name = "TARGET_CLASS")]
    target: Option<String>,
    /// Only facts about this environment (patterns of failure have none and stay)
    #[arg(long, visible_alias = "env")]
    environment: Option<String>,
    /// Only facts about this zone
    #[arg(long)]
    zone: Option<String>,
    /// Only facts of this kind
    #[arg(long, value_parser = words(FactKind::ALL.map(FactKind::name), FactKind::parse))]
    kind: Option<FactKind>,
    /// At most so many, the most confident ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// What the log up to that position gives: what a pass there would have known
    #[arg(long, value_name = "SEQ", allow_negative_numbers = true)]
    as_of: Option<u64>,
    /// How to print them
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Table,
    Json,
    Grounding,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let format = if context.json { Format::Json } else { args.format };
    let position = args.as_of;
    let (view, filter) = (snapshot.view(), filter(args));
    let progress = progress_at(terminal, view, position)?;
    let facts = match position {
        None => filter.choose(view.facts()?)?,
        Some(_) => chosen_as_of(view, progress.checkpoint, &filter, None)?.facts,
    };
    match format {
        Format::Json => {
            let version = rule_version(&progress.rule_version);
            let checkpoint = progress.checkpoint;
            let answer = answer::consulted(&identity, checkpoint, version, &filter, &facts);
            terminal.json(&answer)?;
        }
        Format::Grounding => {
            let text = grounding(&identity, rule_version(&progress.rule_version), &facts);
            terminal.out.write_all(text.as_bytes())?;
        }
        Format::Table => facts_table(terminal, &facts)?,
    }
    if facts.is_empty() {
        let why = if position == Some(0) {
            "before the first event nothing is known"
        } else if progress.checkpoint.0 == 0 {
            "no facts yet: import events, or run `ipse consolidate`"
        } else {
            "no fact matches"
        };
        writeln!(terminal.err, "{why}")?;
    }
    Ok(Exit::fine_if(!facts.is_empty()))
}

fn filter(args: &Args) -> Filter {
    Filter {
        skill: args.skill.clone(),
        target: args.target.clone(),
        environment: args.environment.clone(),
        zone: args.zone.clone(),
        kind: args.kind,
        limit: args.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
    }
}

fn facts_table(terminal: &mut Terminal<'_>, facts: &[Arc<ScoredFact>]) -> anyhow::Result<()> {
    let row = |fact: &Arc<ScoredFact>| {
        vec![
            two_decimals(fact.confidence),
            fact.n_observations.to_string(),
            fact.fact.key.kind().to_string(),
            clean(fact.fact.key.text()),
            clean(&body(fact)),
        ]
    };
    let rows: Vec<_> = facts.iter().map(row).collect();
    if !rows.is_empty() {
        terminal.table(&["CONF", "N", "KIND", "KEY", "SAYS"], &rows)?;
    }
    Ok(())
}
