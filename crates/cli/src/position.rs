//! Positions of the log in arguments, and the progress of the facts at a position.

use crate::terminal::{Terminal, counted};
use anyhow::bail;
use ipse_core::is_housekeeping;
use ipse_engine::rules_name_at;
use ipse_inspect::{Moment, Position};
use ipse_store::Progress;
use ipse_store::View;

/// The position that a moment means. A note says which one a time means.
pub(crate) fn within(
    terminal: &mut Terminal<'_>,
    view: View<'_>,
    moment: Moment,
) -> anyhow::Result<Position> {
    let Some(position) = moment.resolve(view)? else {
        let head = view.head()?;
        bail!("{moment} is beyond the end of the log: the last position is {head}");
    };
    if let Some(words) = position.words() {
        writeln!(terminal.err, "note: {words}")?;
    }
    Ok(position)
}

/// Returns the progress of the stored facts, or of the facts at an earlier moment and its
/// position.
pub(crate) fn progress_at(
    terminal: &mut Terminal<'_>,
    view: View<'_>,
    moment: Option<Moment>,
) -> anyhow::Result<(Progress, Option<Position>)> {
    let mut progress = view.progress()?;
    if progress.rule_version.is_empty() {
        progress.rule_version = rules_name_at(view, progress.checkpoint)?.version;
    }
    let Some(moment) = moment else {
        note_pending(terminal, view, &progress)?;
        return Ok((progress, None));
    };
    let position = within(terminal, view, moment)?;
    let seq = position.seq;
    progress.checkpoint = seq;
    progress.rule_version = rules_name_at(view, progress.checkpoint)?.version;
    let recorded = match view.pass_before(progress.checkpoint)? {
        Some(pass) => format!("the last pass recorded by then ended at seq {}", pass.last),
        None => "no pass was recorded by then".to_string(),
    };
    writeln!(terminal.err, "note: facts derived from the log up to seq {seq}; {recorded}")?;
    Ok((progress, Some(position)))
}

/// The number of entries after the checkpoint up to which they are counted one by one.
const FEW: u64 = 1000;

/// Prints a note if events after the checkpoint are not folded. Events that ipse wrote, such as the
/// record of a pass, do not count.
pub(crate) fn note_pending(
    terminal: &mut Terminal<'_>,
    view: View<'_>,
    progress: &Progress,
) -> anyhow::Result<()> {
    let (head, folded) = (view.head()?, progress.checkpoint);
    let mut pending = head.0.saturating_sub(folded.0 + u64::from(folded.0 > 0));
    if pending <= FEW {
        pending = 0;
        view.each_entry(folded.next()..=head, |entry, _| {
            pending += u64::from(!is_housekeeping(&entry.event_type));
            Ok::<_, ipse_store::Error>(())
        })?;
    }
    if pending > 0 {
        let events = counted(pending, "event");
        writeln!(terminal.err, "note: {events} not folded yet: run `ipse consolidate`")?;
    }
    Ok(())
}
