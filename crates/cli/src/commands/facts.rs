//! `facts`: prints facts as a table, as JSON or as grounding text for a prompt.

use crate::context::Context;
use crate::pager::paged;
use crate::position::progress_at;
use crate::terminal::Terminal;
use crate::vocabulary::{at_least_one, moment, words};
use crate::{CommandResult, Exit};
use ipse_core::{FactKey, FactKind, Identity};
use ipse_engine::facts::{Chosen, Filter, ScoredFact};
use ipse_engine::grounding::{body, grounding, in_order, two_decimals};
use ipse_engine::{AsOf, Consultation, chosen_as_of};
use ipse_inspect::Moment;
use ipse_inspect::answer::{self, clean};
use ipse_store::View;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Values that a hint lists at most.
const MAX_VALUES: usize = 8;

/// Show the facts, the most useful first
///
/// Table and grounding text have the same order: recommendations first, then success rates, zones,
/// objects, failure patterns and advice on skills; JSON has the most confident first. A filter also
/// hides facts without that field: `--zone` shows only facts about zones.
///
/// The grounding format is one line per fact for a planner's prompt. Its bytes change only when a
/// fact in it or the number of facts beyond the limit changes, so that a prompt cache keeps it. It
/// prints the checkpoint and the id of the consultation on standard error.
///
/// On a terminal, a long table goes through a pager: `IPSE_PAGER`, else `PAGER`, else `less`.
///
/// Example: ipse facts --skill manipulation.grasp --format grounding; ipse facts --as-of 2026-05-03
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    selection: Selection,
    /// Show the facts that follow from the log up to this position, time or date: a time means the
    /// last position that ipse recorded by then
    #[arg(long, value_name = "WHEN", allow_negative_numbers = true, value_parser = moment)]
    as_of: Option<Moment>,
    /// Print the facts in this format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Selection {
    /// Show only facts about this skill
    #[arg(long, value_name = "SKILL_ID")]
    skill: Option<String>,
    /// Show only facts about this class of objects
    #[arg(long, value_name = "TARGET_CLASS")]
    target: Option<String>,
    /// Show only facts about this environment (failure patterns have none and are kept)
    #[arg(long, visible_alias = "env")]
    environment: Option<String>,
    /// Show only facts about this zone
    #[arg(long)]
    zone: Option<String>,
    /// Show only facts of this kind
    #[arg(long, value_parser = words(FactKind::ALL.map(FactKind::name), FactKind::parse))]
    kind: Option<FactKind>,
    /// Show at most N facts, the most confident ones
    #[arg(long, value_name = "N", value_parser = at_least_one::<u64>)]
    limit: Option<u64>,
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
    let (view, filter) = (snapshot.view(), args.selection.filter());
    let (progress, position) = progress_at(terminal, view, args.as_of)?;
    let chosen = match position {
        None => filter.chosen(view.facts()?)?,
        Some(_) => {
            let AsOf { facts, total, .. } = chosen_as_of(view, progress.checkpoint, &filter, None)?;
            Chosen { facts, total }
        }
    };
    let (facts, checkpoint) = (&chosen.facts, progress.checkpoint);
    let version = progress.rule_version.as_str();
    match format {
        Format::Json => {
            let answer = answer::consulted(&identity, checkpoint, version, &filter, &chosen);
            terminal.json(&match position {
                Some(position) => position.added_to(answer),
                None => answer,
            })?;
        }
        Format::Grounding => {
            terminal.out.write_all(grounding(&identity, version, &chosen).as_bytes())?;
            terminal.out.flush()?;
            let read = Consultation::of(&identity, checkpoint, version, &filter, facts);
            writeln!(terminal.err, "checkpoint {checkpoint}, consultation {}", read.id())?;
        }
        Format::Table => facts_table(terminal, &identity, &chosen)?,
    }
    if facts.is_empty() {
        let why = if position.is_some_and(|position| position.seq.0 == 0) {
            "no facts before the first event"
        } else if progress.checkpoint.0 == 0 {
            "no facts yet: import events, or run `ipse consolidate`"
        } else {
            "no fact matches"
        };
        writeln!(terminal.err, "{why}")?;
        for line in known_values(view, &filter)? {
            writeln!(terminal.err, "hint: {line}")?;
        }
    }
    Ok(Exit::fine_if(!facts.is_empty()))
}

/// The values that facts have, one line for each given filter whose value no fact has.
fn known_values(view: View<'_>, filter: &Filter) -> anyhow::Result<Vec<String>> {
    let given = [
        ("skill", &filter.skill),
        ("target", &filter.target),
        ("environment", &filter.environment),
        ("zone", &filter.zone),
    ];
    let given = given.into_iter().filter_map(|(part, value)| Some((part, value.as_deref()?)));
    let keys: Vec<_> = view.facts()?.into_iter().map(|fact| fact.key).collect();
    let mut lines = Vec::new();
    for (part, value) in given {
        let known: BTreeSet<_> = keys.iter().filter_map(|key| part_of(key, part)).collect();
        if known.is_empty() || known.contains(value) {
            continue;
        }
        let more = if known.len() > MAX_VALUES { ", …" } else { "" };
        let values: Vec<_> = known.iter().take(MAX_VALUES).map(|value| clean(value)).collect();
        lines.push(format!("facts have this {part}: {}{more}", values.join(", ")));
    }
    Ok(lines)
}

/// The part of a fact's key that a filter is compared with.
fn part_of(key: &FactKey, part: &str) -> Option<String> {
    let names: &[&str] = match key.kind() {
        FactKind::SkillSuccessRate => &["skill", "target", "environment"],
        FactKind::InteractionPattern => &["skill", "target"],
        FactKind::SkillAdvice => &["skill"],
        FactKind::ObjectProperty => &["target"],
        FactKind::ZoneRisk => &["zone"],
    };
    let index = names.iter().position(|name| *name == part)?;
    key.parts().into_iter().nth(index)
}

impl Selection {
    /// The filter of these arguments.
    pub(crate) fn filter(&self) -> Filter {
        Filter {
            skill: self.skill.clone(),
            target: self.target.clone(),
            environment: self.environment.clone(),
            zone: self.zone.clone(),
            kind: self.kind,
            limit: self.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX)),
        }
    }
}

/// Prints facts as a table, in the order of the grounding text, and says how many there are if a
/// person reads them or some are not shown.
pub(crate) fn facts_table(
    terminal: &mut Terminal<'_>,
    identity: &Identity,
    chosen: &Chosen,
) -> anyhow::Result<()> {
    let row = |fact: &Arc<ScoredFact>| {
        vec![
            two_decimals(fact.confidence),
            fact.n_observations.to_string(),
            fact.fact.key.kind().to_string(),
            clean(fact.fact.key.text()),
            clean(&body(fact)),
        ]
    };
    let rows: Vec<_> = in_order(identity, &chosen.facts).into_iter().map(row).collect();
    if rows.is_empty() {
        return Ok(());
    }
    paged(terminal, |terminal| Ok(terminal.table(&["CONF", "N", "KIND", "KEY", "SAYS"], &rows)?))?;
    let total = chosen.total;
    if chosen.left_out() > 0 {
        let shown = rows.len();
        writeln!(terminal.err, "{shown} of {total} facts; a higher --limit shows more")?;
    } else if terminal.width().is_some() {
        writeln!(terminal.err, "{}", answer::counted(total, "fact"))?;
    }
    Ok(())
}
