//! Acts of governance: a setting, a producer's key or a token changes in the transaction that
//! appends the event about it.
//!
//! **Invariants**
//! - An [`Acting`] is one transaction on one log: its change and its event are both stored, or
//!   neither is.
//! - The connection changes either settings and producers, or tokens. Besides that it can only
//!   append.
//! - An owed act is a row until its event is in the log, so it is written once.

use crate::read::View;
use crate::session::{Duty, Result};
use crate::write::{Batch, Writer};
use crate::{Producer, Signatures, Store, TokenRow};
use ipse_core::{Admitted, Identity, Time};

/// An act that took effect and whose event is not in the log yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owed {
    pub(crate) number: i64,
    /// The name of the act.
    pub act: String,
    /// What is known about it.
    pub data: String,
}

/// The name of the owed baseline.
pub const BASELINE: &str = "baseline";

/// The handle on the settings, the producers or the tokens of one log. It has its own connection.
pub struct Acts(Writer);

impl Acts {
    pub(crate) fn open(store: &Store, of: &Identity, duty: Duty) -> Result<Self> {
        Ok(Acts(Writer::open(store, of, duty)?))
    }

    /// Begins a transaction. Waits while another process is writing.
    pub fn begin(&mut self) -> Result<Acting<'_>> {
        Ok(Acting(self.0.begin()?))
    }

    /// The current log. Each read sees the state at the time of that read.
    pub fn view(&self) -> View<'_> {
        self.0.view()
    }
}

/// An open transaction that changes settings, producers or tokens of a log.
#[must_use = "an act that is not committed is rolled back"]
pub struct Acting<'w>(Batch<'w>);

impl<'w> Acting<'w> {
    /// The batch for the event.
    pub fn batch(&mut self) -> &mut Batch<'w> {
        &mut self.0
    }

    /// The log as this transaction sees it.
    pub fn view(&self) -> View<'_> {
        self.0.view()
    }

    /// Sets how long events are kept; `None` means permanently.
    pub fn set_retention(&mut self, retention: Option<&str>) -> Result<()> {
        let (session, log, _) = self.0.changing();
        session.set_retention(log, retention)
    }

    /// Registers the verifier key of a producer for these sources, or for any. A key that is
    /// registered already does not change.
    pub fn put_producer(&mut self, key: &str, sources: Option<&[String]>) -> Result<Producer> {
        let (session, log, _) = self.0.changing();
        session.put_producer(log, key, sources)
    }

    /// Revokes the keys of the producer with this name. Returns whether one was valid.
    pub fn revoke_producer(&mut self, name: &str) -> Result<bool> {
        let (session, log, _) = self.0.changing();
        session.revoke_producer(log, name)
    }

    /// Sets the signature requirement.
    pub fn set_signatures(&mut self, signatures: Signatures) -> Result<()> {
        let (session, log, _) = self.0.changing();
        session.set_signatures(log, signatures)
    }

    /// Sets how many hours ahead of the clock an event may be dated; `None` means any time.
    pub fn set_max_ahead(&mut self, hours: Option<u64>) -> Result<()> {
        let (session, log, _) = self.0.changing();
        session.set_max_ahead(log, hours)
    }

    /// Adds a token. Fails without a change if the log has the maximum number of live tokens.
    pub fn put_token(&mut self, token: &TokenRow) -> Result<()> {
        let (session, log, _) = self.0.changing();
        session.put_token(Some(log), token)
    }

    /// Revokes a token permanently. Returns whether it was valid.
    pub fn revoke_token(&mut self, token_id: &[u8; 16], now: Time) -> Result<bool> {
        let (session, log, _) = self.0.changing();
        session.revoke_token(Some(log), token_id, now)
    }

    /// Records that an act is owed to this log.
    pub fn owe(&mut self, act: &str, data: &str) -> Result<()> {
        self.0.owe(act, data)
    }

    /// Makes the change and its event durable. If the process dies before this returns, a reopened
    /// store has both or neither.
    pub fn commit(self) -> Result<()> {
        self.0.commit()
    }
}

impl Batch<'_> {
    /// The acts that are owed to this log, oldest first.
    pub fn owed(&self) -> Result<Vec<Owed>> {
        self.view().owed()
    }

    /// Appends the events of an owed act and deletes its row. The events are new.
    pub fn settle(&mut self, owed: &Owed, events: &[Admitted]) -> Result<()> {
        self.append_all(events, |_| None)?;
        let (session, _, _) = self.changing();
        session.settle_act(owed.number)
    }

    /// Records that an act is owed to this log.
    pub fn owe(&mut self, act: &str, data: &str) -> Result<()> {
        let (session, log, _) = self.changing();
        session.owe_act(log, act, data)
    }
}

impl View<'_> {
    /// The acts that are owed to the log, oldest first.
    pub fn owed(&self) -> Result<Vec<Owed>> {
        self.session.owed_acts(self.log)
    }

    /// How long events are kept; `None` means permanently.
    pub fn retention(&self) -> Result<Option<String>> {
        self.session.retention(self.log)
    }
}

impl Store {
    /// Opens the settings and producers of an identity's log.
    pub fn acts(&self, of: &Identity) -> Result<Acts> {
        Acts::open(self, of, Duty::Configure)
    }

    /// Opens the tokens of an identity.
    pub fn token_acts(&self, of: &Identity) -> Result<Acts> {
        Acts::open(self, of, Duty::Tokens)
    }
}
