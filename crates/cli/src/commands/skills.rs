//! `skills`: lists the skills of the registry and the skills that the agent has tried.

use crate::context::Context;
use crate::gate_files::registry;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use ipse_inspect::{Look, Skills};
use std::path::PathBuf;

/// List the skills of the registry and the skills in facts
///
/// Without --ecm-registry it lists only the skills in facts. The registry must be the file whose
/// hash is in the manifest; with it the list shows the bounds of each parameter.
///
/// Example: ipse skills --ecm-registry ecm-registry.toml
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Read the registry from this file
    #[arg(long, value_name = "FILE")]
    ecm_registry: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let (reader, identity) = context.read()?;
    let manifest = Look::at(context.store()?, identity).standing()?.manifest;
    let registry = args.ecm_registry.as_deref().map(|path| registry(path, &manifest));
    let registry = registry.transpose()?;
    let facts = reader.view(&identity)?.view().facts()?;
    let skills = Skills::new(registry.as_ref(), facts.iter().map(|fact| &fact.key));
    match context.json {
        true => terminal.json(&skills.json())?,
        false => terminal.page(&skills.page())?,
    }
    if skills.skills.is_empty() {
        writeln!(terminal.err, "no skills yet: give --ecm-registry, or import events")?;
    }
    Ok(Exit::fine_if(!skills.skills.is_empty()))
}
