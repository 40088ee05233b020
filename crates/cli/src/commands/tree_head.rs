//! `tree-head`: prints the signed tree head of a log, or signs a new one.

use crate::context::Context;
use crate::passphrase;
use crate::terminal::{Terminal, counted};
use crate::{CommandResult, Exit};
use anyhow::Context as _;
use ipse::DirectoryNotary;
use ipse_engine::sign_head;
use ipse_inspect::SignedHead;

/// Print the signed tree head
///
/// A tree head is the size and root of the Merkle tree over the log, signed with the log's key, as
/// a C2SP checkpoint. Tree heads are signed after passes and intents, at most one a second. An
/// auditor who keeps one can later check whether the log before it was changed: ipse-verify
/// --anchors.
///
/// Example: ipse tree-head --sign > anchor.note
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Sign a new tree head over the whole log first
    #[arg(long)]
    sign: bool,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let (reader, identity) = match args.sign {
        true => context.read_to_write(terminal)?,
        false => context.read()?,
    };
    let note = if args.sign {
        let keys = context.keys();
        let open = |passphrase: Option<&str>| DirectoryNotary::open(&keys, &identity, passphrase);
        let notary = passphrase::open(terminal, open)?;
        Some(sign_head(context.store()?, &identity, &notary)?)
    } else {
        reader.view(&identity)?.view().tree_head()?
    };
    let Some(note) = note else {
        writeln!(terminal.err, "no tree head is signed yet: run `ipse tree-head --sign`")?;
        return Ok(Exit::Found);
    };
    let unread = "the stored tree head cannot be read: run `ipse verify`";
    let head = SignedHead::read(note).context(unread)?;
    if context.json {
        terminal.json(&head.json(&identity))?;
    } else {
        terminal.page(&head.page())?;
        let entries = reader.view(&identity)?.view().head()?.0;
        if entries > head.size {
            let tail = counted(entries - head.size, "newer event");
            writeln!(terminal.err, "note: {tail} not under it: --sign covers all")?;
        }
    }
    Ok(Exit::Fine)
}
