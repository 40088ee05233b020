//! `key revoke`: moves a key of the store to `revoked/`, or revokes a producer's key.

use super::{REVOKED, producers};
use crate::confirm;
use crate::context::Context;
use crate::passphrase;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use ipse::keys::{self, KeyError, Role};
use ipse_core::json::Members;
use ipse_ledger::NoteKey;
use ipse_store::Producer;
use std::path::Path;

/// Revokes a key; on a terminal it asks for confirmation first.
pub(super) fn run(
    context: &Context,
    terminal: &mut Terminal<'_>,
    name: &str,
    yes: bool,
) -> CommandResult {
    let role = [Role::Log, Role::Operator].into_iter().find(|role| role.name() == name);
    let what = match role {
        Some(Role::Log) => "This will revoke the log's key, and put its tree heads into revoked/.",
        Some(Role::Operator) => "This will revoke the operator's key.",
        None => {
            keys::check_producer_name(name)?;
            "This will reject later signatures of the producer."
        }
    };
    let directory = context.keys();
    if let Some(role) = role.filter(|role| !directory.has(*role)) {
        return Err(KeyError::Missing(directory.path().join(format!("{}.key", role.name()))).into());
    }
    if !yes && confirm::is_possible() && !confirm::agrees(terminal, what)? {
        writeln!(terminal.err, "nothing was changed")?;
        return Ok(Exit::Found);
    }
    if let Some(role) = role
        && context.is_there()
        && let Err(error) = context.announce_key_change(terminal, role)
    {
        // A key that is no longer safe is revoked anyway.
        writeln!(terminal.err, "WARNING: the log will not record this: {error:#}")?;
    }
    let place = match role {
        Some(Role::Log) => passphrase::open(terminal, |word| directory.revoke_log(word))?,
        Some(Role::Operator) => passphrase::open(terminal, |word| directory.revoke_operator(word))?,
        None => return revoke_producer(context, terminal, name),
    };
    revoked(context, terminal, name, Some(&place))?;
    writeln!(terminal.err, "hint: create another: ipse key new {name}")?;
    Ok(Exit::Fine)
}

fn revoke_producer(context: &Context, terminal: &mut Terminal<'_>, name: &str) -> CommandResult {
    let (reader, identity) = context.read_to_write(terminal)?;
    let directory = context.keys();
    let mut governor = context.governor(terminal, identity)?;
    let was_valid = governor.revoke_producer(name)?;
    context.tell_act_head(terminal, &mut governor)?;
    if !was_valid {
        let here = directory.producer_key(name)?;
        let is_left =
            |(key, producer): &(NoteKey, Producer)| producer.revoked && Some(key) == here.as_ref();
        // A process that died below has revoked the key and not moved its files.
        if !producers(&reader, &identity)?.iter().any(is_left) {
            writeln!(terminal.err, "no producer `{name}` has a key here; nothing was changed")?;
            return Ok(Exit::Found);
        }
    }
    // If the process dies here, the key is revoked. Its private half stays and is not accepted.
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
