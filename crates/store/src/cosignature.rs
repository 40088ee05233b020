//! Cosignatures of witnesses under the tree heads of a log, and the handle that stores them.
//!
//! **Invariants**
//! - The handle adds cosignatures and changes nothing else. A stored one never changes.
//! - A tree head has at most one cosignature of a key, and at most as many as fit into its note.

use crate::read::{PAGE, View, known_log};
use crate::session::{Access, Duty, Log, Order, Result, Session};
use crate::store::Writing;
use crate::{Error, Store};
use ipse_core::{Identity, Seq};
use ipse_ledger::cosignature::MAX_COSIGNATURES;

/// A cosignature as it is stored. No column is validated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cosigned {
    /// The number of entries under the tree head.
    pub size: u64,
    /// Name and id of the key of the witness, joined by `+`.
    pub key: String,
    /// The line of the cosignature in the note, without its line feed.
    pub line: String,
    /// The signed tree head that the witness saw, without cosignatures.
    pub note: String,
}

/// The result of adding a cosignature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PutCosignature {
    /// It is stored.
    New,
    /// The tree head has a cosignature of this key already, which stays.
    Known,
    /// The tree head has as many cosignatures as fit into a note.
    Full,
}

impl View<'_> {
    /// The cosignatures under the tree head of this size.
    pub fn cosignatures(&self, size: u64) -> Result<Vec<Cosigned>> {
        let size = Seq(size);
        self.session.cosignatures(self.log, size..=size, Order::OldestFirst, 1)
    }

    /// The cosignatures under the newest tree head that has any.
    pub fn newest_cosignatures(&self) -> Result<Vec<Cosigned>> {
        self.session.cosignatures(self.log, Seq(0)..=Seq::MAX, Order::NewestFirst, 1)
    }

    /// All cosignatures, by the size of their tree heads.
    pub fn all_cosignatures(&self) -> Result<Vec<Cosigned>> {
        let (mut all, mut from): (Vec<Cosigned>, _) = (Vec::new(), Seq(0));
        loop {
            let range = from..=Seq::MAX;
            let page = self.session.cosignatures(self.log, range, Order::OldestFirst, PAGE)?;
            let Some(last) = page.last().map(|cosigned| Seq(cosigned.size)) else {
                return Ok(all);
            };
            all.extend(page);
            if last == Seq::MAX {
                return Ok(all);
            }
            from = last.next();
        }
    }
}

/// The handle that stores cosignatures of one log. It has its own connection.
pub struct CosignatureWriter {
    session: Writing,
    log: Log,
}

impl CosignatureWriter {
    pub(crate) fn open(store: &Store, identity: &Identity) -> Result<Self> {
        let session = store.writing(Duty::Cosign)?;
        let log = known_log(&*session, identity)?;
        Ok(CosignatureWriter { session, log })
    }

    /// The readable state of the log.
    pub fn view(&self) -> View<'_> {
        View { session: &*self.session, log: self.log }
    }

    /// Adds a cosignature. If the process dies before this returns, it is stored or not.
    pub fn put(&mut self, cosigned: &Cosigned) -> Result<PutCosignature> {
        self.session.begin(Access::Write)?;
        let done = put(&*self.session, self.log, cosigned)
            .and_then(|done| self.session.commit().map(|()| done));
        if done.is_err() {
            self.session.rollback();
        }
        done
    }
}

fn put(session: &dyn Session, log: Log, cosigned: &Cosigned) -> Result<PutCosignature> {
    let size = Seq(cosigned.size);
    if size > Seq::MAX {
        return Err(Error::Corrupt(format!("no log has {} entries", cosigned.size)));
    }
    let stored = session.cosignatures(log, size..=size, Order::OldestFirst, 1)?;
    if stored.iter().any(|other| other.key == cosigned.key) {
        return Ok(PutCosignature::Known);
    }
    if stored.len() >= MAX_COSIGNATURES {
        return Ok(PutCosignature::Full);
    }
    session.put_cosignature(log, cosigned)?;
    Ok(PutCosignature::New)
}
