//! The contract between the handles of this crate and a storage engine.
//!
//! An [`Engine`] is one store. A [`Session`] is one connection to it, opened for one [`Duty`]. The
//! handles ([`Reader`](crate::Reader), [`Writer`](crate::Writer) and the others) use these traits
//! only. An engine has its own SQL and its own guards.
//!
//! # The contract
//!
//! **Durability.** When `commit` of a write transaction returns `Ok`, everything in it survives a
//! crash of the process and a power cut. An operation that writes outside a transaction is its own
//! transaction, with the same guarantee. When `commit` returns an error, the transaction may be
//! durable or not. The caller must not write through the session again. A store that is opened
//! later has all of the transaction or none of it.
//!
//! **Locking.** `begin(Access::Write)` waits for other writers, for a bounded time, and then fails
//! with [`Error::Busy`]. Until the end of the transaction no other session writes to the same log.
//! Reading never waits for a writer. A writer waits for a reader only during maintenance of the
//! engine, and only for a fraction of the lock timeout. An operation whose result depends on a
//! comparison (`swap_tree_head`, `put_token`, `note_use`, `put_artefact`) compares and writes under
//! one lock.
//!
//! **Isolation.** All reads between `begin` and the end of a transaction see one state of the
//! store, plus the writes of the transaction itself. Outside a transaction each operation sees its
//! own state. Entries of a log never change, so a range that was read once stays valid, except that
//! content may be forgotten.
//!
//! **Retries.** An engine waits for locks and retries nothing else. After [`Error::Busy`],
//! [`Error::Full`] and [`Error::ReadOnly`] an operator may retry; before `commit` is called nothing
//! is half done. For [`Error::Gone`] and [`Error::Corrupt`] a retry never helps.
//!
//! **Sets and pages.** Every operation takes or returns a set, so that a remote database needs one
//! round trip. Results are in the order of the arguments. A range is read in pages: an operation
//! with a `limit` returns at most that many rows, and the caller continues after the last one. No
//! statement stays open between two calls.
//!
//! **Duty.** A session can do only what its duty allows, and the database itself rejects the rest:
//! a session that appends cannot change a manifest, an event or a token.

use crate::audit::{Pair, RawEvent, RawFact, RawPass};
use crate::{
    Cosigned, Erased, Error, Location, Owed, Patience, Producer, Registered, Signatures, Stored,
    TokenRow,
};
use ipse_core::{Admitted, Digest, Event, EventRef, Fact, FactId, FactKey, Identity, Seq, Time};
use ipse_ledger::Entry;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::Path;

pub(crate) type Result<T> = std::result::Result<T, Error>;

/// A range of positions, both included.
pub(crate) type Span = RangeInclusive<Seq>;

/// Values by the positions at which they end.
pub(crate) type ByEnd = Vec<(Seq, Vec<u8>)>;

/// The duty of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Duty {
    /// Reading.
    Read,
    /// Registering manifests.
    Register,
    /// Appending and passes.
    Write,
    /// Appending, passes, and deleting the content of events.
    Forget,
    /// Retention, producers and the signature requirement, and the events about them.
    Configure,
    /// Tree heads.
    Sign,
    /// Cosignatures of witnesses.
    Cosign,
    /// Access tokens, and the events about them.
    Tokens,
    /// Files that a manifest names.
    Artefacts,
}

/// The access mode of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Read-only, on one state of the store.
    Read,
    /// Read and write, with the write lock.
    Write,
}

/// A log within a store. Valid only for the engine that returned it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Log {
    pub(crate) number: i64,
    pub(crate) identity: Identity,
}

/// The order of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    OldestFirst,
    NewestFirst,
}

/// The typed columns of an event, which rules and chunks need.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) seq: Seq,
    pub(crate) event_ref: EventRef,
    pub(crate) time: Time,
    pub(crate) event_type: String,
    pub(crate) columns: Vec<u8>,
}

impl Typed {
    pub(crate) fn of(event: &Admitted, seq: Seq) -> Self {
        Typed {
            seq,
            event_ref: event.event_ref,
            time: event.time,
            event_type: event.event_type.clone(),
            columns: event.columns.clone(),
        }
    }

    /// The event in the form that rules read.
    pub(crate) fn event(&self) -> Result<Event<'_>> {
        Event::of_row(self.event_ref, self.time, &self.event_type, &self.columns).ok_or_else(|| {
            Error::Corrupt(format!("the typed columns of seq {} cannot be read", self.seq))
        })
    }
}

/// A selection of events to read with their content.
#[derive(Clone, Debug)]
pub(crate) struct Pick<'p> {
    pub(crate) range: Span,
    pub(crate) kind: Kind<'p>,
    /// A text that their canonical bytes must contain.
    pub(crate) holding: Option<&'p str>,
    /// Whether forgotten events are skipped.
    pub(crate) kept_only: bool,
    pub(crate) order: Order,
}

/// A filter on the event type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'p> {
    Any,
    /// Pass records, which have their own index.
    PassRecord,
    /// One type. Housekeeping types are found without a scan of the log.
    Of(&'p str),
}

impl<'p> Pick<'p> {
    /// All events of a range, in order.
    pub(crate) fn all(range: Span) -> Self {
        let (holding, order) = (None, Order::OldestFirst);
        Pick { range, kind: Kind::Any, holding, kept_only: false, order }
    }

    pub(crate) fn kind(self, kind: Kind<'p>) -> Self {
        Pick { kind, ..self }
    }

    pub(crate) fn newest_first(self) -> Self {
        Pick { order: Order::NewestFirst, ..self }
    }
}

/// A statement of a producer, as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StatementRow {
    pub(crate) number: u64,
    pub(crate) signer: String,
    /// The positions of its events, encoded.
    pub(crate) events: Vec<u8>,
}

/// The state of one log for comparison only: see [`Upkeep::marks`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) head: Seq,
    pub(crate) tree_head: Option<String>,
}

/// A page of unordered rows, and the start of the next page.
#[derive(Clone, Debug)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    /// `None` on the last page.
    pub(crate) next: Option<u64>,
}

/// One store.
pub(crate) trait Engine: Send + Sync {
    /// The address of the store.
    fn location(&self) -> &Location;
    /// Opens a connection.
    fn session(&self, duty: Duty) -> Result<Box<dyn Session>>;
    /// Erases forgotten content that may still be in the store's files.
    fn finish_erasing(&self, patience: Patience) -> Result<Erased>;
    /// Writes a compact copy of the whole store to a new path.
    fn copy_to(&self, path: &Path) -> Result<()>;
}

/// One connection. See the [contract](self).
pub(crate) trait Session:
    Transactions
    + Identities
    + Events
    + Chunks
    + Passes
    + Facts
    + Trees
    + Cosignatures
    + Statements
    + Settings
    + Tokens
    + Artefacts
    + Upkeep
    + Send
{
}

/// Transactions and savepoints. At most one savepoint is open at a time.
pub(crate) trait Transactions {
    fn begin(&self, access: Access) -> Result<()>;
    fn commit(&self) -> Result<()>;
    /// Rolls back the open transaction, if any. If the connection is broken, its next operation
    /// returns the error.
    fn rollback(&self);
    fn savepoint(&self) -> Result<()>;
    fn release(&self) -> Result<()>;
    /// Undoes all changes after the savepoint and closes it.
    fn rollback_to(&self);
}

/// Registered manifests.
pub(crate) trait Identities {
    /// The log of an identity, if it is registered.
    fn log(&self, identity: &Identity) -> Result<Option<Log>>;
    /// All identities with their canonical manifests, oldest first.
    fn manifests(&self) -> Result<Vec<(String, String)>>;
    /// Adds a manifest. A registered manifest does not change.
    fn register(&self, canonical: &str) -> Result<Registered>;
    /// Removes an identity with its tokens, producers and settings, in one transaction. Fails with
    /// [`Error::NotEmpty`] if its log has an event. Its log is not given to another identity.
    fn remove(&self, log: Log) -> Result<()>;
}

/// The events of a log.
pub(crate) trait Events {
    /// The last position; 0 if the log is empty.
    fn head(&self, log: Log) -> Result<Seq>;
    /// The positions of events by name.
    fn find(&self, log: Log, names: &[EventRef]) -> Result<Vec<Option<Seq>>>;
    /// Appends events from `first` on, which is the last position plus one. Their names are new.
    fn insert(&self, log: Log, first: Seq, events: &[&Admitted]) -> Result<()>;
    /// Deletes the content of events. Returns the number of deleted bytes.
    fn empty(&self, log: Log, seqs: &[Seq]) -> Result<u64>;
    /// The names of events by position; a position that does not exist is an error.
    fn names(&self, log: Log, seqs: &[Seq]) -> Result<Vec<EventRef>>;
    /// The typed columns of a range, in order.
    fn typed(&self, log: Log, range: Span, limit: usize) -> Result<Vec<Typed>>;
    /// The typed columns at positions; an error if one does not exist.
    fn typed_at(&self, log: Log, seqs: &[Seq]) -> Result<Vec<Typed>>;
    /// The entries of a range, in order. The flag says whether the event was forgotten.
    fn entries(&self, log: Log, range: Span, limit: usize) -> Result<Vec<(Entry, bool)>>;
    /// The entries at positions; an error if one does not exist.
    fn entries_at(&self, log: Log, seqs: &[Seq]) -> Result<Vec<(Entry, bool)>>;
    /// Events with their content.
    fn stored(&self, log: Log, pick: &Pick<'_>, limit: usize) -> Result<Vec<Stored>>;
    /// The newest housekeeping event with a time of at most `by`: its position and its time.
    fn last_recorded(&self, log: Log, by: Time) -> Result<Option<(Seq, Time)>>;
    /// The canonical bytes at positions; an error if one does not exist.
    fn contents(&self, log: Log, seqs: &[Seq]) -> Result<Vec<String>>;
    /// The raw rows of a range, for an auditor.
    fn raw_events(&self, log: Log, range: Span, limit: usize) -> Result<Vec<RawEvent>>;
}

/// Returns whether the fact with this key is wanted.
pub(crate) type Wanted<'w> = &'w dyn Fn(&FactKey) -> bool;

/// Reads a chunk, given its last position and its bytes, and returns whether to continue.
pub(crate) type Visit<'v> = dyn FnMut(Seq, &[u8]) -> Result<ControlFlow<()>> + 'v;

/// Chunks: the typed columns of many events in one value. The key of a chunk is its last position.
pub(crate) trait Chunks {
    /// Passes the chunks that end in a range to `visit`, until it breaks. The bytes are borrowed,
    /// not copied: a chunk of 4096 events has about 100 kB. `visit` may read through the same
    /// session.
    fn visit_chunks(&self, log: Log, ends: Span, order: Order, visit: &mut Visit<'_>)
    -> Result<()>;
    /// The raw body and names of chunks.
    fn raw_chunks(&self, log: Log, ends: &[Seq]) -> Result<Vec<Option<Pair>>>;
    /// The names of the events of a full chunk; none if the chunk is missing or small.
    fn chunk_names(&self, log: Log, end: Seq) -> Result<Vec<EventRef>>;
    /// The last positions of the chunks that end in a range, in order.
    fn chunk_ends(&self, log: Log, range: Span) -> Result<Vec<Seq>>;
    /// Replaces the chunks that end in `replaced` with one chunk. A full chunk comes with the names
    /// of its events, which an engine may index.
    fn put_chunk(&self, log: Log, replaced: Span, body: &[u8], names: &[EventRef]) -> Result<()>;
}

/// The list of passes: a derived index of the pass records.
pub(crate) trait Passes {
    /// The passes whose records are in a range.
    fn passes(&self, log: Log, range: Span, order: Order, limit: usize) -> Result<Vec<RawPass>>;
    fn pass_count(&self, log: Log) -> Result<u64>;
    fn put_pass(&self, log: Log, pass: &RawPass) -> Result<()>;
}

/// Facts and their tallies.
pub(crate) trait Facts {
    /// The facts with wanted keys, in no particular order. The limit counts all rows that are read.
    /// `from` is 0, or the `next` of the previous page.
    fn facts(&self, log: Log, from: u64, limit: usize, wanted: Wanted<'_>) -> Result<Page<Fact>>;
    fn facts_by_id(&self, log: Log, ids: &[FactId]) -> Result<Vec<Option<Fact>>>;
    /// The number of forgotten observations of each fact; 0 for a fact that does not exist.
    fn forgotten_of(&self, log: Log, ids: &[FactId]) -> Result<Vec<u64>>;
    /// Stores facts, replacing those with the same ids. Returns which of them changed.
    fn put_facts(&self, log: Log, facts: &[(FactId, Fact)]) -> Result<Vec<bool>>;
    /// Deletes facts. Returns which of them existed.
    fn remove_facts(&self, log: Log, ids: &[FactId]) -> Result<Vec<bool>>;
    /// Adds to the counts of forgotten observations.
    fn count_forgotten(&self, log: Log, counts: &[(FactId, u64)]) -> Result<()>;
    fn tallies(&self, log: Log, ids: &[FactId]) -> Result<Vec<Option<Vec<u8>>>>;
    /// Stores tallies; `None` deletes a tally.
    fn put_tallies(&self, log: Log, tallies: &[(FactId, Option<Vec<u8>>)]) -> Result<()>;
    /// The size of all tallies in bytes.
    fn tally_bytes(&self, log: Log) -> Result<u64>;
    /// Deletes all facts and tallies.
    fn remove_all_facts(&self, log: Log) -> Result<()>;
    /// The raw rows of facts.
    fn raw_facts(&self, log: Log, from: u64, limit: usize) -> Result<Page<RawFact>>;
    /// The raw rows of tallies: fact id and state.
    fn raw_tallies(&self, log: Log, from: u64, limit: usize) -> Result<Page<Pair>>;
}

/// The Merkle tree: stored subtrees by their last position, and the signed tree head.
pub(crate) trait Trees {
    fn nodes(&self, log: Log, ends: Span, order: Order, limit: usize) -> Result<ByEnd>;
    fn tree_head(&self, log: Log) -> Result<Option<String>>;
    /// Stores subtrees and replaces the expected tree head. Returns `false` without a change if the
    /// stored tree head is another one.
    fn swap_tree_head(&self, log: Log, old: Option<&str>, new: &str, nodes: &ByEnd)
    -> Result<bool>;
}

/// Cosignatures of witnesses, by the size of their tree heads.
pub(crate) trait Cosignatures {
    /// The cosignatures under tree heads in a range of sizes. The limit counts tree heads.
    fn cosignatures(
        &self,
        log: Log,
        sizes: Span,
        order: Order,
        limit: usize,
    ) -> Result<Vec<Cosigned>>;
    /// Adds a cosignature. Fails if the tree head has one of this key already.
    fn put_cosignature(&self, log: Log, cosigned: &Cosigned) -> Result<()>;
}

/// Statements of producers, and the registered producers.
pub(crate) trait Statements {
    fn statement_count(&self, log: Log) -> Result<u64>;
    /// Statements from a number on, in order. Numbers begin at 1; a statement 0 is damage, which an
    /// auditor must see.
    fn statements(&self, log: Log, from: u64, limit: usize) -> Result<Vec<StatementRow>>;
    fn envelopes(&self, log: Log, numbers: &[u64]) -> Result<Vec<String>>;
    fn put_statement(&self, log: Log, statement: &StatementRow, envelope: &str) -> Result<()>;
    /// The keys of producers, including revoked ones.
    fn producers(&self, log: Log) -> Result<Vec<Producer>>;
    /// Registers a producer's key for these sources, or for any. Returns the stored key: one that
    /// is registered already does not change.
    fn put_producer(&self, log: Log, key: &str, sources: Option<&[String]>) -> Result<Producer>;
    /// Revokes the keys of a producer. Returns whether one was valid.
    fn revoke_producer(&self, log: Log, name: &str) -> Result<bool>;
}

/// Settings of a log.
pub(crate) trait Settings {
    fn signatures(&self, log: Log) -> Result<Signatures>;
    fn set_signatures(&self, log: Log, signatures: Signatures) -> Result<()>;
    /// How many hours ahead of the clock an event may be dated; `None` means any time.
    fn max_ahead(&self, log: Log) -> Result<Option<u64>>;
    fn set_max_ahead(&self, log: Log, hours: Option<u64>) -> Result<()>;
    fn retention(&self, log: Log) -> Result<Option<String>>;
    fn set_retention(&self, log: Log, retention: Option<&str>) -> Result<()>;
    /// Acts that took effect and whose events are not in the log yet, oldest first.
    fn owed_acts(&self, log: Log) -> Result<Vec<Owed>>;
    /// Records an owed act. An equal one is recorded once.
    fn owe_act(&self, log: Log, act: &str, data: &str) -> Result<()>;
    /// Deletes an owed act, in the transaction that appends its event.
    fn settle_act(&self, number: i64) -> Result<()>;
}

/// Access tokens.
pub(crate) trait Tokens {
    /// All tokens of a log, oldest first. In this trait `None` means the store itself.
    fn tokens(&self, of: Option<Log>) -> Result<Vec<TokenRow>>;
    fn token(&self, of: Option<Log>, token_id: &[u8; 16]) -> Result<Option<TokenRow>>;
    /// Whether the store or any log has a live token.
    fn any_live_token(&self, now: Time) -> Result<bool>;
    /// Adds a token. Fails if the owner has the maximum number of live tokens.
    fn put_token(&self, of: Option<Log>, token: &TokenRow) -> Result<()>;
    /// Revokes a token. Returns whether it was valid.
    fn revoke_token(&self, of: Option<Log>, token_id: &[u8; 16], now: Time) -> Result<bool>;
    /// Sets the last use if it is still `previous`. Returns whether it was.
    fn note_use(
        &self,
        of: Option<Log>,
        id: &[u8; 16],
        previous: Option<Time>,
        now: Time,
    ) -> Result<bool>;
}

/// Files that a manifest names by their SHA-256.
pub(crate) trait Artefacts {
    fn artefact(&self, log: Log, sha256: &Digest) -> Result<Option<Vec<u8>>>;
    /// The names of the stored files, as they are stored.
    fn artefacts(&self, log: Log) -> Result<Vec<Vec<u8>>>;
    /// Stores a file. Returns whether it is new.
    fn put_artefact(&self, log: Log, sha256: &Digest, bytes: &[u8]) -> Result<bool>;
}

/// Maintenance of the store: change detection, erasing, damage.
pub(crate) trait Upkeep {
    /// Whether the session may be reused: its store file was not removed or replaced.
    fn is_usable(&self) -> bool;
    /// A number that changes whenever another session changes the store. Fails if the store was
    /// removed or replaced.
    fn version(&self) -> Result<i64>;
    /// A mark for each registered identity. It changes when events are appended to the log or cut
    /// off, and when another tree head is stored. Tokens and settings do not change it. Facts and
    /// forgetting change it, because both come with events. An engine that knows which log changed
    /// may use a counter.
    fn marks(&self) -> Result<Vec<(Identity, Mark)>>;
    /// Whether forgotten content may still be in the store's files.
    fn erase_pending(&self) -> Result<bool>;
    /// Called before the commit of a transaction that deleted content: sets the erase mark, and
    /// clears the copies that the transaction would leave in free space.
    fn mark_erased(&self, log: Log, head: Seq, freed: u64) -> Result<()>;
    /// Damage that the engine's own integrity check finds in the store's files.
    fn file_damage(&self) -> Result<Vec<String>>;
    /// Parts of the schema that are missing, changed or foreign.
    fn schema_damage(&self) -> Result<Vec<(String, &'static str)>>;
    /// The number of intact transactions or frames before damage in the store's journal, if any.
    fn journal_damage(&self) -> Result<Option<u64>>;
    /// Rows that belong to no registered identity: the table and the number of rows.
    fn rows_of_nobody(&self) -> Result<Vec<(&'static str, u64)>>;
    /// Damage of the index of event refs, given the names of all events in order: the place and the
    /// problem.
    fn index_damage(&self, log: Log, names: &[EventRef]) -> Result<Vec<(String, String)>>;
}
