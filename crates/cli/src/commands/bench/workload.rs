//! The inputs of `bench`: generated stores, copies of given ones, and files of events.

use crate::commands::import;
use crate::context::Context;
use crate::terminal::Terminal;
use ipse::files::{self, Unfinished};
use ipse::{Manifest, SystemHost};
use ipse_consolidate::Rules;
use ipse_core::Identity;
use ipse_door::{Origin, admit};
use ipse_engine::Host;
use ipse_ledger::{NoteSigner, SentStatement, dsse};
use ipse_reproduce::Workload;
use ipse_store::{Location, Store};
use std::io::Write;
use std::path::Path;

/// Events under one signature.
const SIGNED_TOGETHER: usize = 1024;

/// Creates a store with a workload in it.
pub(super) fn generate(
    path: &Path,
    events: u64,
    keys: u64,
    rules: Rules,
    terminal: &mut Terminal<'_>,
) -> anyhow::Result<()> {
    writeln!(terminal.err, "making a store of {events} events and {keys} keys …")?;
    let manifest = Manifest::new(|field| {
        Some(match field {
            "commissioned_at" => "2026-02-01T00:00:00Z".to_string(),
            hash if hash.ends_with("_hash") => "0".repeat(64),
            name => format!("bench {name}"),
        })
    })?;
    let location = Location::file(path);
    let identity = Store::create(&location)?.register(&manifest.canonical())?.identity;
    let context = Context::on(location);
    context.keys().create(&identity, &mut SystemHost::random, None)?;
    if rules != Rules::default() {
        context.write(terminal)?.begin_with_rules(rules)?;
    }
    let file = path.with_extension("jsonl");
    let count = usize::try_from(events).unwrap_or(usize::MAX);
    write_lines(&file, Workload::new(keys, 0).take(count))?;
    import_quietly(&context, &file, false)?;
    Ok(std::fs::remove_file(file)?)
}

/// Writes a file of lines.
pub(super) fn write_lines(file: &Path, lines: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut out = std::io::BufWriter::new(Unfinished::begin(file, files::ORDINARY)?);
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(out.into_inner()?.replace()?)
}

/// Imports a file, with one pass at the end.
pub(super) fn import_quietly(context: &Context, file: &Path, signed: bool) -> anyhow::Result<()> {
    let (mut out, mut err) = (std::io::sink(), std::io::sink());
    let files = vec![file.to_owned()];
    let args = import::Args { files, no_consolidate: false, signed, dry_run: false };
    import::run(context, &mut Terminal::plain(&mut out, &mut err), &args)?;
    Ok(())
}

/// Events in canonical form, with an envelope after every 1024.
pub(super) fn signed_lines(
    lines: impl Iterator<Item = String>,
    identity: &Identity,
    signer: &NoteSigner,
) -> anyhow::Result<Vec<String>> {
    let mut host = SystemHost::new();
    let events = lines.map(|line| admit(line.as_bytes(), Origin::Producer, || host.salt()));
    let events = events.collect::<Result<Vec<_>, _>>()?;
    let mut all = Vec::new();
    for batch in events.chunks(SIGNED_TOGETHER) {
        all.extend(batch.iter().map(|event| event.canonical.clone()));
        let events = batch.iter().map(|event| (event.event_ref, event.digest)).collect();
        all.push(dsse::sign(&SentStatement { identity: *identity, events }.statement(), signer));
    }
    Ok(all)
}
