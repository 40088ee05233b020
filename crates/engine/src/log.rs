//! The writing half of an identity's log: append, consolidate, forget.
//!
//! **Invariants**
//! - An append that was acknowledged is durable, whatever becomes of the pass that follows it.
//! - After a commit has failed nothing more is written: an fsync that failed once may "succeed"
//!   later with the data gone, so it is never retried.

use crate::Error;
use crate::forget::{Forgetting, Forgotten, Which};
use crate::hot::{Hot, SAVE_EVERY};
use crate::pass::{self, PassCommitted, PassReport, Trigger};
use ipse_consolidate::{RuleSet, V1};
use ipse_core::{Admitted, Identity, Time};
use ipse_door::Salt;
use ipse_store::Appended;
use ipse_store::sqlite::{Batch, Writer};
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
        Ok(Log { writer, identity, rules, hot, host, subscribers, broken: false })
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
        if self.broken {
            return Err(Error::Broken);
        }
        let mut batch = self.writer.begin()?;
        let appended = append_all(&mut batch, events)?;
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
        let changed = appended.iter().any(|event| matches!(event, Appended::New(_)))
            || matches!(pass, Ok(Some(_)));
        if changed && let Err(error) = batch.commit() {
            self.hot.cool();
            self.broken = true;
            return Err(error.into());
        }
        let (pass, pass_error) = match pass {
            Ok(pass) => (pass, None),
            Err(error) => (None, Some(error)),
        };
        tell(&mut self.subscribers, pass.as_ref());
        Ok(Acknowledged { appended, pass, pass_error })
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
        tell(&mut self.subscribers, done.pass.as_ref());
        Ok(done)
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

fn tell(subscribers: &mut [Subscriber], pass: Option<&PassReport>) {
    if let Some(report) = pass {
        subscribers.iter_mut().for_each(|tell| tell(&report.committed));
    }
}

fn append_all(batch: &mut Batch<'_>, events: &[Admitted]) -> Result<Vec<Appended>, Error> {
    events.iter().map(|event| batch.append(event).map_err(Error::from)).collect()
}
