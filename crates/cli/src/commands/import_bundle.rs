//! `import-bundle`: verifies a bundle and imports it into an empty log.
//!
//! **Invariant:** a bundle is imported only if it verifies under keys that the user trusts; it is
//! imported completely or not at all.

use crate::context::Context;
use crate::retention::hours_text;
use crate::terminal::{Terminal, counted, shown};
use crate::vocabulary::words;
use crate::{CommandResult, Exit};
use anyhow::{Context as _, bail};
use ipse_bundle::{GatesInput, Line, OPERATOR, Opened, Trust, Verdict, open_judged};
use ipse_engine::sign_head;
use ipse_exchange::{BundleReceipt, take_in};
use ipse_gates::read_gates;
use ipse_ledger::NoteKey;
use ipse_store::Signatures;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest file of public keys.
const MAX_KEYS_BYTES: u64 = 1 << 20;

/// Verify a bundle and import it into an empty log
///
/// The identity must be registered in this store, and its log empty. Positions, facts and passes
/// are those of the bundle. The bundle is imported completely or not at all.
///
/// Settings and the public keys of producers, with their sources and revocations, come from the
/// acts of the log; a bundle of an older version has none. Access tokens and private keys never
/// travel.
/// The command lists what did not travel. Import right after `ipse init`, before tokens and keys.
///
/// Example: ipse import-bundle ward-robot.ipse --trust log.vkey --trust operator.pub
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Import this bundle
    file: PathBuf,
    /// Trust this key, or the keys in this file; repeatable
    #[arg(long, value_name = "KEY", num_args = 1..)]
    trust: Vec<String>,
    /// Set how producers' signatures are handled here, for a log without acts of its own
    #[arg(
        long,
        value_name = "WORD",
        value_parser = words(Signatures::ALL.map(Signatures::name), Signatures::parse)
    )]
    signatures: Option<Signatures>,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let name = shown(&args.file);
    let attempt = || format!("could not open {name}");
    // Checked before it is opened: opening a pipe waits for its writer.
    if !args.file.metadata().with_context(attempt)?.is_file() {
        bail!("{name} is not an ordinary file");
    }
    let file = File::open(&args.file).with_context(attempt)?;
    if args.trust.is_empty() {
        bail!(
            "--trust is required: give the public keys of the log and its operator, from a source \
             other than the bundle"
        );
    }
    let trust = trusted(&args.trust)?;
    let bar = terminal.bar("bytes verified");
    let gates = GatesInput { read: Some(&read_gates), ..GatesInput::default() };
    let opened = open_judged(&file, &trust, &[], &gates, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let opened = match opened.with_context(|| format!("could not read {name}"))? {
        Ok(opened) => opened,
        Err(report) => {
            for line in report.lines.iter().filter(|line| line.verdict == Verdict::Fail) {
                writeln!(terminal.err, "FAIL {}: {}", line.place, line.message)?;
            }
            writeln!(terminal.err, "the bundle did not verify; nothing was imported")?;
            return Ok(Exit::Found);
        }
    };
    taken_in(context, terminal, &opened, trust.keys(), args.signatures)
}

fn taken_in(
    context: &Context,
    terminal: &mut Terminal<'_>,
    opened: &Opened<'_>,
    trusted: &[NoteKey],
    signatures: Option<Signatures>,
) -> CommandResult {
    let identity = opened.identity;
    let last_head = context.outside(&identity)?.last_head;
    let bar = terminal.bar("events");
    let mut tell = |done, all| {
        bar.set_length(all);
        bar.set_position(done);
    };
    let (store, last_head) = (context.store()?, last_head.as_deref());
    let done = take_in(store, opened, trusted, signatures, last_head, &mut tell);
    bar.finish_and_clear();
    let done = done?;
    let unnamed = |line: &&Line| line.verdict == Verdict::Limit && line.place == OPERATOR;
    for line in opened.report.lines.iter().filter(unnamed) {
        writeln!(terminal.err, "note: {}", line.message)?;
    }
    if let Some(notary) = context.notary(terminal, &identity)? {
        sign_head(context.store()?, &identity, &notary)?;
    }
    if done.left_out > 0 {
        let statements = counted(done.left_out, "statement");
        let words = "of producers that are not among --trust, left out";
        writeln!(terminal.err, "note: {statements} {words}")?;
    }
    tell_left_behind(context, terminal, &done)?;
    if context.json {
        terminal.json(&done.json())?;
    } else {
        writeln!(terminal.out, "{identity}\nimported {}", counted(done.entries, "event"))?;
    }
    Ok(Exit::Fine)
}

/// Prints the settings that hold here, and lists what a bundle does not carry. Warns if a log
/// without acts has signed events and accepts unsigned ones here, because the store that it came
/// from may have required signatures.
fn tell_left_behind(
    context: &Context,
    terminal: &mut Terminal<'_>,
    done: &BundleReceipt,
) -> anyhow::Result<()> {
    let reader = context.store()?.reader()?;
    let signatures = reader.view(&done.identity)?.view().signatures()?;
    let ahead = reader.view(&done.identity)?.view().max_ahead()?;
    let ahead = ahead.map_or("off".to_string(), hours_text);
    let retention = reader.retention(&done.identity)?;
    let retention = retention.as_deref().map_or("off".to_string(), ipse_door::printable);
    let (from, keys) = match done.settings_moved {
        true => ("settings and producers' keys as the acts of the log give them", "private keys"),
        false => (
            "this log has no acts, so its settings did not travel; here",
            "private keys, producers that signed nothing, which keys were revoked, which sources \
             each may use",
        ),
    };
    writeln!(
        terminal.err,
        "note: {from}: signatures {}, retention {retention}, max-ahead {ahead} (`ipse config`)\n\
         note: what does not travel: {keys}, access tokens (`ipse key`, `ipse token`)",
        signatures.name()
    )?;
    if !done.tokens_left_out.is_empty() {
        let tokens = done.tokens_left_out.join(", ");
        writeln!(terminal.err, "note: tokens that were valid where the log came from: {tokens}")?;
    }
    if !done.keys_left_out.is_empty() {
        let keys = done.keys_left_out.join(", ");
        writeln!(terminal.err, "note: keys of producers that are not among --trust: {keys}")?;
    }
    let signed = done.statements + done.left_out > 0;
    if signed && !done.settings_moved && signatures != Signatures::Require {
        writeln!(
            terminal.err,
            "WARNING: this log has signed events and accepts unsigned ones here; if it required \
             signatures where it came from: ipse config signatures require"
        )?;
    }
    Ok(())
}

/// Reads the values of `--trust`: a key, or a file of keys.
pub(crate) fn trusted(words: &[String]) -> anyhow::Result<Trust> {
    let mut trust = Trust::default();
    for word in words {
        match NoteKey::parse(word) {
            Some(_) => trust.add(word)?,
            None => {
                let text = read_keys(Path::new(word))?;
                trust.add(&text).with_context(|| format!("in {}", ipse_door::printable(word)))?;
            }
        }
    }
    Ok(trust)
}

fn read_keys(path: &Path) -> anyhow::Result<String> {
    let attempt = || format!("could not read the key {}", shown(path));
    // Checked before it is opened: opening a pipe waits for its writer.
    if !path.metadata().with_context(attempt)?.is_file() {
        bail!("{} is not an ordinary file", shown(path));
    }
    let mut text = String::new();
    let file = File::open(path).with_context(attempt)?;
    file.take(MAX_KEYS_BYTES).read_to_string(&mut text).with_context(attempt)?;
    Ok(text)
}
