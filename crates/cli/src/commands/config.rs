//! `config`: what an operator sets for a store.

use crate::context::Context;
use crate::erasure::note_pending_erase;
use crate::retention::{RETENTION, Retention};
use crate::terminal::Terminal;
use crate::{Exit, Ran};
use anyhow::bail;
use ipse_core::Identity;
use ipse_core::json::{Members, quoted};
use ipse_store::Signatures;
use ipse_store::sqlite::{Reader, Settings};

/// What is done about producers' signatures, for one identity.
const SIGNATURES: &str = "signatures";
/// The word that takes a setting away.
const OFF: &str = "off";

/// Show or change what is set for this store
///
/// `retention`: how long events are kept, in hours, days or weeks, for the whole store. It is
/// applied by `ipse prune --retention`, never by itself.
///
/// `signatures`: what is done about producers' signatures, for one identity. `record` keeps
/// them and takes unsigned events too; `require` refuses what is unsigned or wrongly signed;
/// `off` passes signatures over.
///
/// Example: ipse config retention 180d
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The setting
    name: Option<String>,
    /// What it is to be; `off` takes it away
    #[arg(allow_hyphen_values = true)]
    value: Option<String>,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> Ran {
    let (name, value) = (args.name.as_deref(), args.value.as_deref());
    if let Some(value) = value {
        match name {
            Some(RETENTION) => set_retention(context, value)?,
            Some(SIGNATURES) => set_signatures(context, value)?,
            _ => {}
        }
    }
    if let Some(name) = name.filter(|name| ![RETENTION, SIGNATURES].contains(name)) {
        let name = ipse_door::printable(name);
        bail!("there is no setting `{name}`; there are: {RETENTION}, {SIGNATURES}");
    }
    let reader = Reader::open(&context.store)?;
    tell(context, terminal, &reader, name)?;
    if name == Some(RETENTION) && value.is_some() && reader.setting(RETENTION)?.is_some() {
        writeln!(terminal.err, "hint: `ipse prune --retention` applies it")?;
    }
    note_pending_erase(terminal, value.is_some() && reader.erase_pending()?)?;
    Ok(Exit::Fine)
}

fn set_retention(context: &Context, value: &str) -> anyhow::Result<()> {
    if value != OFF && Retention::parse(value).is_none() {
        let value = ipse_door::printable(value);
        bail!(
            "`{value}` is no retention: say hours, days or weeks, such as 48h, 180d or 52w \
             (a hundred years at most), or {OFF}"
        );
    }
    let value = Some(value).filter(|value| *value != OFF);
    Ok(Settings::open(&context.store)?.set(RETENTION, value)?)
}

fn set_signatures(context: &Context, value: &str) -> anyhow::Result<()> {
    let Some(policy) = Signatures::parse(value) else {
        let (value, words) = (ipse_door::printable(value), Signatures::ALL.map(Signatures::name));
        bail!("`{value}` is no policy on signatures: say {}", words.join(", "));
    };
    let (_, identity) = context.read_or_migrate()?;
    Ok(Settings::open(&context.store)?.set_signatures(&identity, policy)?)
}

/// Says what is set: one setting, or all.
fn tell(
    context: &Context,
    terminal: &mut Terminal<'_>,
    reader: &Reader,
    name: Option<&str>,
) -> anyhow::Result<()> {
    let shown = |setting: &str| name.is_none_or(|name| name == setting);
    let retention = reader.setting(RETENTION)?;
    let mut policies = Vec::new();
    for identity in context.identities()?.into_iter().filter(|_| shown(SIGNATURES)) {
        policies.push((identity, reader.view(&identity)?.view().signatures()?));
    }
    if context.json {
        let text = retention.as_deref().map_or("null".to_string(), quoted);
        let policy = |members: Members, (identity, policy): &(Identity, Signatures)| {
            members.text(identity.to_string(), policy.name())
        };
        let policies = policies.iter().fold(Members::new(), policy).finish();
        let json = Members::new()
            .optional(RETENTION, shown(RETENTION).then_some(text))
            .optional(SIGNATURES, shown(SIGNATURES).then_some(policies));
        return Ok(terminal.json(&json.finish())?);
    }
    if shown(RETENTION) {
        let shown = retention.as_deref().map_or(OFF.to_string(), ipse_door::printable);
        writeln!(terminal.out, "{RETENTION:<10}  {shown}")?;
    }
    let several = policies.len() > 1;
    for (identity, policy) in policies {
        let whose = if several { format!("  ({identity})") } else { String::new() };
        writeln!(terminal.out, "{SIGNATURES}  {}{whose}", policy.name())?;
    }
    Ok(())
}
