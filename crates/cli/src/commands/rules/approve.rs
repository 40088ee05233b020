//! `rules report` and `rules approve`: the report on a change, and the operator's signature on it.
//!
//! **Invariant:** only a report that the log gives now is signed.

use super::{Context, Exit, Terminal, Version};
use crate::CommandResult;
use crate::output::{Output, OverwriteRule};
use crate::passphrase;
use crate::position::within;
use crate::terminal::{counted, shown};
use crate::vocabulary::moment;
use anyhow::{Context as _, bail, ensure};
use ipse_core::{Seq, json_parse, sha256};
use ipse_engine::{RulesReport, rules_name, rules_of};
use ipse_inspect::{Moment, report_page};
use ipse_ledger::{RulesApproval, dsse};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

/// The largest report that is read: a thousand facts with two values each.
const MAX_REPORT_BYTES: u64 = 64 << 20;
/// The maximum nesting of a report.
const DEPTH: usize = 16;

#[derive(clap::Args, Debug)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    which: Version,
    /// Report on the log up to this position, time or date; the checkpoint of the facts if absent
    #[arg(long, value_name = "WHEN", allow_negative_numbers = true, value_parser = moment)]
    as_of: Option<Moment>,
    /// Write the report to this file, as JSON
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing file; the store, keys and databases are never replaced
    #[arg(long, requires = "output")]
    force: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    which: Version,
    /// Approve this report; `ipse rules report` writes it
    #[arg(long, value_name = "FILE")]
    report: PathBuf,
    /// Write the approval to this file
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Replace an existing file; the store, keys and databases are never replaced
    #[arg(long)]
    force: bool,
}

pub(super) fn report(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &ReportArgs,
) -> CommandResult {
    let report = computed(context, terminal, &args.which, args.as_of)?;
    let to_stdout = args.output.as_deref().is_some_and(|path| path == Path::new("-"));
    let output = args.output.as_ref().filter(|_| !to_stdout);
    if let Some(path) = output {
        // The bytes of the file are the bytes that the operator approves.
        write(context, path, args.force, &report.json(), &[])?;
    }
    match context.json || to_stdout {
        true => terminal.json(&report.json())?,
        false => terminal.page(&report_page(&report))?,
    }
    if let Some(path) = output {
        let hash = ipse_core::hex::encode(&report.hash());
        writeln!(terminal.err, "report written to {}, sha256 {hash}", shown(path))?;
    }
    Ok(Exit::Fine)
}

pub(super) fn approve(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &ApproveArgs,
) -> CommandResult {
    let text = read_file(&args.report, MAX_REPORT_BYTES)?;
    let given = text.trim_end();
    let checkpoint = checkpoint_of(given).with_context(|| {
        format!("{} is not a report of `ipse rules report`", shown(&args.report))
    })?;
    let report = computed(context, terminal, &args.which, Some(checkpoint.into()))?;
    ensure!(
        sha256(&[given.as_bytes()]) == report.hash(),
        "report_moved: {} is not the report on {} that the log gives now: make another",
        shown(&args.report),
        report.to.version()
    );
    let signer = passphrase::open(terminal, |word| context.keys().operator_signer(word))?;
    let approval = RulesApproval {
        identity: report.identity,
        checkpoint: report.checkpoint,
        from: report.from.hash(),
        rules: rules_name(report.to),
        report: report.hash(),
    };
    let envelope = dsse::sign(&approval.statement(), &signer);
    write(context, &args.output, args.force, &envelope, &[&args.report])?;
    if context.json {
        terminal.json(&envelope)?;
    } else {
        let (to, key) = (report.to.version(), dsse::key_id(&signer.public()));
        let differ = counted(report.facts.len() as u64 + report.left_out, "fact");
        let (seq, file) = (report.checkpoint, shown(&args.output));
        writeln!(terminal.out, "{key} approves {to}, as of seq {seq} ({differ} differ): {file}")?;
    }
    Ok(Exit::Fine)
}

/// Computes the report on a change to a rule set.
fn computed(
    context: &Context,
    terminal: &mut Terminal<'_>,
    which: &Version,
    as_of: Option<Moment>,
) -> anyhow::Result<RulesReport> {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let view = snapshot.view();
    let seq = match as_of {
        Some(moment) => within(terminal, view, moment)?.seq,
        None => view.progress()?.checkpoint,
    };
    let (from, to) = (rules_of(view)?, which.known()?);
    if from == to {
        bail!("already: {} is in force, so there is nothing to report", to.version());
    }
    let bar = terminal.spinner("deriving facts");
    let report = RulesReport::compute(view, &identity, seq, from, to);
    bar.finish_and_clear();
    Ok(report?)
}

/// The position in a report.
fn checkpoint_of(report: &str) -> Option<Seq> {
    let value = json_parse::parse(report.as_bytes(), DEPTH).ok()?;
    let object = value.as_object()?;
    let format = object.get("format")?.as_text()?;
    let checkpoint = object.get("checkpoint")?.as_count();
    checkpoint.filter(|_| format == RulesReport::FORMAT).map(Seq)
}

/// Reads a text file of limited size.
pub(super) fn read_file(path: &Path, limit: u64) -> anyhow::Result<String> {
    let name = shown(path);
    let file = File::open(path).with_context(|| format!("could not read {name}"))?;
    let mut text = String::new();
    let read = file.take(limit + 1).read_to_string(&mut text);
    read.with_context(|| format!("could not read {name}"))?;
    ensure!(text.len() as u64 <= limit, "{name} is longer than {limit} bytes");
    Ok(text)
}

fn write(
    context: &Context,
    path: &Path,
    force: bool,
    text: &str,
    inputs: &[&Path],
) -> anyhow::Result<()> {
    let replaces = if force { OverwriteRule::Anything } else { OverwriteRule::Empty };
    let mut file = Output::create(context, path, inputs, replaces)?;
    write!(file, "{text}").with_context(|| format!("could not write {}", shown(path)))?;
    file.finish()
}
