//! `init` and `identity`: who the agent is.

use super::Exit;
use super::context::{Context, note_pending_erase};
use super::manifest_file;
use super::passphrase;
use super::terminal::{Terminal, counted};
use ipse::SystemHost;
use ipse::keys::Role;
use ipse_core::json::Members;
use ipse_core::{Identity, sha256};
use ipse_engine::{Census, census};
use ipse_manifest::{FIELDS, Manifest};
use ipse_store::sqlite::{Reader, create};
use std::path::Path;

pub(crate) fn init(
    context: &Context,
    terminal: &mut Terminal<'_>,
    file: &Path,
    encrypt: bool,
) -> anyhow::Result<Exit> {
    // The manifest is read first: a bad one must not leave an empty store behind.
    let manifest = manifest_file::read(file)?;
    let keys = context.keys();
    let all_there = keys.has(Role::Log) && keys.has(Role::Operator);
    let passphrase = passphrase::chosen_if(encrypt && !all_there, terminal)?;
    let registered = create(&context.store)?.register(&manifest.canonical())?;
    // A link that led nowhere leads to the store now, and the keys belong beside that.
    let keys = context.keys();
    let word = passphrase.as_ref().map(|passphrase| passphrase.as_str());
    let made = keys.create(&registered.identity, &mut SystemHost::random, word);
    let made = made.map_err(anyhow::Error::from);
    if context.json {
        let json = Members::new()
            .text("identity_hash", &registered.identity.to_string())
            .raw("created", registered.created);
        let json = match &made {
            Ok(_) => json,
            Err(error) => json.text("keys_error", &format!("{error:#}")),
        };
        terminal.json(&json.finish())?;
    } else {
        writeln!(terminal.out, "{}", registered.identity)?;
    }
    let store = context.store.display();
    let words = if registered.created { "registered" } else { "already registered" };
    writeln!(terminal.err, "{words} in {store}")?;
    tell_keys(context, terminal, &made)?;
    let reader = Reader::open(&context.store)?;
    note_pending_erase(terminal, reader.erase_pending()?)?;
    let others = reader.manifests()?.len() - 1;
    if registered.created && others > 0 {
        writeln!(
            terminal.err,
            "note: {store} holds {others} more; this manifest is another identity with its own log"
        )?;
    }
    Ok(Exit::fine_if(made.is_ok()))
}

/// Says once where the keys are, or why they are not complete. A store without keys works; it only
/// signs nothing.
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
            "keys in {path}: {} (keep them; give log.vkey and operator.pub to whoever will check)",
            made.join(", ")
        )?,
        Err(error) => {
            writeln!(
                terminal.err,
                "error: the keys in {path} are not complete, so nothing is signed: {error:#}"
            )?;
            let hint = context.hint(error).map(|hint| format!("{hint}, then ")).unwrap_or_default();
            writeln!(
                terminal.err,
                "hint: {hint}run `ipse init` again, which makes what is missing"
            )?;
        }
    }
    Ok(())
}

pub(crate) fn identity(
    context: &Context,
    terminal: &mut Terminal<'_>,
    canonical: bool,
    file: Option<&Path>,
) -> anyhow::Result<Exit> {
    let given = file.map(manifest_file::read).transpose()?.map(|manifest| manifest.identity());
    let (reader, identity) = context.read()?;
    let stored = stored_manifest(&reader, &identity)?;
    if canonical {
        terminal.out.write_all(stored.as_bytes())?;
        return Ok(Exit::Fine);
    }
    let standing = Standing::of(&reader, &identity, &stored)?;
    if context.json {
        let same = given.map(|given| given == identity);
        terminal.json(&standing.json(&identity, &stored, same))?;
    } else {
        standing.print(terminal, &identity, &stored)?;
    }
    let same = given.is_none_or(|given| given == identity);
    if let (false, Some(given)) = (same, given) {
        writeln!(terminal.err, "the manifest file is another identity: {given}")?;
    }
    Ok(Exit::fine_if(standing.unchanged && same))
}

pub(crate) fn stored_manifest(reader: &Reader, identity: &Identity) -> anyhow::Result<String> {
    let wanted = identity.to_string();
    let found = reader.manifests()?.into_iter().find(|(hash, _)| *hash == wanted);
    Ok(found.map(|(_, canonical)| canonical).unwrap_or_default())
}

struct Standing {
    events: u64,
    forgotten: u64,
    passes: u64,
    unchanged: bool,
}

impl Standing {
    fn of(reader: &Reader, identity: &Identity, stored: &str) -> anyhow::Result<Self> {
        let snapshot = reader.view(identity)?;
        let view = snapshot.view();
        let passes = view.pass_count()?;
        let manifest = Manifest::from_canonical(stored.as_bytes());
        let unchanged = manifest.is_ok_and(|manifest| manifest.identity() == *identity);
        let Census { events, forgotten } = census(view)?;
        Ok(Standing { events, forgotten, passes, unchanged })
    }

    fn json(&self, identity: &Identity, stored: &str, same_as_file: Option<bool>) -> String {
        let parsed = Manifest::from_canonical(stored.as_bytes()).is_ok();
        Members::new()
            .text("identity_hash", &identity.to_string())
            .raw("manifest", if parsed { stored } else { "null" })
            .raw("events", self.events)
            .raw("forgotten", self.forgotten)
            .raw("passes", self.passes)
            .raw("unchanged", self.unchanged)
            .optional("same_as_file", same_as_file)
            .finish()
    }

    fn print(
        &self,
        terminal: &mut Terminal<'_>,
        identity: &Identity,
        stored: &str,
    ) -> anyhow::Result<()> {
        writeln!(terminal.out, "identity\n  {identity}")?;
        let value = ipse_core::json_parse::parse(stored.as_bytes(), 1).ok();
        for field in FIELDS {
            let text = value.as_ref().and_then(|value| value.as_object()?.get(field)?.as_text());
            let text = text.unwrap_or("(cannot be read)");
            // A hash beside its name would not fit eighty columns.
            let gap = if text.len() > 60 { "\n  " } else { "" };
            let width = if gap.is_empty() { 16 } else { 0 };
            writeln!(terminal.out, "{field:<width$}{gap}{text}")?;
        }
        let (events, passes) = (counted(self.events, "event"), counted(self.passes, "pass"));
        let forgotten = match self.forgotten {
            0 => String::new(),
            n => format!(", {n} forgotten"),
        };
        writeln!(terminal.out, "since then      {events}, {passes}{forgotten}")?;
        if self.unchanged {
            writeln!(terminal.out, "the identity is unchanged")?;
        } else {
            let now = Identity(sha256(&[stored.as_bytes()]));
            writeln!(terminal.out, "the identity is CHANGED: the stored manifest gives\n  {now}")?;
        }
        Ok(())
    }
}
