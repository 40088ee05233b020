//! `rules facts`: the facts that another rule set would give. No planner reads them.

use super::{Context, Exit, Terminal, Version};
use crate::CommandResult;
use crate::commands::facts::{Selection, facts_table};
use crate::position::within;
use crate::vocabulary::moment;
use ipse_engine::facts::Chosen;
use ipse_engine::{AsOf, chosen_as_of_with, rules_of};
use ipse_inspect::{Moment, answer};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Version,
    #[command(flatten)]
    selection: Selection,
    /// Derive them from the log up to this position, time or date; the checkpoint of the facts if
    /// absent
    #[arg(long, value_name = "WHEN", allow_negative_numbers = true, value_parser = moment)]
    as_of: Option<Moment>,
}

pub(super) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let rules = args.which.known()?;
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let (view, filter) = (snapshot.view(), args.selection.filter());
    let position = args.as_of.map(|moment| within(terminal, view, moment)).transpose()?;
    let seq = match position {
        Some(position) => position.seq,
        None => view.progress()?.checkpoint,
    };
    let AsOf { facts, total, .. } = chosen_as_of_with(view, rules, seq, &filter, None)?;
    let chosen = Chosen { facts, total };
    match context.json {
        true => {
            let json = answer::facts(&identity, seq, rules.version(), &chosen);
            let as_of = position.and_then(|position| position.json());
            terminal.json(&json.optional("as_of", as_of).finish())?;
        }
        false => facts_table(terminal, &identity, &chosen)?,
    }
    if rules_of(view).ok() != Some(rules) {
        let version = rules.version();
        writeln!(terminal.err, "note: {version} is not in force: no planner reads these facts")?;
    }
    Ok(Exit::fine_if(!chosen.facts.is_empty()))
}
