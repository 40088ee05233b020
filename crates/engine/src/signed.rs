//! Appending events under the signature requirement, and storing the statements of producers.
//!
//! **Invariants:** an envelope is stored with all of its events or not at all, in their
//! transaction; an envelope that contradicts the log is never stored.

use crate::Error;
use crate::signed_batch::{SignatureError, SignedBatch};
use ipse_core::{Admitted, EventRef, Seq, is_housekeeping};
use ipse_ledger::Entry;
use ipse_ledger::dsse::StatementIndex;
use ipse_store::{Appended, Batch, Signatures};
use std::collections::BTreeSet;

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

/// Appends the events that the signature requirement allows.
pub(crate) fn append_all(
    batch: &mut Batch<'_>,
    events: &[Admitted],
    endorsed: Option<&SignedBatch>,
) -> Result<(Vec<Appended>, SignedEvents), Error> {
    let policy = batch.view().signatures()?;
    let given = endorsed.filter(|_| policy != Signatures::Off);
    let unkept = given.map(|endorsed| objection(batch, events, endorsed)).transpose()?.flatten();
    let needed = given.is_some_and(|endorsed| endorsed.insists && unkept.is_some());
    let needed = needed || policy == Signatures::Require;
    let endorsed = given.filter(|_| unkept.is_none());
    let covered = |event: &Admitted| endorsed.is_some_and(|signed| signed.covers(&event.digest));
    // Events that ipse writes have no producer.
    let is_due = |event: &Admitted| needed && !is_housekeeping(&event.event_type);
    let appended = batch.append_all(events, |event| !is_due(event) || covered(event))?;
    let signed = match endorsed {
        Some(endorsed) => keep_statement(batch, events, &appended, endorsed)?,
        None => SignedEvents::default(),
    };
    Ok((appended, SignedEvents { unkept, ..signed }))
}

/// Why an envelope is rejected. An envelope that is stored already is valid. A new one needs a key
/// that is not revoked, and every event that it names must be in the batch or in the log with the
/// signed digest. An envelope with another digest of a stored event would make an honest log look
/// forged.
fn objection(
    batch: &mut Batch<'_>,
    events: &[Admitted],
    endorsed: &SignedBatch,
) -> Result<Option<SignatureError>, Error> {
    let producers = batch.view().producers()?;
    match producers.iter().find(|(key, _)| *key == endorsed.signer) {
        None => return Ok(Some(SignatureError::UnknownProducer)),
        Some((_, revoked)) if *revoked && !is_kept(batch, endorsed)? => {
            return Ok(Some(SignatureError::Revoked));
        }
        Some(_) => {}
    }
    let mut brought: Vec<[u8; 32]> = events.iter().map(|event| event.digest.0).collect();
    brought.sort_unstable();
    for Named { name, digest, entry } in named(batch, endorsed)? {
        match entry {
            None if brought.binary_search(&digest).is_ok() => {}
            None => return Ok(Some(SignatureError::Incomplete(name))),
            Some(entry) if is_housekeeping(&entry.event_type) => {
                return Ok(Some(SignatureError::NotAProducers(name)));
            }
            Some(entry) if entry.digest.0 == digest => {}
            Some(_) => return Ok(Some(SignatureError::Contradicts(name))),
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
