//! `config`: shows and changes the settings of an identity.

use crate::context::Context;
use crate::erasure::note_pending_erase;
use crate::retention::{RETENTION, hours, hours_text};
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use anyhow::bail;
use ipse_core::Identity;
use ipse_core::json::{Members, quoted};
use ipse_engine::Governor;
use ipse_store::{Reader, Signatures};

/// The setting for producers' signatures.
const SIGNATURES: &str = "signatures";
/// The setting for events that are dated ahead of the clock.
const MAX_AHEAD: &str = "max-ahead";
/// The settings, in the order in which they are shown.
const SETTINGS: [&str; 3] = [RETENTION, SIGNATURES, MAX_AHEAD];
/// The value that removes a setting.
const OFF: &str = "off";

/// Show or change the settings of an identity
///
/// `retention`: how long events are kept, in hours, days or weeks. Only `ipse prune --retention`
/// applies it.
///
/// `signatures`: how producers' signatures are handled. `record` stores them and accepts unsigned
/// events too; `require` rejects events that are unsigned or wrongly signed; `off` ignores
/// signatures.
///
/// `max-ahead`: how far an event may be dated ahead of the clock of this machine when it enters, in
/// hours, days or weeks; 1d if it was never set. Events that are dated later are refused. `off`
/// accepts any time.
///
/// Example: ipse config retention 180d
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Show or change only this setting
    name: Option<String>,
    /// Set it to this value; `off` removes it
    #[arg(allow_hyphen_values = true)]
    value: Option<String>,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let (name, value) = (args.name.as_deref(), args.value.as_deref());
    if let Some(value) = value {
        match name {
            Some(RETENTION) => set_retention(context, terminal, value)?,
            Some(SIGNATURES) => set_signatures(context, terminal, value)?,
            Some(MAX_AHEAD) => set_max_ahead(context, terminal, value)?,
            _ => {}
        }
    }
    if let Some(name) = name.filter(|name| !SETTINGS.contains(name)) {
        let name = ipse_door::printable(name);
        bail!("unknown setting `{name}`; the settings are: {}", SETTINGS.join(", "));
    }
    let reader = context.store()?.reader()?;
    tell(context, terminal, &reader, name)?;
    if name == Some(RETENTION) && value.is_some_and(|value| value != OFF) {
        writeln!(terminal.err, "hint: `ipse prune --retention` applies it")?;
    }
    note_pending_erase(terminal, value.is_some() && reader.erase_pending()?)?;
    Ok(Exit::Fine)
}

/// Parses a time in hours, or `off`.
fn hours_or_off(value: &str, what: &str) -> anyhow::Result<Option<u64>> {
    match hours(value) {
        None if value == OFF => Ok(None),
        None => {
            let value = ipse_door::printable(value);
            bail!(
                "`{value}` is not a {what}: give hours, days or weeks, such as 48h, 180d or 52w \
                 (a hundred years at most), or {OFF}"
            )
        }
        hours => Ok(hours),
    }
}

fn set_retention(
    context: &Context,
    terminal: &mut Terminal<'_>,
    value: &str,
) -> anyhow::Result<()> {
    let kept = hours_or_off(value, RETENTION)?.map(|_| value);
    change(context, terminal, |governor| governor.set_retention(kept))
}

fn set_max_ahead(
    context: &Context,
    terminal: &mut Terminal<'_>,
    value: &str,
) -> anyhow::Result<()> {
    let hours = hours_or_off(value, "value of max-ahead")?;
    change(context, terminal, |governor| governor.set_max_ahead(hours))
}

fn set_signatures(
    context: &Context,
    terminal: &mut Terminal<'_>,
    value: &str,
) -> anyhow::Result<()> {
    let Some(policy) = Signatures::parse(value) else {
        let (value, words) = (ipse_door::printable(value), Signatures::ALL.map(Signatures::name));
        bail!("`{value}` is not a value of {SIGNATURES}: give one of {}", words.join(", "));
    };
    change(context, terminal, |governor| governor.set_signatures(policy))
}

/// Changes a setting of the selected identity. The change is an act in its log.
fn change(
    context: &Context,
    terminal: &mut Terminal<'_>,
    change: impl FnOnce(&mut Governor) -> Result<(), ipse_engine::Error>,
) -> anyhow::Result<()> {
    let (_, identity) = context.read_to_write(terminal)?;
    let mut governor = context.governor(terminal, identity)?;
    change(&mut governor)?;
    context.tell_act_head(terminal, &mut governor)
}

/// The value of a setting of an identity; `None` if it is off.
fn value_of(reader: &Reader, of: &Identity, setting: &str) -> anyhow::Result<Option<String>> {
    Ok(match setting {
        RETENTION => reader.retention(of)?,
        SIGNATURES => Some(reader.view(of)?.view().signatures()?.name().to_owned()),
        _ => reader.view(of)?.view().max_ahead()?.map(hours_text),
    })
}

/// Shows one setting, or all.
fn tell(
    context: &Context,
    terminal: &mut Terminal<'_>,
    reader: &Reader,
    name: Option<&str>,
) -> anyhow::Result<()> {
    let shown = SETTINGS.into_iter().filter(|setting| name.is_none_or(|name| name == *setting));
    let (shown, identities) = (shown.collect::<Vec<_>>(), context.identities()?);
    if context.json {
        let mut all = Members::new();
        for setting in shown {
            let mut values = Members::new();
            for identity in &identities {
                let value = value_of(reader, identity, setting)?;
                let value = value.as_deref().map_or("null".to_string(), quoted);
                values = values.raw(identity.to_string(), value);
            }
            all = all.raw(setting, values.finish());
        }
        return Ok(terminal.json(&all.finish())?);
    }
    let several = identities.len() > 1;
    for identity in identities {
        let whose = if several { format!("  ({identity})") } else { String::new() };
        for setting in &shown {
            let value = value_of(reader, &identity, setting)?;
            let value = value.as_deref().map_or(OFF.to_string(), ipse_door::printable);
            writeln!(terminal.out, "{setting:<10}  {value}{whose}")?;
        }
    }
    Ok(())
}
