//! Forgotten bytes that are still in a file of the store, and the note about them.

use crate::terminal::Terminal;

/// The possible reasons why forgotten bytes are not erased yet.
pub(crate) const STILL_THERE: &str = "another process reads it, or the disk is full";

/// Prints a note if forgotten bytes are not erased yet.
pub(crate) fn note_pending_erase(terminal: &mut Terminal<'_>, pending: bool) -> anyhow::Result<()> {
    if pending {
        writeln!(terminal.err, "note: forgotten bytes are still in the store: {STILL_THERE}")?;
    }
    Ok(())
}
