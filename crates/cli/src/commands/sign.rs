//! `sign`: signs events as their producer, without a store.
//!
//! **Invariants:** the signed bytes are the written bytes, and an event is written only if the door
//! accepts it. An envelope covers exactly the events since the previous envelope.

use super::import::MAX_PRINTED;
use crate::context::Context;
use crate::input::{check_events, not_events, open_events};
use crate::output::{Output, OverwriteRule, is_same, is_standard_output};
use crate::passphrase;
use crate::terminal::{Terminal, counted, shown};
use crate::{CommandResult, Exit};
use anyhow::{Context as _, bail};
use ipse::SystemHost;
use ipse::keys::{check_producer_name, read_signer};
use ipse_core::json::Members;
use ipse_core::{Admitted, Digest, EventRef, Identity};
use ipse_door::{Origin, Refusal, Rule, admit};
use ipse_engine::Host;
use ipse_exchange::{Line, Lines, MAX_LISTED, refusals_json};
use ipse_ledger::{NoteSigner, SentStatement, dsse};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Sign events as their producer, without a store
///
/// Reads JSON Lines as `ipse import` does and writes every event in canonical form; an event
/// without a salt gets one. After each batch, and at the end, it writes an envelope that signs the
/// digests of the events since the previous envelope. Events that have a salt give the same bytes
/// every time. Exit 1 if a line was rejected; it is not signed and not written. The file -o may
/// exist if it is the input, is empty or holds signed events; any other needs --force.
///
/// A whole identity of 64 digits needs no store; a prefix is looked up in the store.
///
/// Example: ipse sign week.jsonl --key arm-7.key --name arm-7 --identity HASH -o signed.jsonl
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Read events from this file, plain or gzip; - for standard input
    file: PathBuf,
    /// Sign with this private key, PKCS#8 PEM
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Use this name, under which the key was registered
    #[arg(long)]
    name: String,
    /// Sign at most N events with one signature
    #[arg(long, value_name = "N", default_value_t = 1024,
          value_parser = clap::value_parser!(u64).range(1..=SentStatement::MAX_EVENTS as u64))]
    batch: u64,
    /// Write to this file; standard output if absent
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace a file that holds no signed events; keys, stores and databases are never replaced
    #[arg(long, requires = "out")]
    force: bool,
}

impl Args {
    /// Begins to write the file. The input may be replaced, because that happens after its last
    /// byte was read.
    fn output(&self, context: &Context, out: &Path) -> anyhow::Result<Output> {
        let replaces = match self.force || is_same(&self.file, out) {
            true => OverwriteRule::Anything,
            false => OverwriteRule::SignedFiles,
        };
        Output::create(context, out, &[&self.key], replaces)
    }
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    check_producer_name(&args.name)?;
    let identity = context.identity()?;
    check_events(&args.file, "sign")?;
    let input = open_events(&args.file)?;
    let signer = passphrase::open(terminal, |word| read_signer(&args.key, &args.name, word))?;
    let batch = usize::try_from(args.batch).unwrap_or(SentStatement::MAX_EVENTS);
    let file = args.out.as_deref();
    // The JSON report goes to standard output, unless the events do.
    let json = context.json && file.is_some_and(|out| !is_standard_output(out));
    let mut file = file.map(|out| args.output(context, out)).transpose()?;
    let out: &mut dyn Write = match &mut file {
        Some(file) => file,
        None => &mut *terminal.out,
    };
    let mut signing = Signer { signer, identity, batch, out, events: Vec::new(), envelopes: 0 };
    let mut report = Report::default();
    let lines = Lines::new(input).map_err(|error| not_events(error, &args.file, "sign"))?;
    sign_lines(lines, &mut signing, &mut report, &mut *terminal.err)?;
    report.envelopes = signing.envelopes;
    if let (Some(file), Some(out)) = (file, &args.out) {
        if report.refused > 0 && is_same(&args.file, out) {
            let (refused, out) = (counted(report.refused, "line"), shown(out));
            bail!("{out} was not replaced: {refused} refused would be lost; give another file");
        }
        file.finish()?;
    }
    report.tell(json, terminal)
}

/// Passes every line to the door, and signs the accepted events.
fn sign_lines(
    lines: Lines<'_>,
    signing: &mut Signer<'_>,
    report: &mut Report,
    err: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut host = SystemHost::new();
    for (number, line) in (1..).zip(lines) {
        let admitted = match line {
            Line::Whole(line) if line.trim_ascii().is_empty() => continue,
            Line::Whole(line) => admit(&line, Origin::Producer, || host.salt()),
            Line::TooLong(length) => Err(ipse_door::too_large("as sent", length)),
            Line::Broken(error) => Err(broken(&error)),
        };
        match admitted {
            Ok(event) => {
                signing.add(&event).context("could not write the events")?;
                report.signed += 1;
            }
            Err(refusal) => report.refuse(number, refusal, err)?,
        }
    }
    signing.seal().context("could not write the events")
}

fn broken(error: &io::Error) -> Refusal {
    let message = format!(
        "the input is broken here: {error}; lines before it are signed, later ones are lost"
    );
    Refusal::new("", Rule::Truncated, &message)
}

/// Writes events and their envelopes.
struct Signer<'o> {
    signer: NoteSigner,
    identity: Identity,
    batch: usize,
    out: &'o mut dyn Write,
    /// The events that the next envelope covers.
    events: Vec<(EventRef, Digest)>,
    envelopes: u64,
}

impl Signer<'_> {
    fn add(&mut self, event: &Admitted) -> io::Result<()> {
        writeln!(self.out, "{}", event.canonical)?;
        self.events.push((event.event_ref, event.digest));
        if self.events.len() == self.batch { self.seal() } else { Ok(()) }
    }

    /// Signs the events since the last envelope, if there are any.
    fn seal(&mut self) -> io::Result<()> {
        if self.events.is_empty() {
            return Ok(());
        }
        let sent =
            SentStatement { identity: self.identity, events: std::mem::take(&mut self.events) };
        self.envelopes += 1;
        writeln!(self.out, "{}", dsse::sign(&sent.statement(), &self.signer))
    }
}

#[derive(Default)]
struct Report {
    signed: u64,
    envelopes: u64,
    refused: u64,
    listed: Vec<(u64, Refusal)>,
}

impl Report {
    fn refuse(&mut self, line: u64, refusal: Refusal, err: &mut dyn Write) -> io::Result<()> {
        self.refused += 1;
        if self.refused <= MAX_PRINTED {
            writeln!(err, "line {line}: {refusal}")?;
        }
        if self.listed.len() < MAX_LISTED {
            self.listed.push((line, refusal));
        }
        Ok(())
    }

    fn tell(&self, json: bool, terminal: &mut Terminal<'_>) -> CommandResult {
        if self.refused > MAX_PRINTED {
            writeln!(terminal.err, "… and {} more such lines", self.refused - MAX_PRINTED)?;
        }
        if self.signed + self.refused == 0 {
            writeln!(terminal.err, "note: the input holds no event")?;
        }
        let (events, envelopes) =
            (counted(self.signed, "event"), counted(self.envelopes, "envelope"));
        writeln!(terminal.err, "signed {events} in {envelopes}, {} refused", self.refused)?;
        if json {
            let json = Members::new()
                .raw("signed", self.signed)
                .raw("envelopes", self.envelopes)
                .raw("refused", self.refused)
                .raw("refusals", refusals_json(&self.listed))
                .raw("refusals_omitted", self.refused - self.listed.len() as u64);
            terminal.json(&json.finish())?;
        }
        Ok(Exit::fine_if(self.refused == 0))
    }
}
