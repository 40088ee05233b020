//! `config`: shows and changes the settings of an identity.

use crate::context::Context;
use crate::erasure::note_pending_erase;
use crate::retention::{RETENTION, Retention};
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use anyhow::bail;
use ipse_core::Identity;
use ipse_core::json::{Members, quoted};
use ipse_store::{Reader, Signatures};

/// The setting for producers' signatures.
const SIGNATURES: &str = "signatures";
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
            _ => {}
        }
    }
    if let Some(name) = name.filter(|name| ![RETENTION, SIGNATURES].contains(name)) {
        let name = ipse_door::printable(name);
        bail!("unknown setting `{name}`; the settings are: {RETENTION}, {SIGNATURES}");
    }
    let reader = context.store()?.reader()?;
    tell(context, terminal, &reader, name)?;
    if name == Some(RETENTION) && value.is_some_and(|value| value != OFF) {
        writeln!(terminal.err, "hint: `ipse prune --retention` applies it")?;
    }
    note_pending_erase(terminal, value.is_some() && reader.erase_pending()?)?;
    Ok(Exit::Fine)
}

fn set_retention(
    context: &Context,
    terminal: &mut Terminal<'_>,
    value: &str,
) -> anyhow::Result<()> {
    if value != OFF && Retention::parse(value).is_none() {
        let value = ipse_door::printable(value);
        bail!(
            "`{value}` is not a retention: give hours, days or weeks, such as 48h, 180d or 52w \
             (a hundred years at most), or {OFF}"
        );
    }
    let value = Some(value).filter(|value| *value != OFF);
    let (_, identity) = context.read_to_write(terminal)?;
    Ok(context.store()?.settings()?.set_retention(&identity, value)?)
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
    let (_, identity) = context.read_to_write(terminal)?;
    Ok(context.store()?.settings()?.set_signatures(&identity, policy)?)
}

/// An identity with its retention and its signature requirement.
type Setting = (Identity, Option<String>, Signatures);

/// Shows one setting, or all.
fn tell(
    context: &Context,
    terminal: &mut Terminal<'_>,
    reader: &Reader,
    name: Option<&str>,
) -> anyhow::Result<()> {
    let shown = |setting: &str| name.is_none_or(|name| name == setting);
    let mut all = Vec::new();
    for identity in context.identities()? {
        let policy = reader.view(&identity)?.view().signatures()?;
        all.push((identity, reader.retention(&identity)?, policy));
    }
    if context.json {
        let by_identity = |value: &dyn Fn(&Option<String>, Signatures) -> String| {
            let add = |members: Members, (identity, kept, policy): &Setting| {
                members.raw(identity.to_string(), value(kept, *policy))
            };
            all.iter().fold(Members::new(), add).finish()
        };
        let kept = by_identity(&|kept, _| kept.as_deref().map_or("null".to_string(), quoted));
        let policies = by_identity(&|_, policy| quoted(policy.name()));
        let json = Members::new()
            .optional(RETENTION, shown(RETENTION).then_some(kept))
            .optional(SIGNATURES, shown(SIGNATURES).then_some(policies));
        return Ok(terminal.json(&json.finish())?);
    }
    let several = all.len() > 1;
    for (identity, kept, policy) in all {
        let whose = if several { format!("  ({identity})") } else { String::new() };
        if shown(RETENTION) {
            let kept = kept.as_deref().map_or(OFF.to_string(), ipse_door::printable);
            writeln!(terminal.out, "{RETENTION:<10}  {kept}{whose}")?;
        }
        if shown(SIGNATURES) {
            writeln!(terminal.out, "{SIGNATURES}  {}{whose}", policy.name())?;
        }
    }
    Ok(())
}
