//! `config`: what an operator sets for a store.

use super::Exit;
use super::context::{Context, note_pending_erase};
use super::terminal::Terminal;
use anyhow::{Context as _, bail};
use ipse_core::Identity;
use ipse_core::json::{Members, quoted};
use ipse_store::Signatures;
use ipse_store::sqlite::{Reader, Settings};

/// How long events are kept, for the whole store.
pub(crate) const RETENTION: &str = "retention";
/// What is done about producers' signatures, for one identity.
const SIGNATURES: &str = "signatures";
/// The word that takes a setting away.
const OFF: &str = "off";
/// The longest retention: a hundred years.
const MAX_HOURS: u64 = 36_500 * 24;

/// How long events are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Retention {
    hours: u64,
}

impl Retention {
    fn parse(text: &str) -> Option<Self> {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let hours_each = match unit {
            "h" => 1,
            "d" => 24,
            "w" => 24 * 7,
            _ => return None,
        };
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let hours = number.parse::<u64>().ok().filter(|_| digits)?.checked_mul(hours_each)?;
        (1..=MAX_HOURS).contains(&hours).then_some(Retention { hours })
    }

    pub(crate) fn micros(self) -> i64 {
        self.hours.cast_signed() * 3_600_000_000
    }
}

/// What a store's retention is set to.
pub(crate) fn retention(reader: &Reader) -> anyhow::Result<Option<Retention>> {
    let Some(text) = reader.setting(RETENTION)? else { return Ok(None) };
    let text = ipse_door::printable(&text);
    let hint = format!("set it: ipse config {RETENTION} 180d");
    let damaged = || format!("the store's {RETENTION} is `{text}`, which is none; {hint}");
    Retention::parse(&text).map(Some).with_context(damaged)
}

pub(crate) fn run(
    context: &Context,
    terminal: &mut Terminal<'_>,
    name: Option<&str>,
    value: Option<&str>,
) -> anyhow::Result<Exit> {
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

#[cfg(test)]
mod tests {
    use super::Retention;

    #[test]
    fn retentions_are_hours_days_or_weeks() {
        let hours = |text: &str| Retention::parse(text).map(|retention| retention.hours);
        assert_eq!(hours("48h"), Some(48));
        assert_eq!(hours("180d"), Some(180 * 24));
        assert_eq!(hours("52w"), Some(52 * 7 * 24));
        assert_eq!(hours("36500d"), Some(876_000));
        for bad in ["", "d", "180", "0d", "-1d", "+1d", "1.5d", "1y", "36501d", "1 d", "18é"] {
            assert_eq!(hours(bad), None, "{bad}");
        }
        assert_eq!(hours("99999999999999999999d"), None);
    }
}
