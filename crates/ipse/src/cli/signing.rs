//! `sign` and `identity --certificate`: what a producer and an operator put their names to.
//!
//! **Invariants:** an event is signed as it is written, and written only if the door lets it in; an
//! envelope covers the events since the one before it and no others.

use super::Exit;
use super::context::Context;
use super::import::{MAX_LISTED, MAX_TOLD, open, refusals_json};
use super::init::stored_manifest;
use super::key_args::SignArgs;
use super::lines::{Line, Lines};
use super::output::{Output, is_same, is_standard_output, shown};
use super::passphrase;
use super::terminal::{Terminal, counted};
use anyhow::{Context as _, bail};
use ipse::SystemHost;
use ipse::keys::{check_producer_name, read_signer};
use ipse_core::json::Members;
use ipse_core::{Admitted, Digest, EventRef, Identity};
use ipse_door::{Origin, Refusal, Rule, admit};
use ipse_engine::Host;
use ipse_ledger::{Certificate, NoteSigner, Sent, dsse};
use std::io::{self, Write};

/// Prints the operator's word for who this is.
pub(crate) fn certificate(context: &Context, terminal: &mut Terminal<'_>) -> anyhow::Result<Exit> {
    let (reader, identity) = context.read()?;
    let certificate = Certificate { manifest: stored_manifest(&reader, &identity)? };
    if certificate.identity() != identity {
        bail!("the stored manifest is not the one that was registered; nothing was signed");
    }
    let keys = context.keys();
    let signer = passphrase::open(terminal, |word| keys.operator_signer(word))?;
    writeln!(terminal.out, "{}", dsse::sign(&certificate.statement(), &signer))?;
    Ok(Exit::Fine)
}

pub(crate) fn sign(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &SignArgs,
) -> anyhow::Result<Exit> {
    check_producer_name(&args.name)?;
    let identity = context.identity()?;
    let (input, _) = open(&args.file)?;
    let signer = passphrase::open(terminal, |word| read_signer(&args.key, &args.name, word))?;
    let batch = usize::try_from(args.batch).unwrap_or(Sent::MAX_EVENTS);
    let file = args.out.as_deref();
    // The report goes to standard output as JSON, unless the events do.
    let json = context.json && file.is_some_and(|out| !is_standard_output(out));
    // The input may be replaced: that happens after its last byte was read.
    let mut file = file.map(|out| Output::create(context, out, &[&args.key])).transpose()?;
    let out: &mut dyn Write = match &mut file {
        Some(file) => file,
        None => &mut *terminal.out,
    };
    let mut signing = Signing { signer, identity, batch, out, events: Vec::new(), envelopes: 0 };
    let mut report = Report::default();
    let lines = Lines::new(input).context("could not read the events")?;
    sign_lines(lines, &mut signing, &mut report, &mut *terminal.err)?;
    report.envelopes = signing.envelopes;
    if let (Some(file), Some(out)) = (file, &args.out) {
        if report.refused > 0 && is_same(&args.file, out) {
            let (refused, out) = (counted(report.refused, "line"), shown(out));
            bail!("{out} was not replaced: {refused} refused would be lost; name another file");
        }
        file.finish()?;
    }
    report.tell(json, terminal)
}

/// Lets every line through the door, and signs what passes.
fn sign_lines(
    lines: Lines<'_>,
    signing: &mut Signing<'_>,
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

/// Events on their way out.
struct Signing<'o> {
    signer: NoteSigner,
    identity: Identity,
    batch: usize,
    out: &'o mut dyn Write,
    /// What the next envelope covers.
    events: Vec<(EventRef, Digest)>,
    envelopes: u64,
}

impl Signing<'_> {
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
        let sent = Sent { identity: self.identity, events: std::mem::take(&mut self.events) };
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
        if self.refused <= MAX_TOLD {
            writeln!(err, "line {line}: {refusal}")?;
        }
        if self.listed.len() < MAX_LISTED {
            self.listed.push((line, refusal));
        }
        Ok(())
    }

    fn tell(&self, json: bool, terminal: &mut Terminal<'_>) -> anyhow::Result<Exit> {
        if self.refused > MAX_TOLD {
            writeln!(terminal.err, "… and {} more such lines", self.refused - MAX_TOLD)?;
        }
        if self.signed + self.refused == 0 {
            writeln!(terminal.err, "note: there was no event in the input")?;
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
