//! Import of a bundle: a verified log becomes the log of an empty store.
//!
//! **Invariant:** this module accepts only a verified bundle ([`Opened`]); all of it is imported,
//! or nothing.

use crate::error::Error;
use crate::moved::Moved;
use ipse_bundle::Opened;
use ipse_core::json::{Members, list, quoted};
use ipse_core::{Admitted, Identity, Seq};
use ipse_door::{Origin, admit};
use ipse_engine::{CompleteLog, SignedBatch, keep_cosignatures, restore};
use ipse_ledger::{Entry, NoteKey, dsse};
use ipse_store::{Signatures, Store};
use std::io;

/// The result of importing a bundle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BundleReceipt {
    /// The identity of the log.
    pub identity: Identity,
    /// The number of positions of the log: every event of producers and of ipse, including
    /// forgotten ones.
    pub entries: u64,
    /// The number of statements of trusted producers.
    pub statements: u64,
    /// The number of omitted statements of producers that are not trusted.
    pub left_out: u64,
    /// The ids of producers' keys in the bundle that are not registered, because they are not
    /// trusted.
    pub keys_left_out: Vec<String>,
    /// The ids of valid tokens that the acts of the log name. Tokens do not move with a log.
    pub tokens_left_out: Vec<String>,
    /// Whether settings, producers' keys, their sources and revocations came from the acts of the
    /// log. A bundle of an older version has none.
    pub settings_moved: bool,
    /// The position up to which the facts were computed.
    pub checkpoint: Seq,
    /// The number of cosignatures of witnesses under the tree head. They were not verified.
    pub cosignatures: u64,
}

impl BundleReceipt {
    /// The receipt as canonical JSON.
    pub fn json(&self) -> String {
        Members::new()
            .text("identity_hash", &self.identity.to_string())
            .raw("entries", self.entries)
            .raw("statements", self.statements)
            .raw("checkpoint", self.checkpoint)
            .raw("cosignatures", self.cosignatures)
            .raw("keys_left_out", list(self.keys_left_out.iter().map(|id| quoted(id))))
            .raw("settings_moved", self.settings_moved)
            .raw("tokens_left_out", list(self.tokens_left_out.iter().map(|id| quoted(id))))
            .finish()
    }
}

/// Imports a whole bundle into a store in which its identity is registered and its log is empty.
/// `trusted` are the keys of producers whose statements are kept. Settings and producers' keys are
/// those that the acts of the log give. `signatures` is the requirement that a log without acts
/// gets here. `last_head` is the last
/// tree head that was signed for this log, which the bundle must continue. `emit` is called with
/// the number of imported entries and their total.
pub fn take_in(
    store: &Store,
    opened: &Opened<'_>,
    trusted: &[NoteKey],
    signatures: Option<Signatures>,
    last_head: Option<&str>,
    emit: &mut dyn FnMut(u64, u64),
) -> Result<BundleReceipt, Error> {
    let identity = opened.identity;
    check(store, opened)?;
    let (statements, left_out) = statements(opened, trusted)?;
    let moved = Moved::of(opened, &statements, signatures)?;
    moved.put(store, &identity)?;
    for file in opened.gate_files().map_err(Error::Input)? {
        store.put_artefact(&identity, &file)?;
    }
    let checkpoint = opened.bundled.checkpoint.unwrap_or_default();
    let (passes, entries) = (&opened.passes, opened.bundled.size);
    let whole = CompleteLog { passes, statements: &statements, checkpoint, last_head };
    let mut done = 0;
    let log = opened.log().map(admitted).inspect(|_| {
        done += 1;
        emit(done, entries);
    });
    restore(store, &identity, log, &whole)?;
    // If the process dies here, the log is complete and has no cosignatures: `ipse witness add`
    // takes them from the note of the bundle.
    let note = opened.head_note().map_err(Error::Input)?;
    let cosignatures = keep_cosignatures(store, &identity, &note)?;
    let keys_left_out = keys_left_out(store, opened)?;
    let (statements, tokens) = (statements.len() as u64, tokens(opened));
    Ok(BundleReceipt {
        identity,
        entries,
        statements,
        left_out,
        keys_left_out,
        tokens_left_out: tokens,
        settings_moved: moved.is_on_record(),
        checkpoint,
        cosignatures,
    })
}

/// The ids of the tokens that were valid where the log came from.
fn tokens(opened: &Opened<'_>) -> Vec<String> {
    let tokens = opened.governance.tokens().iter().filter(|(_, token)| !token.revoked);
    tokens.map(|(id, _)| id.clone()).collect()
}

/// The ids of producers' keys in the bundle that the store does not have.
fn keys_left_out(store: &Store, opened: &Opened<'_>) -> Result<Vec<String>, Error> {
    let registered = store.reader()?.producers(&opened.identity)?;
    let is_left_out =
        |key: &&NoteKey| !registered.iter().any(|producer| producer.key == key.to_string());
    Ok(opened.producers.iter().filter(is_left_out).map(dsse::key_id).collect())
}

fn check(store: &Store, opened: &Opened<'_>) -> Result<(), Error> {
    let identity = opened.identity;
    if !opened.is_whole() {
        return Err(Error::NotWhole);
    }
    let reader = store.reader()?;
    if !reader.manifests()?.iter().any(|(hash, _)| *hash == identity.to_string()) {
        return Err(Error::Unregistered(identity));
    }
    match reader.view(&identity)?.view().head()? {
        Seq(0) => Ok(()),
        _ => Err(Error::NotEmpty(identity)),
    }
}

/// An entry with its event, validated by the door.
fn admitted(line: io::Result<(Entry, Option<String>)>) -> Result<(Entry, Option<Admitted>), Error> {
    let (entry, event) = line.map_err(Error::Input)?;
    let event =
        event.map(|event| admit(event.as_bytes(), Origin::House, || [0; 16])).transpose()?;
    Ok((entry, event))
}

/// The statements of trusted producers, and the number of others.
fn statements(opened: &Opened<'_>, trusted: &[NoteKey]) -> Result<(Vec<SignedBatch>, u64), Error> {
    let (mut all, mut left_out) = (Vec::new(), 0);
    let known = opened.producers.iter().filter(|key| trusted.contains(key));
    let producers: Vec<NoteKey> = known.cloned().collect();
    for envelope in opened.statements() {
        match SignedBatch::open(&envelope.map_err(Error::Input)?, &opened.identity, &producers) {
            Ok(endorsed) => all.push(endorsed),
            Err(_) => left_out += 1,
        }
    }
    Ok((all, left_out))
}
