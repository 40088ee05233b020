//! Appending events under the policy on signatures, and keeping what producers signed.
//!
//! **Invariants:** an envelope is kept with all of its events or not at all, in their transaction;
//! no envelope is kept that an honest log would contradict.

use crate::Error;
use crate::endorsed::{Endorsed, SignatureError};
use ipse_core::{Admitted, Seq, is_housekeeping};
use ipse_ledger::dsse::StatementIndex;
use ipse_store::sqlite::Batch;
use ipse_store::{Appended, Signatures};

/// What came of signatures in a batch.
#[derive(Default)]
pub(crate) struct SignedEvents {
    /// Events that stand in the log under the signature.
    pub(crate) events: u64,
    /// Whether the envelope was kept.
    pub(crate) kept: bool,
    /// Why it was not.
    pub(crate) unkept: Option<SignatureError>,
}

/// Appends events as far as the policy lets them in.
pub(crate) fn append_all(
    batch: &mut Batch<'_>,
    events: &[Admitted],
    endorsed: Option<&Endorsed>,
) -> Result<(Vec<Appended>, SignedEvents), Error> {
    let policy = batch.view().signatures()?;
    let given = endorsed.filter(|_| policy != Signatures::Off);
    let unkept = given.map(|endorsed| objection(batch, events, endorsed)).transpose()?.flatten();
    let needed = given.is_some_and(|endorsed| endorsed.insists && unkept.is_some());
    let needed = needed || policy == Signatures::Require;
    let endorsed = given.filter(|_| unkept.is_none());
    let covered = |event: &Admitted| endorsed.is_some_and(|signed| signed.covers(&event.digest));
    // What ipse writes itself comes through no producer.
    let is_due = |event: &Admitted| needed && !is_housekeeping(&event.event_type);
    let mut one = |event: &Admitted| match is_due(event) && !covered(event) {
        true => Ok(batch.look(event)?.unwrap_or(Appended::Unsigned)),
        false => batch.append(event),
    };
    let appended = events.iter().map(&mut one).collect::<Result<Vec<_>, _>>()?;
    let signed = match endorsed {
        Some(endorsed) => keep_statement(batch, events, &appended, endorsed)?,
        None => SignedEvents::default(),
    };
    Ok((appended, SignedEvents { unkept, ..signed }))
}

/// Why an envelope counts for nothing here. One that was kept before counts; a new one needs a key
/// that is not revoked, and every event that it names: with it or in the log, as it was signed. One
/// that names an event which is in the log otherwise would make an honest log look forged.
fn objection(
    batch: &mut Batch<'_>,
    events: &[Admitted],
    endorsed: &Endorsed,
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
    for (name, digest) in endorsed.events() {
        match batch.find(name)? {
            None if brought.binary_search(digest).is_ok() => {}
            None => return Ok(Some(SignatureError::Incomplete(*name))),
            Some(seq) if is_house_event(batch, seq)? => {
                return Ok(Some(SignatureError::NotAProducers(*name)));
            }
            Some(seq) if has_digest(batch, seq, digest)? => {}
            Some(_) => return Ok(Some(SignatureError::Contradicts(*name))),
        }
    }
    Ok(None)
}

fn is_house_event(batch: &Batch<'_>, seq: Seq) -> Result<bool, Error> {
    let mut house = false;
    batch.view().each_entry(seq..=seq, |entry, _| {
        house = is_housekeeping(&entry.event_type);
        Ok::<_, Error>(())
    })?;
    Ok(house)
}

/// Keeps an envelope, unless it is there already or none of its events stands in the log so.
fn keep_statement(
    batch: &mut Batch<'_>,
    events: &[Admitted],
    appended: &[Appended],
    endorsed: &Endorsed,
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
    // What was there before, in this file or not, is looked up.
    if seqs.len() < endorsed.events().count() {
        for (name, digest) in endorsed.events() {
            let seq = batch.find(name)?.filter(|seq| !seqs.contains(seq));
            if let Some(seq) = seq
                && has_digest(batch, seq, digest)?
            {
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

fn has_digest(batch: &Batch<'_>, seq: Seq, digest: &[u8; 32]) -> Result<bool, Error> {
    Ok(batch.view().digest(seq)?.0 == *digest)
}

/// Whether the statement of an envelope is kept already, in whatever encoding.
fn is_kept(batch: &mut Batch<'_>, endorsed: &Endorsed) -> Result<bool, Error> {
    let mut covered = None;
    for (name, digest) in endorsed.events() {
        let seq = batch.find(name)?;
        if let Some(seq) = seq
            && has_digest(batch, seq, digest)?
        {
            covered = Some(seq);
            break;
        }
    }
    let (Some(seq), view) = (covered, batch.view()) else { return Ok(false) };
    let mut index = StatementIndex::default();
    for statement in view.statements()?.iter().filter(|statement| statement.covers(seq)) {
        index.add(view.envelope(statement.number)?.as_bytes(), ());
    }
    Ok(index.add(endorsed.envelope.as_bytes(), ()).is_some())
}
