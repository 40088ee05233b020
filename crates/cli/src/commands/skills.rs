//! `skills`: lists the skills of the registry and the skills that the agent has tried.

use crate::context::Context;
use crate::gate_files::text;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use anyhow::bail;
use ipse::{GATE_FIELDS, gate_fields_of};
use ipse_core::{hex, sha256};
use ipse_gates::Registry;
use ipse_inspect::{Look, Skills};
use std::path::{Path, PathBuf};

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

/// Reads a registry, and checks that a manifest has its hash.
fn registry(path: &Path, manifest: &str) -> anyhow::Result<Registry> {
    let (text, name) = (text(path)?, path.display());
    let hash = hex::encode(&sha256(&[text.as_bytes()]));
    let [named, ..] = gate_fields_of(manifest).unwrap_or_default();
    if named != hash {
        let field = GATE_FIELDS[0];
        bail!(
            "{name} is not the file that the agent is bound to: its SHA-256 is {hash}, and the \
             manifest's {field} is {named}"
        );
    }
    Registry::parse(&text).map_err(|errors| {
        let lines: String = errors.iter().map(|error| format!("\n  {name}: {error}")).collect();
        anyhow::anyhow!("the registry cannot be read:{lines}")
    })
}
