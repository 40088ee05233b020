//! `export`: writes the log of an identity as one bundle that verifies offline.
//!
//! **Invariant:** a bundle has its final name only when it is complete.

use crate::commands::witness::entries_of;
use crate::context::Context;
use crate::gate_files::in_directory;
use crate::output::{Output, OverwriteRule, is_standard_output};
use crate::terminal::{Terminal, counted, shown};
use crate::vocabulary::at_least_one;
use crate::{CommandResult, Exit};
use anyhow::ensure;
use ipse_core::judge::gate_hashes;
use ipse_core::{Digest, Identity, sha256};
use ipse_exchange::{Export, Exported, Range, with_export};
use std::path::{Path, PathBuf};

/// Export the log, its facts and their evidence as one file that verifies offline
///
/// The file holds manifest, events, the whole ledger, facts, signatures and public keys. The acts
/// in the log say which settings and producers' keys hold. Private keys and access tokens are not
/// in it.
/// `ipse-verify` checks it without this store, and so do independent tools (docs/guide/audit.md).
/// A tree head over the whole log is signed first; without the log's key the newest one must
/// cover the exported events. A range that does not start at 1 has no facts. An existing bundle
/// of this agent or an empty file is replaced when the new bundle is complete. Until then the new
/// one is .new-ipse-* in the same directory; if the command is killed, delete that file. Any other
/// file is replaced only with --force.
///
/// Example: ipse export -o ward-robot.ipse
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Write the bundle to this file; - for standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace a file that is not a bundle; the store, keys and databases are never replaced
    #[arg(long)]
    pub(crate) force: bool,
    /// Add the gate files in this directory that the store lacks: ecm-registry.toml, policy.toml,
    /// temperament.toml. Only files that the manifest names are exported
    #[arg(long, value_name = "DIR")]
    pub(crate) gates: Option<PathBuf>,
    /// Export from this event on
    #[arg(long, value_name = "SEQ", value_parser = at_least_one::<u64>)]
    pub(crate) from: Option<u64>,
    /// Export up to this event
    #[arg(long, value_name = "SEQ", value_parser = at_least_one::<u64>)]
    pub(crate) to: Option<u64>,
    /// Export under the newest tree head that a witness cosigned, not under a newer one
    #[arg(long)]
    pub(crate) cosigned: bool,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let (_, identity) = context.read_to_write(terminal)?;
    let mut keys = context.export_keys(terminal, &identity)?;
    keys.gates = args.gates.as_deref().map(in_directory).transpose()?.unwrap_or_default();
    note_other_files(context, terminal, &identity, &keys.gates)?;
    let Args { from, to, cosigned, .. } = *args;
    let (range, output) = (Range { from, to, cosigned }, args.output.as_path());
    // Checked before the bundle replaces a file that standard output is redirected to.
    let to_stdout = output == Path::new("-") || is_standard_output(output);
    let replaces =
        if args.force { OverwriteRule::Anything } else { OverwriteRule::Bundles(identity) };
    let done = with_export(context.store()?, &identity, &keys, range, |export| {
        write(export, context, terminal, output, replaces)
    })?;
    ensure!(
        !(to_stdout && terminal.unread.get()),
        "the reader of standard output closed it, so the bundle is incomplete"
    );
    tell(context, terminal, (!to_stdout).then_some(output), &done)
}

/// Names the given gate files that the manifest does not name.
fn note_other_files(
    context: &Context,
    terminal: &mut Terminal<'_>,
    identity: &Identity,
    files: &[Vec<u8>],
) -> anyhow::Result<()> {
    let manifests = context.store()?.reader()?.manifests()?;
    let manifest = manifests.iter().find(|(hash, _)| *hash == identity.to_string());
    let named = manifest.map(|(_, manifest)| gate_hashes(manifest)).unwrap_or_default();
    let hashes = files.iter().map(|file| Digest(sha256(&[file])));
    for hash in hashes.filter(|hash| !named.contains(&Some(*hash))) {
        let words = "of --gates is not in the bundle: the manifest does not name it";
        writeln!(terminal.err, "note: the file {hash} {words}")?;
    }
    Ok(())
}

/// Writes a bundle to standard output, or to a file that gets its name when it is complete.
fn write(
    export: &Export<'_>,
    context: &Context,
    terminal: &mut Terminal<'_>,
    output: &Path,
    replaces: OverwriteRule,
) -> anyhow::Result<Exported> {
    let bar = terminal.bar("bytes");
    let mut progress = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    if output == Path::new("-") {
        return Ok(export.write(&mut *terminal.out, &mut progress)?);
    }
    let mut file = Output::create(context, output, &[], replaces)?;
    let done = export.write(&mut file, &mut progress);
    bar.finish_and_clear();
    let done = done?;
    file.finish()?;
    Ok(done)
}

/// Reports the result of an export to a file, or to standard output if there is none.
fn tell(
    context: &Context,
    terminal: &mut Terminal<'_>,
    file: Option<&Path>,
    done: &Exported,
) -> CommandResult {
    let to_stdout = file.is_none();
    if context.json && !to_stdout {
        terminal.json(&done.json())?;
        tell_cosigned(context, terminal, done)?;
        return Ok(Exit::Fine);
    }
    let events = counted(done.events, "event");
    let facts = match done.facts {
        Some(facts) => counted(facts, "fact"),
        None => "no facts (the range does not start at 1)".to_string(),
    };
    let name = file.map_or("standard output".to_string(), shown);
    let size = done.bundled.size;
    let cosigned = match done.cosignatures {
        0 => String::new(),
        n => format!(" with {}", counted(n, "cosignature")),
    };
    let words = format!("exported to {name}: {events}, {facts}, tree head over {size}{cosigned}");
    writeln!(if to_stdout { &mut terminal.err } else { &mut terminal.out }, "{words}")?;
    tell_cosigned(context, terminal, done)?;
    if to_stdout {
        return Ok(Exit::Fine);
    }
    let keys = context.keys();
    let keys = shown(keys.path());
    writeln!(
        terminal.err,
        "hint: give {keys}/log.vkey and {keys}/operator.pub to auditors; they run: ipse-verify \
         {name} --trust {keys}/log.vkey {keys}/operator.pub"
    )?;
    Ok(Exit::Fine)
}

/// Says that an older tree head has cosignatures and the one of the bundle has none: a pass may
/// have signed a newer one since a witness answered.
fn tell_cosigned(
    context: &Context,
    terminal: &mut Terminal<'_>,
    done: &Exported,
) -> anyhow::Result<()> {
    let reader = context.store()?.reader()?;
    let newest = reader.view(&done.bundled.identity)?.view().newest_cosignatures()?;
    if let (0, Some(cosigned)) = (done.cosignatures, newest.first()) {
        let (size, entries) = (done.bundled.size, entries_of(cosigned.size));
        writeln!(
            terminal.err,
            "hint: the tree head over {size} has no cosignature, and the one over {entries} has: \
             --cosigned exports under that one, or ask the witness again (`ipse witness request`)"
        )?;
    }
    Ok(())
}
