//! `key revoke`: a key of the store is put away, or a producer's no longer counts.

use super::{REVOKED, producers};
use crate::confirm;
use crate::context::Context;
use crate::passphrase;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use ipse::keys::{self, KeyError, Role};
use ipse_core::json::Members;
use ipse_ledger::NoteKey;
use std::path::Path;

/// Revokes a key, after a question on a terminal.
pub(super) fn run(
    context: &Context,
    terminal: &mut Terminal<'_>,
    name: &str,
    yes: bool,
) -> CommandResult {
    let role = [Role::Log, Role::Operator].into_iter().find(|role| role.name() == name);
    let what = match role {
        Some(Role::Log) => "This will put away the key that signs the log, and its tree heads.",
        Some(Role::Operator) => "This will put away the operator's key.",
        None => {
            keys::check_producer_name(name)?;
            "This will refuse what the producer signs from now on."
        }
    };
    let directory = context.keys();
    if let Some(role) = role.filter(|role| !directory.has(*role)) {
        return Err(KeyError::Missing(directory.path().join(format!("{}.key", role.name()))).into());
    }
    if !yes && confirm::is_seen() && !confirm::agrees(terminal, what)? {
        writeln!(terminal.err, "nothing was changed")?;
        return Ok(Exit::Found);
    }
    let place = match role {
        Some(Role::Log) => passphrase::open(terminal, |word| directory.revoke_log(word))?,
        Some(Role::Operator) => passphrase::open(terminal, |word| directory.revoke_operator(word))?,
        None => return revoke_producer(context, terminal, name),
    };
    revoked(context, terminal, name, Some(&place))?;
    writeln!(terminal.err, "make another: ipse key new {name}")?;
    Ok(Exit::Fine)
}

fn revoke_producer(context: &Context, terminal: &mut Terminal<'_>, name: &str) -> CommandResult {
    let (reader, identity) = context.read_to_write(terminal)?;
    let directory = context.keys();
    if !context.store_to_write(terminal)?.settings()?.revoke_producer(&identity, name)? {
        let here = directory.producer_key(name)?;
        let is_left = |(key, revoked): &(NoteKey, bool)| *revoked && Some(key) == here.as_ref();
        // A process that died below revoked it, and did not move its files.
        if !producers(&reader, &identity)?.iter().any(is_left) {
            writeln!(terminal.err, "no producer `{name}` may sign here; nothing was changed")?;
            return Ok(Exit::Found);
        }
    }
    // If the process dies here, the key is revoked. Its private half stays and signs nothing.
    let place = directory.revoke_producer(name)?;
    revoked(context, terminal, name, place.as_deref())?;
    Ok(Exit::Fine)
}

fn revoked(
    context: &Context,
    terminal: &mut Terminal<'_>,
    name: &str,
    place: Option<&Path>,
) -> anyhow::Result<()> {
    match context.json {
        true => terminal.json(&Members::new().text(REVOKED, name).finish())?,
        false => writeln!(terminal.out, "revoked {name}")?,
    }
    if let Some(place) = place {
        writeln!(terminal.err, "its files are in {}", place.display())?;
    }
    Ok(())
}
