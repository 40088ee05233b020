//! `import-bundle`: a log that proves itself, taken into an empty store.
//!
//! **Invariant:** nothing is taken in that did not verify under keys that the caller trusts; all of
//! it is, or nothing.

use super::Exit;
use super::args::ImportBundleArgs;
use super::context::Context;
use super::exporting::trusted;
use super::output::shown;
use super::terminal::{Terminal, counted};
use anyhow::{Context as _, bail};
use ipse_bundle::{Opened, Verdict, open};
use ipse_consolidate::V1;
use ipse_core::json::Members;
use ipse_core::{Admitted, Seq};
use ipse_door::{Origin, admit};
use ipse_engine::{Endorsed, Whole, restore, sign_head};
use ipse_ledger::{Entry, NoteKey};
use ipse_store::sqlite::{Reader, Settings};
use std::fs::File;
use std::io;

pub(crate) fn run(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &ImportBundleArgs,
) -> anyhow::Result<Exit> {
    let name = shown(&args.file);
    let attempt = || format!("could not open {name}");
    // Asked before it is opened: opening a pipe would wait for whoever writes to it.
    if !args.file.metadata().with_context(attempt)?.is_file() {
        bail!("{name} is not an ordinary file");
    }
    let file = File::open(&args.file).with_context(attempt)?;
    if args.trust.is_empty() {
        bail!(
            "whom do you trust? give --trust with the keys of the log and its operator, which you \
             have from them and not from the bundle"
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
            writeln!(terminal.err, "the bundle did not verify; nothing was taken in")?;
            return Ok(Exit::Found);
        }
    };
    take_in(context, terminal, &opened, trust.keys())
}

fn take_in(
    context: &Context,
    terminal: &mut Terminal<'_>,
    opened: &Opened<'_>,
    trusted: &[NoteKey],
) -> anyhow::Result<Exit> {
    let identity = opened.identity;
    if !opened.is_whole() {
        bail!("the bundle holds a range of the log; only a whole one can be taken in");
    }
    let reader = Reader::open(&context.store)?;
    let known = reader.manifests()?.iter().any(|(hash, _)| *hash == identity.to_string());
    if !known {
        bail!(
            "identity {identity} is not registered in this store\n\
             hint: tar -xOf BUNDLE manifest.json > manifest.json, then \
             ipse init --manifest manifest.json"
        );
    }
    if reader.view(&identity)?.view().head()? != Seq(0) {
        bail!("the log of {identity} is not empty here; a bundle is taken into an empty one");
    }
    drop(reader);
    let (statements, left_out) = statements(opened, trusted)?;
    let mut settings = Settings::open(&context.store)?;
    for endorsed in &statements {
        settings.put_producer(&identity, endorsed.signer())?;
    }
    drop(settings);
    let checkpoint = opened.bundled.checkpoint.unwrap_or_default();
    let last_head = context.outside(&identity)?.last_head;
    let (passes, last_head) = (&opened.passes, last_head.as_deref());
    let whole = Whole { passes, statements: &statements, checkpoint, last_head };
    let bar = terminal.bar("events");
    bar.set_length(opened.bundled.size);
    let log = opened.log().map(admitted).inspect(|_| bar.inc(1));
    let restored = restore(&context.store, &identity, &V1, log, &whole);
    bar.finish_and_clear();
    restored?;
    if let Some(notary) = context.notary(terminal, &identity)? {
        sign_head(&context.store, &identity, &notary)?;
    }
    if left_out > 0 {
        let statements = counted(left_out, "statement");
        let words = "of producers that are not among --trust, left out";
        writeln!(terminal.err, "note: {statements} {words}")?;
    }
    let entries = opened.bundled.size;
    if context.json {
        let json = Members::new()
            .text("identity_hash", &identity.to_string())
            .raw("entries", entries)
            .raw("statements", statements.len())
            .raw("checkpoint", checkpoint);
        terminal.json(&json.finish())?;
    } else {
        writeln!(terminal.out, "{identity}\ntook in {}", counted(entries, "event"))?;
    }
    Ok(Exit::Fine)
}

/// An entry with its event, as the door makes it.
fn admitted(
    line: io::Result<(Entry, Option<String>)>,
) -> anyhow::Result<(Entry, Option<Admitted>)> {
    let (entry, event) = line?;
    let event =
        event.map(|event| admit(event.as_bytes(), Origin::House, || [0; 16])).transpose()?;
    Ok((entry, event))
}

/// What trusted producers signed; and how many other statements there are.
fn statements(opened: &Opened<'_>, trusted: &[NoteKey]) -> anyhow::Result<(Vec<Endorsed>, u64)> {
    let (mut all, mut left_out) = (Vec::new(), 0);
    let known = opened.producers.iter().filter(|key| trusted.contains(key));
    let producers: Vec<NoteKey> = known.cloned().collect();
    for envelope in opened.statements() {
        match Endorsed::open(&envelope?, &opened.identity, &producers) {
            Ok(endorsed) => all.push(endorsed),
            Err(_) => left_out += 1,
        }
    }
    Ok((all, left_out))
}
