//! Forgotten bytes that are still in a file of the store, and the note about them.

use crate::terminal::Terminal;

/// Why forgotten bytes may have to stay for a while.
pub(crate) const STILL_THERE: &str = "somebody reads it, or the disk is full";

/// Says so if forgotten bytes had to stay.
pub(crate) fn note_pending_erase(terminal: &mut Terminal<'_>, pending: bool) -> anyhow::Result<()> {
    if pending {
        writeln!(terminal.err, "note: forgotten bytes are still in the store: {STILL_THERE}")?;
    }
    Ok(())
}
