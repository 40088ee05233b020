//! `explain --proof`: the proof file of an event, for somebody without the store.

use super::Exit;
use super::context::Context;
use super::terminal::Terminal;
use ipse_core::Seq;
use ipse_engine::{answer, prove};
use ipse_store::sqlite::View;

pub(crate) fn tell(
    context: &Context,
    terminal: &mut Terminal<'_>,
    view: View<'_>,
    seq: Seq,
) -> anyhow::Result<Exit> {
    let Some((entry, proof)) = prove(view, seq)? else {
        writeln!(
            terminal.err,
            "seq {seq} is not under a signed tree head yet\n\
             hint: `ipse tree-head --sign` signs one now"
        )?;
        return Ok(Exit::Found);
    };
    if context.json {
        terminal.json(&answer::proof(&entry, &proof))?;
    } else {
        terminal.out.write_all(proof.text().as_bytes())?;
        writeln!(terminal.err, "the entry it proves: {}", entry.canonical())?;
    }
    Ok(Exit::Fine)
}
