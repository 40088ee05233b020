//! Appending events under the rules of a log for what enters it, and storing the statements of
//! producers.
//!
//! **Invariants:** an envelope is stored with all of its events or not at all, in their
//! transaction; an envelope that contradicts the log is never stored. The rules about time and
//! sources hold for events that enter: nothing compares stored events with a clock or a list.

use crate::Error;
use crate::governor::governance;
use crate::signed_batch::{SignatureError, SignedBatch};
use ipse_core::event::source_of;
use ipse_core::{Admitted, EventRef, Seq, Time, is_housekeeping, sources};
use ipse_ledger::Entry;
use ipse_ledger::dsse::StatementIndex;
use ipse_store::{Appended, Batch, Signatures, View};
use std::collections::BTreeSet;

/// An hour in microseconds.
const HOUR: i64 = 3_600_000_000;

/// The result of the signature checks of a batch.
#[derive(Default)]
pub(crate) struct SignedEvents {
    /// The number of events in the log that the signature covers.
    pub(crate) events: u64,
    /// Whether the envelope was stored.
    pub(crate) kept: bool,
    /// Why the envelope was rejected.
    pub(crate) unkept: Option<SignatureError>,
}

/// Appends the events that the log accepts at this time: they are not dated too far ahead, and the
/// signature requirement allows them.
pub(crate) fn append_all(
    batch: &mut Batch<'_>,
    events: &[Admitted],
    endorsed: Option<&SignedBatch>,
    now: Time,
) -> Result<(Vec<Appended>, SignedEvents), Error> {
    let (policy, latest) = (batch.view().signatures()?, latest(batch.view(), now)?);
    let given = endorsed.filter(|_| policy != Signatures::Off);
    let brought = Brought { events, latest };
    let unkept = given.map(|endorsed| objection(batch, &brought, endorsed)).transpose()?.flatten();
    let insists = given.is_some_and(|endorsed| endorsed.insists && unkept.is_some());
    let needed = insists || policy == Signatures::Require;
    // A producer that signs for the source of another must not get the events stored as unsigned.
    let barred = given.filter(|_| matches!(unkept, Some(SignatureError::SourceNotAllowed(..))));
    let endorsed = given.filter(|_| unkept.is_none());
    let covered = |event: &Admitted| endorsed.is_some_and(|signed| signed.covers(&event.digest));
    let appended = batch.append_all(events, |event| {
        let is_barred = barred.is_some_and(|signed| signed.covers(&event.digest));
        // Events that ipse writes have no producer, and the time of its clock.
        match latest.filter(|latest| event.time > *latest) {
            _ if is_housekeeping(&event.event_type) => None,
            Some(latest) => Some(Appended::Ahead(latest)),
            None => (is_barred || needed && !covered(event)).then_some(Appended::Unsigned),
        }
    })?;
    let signed = match endorsed {
        Some(endorsed) => keep_statement(batch, events, &appended, endorsed)?,
        None => SignedEvents::default(),
    };
    Ok((appended, SignedEvents { unkept, ..signed }))
}

/// The latest time of an event that a log accepts now; `None` if it accepts any.
pub(crate) fn latest(view: View<'_>, now: Time) -> Result<Option<Time>, Error> {
    let Some(hours) = view.max_ahead()? else { return Ok(None) };
    let ahead = i64::try_from(hours).unwrap_or(i64::MAX).saturating_mul(HOUR);
    // No event is dated after the last time that can be written.
    Ok(Time::from_micros(now.micros().saturating_add(ahead)))
}

/// The events that are sent with an envelope.
struct Brought<'e> {
    events: &'e [Admitted],
    latest: Option<Time>,
}

/// Why an envelope is rejected. An envelope that is stored already is valid. A new one needs a key
/// that is not revoked and may use the sources of its events, and every event that it names must be
/// in the batch or in the log with the signed digest. An envelope with another digest of a stored
/// event would make an honest log look forged.
fn objection(
    batch: &mut Batch<'_>,
    brought: &Brought<'_>,
    endorsed: &SignedBatch,
) -> Result<Option<SignatureError>, Error> {
    let producers = batch.view().producers()?;
    let Some(signer) = producers.iter().find(|producer| producer.key == endorsed.signer) else {
        return Ok(Some(SignatureError::UnknownProducer));
    };
    if signer.revoked && !is_kept(batch, endorsed)? {
        return Ok(Some(SignatureError::Revoked));
    }
    let mut sent: Vec<(&[u8; 32], &Admitted)> =
        brought.events.iter().map(|event| (&event.digest.0, event)).collect();
    sent.sort_unstable_by_key(|(digest, _)| *digest);
    let mut all = Vec::new();
    for Named { name, digest, entry } in named(batch, endorsed)? {
        let place = sent.binary_search_by_key(&&digest, |(digest, _)| digest);
        let event = place.ok().map(|place| sent[place].1);
        match (&entry, event) {
            (None, None) => return Ok(Some(SignatureError::Incomplete(name))),
            (None, Some(event)) if brought.latest.is_some_and(|latest| event.time > latest) => {
                return Ok(Some(SignatureError::Ahead(name)));
            }
            (Some(entry), _) if is_housekeeping(&entry.event_type) => {
                return Ok(Some(SignatureError::NotAProducers(name)));
            }
            (Some(entry), _) if entry.digest.0 != digest => {
                return Ok(Some(SignatureError::Contradicts(name)));
            }
            _ => all.push((name, entry.map(|entry| entry.seq), event)),
        }
    }
    if let Some(early) = before_key(batch, endorsed, &all)? {
        return Ok(Some(SignatureError::BeforeKey(early)));
    }
    let Some(sources) = &signer.sources else { return Ok(None) };
    let foreign = foreign(batch.view(), &all, sources)?;
    Ok(if foreign.is_some() && is_kept(batch, endorsed)? { None } else { foreign })
}

/// A signed event: its name, its position if it is stored, and the event itself if it was sent.
type SignedEvent<'e> = (EventRef, Option<Seq>, Option<&'e Admitted>);

/// The first event that was in the log before the act that registered the signer's key. A statement
/// that is stored already is accepted again.
fn before_key(
    batch: &mut Batch<'_>,
    endorsed: &SignedBatch,
    events: &[SignedEvent<'_>],
) -> Result<Option<EventRef>, Error> {
    let stored = || events.iter().filter_map(|(name, seq, _)| Some((*name, (*seq)?)));
    // New events stand after every act, so usually no act is read here.
    if stored().next().is_none() || is_kept(batch, endorsed)? {
        return Ok(None);
    }
    let acts = governance(batch.view())?;
    let since = acts.producer(&endorsed.signer).map_or(Seq(0), |known| known.since);
    Ok(stored().find(|(_, seq)| *seq < since).map(|(name, _)| name))
}

/// The error for the first event with a source that is not in a list. The source of a forgotten
/// event is unknown.
fn foreign(
    view: View<'_>,
    events: &[SignedEvent<'_>],
    list: &[String],
) -> Result<Option<SignatureError>, Error> {
    for (event, seq, sent) in events {
        let source = match (sent, seq) {
            (Some(sent), _) => source_of(&sent.canonical),
            (None, Some(seq)) => view.stored(*seq)?.and_then(|stored| source_of(&stored.canonical)),
            (None, None) => None,
        };
        if let Some(source) = source.filter(|source| !sources::permits(list, source)) {
            return Ok(Some(SignatureError::SourceNotAllowed(*event, source)));
        }
    }
    Ok(None)
}

/// An event that an envelope names, and the log entry with this name.
struct Named {
    name: EventRef,
    digest: [u8; 32],
    entry: Option<Entry>,
}

fn named(batch: &mut Batch<'_>, endorsed: &SignedBatch) -> Result<Vec<Named>, Error> {
    let events: Vec<(EventRef, [u8; 32])> =
        endorsed.events().map(|(name, digest)| (*name, *digest)).collect();
    let names: Vec<EventRef> = events.iter().map(|(name, _)| *name).collect();
    let found = batch.find_all(&names)?;
    let seqs: Vec<Seq> = found.iter().flatten().copied().collect();
    let mut entries = batch.view().entries_at(&seqs)?.into_iter();
    let entry = |seq: &Option<Seq>| seq.and_then(|_| entries.next()).map(|(entry, _)| entry);
    let entries: Vec<Option<Entry>> = found.iter().map(entry).collect();
    let one = |((name, digest), entry)| Named { name, digest, entry };
    Ok(events.into_iter().zip(entries).map(one).collect())
}

/// Stores an envelope, unless it is a duplicate or none of its events is in the log as signed.
fn keep_statement(
    batch: &mut Batch<'_>,
    events: &[Admitted],
    appended: &[Appended],
    endorsed: &SignedBatch,
) -> Result<SignedEvents, Error> {
    let mut seqs = Vec::new();
    let mut all_new = true;
    for (event, appended) in events.iter().zip(appended) {
        match appended {
            Appended::New(seq) if endorsed.covers(&event.digest) => seqs.push(*seq),
            Appended::Duplicate(_) => all_new = false,
            _ => {}
        }
    }
    // Events that were in the log before are looked up, also if the batch does not contain them.
    if seqs.len() < endorsed.events().count() {
        let there: BTreeSet<Seq> = seqs.iter().copied().collect();
        for seq in signed_in_log(batch, endorsed)? {
            if !there.contains(&seq) {
                seqs.push(seq);
                all_new = false;
            }
        }
    }
    seqs.sort_unstable();
    seqs.dedup();
    let kept = !seqs.is_empty() && (all_new || !is_kept(batch, endorsed)?);
    if kept {
        batch.put_statement(&endorsed.signer, &seqs, &endorsed.envelope)?;
    }
    let stands = |appended: &Appended| match appended {
        Appended::New(seq) | Appended::Duplicate(seq) => seqs.binary_search(seq).is_ok(),
        _ => false,
    };
    let sent = events.iter().zip(appended).filter(|(_, appended)| stands(appended)).count();
    Ok(SignedEvents { events: sent as u64, kept, unkept: None })
}

/// The positions of the events whose digest in the log is the signed one.
fn signed_in_log(batch: &mut Batch<'_>, endorsed: &SignedBatch) -> Result<Vec<Seq>, Error> {
    let there = named(batch, endorsed)?.into_iter().filter_map(|named| {
        let entry = named.entry?;
        (entry.digest.0 == named.digest).then_some(entry.seq)
    });
    Ok(there.collect())
}

/// Whether the statement of an envelope is stored already, in any encoding.
fn is_kept(batch: &mut Batch<'_>, endorsed: &SignedBatch) -> Result<bool, Error> {
    let covered = signed_in_log(batch, endorsed)?.into_iter().next();
    let (Some(seq), view) = (covered, batch.view()) else { return Ok(false) };
    let mut index = StatementIndex::default();
    for statement in view.statements()?.iter().filter(|statement| statement.covers(seq)) {
        index.add(view.envelope(statement.number)?.as_bytes(), ());
    }
    Ok(index.add(endorsed.envelope.as_bytes(), ()).is_some())
}
