//! `init`: registers a manifest, and creates the store if it is missing.

use crate::confirm;
use crate::context::Context;
use crate::erasure::note_pending_erase;
use crate::gate_files;
use crate::hints;
use crate::manifest_file;
use crate::passphrase;
use crate::terminal::Terminal;
use crate::vocabulary::rule_set;
use crate::{CommandResult, Exit};
use ipse::keys::Role;
use ipse::{Manifest, SystemHost};
use ipse_consolidate::Rules;
use ipse_core::json::Members;
use ipse_engine::rules_name_at;
use ipse_store::{MAX_ARTEFACT_BYTES, Registered, Store};
use std::path::PathBuf;

/// Create or open the store, register a manifest, print the identity
///
/// A registered manifest is not changed. An edited manifest is another identity with a log of its
/// own.
///
/// Creates missing keys next to the store: one signs the log, one signs for the operator. Keep
/// them; give their public halves to auditors. A key that is already there is kept. If the manifest
/// names an operator key, that key must be there.
///
/// Example: ipse init --manifest agent.toml
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Register this manifest, TOML or JSON; `ipse manifest new` prints a template
    #[arg(long, value_name = "FILE")]
    manifest: PathBuf,
    /// Encrypt the new keys with a passphrase: from IPSE_PASSPHRASE, from the first line of the
    /// file that IPSE_PASSPHRASE_FILE names, or typed on the terminal
    #[arg(long)]
    passphrase: bool,
    /// Let the new log begin with this rule set: v1 is the paper's, v2 also notices when a rate
    /// changes [default: v1]
    #[arg(long, value_name = "VERSION", value_parser = rule_set)]
    rules: Option<Rules>,
    /// Do not ask before a second identity is registered
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    // The manifest is read first: an invalid one must not leave an empty store behind.
    let (manifest, named_files) = manifest_file::read_with_gates(&args.manifest)?;
    let keys = context.keys();
    let all_there = keys.has(Role::Log) && keys.has(Role::Operator);
    let passphrase = passphrase::chosen_if(args.passphrase && !all_there, terminal)?;
    let word = passphrase.as_ref().map(|passphrase| passphrase.as_str());
    keys.check_operator(&manifest, word)?;
    context.migrate_if_there(terminal)?;
    if !is_wanted(context, terminal, &manifest, args.yes)? {
        writeln!(terminal.err, "nothing was changed")?;
        return Ok(Exit::Found);
    }
    let registered = Store::create(&context.location)?.register(&manifest.canonical())?;
    // Bundles carry these files. A larger one is no gate file.
    for file in named_files.iter().filter(|file| file.len() <= MAX_ARTEFACT_BYTES) {
        gate_files::put(context.store()?, &registered.identity, file)?;
    }
    // A dangling link leads to the new store now, and the keys belong next to that file.
    let keys = context.keys();
    let made = keys.create(&registered.identity, &mut SystemHost::random, word);
    let made = made.map_err(anyhow::Error::from);
    let rules = begin_with_rules(context, terminal, &registered, args.rules)?;
    if context.json {
        let json = Members::new()
            .text("identity_hash", &registered.identity.to_string())
            .raw("created", registered.created)
            .text("rule_version", &rules);
        let json = match &made {
            Ok(_) => json,
            Err(error) => json.text("keys_error", &format!("{error:#}")),
        };
        terminal.json(&json.finish())?;
    } else {
        writeln!(terminal.out, "{}", registered.identity)?;
    }
    let store = &context.location;
    let words = if registered.created { "registered" } else { "already registered" };
    writeln!(terminal.err, "{words} in {store}")?;
    tell_keys(context, terminal, &made)?;
    writeln!(terminal.err, "rules: {}", about_rules(&rules, registered.created))?;
    if let Err(error) = manifest.operator_key() {
        writeln!(terminal.err, "note: {error}")?;
    }
    let reader = context.store()?.reader()?;
    note_pending_erase(terminal, reader.erase_pending()?)?;
    let others = reader.manifests()?.len() - 1;
    if registered.created && others > 0 {
        writeln!(
            terminal.err,
            "note: {store} now holds {} identities, each with its own log; select one with \
             --identity {}",
            others + 1,
            &registered.identity.to_string()[..8]
        )?;
    }
    Ok(Exit::fine_if(made.is_ok()))
}

/// Warns before a second identity is registered in a store: it begins with an empty memory, and
/// every command needs `--identity` to select one. On a terminal it asks.
fn is_wanted(
    context: &Context,
    terminal: &mut Terminal<'_>,
    manifest: &Manifest,
    yes: bool,
) -> anyhow::Result<bool> {
    let registered = match context.store() {
        Ok(store) => store.reader()?.manifests()?,
        // `Store::create` makes the store, or names the error.
        Err(_) => return Ok(true),
    };
    let identity = manifest.identity().to_string();
    let [(other, _), ..] = registered.as_slice() else { return Ok(true) };
    if registered.iter().any(|(hash, _)| *hash == identity) {
        return Ok(true);
    }
    let warning = format!(
        "warning: this store holds identity {}…, and this manifest is another identity: it begins \
         with an empty memory, and every command will need --identity",
        &other[..8]
    );
    writeln!(terminal.asks(), "{warning}")?;
    writeln!(
        terminal.err,
        "hint: `ipse identity --manifest FILE` lists the fields that differ; `ipse identity remove \
         {}` removes the new one while it has no event",
        &identity[..8]
    )?;
    Ok(yes || !confirm::is_possible() || confirm::agrees(terminal, "Register it as well?")?)
}

/// The rules in force, and for a new log with the default rules the other choice.
fn about_rules(version: &str, is_new: bool) -> String {
    match is_new && version == Rules::default().version() {
        true => format!("{version} (the paper's); --rules v2 also notices change"),
        false => version.to_owned(),
    }
}

/// Makes rules other than the default the first event of a new log. Returns the version of the
/// rules in force.
fn begin_with_rules(
    context: &Context,
    terminal: &mut Terminal<'_>,
    registered: &Registered,
    rules: Option<Rules>,
) -> anyhow::Result<String> {
    let reader = context.store()?.reader()?;
    let snapshot = reader.view(&registered.identity)?;
    let in_force = rules_name_at(snapshot.view(), snapshot.view().head()?)?.version;
    drop(snapshot);
    let Some(rules) = rules.filter(|rules| rules.version() != in_force) else {
        return Ok(in_force);
    };
    let mut log = context.write_as(terminal, registered.identity)?;
    log.begin_with_rules(rules)?;
    context.tell_head(terminal, &mut log)?;
    Ok(rules.version().to_owned())
}

/// Prints where the keys are, or why they are not complete. A store without keys works, but signs
/// nothing.
fn tell_keys(
    context: &Context,
    terminal: &mut Terminal<'_>,
    made: &anyhow::Result<Vec<&'static str>>,
) -> anyhow::Result<()> {
    let keys = context.keys();
    let path = keys.path().display();
    match made {
        Ok(made) if made.is_empty() => {}
        Ok(made) => writeln!(
            terminal.err,
            "keys in {path}: {} (keep them; give log.vkey and operator.pub to auditors)",
            made.join(", ")
        )?,
        Err(error) => {
            writeln!(
                terminal.err,
                "error: the keys in {path} are not complete, so nothing is signed: {error:#}"
            )?;
            let hint = hints::of(error, &context.location);
            let hint = hint.map(|hint| format!("{hint}, then ")).unwrap_or_default();
            writeln!(
                terminal.err,
                "hint: {hint}run `ipse init` again, which creates the missing keys"
            )?;
        }
    }
    Ok(())
}
