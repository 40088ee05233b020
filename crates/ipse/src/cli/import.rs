//! `import`: a file of events, in durable batches, the door on one thread and the log on another.
//!
//! **Invariants:** a batch that is reported durable is durable; a refused line stores nothing and
//! stops nothing; a broken end of the input keeps the good lines before it. In a signed file the
//! events up to an envelope and the envelope become durable together.

use super::Exit;
use super::context::Context;
use super::lines::{Line, Lines};
use super::record::{conflict, forgotten, unsigned};
use super::terminal::{Terminal, counted};
use super::writing::pass_words;
use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ipse::SystemHost;
use ipse_core::json::{Members, list};
use ipse_core::{Admitted, Identity, json_parse};
use ipse_door::{MAX_DEPTH, MAX_EVENT_BYTES, Origin, Refusal, Rule, admit};
use ipse_engine::{Endorsed, Host, Log, PassReport, SignatureError, Then, Trigger, registered};
use ipse_ledger::{NoteKey, Sent};
use ipse_store::{Appended, Signatures};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Events that become durable together: one sync to the disk pays for all of them.
const BATCH: usize = 1000;
/// Batches that the door may be ahead of the log.
const AHEAD: usize = 4;
/// Refusals listed in the JSON answer; the others are counted.
pub(crate) const MAX_LISTED: usize = 1000;
/// Refusals told on standard error; the others are counted.
pub(crate) const MAX_TOLD: u64 = 20;
/// A bar appears on work that takes longer than this.
const BAR_AFTER: Duration = Duration::from_secs(1);

/// Lines that went through the door together.
#[derive(Default)]
struct Parcel {
    events: Vec<Admitted>,
    /// The line of each event.
    lines: Vec<u64>,
    refusals: Vec<(u64, Refusal)>,
    last_line: u64,
    endorsed: Option<Endorsed>,
    /// Whether it ends with an envelope, good or bad.
    sealed: bool,
}

impl Parcel {
    fn is_empty(&self) -> bool {
        self.events.is_empty() && self.refusals.is_empty()
    }

    /// Takes out what no envelope that follows can cover.
    fn split(&mut self) -> Parcel {
        let unsigned = self.events.len().saturating_sub(Sent::MAX_EVENTS);
        let (events, lines) = (self.events.split_off(unsigned), self.lines.split_off(unsigned));
        let last_line = self.last_line;
        let refusals = std::mem::take(&mut self.refusals);
        let older =
            std::mem::replace(self, Parcel { events, lines, last_line, ..Parcel::default() });
        let last_line = older.lines.last().copied().unwrap_or_default();
        Parcel { refusals, last_line, ..older }
    }

    /// Ends it with what its envelope says.
    fn seal(&mut self, line: u64, endorsed: Result<Option<Endorsed>, Refusal>) {
        self.sealed = true;
        match endorsed {
            Ok(endorsed) => self.endorsed = endorsed,
            Err(refusal) => self.refusals.push((line, refusal)),
        }
    }

    /// Takes in the parcel that follows.
    fn join(&mut self, next: Parcel) {
        self.events.extend(next.events);
        self.lines.extend(next.lines);
        self.refusals.extend(next.refusals);
        self.last_line = self.last_line.max(next.last_line);
    }
}

#[derive(Default)]
struct Report {
    appended: u64,
    duplicates: u64,
    conflicts: u64,
    refused: u64,
    signed: u64,
    listed: Vec<(u64, Refusal)>,
    told: u64,
    pass: Option<PassReport>,
}

/// How a signed file is read.
struct Signing {
    identity: Identity,
    producers: Vec<NoteKey>,
    policy: Signatures,
}

impl Signing {
    fn of(context: &Context, terminal: &mut Terminal<'_>) -> anyhow::Result<Self> {
        let (reader, identity) = context.read_or_migrate()?;
        let snapshot = reader.view(&identity)?;
        let producers = registered(&snapshot.view().producers()?);
        let policy = snapshot.view().signatures()?;
        if policy == Signatures::Off {
            let hint = "`ipse config signatures record` keeps them";
            writeln!(terminal.err, "note: signatures are passed over for this identity: {hint}")?;
        } else if producers.is_empty() {
            let hint = "`ipse key new producer NAME --public KEY` registers one";
            writeln!(terminal.err, "note: no producer may sign for this identity: {hint}")?;
        }
        Ok(Signing { identity, producers, policy })
    }

    /// What an envelope makes of the events before it.
    fn endorse(&self, envelope: &[u8]) -> Result<Option<Endorsed>, Refusal> {
        if self.policy == Signatures::Off {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(envelope);
        let opened = Endorsed::open(&text, &self.identity, &self.producers);
        opened.map(Some).map_err(|error| wrong_signature(&error))
    }
}

fn not_asked_for() -> Refusal {
    let message = "this line signs the events before it, and is no event: give --signed";
    Refusal::new("signatures", Rule::WrongSignature, message)
}

fn wrong_signature(error: &SignatureError) -> Refusal {
    Refusal::new("signatures", Rule::WrongSignature, &error.to_string())
}

/// Whether a line is an envelope and no event.
fn is_envelope(line: &[u8]) -> bool {
    let names = |line: &[u8]| {
        let value = json_parse::parse(line, MAX_DEPTH).ok()?;
        let object = value.as_object()?;
        Some(object.get("payload").is_some() && object.get("signatures").is_some())
    };
    let hint = b"\"payloadType\"";
    line.windows(hint.len()).any(|part| part == hint) && names(line) == Some(true)
}

pub(crate) fn run(
    context: &Context,
    terminal: &mut Terminal<'_>,
    file: &Path,
    no_consolidate: bool,
    signed: bool,
) -> anyhow::Result<Exit> {
    // The input is opened first: a mistyped name must not touch the store.
    let (input, size) = open(file)?;
    let mut log = context.write(terminal)?;
    let signing = signed.then(|| Signing::of(context, terminal)).transpose()?;
    let bar = Bar::new(size, terminal.watched);
    let mut report = Report::default();
    std::thread::scope(|scope| {
        let (sender, parcels) = sync_channel(AHEAD);
        let input = bar.bar.wrap_read(input);
        let live = file == Path::new("-");
        let signing = signing.as_ref();
        let door = scope.spawn(move || through_the_door(input, live, signing, sender));
        let stored = store_all(&mut log, &parcels, &mut report, &bar, terminal);
        // If storing failed, the door must not wait for a place in the queue.
        drop(parcels);
        let read = door.join().expect("BUG: the door panicked");
        stored.and(read.context("could not read the events"))
    })?;
    if !no_consolidate {
        report.pass = log
            .consolidate(Trigger::Manual)
            .context("the events are stored, but the pass failed")?;
    }
    bar.bar.finish_and_clear();
    report.tell(context, terminal, no_consolidate, signed)?;
    let signed_head = context.tell_head(terminal, &mut log)?;
    Ok(Exit::fine_if(report.refused + report.conflicts == 0 && signed_head))
}

/// Opens a file of events, and says how large it is.
pub(crate) fn open(file: &Path) -> anyhow::Result<(Box<dyn Read + Send>, u64)> {
    if file == Path::new("-") {
        return Ok((Box::new(std::io::stdin()), 0));
    }
    let name = file.display();
    let opened = File::open(file).with_context(|| format!("could not open {name}"))?;
    let metadata = opened.metadata().with_context(|| format!("could not open {name}"))?;
    if metadata.is_dir() {
        bail!("{name} is a directory; name one JSON Lines file, or - for standard input");
    }
    Ok((Box::new(opened), metadata.len()))
}

/// Reads, checks and parcels lines until the input ends or nobody takes them any more.
///
/// From a `live` input, what is here goes on before the reader waits for more. Events of a signed
/// file wait for their envelope.
fn through_the_door(
    input: impl Read,
    live: bool,
    signing: Option<&Signing>,
    parcels: SyncSender<Parcel>,
) -> std::io::Result<()> {
    let mut host = SystemHost::new();
    let mut parcel = Parcel::default();
    // Whatever an envelope can cover is still here when it comes, and some stray events before it.
    let (limit, batch) = match signing {
        Some(_) => (Sent::MAX_ENVELOPE_BYTES, 2 * Sent::MAX_EVENTS),
        None => (MAX_EVENT_BYTES, BATCH),
    };
    let mut lines = Lines::of_at_most(limit, input)?;
    let mut number = 0;
    loop {
        let waits = live && signing.is_none() && !lines.ready() && !parcel.is_empty();
        let full = parcel.events.len() + parcel.refusals.len() >= batch;
        let sealed = parcel.sealed;
        let older = match signing {
            Some(_) if full && !sealed => parcel.split(),
            _ if waits || full || sealed => std::mem::take(&mut parcel),
            _ => Parcel::default(),
        };
        if (older.sealed || !older.is_empty()) && parcels.send(older).is_err() {
            return Ok(());
        }
        let Some(line) = lines.next() else { break };
        number += 1;
        parcel.last_line = number;
        let admitted = match line {
            Line::Whole(line) if line.trim_ascii().is_empty() => continue,
            Line::Whole(line) => match signing.filter(|_| is_envelope(&line)) {
                Some(signing) => {
                    parcel.seal(number, signing.endorse(&line));
                    continue;
                }
                None => admit(&line, Origin::Producer, || host.salt())
                    .map_err(|refusal| if is_envelope(&line) { not_asked_for() } else { refusal }),
            },
            Line::TooLong(length) => Err(ipse_door::too_large("as sent", length)),
            Line::Broken(error) => Err(truncated(&error)),
        };
        match admitted {
            Ok(event) => {
                parcel.events.push(event);
                parcel.lines.push(number);
            }
            Err(refusal) => parcel.refusals.push((number, refusal)),
        }
    }
    // Whoever took the parcels may have failed; it says why itself.
    let _ = parcels.send(parcel);
    Ok(())
}

fn truncated(error: &std::io::Error) -> Refusal {
    let message = format!(
        "the input is broken here: {error}; lines before it are stored, later ones are lost, and \
         if a checksum does not match, stored ones may be wrong"
    );
    Refusal::new("", Rule::Truncated, &message)
}

fn store_all(
    log: &mut Log,
    parcels: &Receiver<Parcel>,
    report: &mut Report,
    bar: &Bar,
    terminal: &mut Terminal<'_>,
) -> anyhow::Result<()> {
    let mut durable = 0;
    while let Ok(mut parcel) = parcels.recv() {
        // What has come meanwhile becomes durable with it: one sync for all.
        while parcel.events.len() < BATCH
            && !parcel.sealed
            && let Ok(next) = parcels.try_recv()
        {
            parcel.join(next);
        }
        let done = log
            .append_signed(&parcel.events, parcel.endorsed.as_ref(), Then::Nothing)
            .with_context(|| format!("events are durable up to line {durable} only"))?;
        durable = parcel.last_line.max(durable);
        bar.durable(durable);
        let had_events = !parcel.events.is_empty();
        report.signed += done.signed;
        if let Some(error) = done.unkept {
            parcel.refusals.push((parcel.last_line, wrong_signature(&error)));
        }
        report.add(parcel, &done.appended, terminal)?;
        if had_events && !terminal.watched {
            let Report { appended, duplicates, .. } = report;
            let duplicates = counted(*duplicates, "duplicate");
            writeln!(
                terminal.err,
                "durable up to line {durable}: {appended} appended, {duplicates}"
            )?;
        }
    }
    Ok(())
}

impl Report {
    fn add(
        &mut self,
        parcel: Parcel,
        appended: &[Appended],
        terminal: &mut Terminal<'_>,
    ) -> anyhow::Result<()> {
        let mut refusals = parcel.refusals;
        self.refused += refusals.len() as u64;
        for (line, appended) in parcel.lines.into_iter().zip(appended) {
            match appended {
                Appended::New(_) => self.appended += 1,
                Appended::Duplicate(_) => self.duplicates += 1,
                Appended::Conflict(seq) => {
                    self.conflicts += 1;
                    refusals.push((line, conflict(*seq)));
                }
                Appended::Forgotten(seq) => {
                    self.refused += 1;
                    refusals.push((line, forgotten(*seq)));
                }
                Appended::Unsigned => {
                    self.refused += 1;
                    refusals.push((line, unsigned()));
                }
            }
        }
        refusals.sort_by_key(|(line, _)| *line);
        for (line, refusal) in refusals {
            self.told += 1;
            if self.told <= MAX_TOLD {
                writeln!(terminal.err, "line {line}: {refusal}")?;
            }
            if self.listed.len() < MAX_LISTED {
                self.listed.push((line, refusal));
            }
        }
        Ok(())
    }

    fn tell(
        &self,
        context: &Context,
        terminal: &mut Terminal<'_>,
        no_consolidate: bool,
        signed: bool,
    ) -> anyhow::Result<()> {
        if self.told > MAX_TOLD {
            let more = self.told - MAX_TOLD;
            writeln!(terminal.err, "… and {more} more such lines (--json lists {MAX_LISTED})")?;
        }
        let Report { appended, duplicates, conflicts, refused, .. } = self;
        let unsigned = (appended + duplicates).saturating_sub(self.signed);
        if signed && unsigned > 0 {
            writeln!(
                terminal.err,
                "note: {} of them without a signature that counts (another salt than before is \
                 another digest)",
                counted(unsigned, "event")
            )?;
        }
        if appended + duplicates + conflicts + refused == 0 {
            writeln!(terminal.err, "note: there was no event in the input")?;
        }
        if context.json {
            return Ok(terminal.json(&self.json())?);
        }
        let duplicates = counted(*duplicates, "duplicate");
        let conflicts = counted(*conflicts, "conflict");
        let signed = if signed { format!(", {} signed", self.signed) } else { String::new() };
        writeln!(
            terminal.out,
            "{appended} appended, {duplicates}, {conflicts}, {refused} refused{signed}"
        )?;
        if !no_consolidate {
            writeln!(terminal.out, "{}", pass_words(self.pass.as_ref()))?;
        }
        Ok(())
    }

    fn json(&self) -> String {
        Members::new()
            .raw("appended", self.appended)
            .raw("duplicates", self.duplicates)
            .raw("conflicts", self.conflicts)
            .raw("refused", self.refused)
            .raw("signed", self.signed)
            .raw("passes", u64::from(self.pass.is_some()))
            .raw("refusals", refusals_json(&self.listed))
            .raw("refusals_omitted", self.told - self.listed.len() as u64)
            .finish()
    }
}

/// Lines that were refused, for programs.
pub(crate) fn refusals_json(listed: &[(u64, Refusal)]) -> String {
    let refusal = |(line, refusal): &(u64, Refusal)| {
        Members::new()
            .raw("line", line)
            .text("field", &refusal.field)
            .text("rule", refusal.rule.code())
            .finish()
    };
    list(listed.iter().map(refusal))
}

/// A progress bar that shows itself only to a person, and only on long work.
struct Bar {
    bar: ProgressBar,
    watched: bool,
    started: Instant,
}

impl Bar {
    fn new(size: u64, watched: bool) -> Self {
        let bar = match size {
            0 => ProgressBar::no_length(),
            size => ProgressBar::new(size),
        };
        bar.set_draw_target(ProgressDrawTarget::hidden());
        let template = "{bar:20} {binary_bytes}/{binary_total_bytes} {eta} left, {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Bar { bar, watched, started: Instant::now() }
    }

    fn durable(&self, line: u64) {
        self.bar.set_message(format!("line {line} durable"));
        if self.watched && self.bar.is_hidden() && self.started.elapsed() > BAR_AFTER {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}
