//! Forgetting for `forget` and `prune`: preview, confirmation, execution and report.
//!
//! **Invariants:** an invalid or unknown ref changes nothing. On a terminal the user confirms
//! certain events, and exactly these are forgotten.

use crate::confirm;
use crate::context::Context;
use crate::erasure::STILL_THERE;
use crate::terminal::{Terminal, counted};
use crate::{CommandResult, Exit};
use ipse_core::Identity;
use ipse_core::json::{Members, quoted};
use ipse_engine::{Error, Forgotten, Selection};
use ipse_inspect::{Preview, preview};

/// The reason why nothing was forgotten.
pub(crate) struct Refused {
    name: String,
    reason: &'static str,
    message: String,
}

impl Refused {
    pub(crate) fn no_ref(place: &str, text: &[u8]) -> Self {
        let name = ipse_door::printable(&String::from_utf8_lossy(text));
        let message = format!(
            "{place}`{name}` is not an event ref; nothing was changed\n\
             hint: an event ref is ev_ and 32 lower-case hex digits, as `ipse log` shows"
        );
        Refused { name, reason: "not_a_ref", message }
    }

    fn by_log(error: &Error) -> Option<Self> {
        let (name, reason) = match error {
            Error::UnknownEvent(name) => (name, "unknown"),
            Error::NeverForgotten(name, _) => (name, "never_forgotten"),
            _ => return None,
        };
        let message = format!("{error}; nothing was changed");
        Some(Refused { name: name.to_string(), reason, message })
    }

    pub(crate) fn tell(&self, context: &Context, terminal: &mut Terminal<'_>) -> CommandResult {
        if context.json {
            let refused =
                Members::new().text("event_ref", &self.name).text("reason", self.reason).finish();
            let json = Members::new().raw("forgotten", 0).raw("refused", refused);
            terminal.json(&json.finish())?;
        }
        writeln!(terminal.asks(), "{}", self.message)?;
        Ok(Exit::Found)
    }
}

/// Returns the selected identity. A dry run does not migrate the store.
pub(crate) fn whose(
    context: &Context,
    terminal: &mut Terminal<'_>,
    dry_run: bool,
) -> anyhow::Result<Identity> {
    let read = if dry_run { context.read()? } else { context.read_to_write(terminal)? };
    Ok(read.1)
}

/// Forgets the selected events, or shows the effect of a dry run. Asks first on a terminal.
pub(crate) fn forget(
    context: &Context,
    terminal: &mut Terminal<'_>,
    chosen: &[(Identity, Selection)],
    dry_run: bool,
    yes: bool,
) -> CommandResult {
    let asks = !yes && confirm::is_possible();
    let (mut agreed, mut seen_before) = (Vec::new(), Vec::new());
    let (mut sum, mut all_signed) = (ForgetResult::default(), true);
    if dry_run || asks {
        match previews(context, chosen) {
            Ok(seen) if dry_run => return tell_previews(context, terminal, &seen),
            Ok(seen) if !says_yes(terminal, &seen)? => {
                writeln!(terminal.err, "nothing was changed")?;
                return Ok(Exit::Found);
            }
            // Forget only the confirmed events, not those that were appended since.
            Ok(seen) => {
                seen_before.extend(seen.iter().map(|(_, seen)| seen.already));
                agreed.extend(seen.into_iter().map(|(_, seen)| Selection::Refs(seen.events)));
            }
            Err(error) => return told_as_refused(context, terminal, error),
        }
    }
    for (place, (identity, which)) in chosen.iter().enumerate() {
        let mut log = context.write_as(terminal, *identity)?;
        match log.forget(agreed.get(place).unwrap_or(which)) {
            Ok(mut done) => {
                done.already += seen_before.get(place).copied().unwrap_or(0);
                tell_json(context, terminal, identity, chosen.len(), &done)?;
                sum.add(&done);
            }
            Err(error) => return told_as_refused(context, terminal, error.into()),
        }
        all_signed &= context.tell_head(terminal, &mut log)?;
    }
    let reported = sum.tell(context, terminal)?;
    Ok(if all_signed { reported } else { Exit::Found })
}

/// Prints the JSON result of one identity; with several identities it names this one.
fn tell_json(
    context: &Context,
    terminal: &mut Terminal<'_>,
    identity: &Identity,
    identities: usize,
    done: &Forgotten,
) -> anyhow::Result<()> {
    if !context.json {
        return Ok(());
    }
    let name = (identities > 1).then(|| quoted(&identity.to_string()));
    Ok(terminal.json(&done.json().optional("identity_hash", name).finish())?)
}

fn told_as_refused(
    context: &Context,
    terminal: &mut Terminal<'_>,
    error: anyhow::Error,
) -> CommandResult {
    match error.downcast_ref::<Error>().and_then(Refused::by_log) {
        Some(refused) => refused.tell(context, terminal),
        None => Err(error),
    }
}

/// Computes the effect of forgetting for each identity; reads only.
fn previews(
    context: &Context,
    chosen: &[(Identity, Selection)],
) -> anyhow::Result<Vec<(Identity, Preview)>> {
    let reader = context.store()?.reader()?;
    let seen = |(identity, which): &(Identity, Selection)| {
        let snapshot = reader.view(identity)?;
        Ok((*identity, preview(snapshot.view(), which)?))
    };
    chosen.iter().map(seen).collect()
}

/// `forget 2 events, change 3 facts and remove 1`.
fn in_words(seen: &[(Identity, Preview)]) -> String {
    let sum = |count: fn(&Preview) -> usize| {
        seen.iter().map(|(_, preview)| count(preview) as u64).sum::<u64>()
    };
    let events = counted(sum(|preview| preview.events.len()), "event");
    let changed = sum(|preview| preview.facts.changed.len() + preview.facts.added.len());
    let gone = sum(|preview| preview.facts.gone.len());
    format!("forget {events}, change {} and remove {gone}", counted(changed, "fact"))
}

/// Asks for confirmation, unless there are no events to forget.
fn says_yes(terminal: &mut Terminal<'_>, seen: &[(Identity, Preview)]) -> anyhow::Result<bool> {
    if seen.iter().all(|(_, preview)| preview.events.is_empty()) {
        return Ok(true);
    }
    confirm::agrees(terminal, &format!("This will permanently {}.", in_words(seen)))
}

fn tell_previews(
    context: &Context,
    terminal: &mut Terminal<'_>,
    seen: &[(Identity, Preview)],
) -> CommandResult {
    for (identity, preview) in seen {
        if context.json {
            let json = Members::new().raw("would_forget", preview.events.len());
            let json = match seen {
                [_] => json,
                _ => json.text("identity_hash", &identity.to_string()),
            };
            terminal.json(&preview.facts.json(json, identity).finish())?;
        } else {
            if seen.len() > 1 {
                writeln!(terminal.out, "identity {identity}")?;
            }
            terminal.page(&preview.facts.page())?;
        }
    }
    writeln!(terminal.err, "would {}; nothing was changed", in_words(seen))?;
    Ok(Exit::Fine)
}

/// The result over all identities.
#[derive(Default)]
struct ForgetResult {
    events: u64,
    already: u64,
    rows_touched: u64,
    gone: u64,
    erase_pending: bool,
}

impl ForgetResult {
    fn add(&mut self, done: &Forgotten) {
        self.events += done.events;
        self.already += done.already;
        self.rows_touched += done.pass.as_ref().map_or(0, |pass| pass.committed.rows_touched);
        self.gone += done.pass.as_ref().map_or(0, |pass| pass.gone.len() as u64);
        self.erase_pending |= done.erase_pending;
    }

    fn tell(&self, context: &Context, terminal: &mut Terminal<'_>) -> CommandResult {
        if context.json {
            // The result of each identity is already printed.
        } else if self.events > 0 {
            let (events, gone) = (counted(self.events, "event"), counted(self.gone, "fact"));
            let changed = counted(self.rows_touched - self.gone, "fact");
            writeln!(terminal.out, "forgot {events}; {changed} changed, {gone} gone")?;
        } else {
            writeln!(terminal.out, "nothing to forget")?;
        }
        if self.already > 0 {
            let already = counted(self.already, "event");
            writeln!(terminal.err, "note: {already} already forgotten")?;
        }
        if self.erase_pending {
            writeln!(
                terminal.err,
                "erase pending: forgotten bytes are still in the store's files: {STILL_THERE}\n\
                 hint: the next command that writes tries again to erase them"
            )?;
        }
        Ok(Exit::fine_if(!self.erase_pending))
    }
}
