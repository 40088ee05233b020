//! Import: JSON lines become events in durable batches. The door and the log run on two threads.
//!
//! **Invariants:** a batch that is reported durable is durable; a refused line stores nothing and
//! does not stop the import; if the input breaks off, the valid lines before the break are kept. In
//! a signed file the events up to an envelope and the envelope are committed together.

use crate::error::Error;
use crate::lines::{Line, Lines};
use crate::parcel::Parcel;
use ipse_core::json::{Members, list};
use ipse_core::{Admitted, Identity};
use ipse_door::{MAX_EVENT_BYTES, Origin, Places, Refusal, Rule, Unused, UnusedMembers, admit};
use ipse_engine::{
    Acknowledged, Appended, Host, Log, Memory, NextStep, PassReport, Rehearsal, SignatureError,
    SignedBatch, Trigger, decode_data, refusal_under, registered, type_hint,
};
use ipse_ledger::{NoteKey, SentStatement, dsse};
use ipse_store::{Signatures, View};
use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The number of events that are committed together, with one sync of the disk.
const BATCH: usize = 1000;
/// The number of batches that the door may be ahead of the log.
const AHEAD: usize = 4;
/// The most refusals that an import lists; the others are counted.
pub const MAX_LISTED: usize = 1000;

/// The options of an import.
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

/// The signatures that are accepted in a signed file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signing {
    identity: Identity,
    /// The keys of the registered producers.
    pub producers: Vec<NoteKey>,
    /// The signature requirement of the log.
    pub policy: Signatures,
}

impl Signing {
    /// The settings of the log of an identity.
    pub fn of(view: View<'_>, identity: &Identity) -> Result<Self, Error> {
        let (producers, policy) = (registered(&view.producers()?), view.signatures()?);
        Ok(Signing { identity: *identity, producers, policy })
    }

    /// Validates an envelope; returns the signature over the events before it.
    fn endorse(&self, envelope: &[u8]) -> Result<Option<SignedBatch>, Refusal> {
        if self.policy == Signatures::Off {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(envelope);
        let opened = SignedBatch::open(&text, &self.identity, &self.producers);
        opened.map(Some).map_err(|error| error.refusal())
    }
}

/// Progress of a running import.
pub enum Progress<'p> {
    /// A line was refused, or conflicts with an event in the log.
    Refused(u64, &'p Refusal),
    /// Everything up to this line is durable.
    Durable {
        /// The last durable line.
        line: u64,
        /// The counts so far.
        so_far: &'p Imported,
        /// Whether the batch contained events.
        had_events: bool,
    },
}

/// The result of an import.
#[derive(Debug, Default)]
pub struct Imported {
    /// The number of new events.
    pub appended: u64,
    /// The number of events that were already in the log.
    pub duplicates: u64,
    /// The number of events whose source and id are in the log with other content.
    pub conflicts: u64,
    /// The number of refused lines.
    pub refused: u64,
    /// The number of events in the log with a producer's signature.
    pub signed: u64,
    /// The number of events whose type ends in `.execution_result`, and which therefore feed no
    /// fact.
    pub misnamed: u64,
    /// Members of stored events that feed no fact although they look as if they should.
    pub unused: UnusedMembers,
    /// The first refusals and conflicts, each with its line.
    pub listed: Vec<(u64, Refusal)>,
    /// The number of refusals and conflicts that are not listed.
    pub omitted: u64,
    /// The pass at the end, if it found new events.
    pub pass: Option<PassReport>,
}

impl Imported {
    /// Whether every line became an event or was a duplicate.
    pub fn is_clean(&self) -> bool {
        self.refused + self.conflicts == 0
    }

    /// The result as canonical JSON.
    pub fn json(&self) -> String {
        Members::new()
            .raw("appended", self.appended)
            .raw("duplicates", self.duplicates)
            .raw("conflicts", self.conflicts)
            .raw("refused", self.refused)
            .raw("signed", self.signed)
            .raw("misnamed", self.misnamed)
            .raw("unused", unused_json(&self.unused))
            .raw("passes", u64::from(self.pass.is_some()))
            .raw("refusals", refusals_json(&self.listed))
            .raw("refusals_omitted", self.omitted)
            .finish()
    }

    fn count(&mut self, appended: Appended, unkept: Option<&SignatureError>) -> Option<Refusal> {
        match appended {
            Appended::New(_) => self.appended += 1,
            Appended::Duplicate(_) => self.duplicates += 1,
            Appended::Conflict(_) => self.conflicts += 1,
            _ => self.refused += 1,
        }
        refusal_under(appended, unkept)
    }

    fn add(&mut self, parcel: Parcel, done: Acknowledged, emit: &mut dyn FnMut(Progress<'_>)) {
        let (mut refusals, appended) = (parcel.refusals, &done.appended);
        self.signed += done.signed;
        if let Some(error) = &done.unkept {
            refusals.push((parcel.last_line, error.refusal()));
        }
        self.refused += refusals.len() as u64;
        for ((event, line), appended) in parcel.events.iter().zip(&parcel.lines).zip(appended) {
            let there = matches!(appended, Appended::New(_) | Appended::Duplicate(_));
            self.misnamed += u64::from(there && type_hint(&event.event_type).is_some());
            if there {
                self.unused.add(event, *line);
            }
        }
        for (line, appended) in parcel.lines.into_iter().zip(appended) {
            let refusal = self.count(*appended, done.unkept.as_ref());
            refusals.extend(refusal.map(|refusal| (line, refusal)));
        }
        refusals.sort_by_key(|(line, _)| *line);
        for (line, refusal) in refusals {
            emit(Progress::Refused(line, &refusal));
            match self.listed.len() < MAX_LISTED {
                true => self.listed.push((line, refusal)),
                false => self.omitted += 1,
            }
        }
    }
}

/// Unused members as JSON.
fn unused_json(unused: &UnusedMembers) -> String {
    let member = |(unused, places): (&Unused, &Places)| {
        unused_members(unused, places, places.count).finish()
    };
    list(unused.iter().map(member))
}

/// One unused member: its field, the advice, and the lines of its events.
pub(crate) fn unused_members(unused: &Unused, places: &Places, count: u64) -> Members {
    Members::new()
        .text("field", &unused.field)
        .text("message", &unused.message)
        .raw("count", count)
        .raw("line", places.first.first().copied().unwrap_or_default())
        .raw("lines", list(places.first.iter().map(u64::to_string)))
}

/// Refused lines as a JSON array.
pub fn refusals_json(listed: &[(u64, Refusal)]) -> String {
    list(listed.iter().map(|(line, refusal)| refusal_members(*line, refusal).finish()))
}

/// One refused line.
pub(crate) fn refusal_members(line: u64, refusal: &Refusal) -> Members {
    Members::new().raw("line", line).text("field", &refusal.field).text("rule", refusal.rule.code())
}

/// Appends the events of a batch durably.
type Append<'a> = &'a mut dyn FnMut(
    &[Admitted],
    Option<&SignedBatch>,
) -> Result<Acknowledged, ipse_engine::Error>;

/// Imports JSON lines, plain or gzip. After an error, everything that was reported durable is
/// stored. If the input cannot be read to the end, the last line is refused as truncated.
pub fn import(
    log: &mut Log,
    input: impl Read + Send,
    options: &Options,
    host: &mut dyn Host,
    emit: &mut dyn FnMut(Progress<'_>),
) -> Result<Imported, Error> {
    let mut append = |events: &[Admitted], endorsed: Option<&SignedBatch>| {
        log.append_signed(events, endorsed, NextStep::Nothing)
    };
    let mut done = import_lines(&mut append, input, options, host, emit, Cut::IsRefused)?;
    if options.consolidate {
        done.pass = log.consolidate(Trigger::Manual).map_err(Error::Pass)?;
    }
    Ok(done)
}

/// Computes the result of an import of unsigned lines and stores nothing. Several inputs that are
/// rehearsed one after another count as one log: an event that an earlier one has is a duplicate.
pub fn rehearse(
    rehearsal: &mut Rehearsal<'_>,
    input: impl Read + Send,
    options: &Options,
    host: &mut dyn Host,
    emit: &mut dyn FnMut(Progress<'_>),
) -> Result<Imported, Error> {
    let mut append = |events: &[Admitted], _: Option<&SignedBatch>| {
        let appended = rehearsal.append(events)?;
        Ok(Acknowledged { appended, signed: 0, unkept: None, pass: None, pass_error: None })
    };
    import_lines(&mut append, input, options, host, emit, Cut::IsRefused)
}

/// Imports into a log that others use at the same time: it is locked for one batch at a time, and
/// not while waiting for input. If the input cannot be read to the end, the result is
/// [`Error::Cut`].
pub fn import_shared(
    memory: &Memory,
    input: impl Read + Send,
    options: &Options,
    host: &mut dyn Host,
    emit: &mut dyn FnMut(Progress<'_>),
) -> Result<Imported, Error> {
    let mut append =
        |events: &[Admitted], endorsed: Option<&SignedBatch>| memory.append_batch(events, endorsed);
    let done = import_lines(&mut append, input, options, host, emit, Cut::IsError);
    // The lines before a cut are stored, so a pass must fold them.
    let folds = options.consolidate && matches!(done, Ok(_) | Err(Error::Cut { .. }));
    let pass = if folds { memory.consolidate().map_err(Error::Pass)? } else { None };
    Ok(Imported { pass, ..done? })
}

/// The treatment of an input that cannot be read to the end.
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
    emit: &mut dyn FnMut(Progress<'_>),
    cut: Cut,
) -> Result<Imported, Error> {
    let mut done = Imported::default();
    std::thread::scope(|scope| {
        let (sender, parcels) = sync_channel(AHEAD);
        let door = scope.spawn(move || through_the_door(input, options, host, &sender, cut));
        let stored = store_all(append, &parcels, &mut done, emit);
        // If storing failed, the door must not wait for a free place in the queue.
        drop(parcels);
        let read = door.join().expect("BUG: the door panicked");
        stored.and(read)
    })?;
    Ok(done)
}

/// Reads and validates lines until the input ends or the log accepts no more.
fn through_the_door(
    input: impl Read,
    options: &Options,
    host: &mut dyn Host,
    parcels: &SyncSender<Parcel>,
    cut: Cut,
) -> Result<(), Error> {
    let signing = options.signing.as_ref();
    // When an envelope arrives, all events that it can cover are still in this parcel, after some
    // unsigned ones.
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
    // The log may have failed; it reports the reason itself.
    let _ = parcels.send(parcel);
    end
}

/// Validates a line. A line of a signed file is passed to the door unchanged: its digest is or may
/// be signed.
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
    let message = "this line is an envelope, not an event; signatures are not checked here";
    Refusal::new("signatures", Rule::WrongSignature, message)
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
    emit: &mut dyn FnMut(Progress<'_>),
) -> Result<(), Error> {
    let mut line = 0;
    while let Ok(mut parcel) = parcels.recv() {
        // Commit parcels that arrived meanwhile together with this one: one sync for all.
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
        done.add(parcel, appended, emit);
        emit(Progress::Durable { line, so_far: done, had_events });
    }
    Ok(())
}
