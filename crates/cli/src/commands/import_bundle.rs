//! `import-bundle`: verifies a bundle and imports it into an empty log.
//!
//! **Invariant:** a bundle is imported only if it verifies under keys that the user trusts; it is
//! imported completely or not at all.

use crate::context::Context;
use crate::terminal::{Terminal, counted, shown};
use crate::{CommandResult, Exit};
use anyhow::{Context as _, bail};
use ipse_bundle::{Line, OPERATOR, Opened, Trust, Verdict, open};
use ipse_engine::sign_head;
use ipse_exchange::take_in;
use ipse_ledger::NoteKey;
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
/// Example: ipse import-bundle ward-robot.ipse --trust log.vkey --trust operator.pub
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Import this bundle
    file: PathBuf,
    /// Trust this key, or the keys in this file; repeatable
    #[arg(long, value_name = "KEY", num_args = 1..)]
    trust: Vec<String>,
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
    let opened = open(&file, &trust, &[], &mut |done, total| {
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
    taken_in(context, terminal, &opened, trust.keys())
}

fn taken_in(
    context: &Context,
    terminal: &mut Terminal<'_>,
    opened: &Opened<'_>,
    trusted: &[NoteKey],
) -> CommandResult {
    let identity = opened.identity;
    let last_head = context.outside(&identity)?.last_head;
    let bar = terminal.bar("events");
    let done =
        take_in(context.store()?, opened, trusted, last_head.as_deref(), &mut |done, all| {
            bar.set_length(all);
            bar.set_position(done);
        });
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
    if context.json {
        terminal.json(&done.json())?;
    } else {
        writeln!(terminal.out, "{identity}\nimported {}", counted(done.entries, "event"))?;
    }
    Ok(Exit::Fine)
}

/// Reads the values of `--trust`: a key, or a file of keys.
fn trusted(words: &[String]) -> anyhow::Result<Trust> {
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
