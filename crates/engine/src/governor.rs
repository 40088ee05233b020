//! Acts of governance: settings, producers' keys, tokens and keys of the store change in the
//! transaction that records the change in the log.
//!
//! **Invariants**
//! - A change and its `ipse.act` event are one transaction. *If the process dies before the
//!   commit:* neither is stored. *If it dies after it:* both are.
//! - An owed act (a baseline, erased bytes, a new key of the store) is appended by the next
//!   transaction that appends to its log, before anything else, and once.
//! - Nothing is appended to a log that does not continue its last signed tree head.
//! - A change to the value that is in force already is no act. The value in force is that of the
//!   acts, never that of a table: a row that was changed by hand is set back without an act, or
//!   changed with an act that follows from the ones before.

use crate::head::{Heads, Notary};
use crate::{Error, Host};
use ipse_core::event::ACT;
use ipse_core::{Admitted, Identity, Seq, hex};
use ipse_door::house_event;
use ipse_ledger::act::{
    Act, ActEvent, CLI, KeyChange, LogSettings, ProducerKey, StoreKey, TokenRecord,
};
use ipse_ledger::{Governance, NoteKey};
use ipse_store::{
    Acting, Acts, BASELINE, Batch, Owed, Producer, Signatures, Store, TokenRow, View,
};
use std::ops::ControlFlow;

/// The name of the owed act after forgotten bytes were erased. The store writes it.
const ERASED: &str = "erased";
/// The name of the owed act after a key of the store was revoked.
const KEY_CHANGED: &str = "key_changed";

/// Reads the acts of a log. An act that does not follow is left out: verification reports it.
pub fn governance(view: View<'_>) -> Result<Governance, Error> {
    let mut events = Vec::new();
    view.house_back(ACT, Seq(1)..=Seq::MAX, |stored| {
        events.push((stored.seq, ActEvent::read(stored.seq, stored.canonical.as_bytes())));
        Ok::<_, Error>(ControlFlow::Continue(()))
    })?;
    let mut history = Governance::default();
    for (seq, event) in events.into_iter().rev() {
        match event {
            Some(event) => drop(history.add(seq, event)),
            None => history.unknown(),
        }
    }
    Ok(history)
}

/// The public id of a stored token.
pub fn token_id(row: &TokenRow) -> String {
    format!("tk_{}", hex::encode(&row.token_id))
}

/// The settings of a log as the tables have them.
pub fn settings_of(view: View<'_>) -> Result<LogSettings, Error> {
    Ok(LogSettings {
        signatures: view.signatures()?.name().to_owned(),
        retention: view.retention()?,
        max_ahead: view.max_ahead()?,
    })
}

/// The record of a producer's row; `None` if its key cannot be read.
pub fn producer_key(row: &Producer) -> Option<ProducerKey> {
    Some(ProducerKey { key: NoteKey::parse(&row.key)?, sources: row.sources.clone() })
}

/// The record of a token's row.
pub fn token_record(row: &TokenRow) -> TokenRecord {
    TokenRecord {
        token_id: token_id(row),
        role: row.role.clone(),
        name: row.name.clone(),
        sources: row.sources.clone(),
        expires: row.expires,
    }
}

/// Appends acts to a batch.
fn append(batch: &mut Batch<'_>, acts: Vec<Act>, host: &mut dyn Host) -> Result<(), Error> {
    let events = stored_events(batch.head(), acts, host)?;
    batch.append_all(&events, |_| None)?;
    Ok(())
}

/// The events of acts for the positions after `head`. An act that no verifier could read is an
/// error.
fn stored_events(head: Seq, acts: Vec<Act>, host: &mut dyn Host) -> Result<Vec<Admitted>, Error> {
    let event = |(act, seq): (Act, u64)| {
        let (event, seq) = (ActEvent { act, by: CLI.to_owned() }, Seq(seq));
        let (id, data) = (ActEvent::id(seq), event.data());
        let stored = house_event(ACT, &id, host.now(), &data, host.salt());
        match ActEvent::read(seq, stored.canonical.as_bytes()) {
            Some(read) if read == event => Ok(stored),
            _ => Err(Error::BadAct(event.act.name())),
        }
    };
    acts.into_iter().zip(head.0 + 1..).map(event).collect()
}

/// Appends the acts that are owed to a log, except changes of keys: those need the key directory.
/// Returns whether it wrote something.
pub(crate) fn settle(batch: &mut Batch<'_>, host: &mut dyn Host) -> Result<bool, Error> {
    let mut wrote = false;
    for owed in batch.owed()? {
        let acts = match owed.act.as_str() {
            BASELINE => baseline(batch.view())?,
            ERASED => vec![Act::Erased],
            _ => continue,
        };
        let events = stored_events(batch.head(), acts, host)?;
        batch.settle(&owed, &events)?;
        wrote = true;
    }
    Ok(wrote)
}

/// The baseline of a log: the tables as they are. None if the log records acts already.
fn baseline(view: View<'_>) -> Result<Vec<Act>, Error> {
    if !governance(view)?.acts().is_empty() {
        return Ok(Vec::new());
    }
    let producers = view.producers()?;
    let producers = producers.iter().filter_map(|row| Some((producer_key(row)?, row.revoked)));
    let tokens = view.tokens()?;
    let live = tokens.iter().filter(|row| row.revoked.is_none()).map(token_id);
    Ok(Act::baseline(&settings_of(view)?, producers.collect(), live.collect()))
}

/// The old key's statement about a new key, if the old key is available.
pub type SignChange<'s> = dyn Fn(&Identity, StoreKey, &str, &NoteKey) -> Option<String> + 's;

/// Changes settings, producers and tokens of one log, each in one transaction with its act.
pub struct Governor {
    store: Store,
    acts: Acts,
    identity: Identity,
    host: Box<dyn Host>,
    /// Signs tree heads, if a notary is set.
    heads: Option<Heads>,
}

impl Governor {
    /// Opens the settings, producers and keys of a log.
    pub fn open(store: &Store, identity: Identity, host: Box<dyn Host>) -> Result<Self, Error> {
        let acts = store.acts(&identity)?;
        Ok(Governor { store: store.clone(), acts, identity, host, heads: None })
    }

    /// Opens the tokens of a log.
    pub fn of_tokens(
        store: &Store,
        identity: Identity,
        host: Box<dyn Host>,
    ) -> Result<Self, Error> {
        let acts = store.token_acts(&identity)?;
        Ok(Governor { store: store.clone(), acts, identity, host, heads: None })
    }

    /// Signs tree heads from now on. Fails if the log does not continue the last tree head of the
    /// notary.
    pub fn set_notary(&mut self, notary: Box<dyn Notary>) -> Result<(), Error> {
        self.heads = Some(Heads::open(&self.store, self.identity, notary, self.acts.view())?);
        Ok(())
    }

    /// Signs a tree head if one is owed.
    pub fn sign_owed_head(&mut self) {
        if let Some(heads) = &mut self.heads {
            heads.sign_owed(self.host.now());
        }
    }

    /// Takes the error of the last failed signing, if any. The acts are durable anyway.
    pub fn take_head_error(&mut self) -> Option<Error> {
        self.heads.as_mut().and_then(Heads::take_error)
    }

    /// Runs a change and appends the acts that it returns, in one transaction. Owed acts come
    /// first, so that a baseline has the state before the change.
    fn act<T>(
        &mut self,
        change: impl FnOnce(&mut Acting<'_>) -> Result<(T, Vec<Act>), Error>,
    ) -> Result<T, Error> {
        let mut acting = self.acts.begin()?;
        if let Some(heads) = &mut self.heads {
            heads.allow(acting.batch().head())?;
        }
        let settled = settle(acting.batch(), &mut *self.host)?;
        let (value, acts) = change(&mut acting)?;
        let wrote = settled || !acts.is_empty();
        if !acts.is_empty() {
            append(acting.batch(), acts, &mut *self.host)?;
        }
        acting.commit()?;
        if let Some(heads) = self.heads.as_mut().filter(|_| wrote) {
            heads.owe();
        }
        Ok(value)
    }

    /// Sets the signature requirement.
    pub fn set_signatures(&mut self, to: Signatures) -> Result<(), Error> {
        self.act(|acting| {
            let from = governance(acting.view())?.settings().signatures.clone();
            acting.set_signatures(to)?;
            let act = || Act::Signatures(from.clone(), to.name().to_owned());
            Ok(((), (from != to.name()).then(act).into_iter().collect()))
        })
    }

    /// Sets how long events are kept, as in `180d`; `None` means permanently.
    pub fn set_retention(&mut self, to: Option<&str>) -> Result<(), Error> {
        self.act(|acting| {
            let from = governance(acting.view())?.settings().retention.clone();
            acting.set_retention(to)?;
            let act = || Act::Retention(from.clone(), to.map(str::to_owned));
            Ok(((), (from.as_deref() != to).then(act).into_iter().collect()))
        })
    }

    /// Sets how many hours ahead of the clock an event may be dated; `None` means any time.
    pub fn set_max_ahead(&mut self, to: Option<u64>) -> Result<(), Error> {
        self.act(|acting| {
            let from = governance(acting.view())?.settings().max_ahead;
            acting.set_max_ahead(to)?;
            Ok(((), (from != to).then_some(Act::MaxAhead(from, to)).into_iter().collect()))
        })
    }

    /// Registers the verifier key of a producer for these sources, or for any. Returns the stored
    /// key: one that is registered already does not change.
    pub fn put_producer(
        &mut self,
        key: &NoteKey,
        sources: Option<&[String]>,
    ) -> Result<Producer, Error> {
        self.act(|acting| {
            let text = key.to_string();
            let producers = acting.view().producers()?;
            if let Some(stored) = producers.into_iter().find(|stored| stored.key == text) {
                return Ok((stored, Vec::new()));
            }
            let stored = acting.put_producer(&text, sources)?;
            let sources = sources.map(<[String]>::to_vec);
            Ok((stored, vec![Act::ProducerRegistered(ProducerKey { key: key.clone(), sources })]))
        })
    }

    /// Revokes the keys of the producer with this name. Returns whether one was valid.
    pub fn revoke_producer(&mut self, name: &str) -> Result<bool, Error> {
        self.act(|acting| {
            let producers = acting.view().producers()?;
            let valid = producers.iter().filter(|row| !row.revoked).filter_map(producer_key);
            let valid = valid.filter(|producer| producer.key.name() == name);
            let acts: Vec<Act> = valid.map(Act::ProducerRevoked).collect();
            Ok((acting.revoke_producer(name)?, acts))
        })
    }

    /// Stores a new token.
    pub fn put_token(&mut self, token: &TokenRow) -> Result<(), Error> {
        self.act(|acting| {
            acting.put_token(token)?;
            Ok(((), vec![Act::TokenCreated(token_record(token))]))
        })
    }

    /// Revokes a token permanently. Returns whether it was valid.
    pub fn revoke_token(&mut self, token_id: &[u8; 16]) -> Result<bool, Error> {
        let now = self.host.now();
        self.act(|acting| {
            let row = acting.view().token(token_id)?;
            let Some(row) = row.filter(|row| row.revoked.is_none()) else {
                return Ok((false, Vec::new()));
            };
            acting.revoke_token(token_id, now)?;
            Ok((true, vec![Act::TokenRevoked(token_record(&row))]))
        })
    }

    /// Records that a key of the store is about to be replaced. The log is owed an act, which
    /// [`Governor::complete_key_changes`] appends when there is another key.
    pub fn owe_key_change(&mut self, role: StoreKey, old: &NoteKey) -> Result<(), Error> {
        let data = format!("{} {}", role.name(), hex::encode(&old.id()));
        let mut acting = self.acts.begin()?;
        acting.owe(KEY_CHANGED, &data)?;
        Ok(acting.commit()?)
    }

    /// Appends the changes of keys that are owed to this log and have happened. `current` returns
    /// the key that is in use now, `sign` the old key's statement about it.
    pub fn complete_key_changes(
        &mut self,
        current: &dyn Fn(StoreKey) -> Option<NoteKey>,
        sign: &SignChange<'_>,
    ) -> Result<(), Error> {
        let identity = self.identity;
        let host = &mut *self.host;
        let mut acting = self.acts.begin()?;
        if let Some(heads) = &mut self.heads {
            heads.allow(acting.batch().head())?;
        }
        let mut wrote = settle(acting.batch(), host)?;
        for owed in acting.batch().owed()? {
            let Some(change) = key_change(&owed, &identity, current, sign) else { continue };
            let head = acting.batch().head();
            let events = stored_events(head, vec![Act::KeyChanged(change)], host)?;
            acting.batch().settle(&owed, &events)?;
            wrote = true;
        }
        if !wrote {
            return Ok(());
        }
        acting.commit()?;
        if let Some(heads) = &mut self.heads {
            heads.owe();
        }
        Ok(())
    }
}

/// Whether a log is owed a change of keys.
pub fn owes_key_change(view: View<'_>) -> Result<bool, Error> {
    Ok(view.owed()?.iter().any(|owed| owed.act == KEY_CHANGED))
}

/// The change behind an owed act; `None` if there is no other key yet.
fn key_change(
    owed: &Owed,
    identity: &Identity,
    current: &dyn Fn(StoreKey) -> Option<NoteKey>,
    sign: &SignChange<'_>,
) -> Option<KeyChange> {
    let (role, old) = owed.data.split_once(' ').filter(|_| owed.act == KEY_CHANGED)?;
    let role = StoreKey::parse(role)?;
    let new = current(role).filter(|new| hex::encode(&new.id()) != old)?;
    let signature = sign(identity, role, old, &new);
    Some(KeyChange { role, old: old.to_owned(), new, signature })
}
