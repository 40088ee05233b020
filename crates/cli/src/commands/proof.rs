//! `proof`: proves what an earlier signed tree head says about the log of today.
//!
//! **Invariant:** a tree head counts only if a key of this log signed it that the key directory or
//! the caller names.

use crate::commands::import_bundle::trusted;
use crate::context::Context;
use crate::input::read_file;
use crate::terminal::{Terminal, shown};
use crate::vocabulary::Nested;
use crate::{CommandResult, Exit};
use anyhow::{Context as _, anyhow, bail, ensure};
use ipse_core::Identity;
use ipse_core::json::Members;
use ipse_inspect::{Comparison, compare};
use ipse_ledger::{Note, NoteKey, TreeHead};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest tree head: three lines, and 16 signatures.
pub(crate) const MAX_NOTE_BYTES: u64 = 64 << 10;

pub(crate) type Args = Nested<Action>;

#[derive(clap::Subcommand, Debug)]
pub(crate) enum Action {
    Consistency(Consistency),
}

/// Prove that the log continues an earlier tree head
///
/// The tree head is one that you kept: the output of `ipse tree-head`, or tree-head.note of a
/// bundle. Exit 0: the log continues it. Exit 1: the log contradicts it, so it was rolled back or
/// rewritten; keep the tree head, it is the evidence. Exit 2: the file is not a tree head of this
/// log that a trusted key signed.
///
/// With --json it prints the proof for other programs, with the members of
/// `GET /api/audit/consistency` (docs/guide/audit.md).
///
/// Example: ipse proof consistency anchor.note
#[derive(clap::Args, Debug)]
pub(crate) struct Consistency {
    /// Compare with this tree head; - for standard input
    file: PathBuf,
    /// Trust this key of the log too, or the keys in this file; repeatable
    #[arg(long, value_name = "KEY", num_args = 1..)]
    trust: Vec<String>,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    match &args.action {
        Action::Consistency(args) => consistency(context, terminal, args),
    }
}

fn consistency(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &Consistency,
) -> CommandResult {
    let note = read_text(&args.file, MAX_NOTE_BYTES)?;
    let (reader, identity) = context.read()?;
    let mut keys = context.outside(&identity)?.log_keys;
    keys.extend(trusted(&args.trust)?.keys().iter().cloned());
    let earlier = signed_head(&note, &identity, &keys)
        .with_context(|| format!("could not use {}", name_of(&args.file)))?;
    match compare(reader.view(&identity)?.view(), &earlier, &note)? {
        Comparison::Unsigned => {
            bail!("this log has no signed tree head: run `ipse tree-head --sign`")
        }
        Comparison::Consistent(proof) => {
            match context.json {
                true => terminal.json(&proof.compared_json())?,
                false => terminal.page(&proof.page())?,
            }
            Ok(Exit::Fine)
        }
        Comparison::Contradiction(message) => {
            let members = Members::new().raw("consistent", false).raw("from", earlier.size);
            match context.json {
                true => terminal.json(&members.text("message", &message).finish())?,
                false => writeln!(terminal.out, "CONTRADICTION: {message}")?,
            }
            writeln!(
                terminal.err,
                "hint: keep {} and this store: the log was rolled back, or there are two histories",
                name_of(&args.file)
            )?;
            Ok(Exit::Found)
        }
    }
}

/// Reads a tree head that one of these keys signed for an identity's log.
pub(crate) fn signed_head(
    note: &str,
    identity: &Identity,
    keys: &[NoteKey],
) -> anyhow::Result<TreeHead> {
    let origin = TreeHead::origin_of(identity);
    let parsed = Note::parse(note)?;
    let head = TreeHead::parse(parsed.text).context("the note is not a tree head")?;
    ensure!(head.origin == origin, "it is a tree head of another log, {}", shown_origin(&head));
    let keys: Vec<NoteKey> = keys.iter().filter(|key| key.name() == origin).cloned().collect();
    ensure!(!keys.is_empty(), "no key of this log is here: give --trust LOG.vkey");
    parsed.verify(&keys).map_err(|error| anyhow!("{error} (--trust names more keys)"))?;
    Ok(head)
}

fn shown_origin(head: &TreeHead) -> String {
    ipse_door::printable(&head.origin)
}

/// The text of a file, or of standard input if its name is `-`.
pub(crate) fn read_text(file: &Path, limit: u64) -> anyhow::Result<String> {
    let read = || match file == Path::new("-") {
        true => {
            let mut bytes = Vec::new();
            std::io::stdin().take(limit + 1).read_to_end(&mut bytes)?;
            ensure!(bytes.len() as u64 <= limit, "it is larger than {limit} bytes");
            Ok(bytes)
        }
        false => read_file(file, limit),
    };
    let text = read().and_then(|bytes| Ok(String::from_utf8(bytes)?));
    text.with_context(|| format!("could not read {}", name_of(file)))
}

/// The name of a file for messages.
pub(crate) fn name_of(file: &Path) -> String {
    match file == Path::new("-") {
        true => "standard input".to_string(),
        false => shown(file),
    }
}
