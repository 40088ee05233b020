//! Import: lines of JSON become events in durable batches, the door on one thread and the log on
//! another.
//!
//! **Invariants:** a batch that is reported durable is durable; a refused line stores nothing and
//! stops nothing; a broken end of the input keeps the good lines before it. In a signed file the
//! events up to an envelope and the envelope become durable together.

use crate::error::Error;
use crate::lines::{Line, Lines};
use crate::parcel::Parcel;
use ipse_core::json::{Members, list};
use ipse_core::{Admitted, Identity};
use ipse_door::{MAX_EVENT_BYTES, Origin, Refusal, Rule, admit};
use ipse_engine::{
    Acknowledged, Appended, Host, Log, Memory, NextStep, PassReport, SignatureError, SignedBatch,
    Trigger, decode_data, refusal_of, registered, type_hint,
};
use ipse_ledger::{NoteKey, SentStatement, dsse};
use ipse_store::{Signatures, View};
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Events that become durable together: one sync to the disk pays for all of them.
const BATCH: usize = 1000;
/// Batches that the door may be ahead of the log.
const AHEAD: usize = 4;
/// Refusals that an import lists; the others are counted.
pub const MAX_LISTED: usize = 1000;

/// How events are imported.
pub struct Options {
    /// Store what has arrived before waiting for more, as from a pipe.
    pub live: bool,
    /// Check the envelopes in a signed file.
    pub signing: Option<Signing>,
    /// Run a pass at the end.
    pub consolidate: bool,
}

impl Default for Options {
    /// A plain file, with a pass at the end.
    fn default() -> Self {
        Options { live: false, signing: None, consolidate: true }
    }
}

/// Whose signatures count in a signed file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signing {
    identity: Identity,
    /// The keys of the registered producers.
    pub producers: Vec<NoteKey>,
    /// What the log does about signatures.
    pub policy: Signatures,
}

impl Signing {
    /// As the log of an identity has it.
    pub fn of(view: View<'_>, identity: &Identity) -> Result<Self, Error> {
        let (producers, policy) = (registered(&view.producers()?), view.signatures()?);
        Ok(Signing { identity: *identity, producers, policy })
    }

    /// What an envelope makes of the events before it.
    fn endorse(&self, envelope: &[u8]) -> Result<Option<SignedBatch>, Refusal> {
        if self.policy == Signatures::Off {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(envelope);
        let opened = SignedBatch::open(&text, &self.identity, &self.producers);
        opened.map(Some).map_err(|error| wrong_signature(&error))
    }
}

/// News of an import that goes on.
pub enum Progress<'p> {
    /// A line was refused, or is in conflict with an event in the log.
    Refused(u64, &'p Refusal),
    /// Everything up to that line is durable.
    Durable {
        /// The line.
        line: u64,
        /// The figures so far.
        so_far: &'p Imported,
        /// Whether the batch had events at all.
        had_events: bool,
    },
}

/// What an import did.
#[derive(Debug, Default)]
pub struct Imported {
    /// New events.
    pub appended: u64,
    /// Events that were in the log already.
    pub duplicates: u64,
    /// Events whose name another one has.
    pub conflicts: u64,
    /// Lines that were refused.
    pub refused: u64,
    /// Events that stand in the log under a producer's signature.
    pub signed: u64,
    /// Events in the log whose type is nearly `execution_result`, and therefore feeds no fact.
    pub misnamed: u64,
    /// The first refusals and conflicts, each with its line.
    pub listed: Vec<(u64, Refusal)>,
    /// How many more of them there were.
    pub omitted: u64,
    /// The pass at the end, if it found anything new.
    pub pass: Option<PassReport>,
}

impl Imported {
    /// Whether every line became an event or was one already.
    pub fn is_clean(&self) -> bool {
        self.refused + self.conflicts == 0
    }

    /// For programs.
    pub fn json(&self) -> String {
        Members::new()
            .raw("appended", self.appended)
            .raw("duplicates", self.duplicates)
            .raw("conflicts", self.conflicts)
            .raw("refused", self.refused)
            .raw("signed", self.signed)
            .raw("misnamed", self.misnamed)
            .raw("passes", u64::from(self.pass.is_some()))
            .raw("refusals", refusals_json(&self.listed))
            .raw("refusals_omitted", self.omitted)
            .finish()
    }

    fn count(&mut self, appended: Appended) -> Option<Refusal> {
        match appended {
            Appended::New(_) => self.appended += 1,
            Appended::Duplicate(_) => self.duplicates += 1,
            Appended::Conflict(_) => self.conflicts += 1,
            _ => self.refused += 1,
        }
        refusal_of(appended)
    }

    fn add(&mut self, parcel: Parcel, appended: &[Appended], told: &mut dyn FnMut(Progress<'_>)) {
        let mut refusals = parcel.refusals;
        self.refused += refusals.len() as u64;
        for (event, appended) in parcel.events.iter().zip(appended) {
            let there = matches!(appended, Appended::New(_) | Appended::Duplicate(_));
            self.misnamed += u64::from(there && type_hint(&event.event_type).is_some());
        }
        for (line, appended) in parcel.lines.into_iter().zip(appended) {
            refusals.extend(self.count(*appended).map(|refusal| (line, refusal)));
        }
        refusals.sort_by_key(|(line, _)| *line);
        for (line, refusal) in refusals {
            told(Progress::Refused(line, &refusal));
            match self.listed.len() < MAX_LISTED {
                true => self.listed.push((line, refusal)),
                false => self.omitted += 1,
            }
        }
    }
}

/// Refused lines, for programs.
pub fn refusals_json(listed: &[(u64, Refusal)]) -> String {
    let refusal = |(line, refusal): &(u64, Refusal)| {
        Members::new()
            .raw("line", line)
            .text("field", &refusal.field)
            .text("rule", refusal.rule.code())
            .finish()
    };
    list(listed.iter().map(refusal))
}

/// Appends the events of a batch, durably.
type Append<'a> = &'a mut dyn FnMut(
    &[Admitted],
    Option<&SignedBatch>,
) -> Result<Acknowledged, ipse_engine::Error>;

/// Imports lines of JSON, plain or gzip. An error leaves what was reported durable. An input that
/// cannot be read further is a refused line.
pub fn import(
    log: &mut Log,
    input: impl Read + Send,
    options: &Options,
    host: &mut dyn Host,
    told: &mut dyn FnMut(Progress<'_>),
) -> Result<Imported, Error> {
    let mut append = |events: &[Admitted], endorsed: Option<&SignedBatch>| {
        log.append_signed(events, endorsed, NextStep::Nothing)
    };
    let mut done = import_lines(&mut append, input, options, host, told, Cut::IsRefused)?;
    if options.consolidate {
        done.pass = log.consolidate(Trigger::Manual).map_err(Error::Pass)?;
    }
    Ok(done)
}

/// The same for a log that others use meanwhile: it is held for a batch at a time, and not while
/// the input waits. An input that cannot be read further is [`Error::Cut`].
pub fn import_shared(
    memory: &Memory,
    input: impl Read + Send,
    options: &Options,
    host: &mut dyn Host,
    told: &mut dyn FnMut(Progress<'_>),
) -> Result<Imported, Error> {
    let mut append =
        |events: &[Admitted], endorsed: Option<&SignedBatch>| memory.append_batch(events, endorsed);
    let done = import_lines(&mut append, input, options, host, told, Cut::IsError);
    // The lines before a cut are stored, and are folded like others.
    let folds = options.consolidate && matches!(done, Ok(_) | Err(Error::Cut { .. }));
    let pass = if folds { memory.consolidate().map_err(Error::Pass)? } else { None };
    Ok(Imported { pass, ..done? })
}

/// What becomes of an input that cannot be read further.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    IsRefused,
    IsError,
}

fn import_lines(
    append: Append<'_>,
    input: impl Read + Send,
    options: &Options,
    host: &mut dyn Host,
    told: &mut dyn FnMut(Progress<'_>),
    cut: Cut,
) -> Result<Imported, Error> {
    let mut done = Imported::default();
    std::thread::scope(|scope| {
        let (sender, parcels) = sync_channel(AHEAD);
        let door = scope.spawn(move || through_the_door(input, options, host, &sender, cut));
        let stored = store_all(append, &parcels, &mut done, told);
        // If storing failed, the door must not wait for a place in the queue.
        drop(parcels);
        let read = door.join().expect("BUG: the door panicked");
        stored.and(read)
    })?;
    Ok(done)
}

/// Reads and checks lines until the input ends or the log takes no more.
fn through_the_door(
    input: impl Read,
    options: &Options,
    host: &mut dyn Host,
    parcels: &SyncSender<Parcel>,
    cut: Cut,
) -> Result<(), Error> {
    let signing = options.signing.as_ref();
    // Everything that an envelope can cover is still here when it comes, and some stray events
    // before it.
    let (limit, batch) = match signing {
        Some(_) => (SentStatement::MAX_ENVELOPE_BYTES, 2 * SentStatement::MAX_EVENTS),
        None => (MAX_EVENT_BYTES, BATCH),
    };
    let mut lines = Lines::of_at_most(limit, input)?;
    let (mut parcel, mut number) = (Parcel::default(), 0);
    let mut end = Ok(());
    loop {
        let waits = options.live && signing.is_none() && !lines.ready() && !parcel.is_empty();
        let full = parcel.len() >= batch;
        let older = match signing {
            Some(_) if full && !parcel.sealed => parcel.split(),
            _ if waits || full || parcel.sealed => std::mem::take(&mut parcel),
            _ => Parcel::default(),
        };
        if (older.sealed || !older.is_empty()) && parcels.send(older).is_err() {
            return Ok(());
        }
        let line = match lines.next() {
            Some(Line::Broken(source)) if cut == Cut::IsError => {
                end = Err(Error::Cut { line: number, source });
                break;
            }
            Some(line) => line,
            None => break,
        };
        number += 1;
        parcel.last_line = number;
        match (&line, signing) {
            (Line::Whole(line), _) if line.trim_ascii().is_empty() => {}
            (Line::Whole(line), Some(signing)) if dsse::is_envelope(line) => {
                parcel.seal(number, signing.endorse(line));
            }
            _ => parcel.add(number, admitted(&line, signing.is_some(), host)),
        }
    }
    // The log may have failed; it says why itself.
    let _ = parcels.send(parcel);
    end
}

/// What the door makes of a line. A line of a signed file goes there as it is: its digest was
/// signed, or may be.
fn admitted(line: &Line, signed: bool, host: &mut dyn Host) -> Result<Admitted, Refusal> {
    match line {
        Line::Whole(line) => {
            let event = if signed { Ok(line.into()) } else { decode_data(line) };
            let admitted = event.and_then(|event| admit(&event, Origin::Producer, || host.salt()));
            admitted
                .map_err(|refusal| if dsse::is_envelope(line) { not_asked_for() } else { refusal })
        }
        Line::TooLong(length) => Err(ipse_door::too_large("as sent", *length)),
        Line::Broken(error) => Err(truncated(error)),
    }
}

fn not_asked_for() -> Refusal {
    let message =
        "this line signs the events before it and is no event; signatures are not checked here";
    Refusal::new("signatures", Rule::WrongSignature, message)
}

fn wrong_signature(error: &SignatureError) -> Refusal {
    Refusal::new("signatures", Rule::WrongSignature, &error.to_string())
}

fn truncated(error: &io::Error) -> Refusal {
    let message = format!(
        "the input is broken here: {error}; lines before it are stored, later ones are lost, and \
         if a checksum does not match, stored ones may be wrong"
    );
    Refusal::new("", Rule::Truncated, &message)
}

fn store_all(
    append: Append<'_>,
    parcels: &Receiver<Parcel>,
    done: &mut Imported,
    told: &mut dyn FnMut(Progress<'_>),
) -> Result<(), Error> {
    let mut line = 0;
    while let Ok(mut parcel) = parcels.recv() {
        // Parcels that have come meanwhile become durable with it: one sync for all.
        while parcel.events.len() < BATCH
            && !parcel.sealed
            && let Ok(next) = parcels.try_recv()
        {
            parcel.join(next);
        }
        let appended = append(&parcel.events, parcel.endorsed.as_ref())
            .map_err(|source| Error::Stopped { line, source })?;
        line = parcel.last_line.max(line);
        let had_events = !parcel.events.is_empty();
        done.signed += appended.signed;
        if let Some(error) = appended.unkept {
            parcel.refusals.push((parcel.last_line, wrong_signature(&error)));
        }
        done.add(parcel, &appended.appended, told);
        told(Progress::Durable { line, so_far: done, had_events });
    }
    Ok(())
}
