//! The writing half of an identity's log: append, consolidate, forget, have heads signed.
//!
//! **Invariants**
//! - An append that was acknowledged is durable, whatever becomes of the pass that follows it.
//! - After a commit has failed nothing more is written: an fsync that failed once may "succeed"
//!   later with the data gone, so it is never retried.

use crate::Error;
use crate::endorsed::{Endorsed, SignatureError};
use crate::forget::{Forgetting, Forgotten, Which};
use crate::head::{HEAD_EVERY, Heads, MANY, Notary};
use crate::hot::{Hot, SAVE_EVERY};
use crate::pass::{self, PassCommitted, PassReport, Trigger};
use crate::signers::Signers;
use ipse_consolidate::{RuleSet, V1};
use ipse_core::{Admitted, Identity, Seq, Time};
use ipse_door::Salt;
use ipse_store::sqlite::{Batch, Writer};
use ipse_store::{Appended, Signatures};
use std::path::Path;

/// Clock and randomness, handed down from the binary.
pub trait Host: Send {
    /// The time now.
    fn now(&self) -> Time;
    /// Fresh random bytes.
    fn salt(&mut self) -> Salt;
}

/// What follows an append, in the same transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// Nothing.
    Nothing,
    /// A pass over all that is past the checkpoint.
    Consolidate(Trigger),
}

/// What became of a batch that is durable now.
#[derive(Debug)]
pub struct Acknowledged {
    /// What became of each event, in order.
    pub appended: Vec<Appended>,
    /// How many of them stand in the log under a producer's signature.
    pub signed: u64,
    /// Why a signature that was given counts for nothing after all.
    pub unkept: Option<SignatureError>,
    /// What the pass did, if there was one and it found anything new.
    pub pass: Option<PassReport>,
    /// Why the pass failed, if it did; the events are durable all the same.
    pub pass_error: Option<Error>,
}

type Subscriber = Box<dyn FnMut(&PassCommitted) + Send>;

/// One identity's log, open for appending and for passes.
pub struct Log<R: RuleSet = V1> {
    writer: Writer,
    identity: Identity,
    rules: R,
    hot: Hot<R::Tally>,
    host: Box<dyn Host>,
    subscribers: Vec<Subscriber>,
    broken: bool,
    notary: Option<Box<dyn Notary>>,
    /// Opened when it is first needed.
    heads: Option<Heads>,
    /// When a head was last signed, as far as is known.
    signed_at: Option<Time>,
    /// Whether a pass came after the last head.
    owes_head: bool,
    head_error: Option<Error>,
}

impl<R: RuleSet> Log<R> {
    /// Opens the log of an identity under a rule set.
    pub fn open(
        path: &Path,
        identity: Identity,
        rules: R,
        host: Box<dyn Host>,
    ) -> Result<Self, Error> {
        let writer = Writer::open(path, &identity)?;
        let (hot, subscribers) = (Hot::cold(&rules, SAVE_EVERY), Vec::new());
        Ok(Log {
            writer,
            identity,
            rules,
            hot,
            host,
            subscribers,
            broken: false,
            notary: None,
            heads: None,
            signed_at: None,
            owes_head: false,
            head_error: None,
        })
    }

    /// Has tree heads signed from now on: after passes, at most one a second.
    pub fn set_notary(&mut self, notary: Box<dyn Notary>) {
        self.signed_at = notary.last_time();
        self.notary = Some(notary);
    }

    /// Signs a tree head now, if there is a notary.
    pub fn sign_head(&mut self) -> Result<Option<String>, Error> {
        let Some(notary) = &self.notary else { return Ok(None) };
        self.signed_at = Some(self.host.now());
        let heads = opened(&mut self.heads, &self.writer, &self.identity)?;
        let note = heads.sign(&self.identity, &**notary)?;
        self.owes_head = false;
        Ok(Some(note))
    }

    /// Has the tree grow behind a large batch.
    fn grow_behind(&mut self, appended: &[Appended]) {
        let many = appended.len() >= MANY && self.notary.is_some();
        // If it cannot be opened now, signing says why.
        if many && let Ok(heads) = opened(&mut self.heads, &self.writer, &self.identity) {
            heads.grow_behind();
        }
    }

    /// Signs a head if a pass came after the last one and that was long enough ago.
    pub fn sign_head_if_due(&mut self) {
        let now = self.host.now().micros();
        let since = self.signed_at.map(|at| now - at.micros());
        // A clock that went back is no reason to wait.
        let due = since.is_none_or(|since| !(0..HEAD_EVERY).contains(&since));
        if self.owes_head && due {
            self.sign_owed_head();
        }
    }

    /// Signs a head if a pass came after the last one.
    pub fn sign_owed_head(&mut self) {
        if self.owes_head
            && let Err(error) = self.sign_head()
        {
            self.head_error = Some(error);
        }
    }

    /// Whether a head is to be signed that was not due yet.
    pub fn owes_head(&self) -> bool {
        self.owes_head
    }

    /// Why the last head could not be signed, if it could not. The events are durable all the same.
    pub fn take_head_error(&mut self) -> Option<Error> {
        self.head_error.take()
    }

    /// Saves sums more often, so that a test crosses the boundary with few events.
    #[doc(hidden)]
    pub fn save_every(&mut self, events: u64) {
        self.hot = Hot::cold(&self.rules, events);
    }

    /// Clock and randomness of this log.
    pub fn host(&mut self) -> &mut dyn Host {
        &mut *self.host
    }

    /// Calls `subscriber` after every pass that this handle commits. It is called while the log is
    /// held, so it must not come back to it.
    pub fn subscribe(&mut self, subscriber: impl FnMut(&PassCommitted) + Send + 'static) {
        self.subscribers.push(Box::new(subscriber));
    }

    /// One pass by itself; `None` if there is nothing new.
    pub fn consolidate(&mut self, trigger: Trigger) -> Result<Option<PassReport>, Error> {
        let done = self.append(&[], Then::Consolidate(trigger))?;
        match done.pass_error {
            Some(error) => Err(error),
            None => Ok(done.pass),
        }
    }

    /// Appends a batch durably, in one transaction, and lets a pass follow.
    pub fn append(&mut self, events: &[Admitted], then: Then) -> Result<Acknowledged, Error> {
        self.append_signed(events, None, then)
    }

    /// The same for events that a producer signed.
    pub fn append_signed(
        &mut self,
        events: &[Admitted],
        endorsed: Option<&Endorsed>,
        then: Then,
    ) -> Result<Acknowledged, Error> {
        if self.broken {
            return Err(Error::Broken);
        }
        let mut batch = self.writer.begin()?;
        let (appended, signed) = append_all(&mut batch, events, endorsed)?;
        let pass = match then {
            Then::Nothing => Ok(None),
            Then::Consolidate(trigger) => pass::run(
                &mut batch,
                &self.rules,
                &mut self.hot,
                &self.identity,
                &mut *self.host,
                trigger,
                None,
            ),
        };
        // A failed pass has rolled back to its savepoint; its hot sums are no longer to be trusted.
        if pass.is_err() {
            self.hot.cool();
        }
        let changed = signed.kept
            || appended.iter().any(|event| matches!(event, Appended::New(_)))
            || matches!(pass, Ok(Some(_)));
        let committed = if changed {
            batch.commit()
        } else {
            drop(batch);
            Ok(())
        };
        if let Err(error) = committed {
            self.hot.cool();
            self.broken = true;
            return Err(error.into());
        }
        let (pass, pass_error) = match pass {
            Ok(pass) => (pass, None),
            Err(error) => (None, Some(error)),
        };
        self.grow_behind(&appended);
        self.passed(pass.as_ref());
        let SignedEvents { events: signed, unkept, .. } = signed;
        Ok(Acknowledged { appended, signed, unkept, pass, pass_error })
    }

    /// Forgets events for good: facts become what they would be had the events never been there.
    pub fn forget(&mut self, which: &Which) -> Result<Forgotten, Error> {
        let done = self.forgetting()?.run(which);
        // Whatever came of it, nothing of them stays in memory.
        self.hot.cool();
        let done = done.map_err(|(error, in_commit)| {
            self.broken |= in_commit;
            error
        })?;
        self.passed(done.pass.as_ref());
        Ok(done)
    }

    /// What follows a pass that is durable.
    fn passed(&mut self, pass: Option<&PassReport>) {
        let Some(report) = pass else { return };
        self.subscribers.iter_mut().for_each(|tell| tell(&report.committed));
        self.owes_head = self.notary.is_some();
        self.sign_head_if_due();
    }

    /// Whether forgotten bytes were still in the store's files when it was opened, and had to stay.
    pub fn erase_pending(&self) -> bool {
        self.writer.erase_pending()
    }

    fn forgetting(&mut self) -> Result<Forgetting<'_, R>, Error> {
        if self.broken {
            return Err(Error::Broken);
        }
        self.hot.cool();
        let Log { writer, identity, rules, hot, host, .. } = self;
        Ok(Forgetting { path: writer.path(), identity, rules, hot, host: &mut **host })
    }
}

fn opened<'h>(
    heads: &'h mut Option<Heads>,
    writer: &Writer,
    identity: &Identity,
) -> Result<&'h mut Heads, Error> {
    match heads {
        Some(heads) => Ok(heads),
        none => Ok(none.insert(Heads::open(writer.path(), identity)?)),
    }
}

/// What came of signatures in a batch.
#[derive(Default)]
struct SignedEvents {
    /// Events that stand in the log under the signature.
    events: u64,
    /// Whether the envelope was kept.
    kept: bool,
    /// Why it was not.
    unkept: Option<SignatureError>,
}

fn append_all(
    batch: &mut Batch<'_>,
    events: &[Admitted],
    endorsed: Option<&Endorsed>,
) -> Result<(Vec<Appended>, SignedEvents), Error> {
    let policy = batch.view().signatures()?;
    let given = endorsed.filter(|_| policy != Signatures::Off);
    let unkept = given.map(|endorsed| objection(batch, events, endorsed)).transpose()?.flatten();
    let endorsed = given.filter(|_| unkept.is_none());
    let covered = |event: &Admitted| endorsed.is_some_and(|signed| signed.covers(&event.digest));
    let mut one = |event: &Admitted| match policy == Signatures::Require && !covered(event) {
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
/// that is not revoked, and every event that it names: with it or in the log, as it was signed. An
/// event that is in the log otherwise must be signed otherwise; or the log would look forged.
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
    let mut signers = None;
    for (name, digest) in endorsed.events() {
        match batch.find(name)? {
            None if brought.binary_search(digest).is_ok() => {}
            None => return Ok(Some(SignatureError::Incomplete(*name))),
            Some(seq) if has_digest(batch, seq, digest)? => {}
            Some(seq) => {
                if signers.is_none() {
                    signers = Some(Signers::of(batch.view())?);
                }
                if signers.as_ref().is_some_and(|signers| signers.names(seq).is_empty()) {
                    return Ok(Some(SignatureError::Contradicts(*name)));
                }
            }
        }
    }
    Ok(None)
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

/// Whether an envelope is kept already.
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
    for statement in view.statements()? {
        let same = statement.signer == endorsed.signer && statement.covers(seq);
        if same && view.envelope(statement.number)? == endorsed.envelope {
            return Ok(true);
        }
    }
    Ok(false)
}
