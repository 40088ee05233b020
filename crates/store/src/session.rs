//! The contract between the handles of this crate and an engine that stores.
//!
//! An [`Engine`] is one store. A [`Session`] is one connection to it, opened for one [`Duty`]. The
//! handles ([`Reader`](crate::Reader), [`Writer`](crate::Writer) and the others) are written once,
//! over these traits; an engine brings its own SQL and its own guards.
//!
//! # The contract
//!
//! **Durability.** When `commit` of a write transaction returns `Ok`, everything in it survives a
//! crash of the process and a power cut. An operation that writes outside a transaction is one by
//! itself and keeps the same promise. When `commit` returns an error, the transaction may be
//! durable or not; the caller must not write through the session again, and a store that is opened
//! later shows all of the transaction or none of it.
//!
//! **Locking.** `begin(Access::Write)` waits for other writers, for a bounded time, and then fails
//! with [`Error::Busy`]. Until the end of the transaction no other session writes to the same log.
//! Reading never waits for a writer. A writer waits for a reader only while the engine tidies up,
//! and then for a fraction of the time after which it would give up. An operation whose result
//! depends on a comparison (`swap_tree_head`, `put_token`, `note_use`) compares and writes under
//! one lock.
//!
//! **Isolation.** Everything that is read between `begin` and the end of a transaction is of one
//! moment, and contains what the transaction itself wrote. Outside a transaction each operation is
//! of one moment by itself. Entries of a log never change, so a range that was read once is the
//! same for good, except that content may be forgotten.
//!
//! **Retries.** An engine retries nothing that the caller can see: it waits for locks and for
//! nothing else. [`Error::Busy`], [`Error::Full`] and [`Error::ReadOnly`] are for people, who may
//! try again; before `commit` was called nothing is half done. [`Error::Gone`] and
//! [`Error::Corrupt`] never go away by trying again.
//!
//! **Sets and pages.** Every operation takes a set or returns one, so that a database at the other
//! end of a network is asked once. Results stand in the order of what was asked for. A range is
//! read in pages: an operation with a `limit` returns at most that many rows, and the caller asks
//! again behind the last one. No statement stays open between two calls.
//!
//! **Duty.** A session does what its duty allows and nothing else, and the database itself refuses
//! the rest: a session that appends cannot change a manifest, an event or a token.

use crate::audit::{Pair, RawEvent, RawFact, RawPass};
use crate::{Erased, Error, Location, Patience, Registered, Signatures, Stored, TokenRow};
use ipse_core::{Admitted, Event, EventRef, Fact, FactId, FactKey, Identity, Seq, Time};
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
    /// The same, and deleting the content of events.
    Forget,
    /// Retention, producers and the policy on signatures.
    Configure,
    /// Tree heads.
    Sign,
    /// Access tokens.
    Tokens,
}

/// What a transaction does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// It reads, at one moment.
    Read,
    /// It writes, and holds the write lock.
    Write,
}

/// A log within a store, as sessions name it. The engine that gave it out understands it.
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

    /// The event as rules see it.
    pub(crate) fn event(&self) -> Result<Event<'_>> {
        Event::of_row(self.event_ref, self.time, &self.event_type, &self.columns).ok_or_else(|| {
            Error::Corrupt(format!("the typed columns of seq {} cannot be read", self.seq))
        })
    }
}

/// Which events to read whole.
#[derive(Clone, Debug)]
pub(crate) struct Pick<'p> {
    pub(crate) range: Span,
    pub(crate) kind: Kind<'p>,
    /// A text that their canonical bytes must contain.
    pub(crate) holding: Option<&'p str>,
    /// Whether forgotten events are left out.
    pub(crate) kept_only: bool,
    pub(crate) order: Order,
}

/// A choice of events by their type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind<'p> {
    Any,
    /// Records of passes, which have an index of their own.
    PassRecord,
    /// One type. Types of ipse's own are found without a scan of the log.
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

/// A state of one log: see [`Upkeep::marks`]. Two of them are compared, and nothing else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) head: Seq,
    pub(crate) tree_head: Option<String>,
}

/// A page of rows that have no order of their own, and where the next page begins.
#[derive(Clone, Debug)]
pub(crate) struct Page<T> {
    pub(crate) rows: Vec<T>,
    /// `None` at the end.
    pub(crate) next: Option<u64>,
}

/// One store.
pub(crate) trait Engine: Send + Sync {
    /// The address of the store.
    fn location(&self) -> &Location;
    /// Opens a connection.
    fn session(&self, duty: Duty) -> Result<Box<dyn Session>>;
    /// Erases what was forgotten and may still be in the store's files.
    fn finish_erasing(&self, patience: Patience) -> Result<Erased>;
    /// Writes a compact copy of the whole store to a path where nothing is.
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
    + Statements
    + Settings
    + Tokens
    + Upkeep
    + Send
{
}

/// Transactions and savepoints. At most one savepoint is open at a time.
pub(crate) trait Transactions {
    fn begin(&self, access: Access) -> Result<()>;
    fn commit(&self) -> Result<()>;
    /// Ends the transaction, if one is open. If the connection is beyond help, its next operation
    /// says so.
    fn rollback(&self);
    fn savepoint(&self) -> Result<()>;
    fn release(&self) -> Result<()>;
    /// Undoes what came after the savepoint and closes it.
    fn rollback_to(&self);
}

/// Registered manifests.
pub(crate) trait Identities {
    /// The log of an identity, if it is registered.
    fn log(&self, identity: &Identity) -> Result<Option<Log>>;
    /// All identities with their canonical manifests, oldest first.
    fn manifests(&self) -> Result<Vec<(String, String)>>;
    /// Adds a manifest; one that is there already stays as it is.
    fn register(&self, canonical: &str) -> Result<Registered>;
}

/// The events of a log.
pub(crate) trait Events {
    /// The last position; 0 if the log is empty.
    fn head(&self, log: Log) -> Result<Seq>;
    /// The positions of events by name.
    fn find(&self, log: Log, names: &[EventRef]) -> Result<Vec<Option<Seq>>>;
    /// Appends events from `first` on, which is the head plus one. Their names are new.
    fn insert(&self, log: Log, first: Seq, events: &[&Admitted]) -> Result<()>;
    /// Deletes the content of events; returns how many bytes that was.
    fn empty(&self, log: Log, seqs: &[Seq]) -> Result<u64>;
    /// The names of events by position; a position that does not exist is an error.
    fn names(&self, log: Log, seqs: &[Seq]) -> Result<Vec<EventRef>>;
    /// The typed columns of a range, in order.
    fn typed(&self, log: Log, range: Span, limit: usize) -> Result<Vec<Typed>>;
    /// The typed columns at positions; an error if one does not exist.
    fn typed_at(&self, log: Log, seqs: &[Seq]) -> Result<Vec<Typed>>;
    /// The entries of a range, in order, each with whether its event was forgotten.
    fn entries(&self, log: Log, range: Span, limit: usize) -> Result<Vec<(Entry, bool)>>;
    /// The entries at positions; an error if one does not exist.
    fn entries_at(&self, log: Log, seqs: &[Seq]) -> Result<Vec<(Entry, bool)>>;
    /// Events with their content.
    fn stored(&self, log: Log, pick: &Pick<'_>, limit: usize) -> Result<Vec<Stored>>;
    /// The canonical bytes at positions; an error if one does not exist.
    fn contents(&self, log: Log, seqs: &[Seq]) -> Result<Vec<String>>;
    /// The rows of a range as they are, for an auditor.
    fn raw_events(&self, log: Log, range: Span, limit: usize) -> Result<Vec<RawEvent>>;
}

/// Says whether a fact of that key is wanted.
pub(crate) type Wanted<'w> = &'w dyn Fn(&FactKey) -> bool;

/// Looks at a chunk, given its last position and its bytes, and says whether to go on.
pub(crate) type Visit<'v> = dyn FnMut(Seq, &[u8]) -> Result<ControlFlow<()>> + 'v;

/// Chunks: the typed columns of many events in one value. The key of a chunk is its last position.
pub(crate) trait Chunks {
    /// Passes the chunks that end in a range to `visit`, until it asks for no more. The bytes are
    /// lent, not copied: a chunk of 4096 events has some 100 kB. `visit` may read through the same
    /// session.
    fn visit_chunks(&self, log: Log, ends: Span, order: Order, visit: &mut Visit<'_>)
    -> Result<()>;
    /// Body and names of chunks, as they are.
    fn raw_chunks(&self, log: Log, ends: &[Seq]) -> Result<Vec<Option<Pair>>>;
    /// The names of the events of a full chunk; none if there is no such chunk or it is small.
    fn chunk_names(&self, log: Log, end: Seq) -> Result<Vec<EventRef>>;
    /// The positions at which chunks of a range end, in order.
    fn chunk_ends(&self, log: Log, range: Span) -> Result<Vec<Seq>>;
    /// Stores a chunk in place of those that end in `replaced`. The names of a full chunk let an
    /// engine index them.
    fn put_chunk(&self, log: Log, replaced: Span, body: &[u8], names: &[EventRef]) -> Result<()>;
}

/// The list of passes: a derived index of the pass records.
pub(crate) trait Passes {
    /// Passes whose record stands in a range.
    fn passes(&self, log: Log, range: Span, order: Order, limit: usize) -> Result<Vec<RawPass>>;
    fn pass_count(&self, log: Log) -> Result<u64>;
    fn put_pass(&self, log: Log, pass: &RawPass) -> Result<()>;
}

/// Facts, and the sums behind them.
pub(crate) trait Facts {
    /// Facts whose keys are wanted, in no particular order. The limit counts rows that were looked
    /// at. `from` is 0, or where the page before ended.
    fn facts(&self, log: Log, from: u64, limit: usize, wanted: Wanted<'_>) -> Result<Page<Fact>>;
    fn facts_by_id(&self, log: Log, ids: &[FactId]) -> Result<Vec<Option<Fact>>>;
    /// How many past observations of facts were forgotten; 0 for a fact that does not exist.
    fn forgotten_of(&self, log: Log, ids: &[FactId]) -> Result<Vec<u64>>;
    /// Puts facts in place of those of the same ids; returns which of them changed.
    fn put_facts(&self, log: Log, facts: &[(FactId, Fact)]) -> Result<Vec<bool>>;
    /// Deletes facts; returns which of them existed.
    fn remove_facts(&self, log: Log, ids: &[FactId]) -> Result<Vec<bool>>;
    /// Adds to the numbers of forgotten observations.
    fn count_forgotten(&self, log: Log, counts: &[(FactId, u64)]) -> Result<()>;
    fn tallies(&self, log: Log, ids: &[FactId]) -> Result<Vec<Option<Vec<u8>>>>;
    /// Stores sums; `None` deletes one.
    fn put_tallies(&self, log: Log, tallies: &[(FactId, Option<Vec<u8>>)]) -> Result<()>;
    /// The bytes of all sums.
    fn tally_bytes(&self, log: Log) -> Result<u64>;
    /// Deletes all facts and sums.
    fn remove_all_facts(&self, log: Log) -> Result<()>;
    /// Rows of facts as they are.
    fn raw_facts(&self, log: Log, from: u64, limit: usize) -> Result<Page<RawFact>>;
    /// Rows of sums as they are: fact id and state.
    fn raw_tallies(&self, log: Log, from: u64, limit: usize) -> Result<Page<Pair>>;
}

/// The Merkle tree: stored subtrees, by the position at which they end, and the signed head.
pub(crate) trait Trees {
    fn nodes(&self, log: Log, ends: Span, order: Order, limit: usize) -> Result<ByEnd>;
    fn tree_head(&self, log: Log) -> Result<Option<String>>;
    /// Stores subtrees and puts a head in place of the expected one; `false`, and nothing is
    /// written, if another head is there.
    fn swap_tree_head(&self, log: Log, old: Option<&str>, new: &str, nodes: &ByEnd)
    -> Result<bool>;
}

/// What producers signed, and who may sign.
pub(crate) trait Statements {
    fn statement_count(&self, log: Log) -> Result<u64>;
    /// Statements from a number on, in order. They are numbered from 1; one at 0 is damage, which
    /// an auditor must see.
    fn statements(&self, log: Log, from: u64, limit: usize) -> Result<Vec<StatementRow>>;
    fn envelopes(&self, log: Log, numbers: &[u64]) -> Result<Vec<String>>;
    fn put_statement(&self, log: Log, statement: &StatementRow, envelope: &str) -> Result<()>;
    /// The verifier keys of producers, and whether they are revoked.
    fn producers(&self, log: Log) -> Result<Vec<(String, bool)>>;
    /// Registers a producer's key; returns whether it counts. A revoked key stays revoked.
    fn put_producer(&self, log: Log, key: &str) -> Result<bool>;
    /// Revokes the keys of a producer; returns whether one was valid.
    fn revoke_producer(&self, log: Log, name: &str) -> Result<bool>;
}

/// What an operator set for a log.
pub(crate) trait Settings {
    fn signatures(&self, log: Log) -> Result<Signatures>;
    fn set_signatures(&self, log: Log, signatures: Signatures) -> Result<()>;
    fn retention(&self, log: Log) -> Result<Option<String>>;
    fn set_retention(&self, log: Log, retention: Option<&str>) -> Result<()>;
}

/// Access tokens.
pub(crate) trait Tokens {
    /// All tokens of a log, oldest first. Here and below no log means the tokens that belong to the
    /// store itself.
    fn tokens(&self, of: Option<Log>) -> Result<Vec<TokenRow>>;
    fn token(&self, of: Option<Log>, token_id: &[u8; 16]) -> Result<Option<TokenRow>>;
    /// Whether the store or any log has a token that is live.
    fn any_live_token(&self, now: Time) -> Result<bool>;
    /// Adds a token; an error if there are as many live ones as there may be.
    fn put_token(&self, of: Option<Log>, token: &TokenRow) -> Result<()>;
    /// Revokes a token; returns whether it was valid.
    fn revoke_token(&self, of: Option<Log>, token_id: &[u8; 16], now: Time) -> Result<bool>;
    /// Notes a use if the last one is still the `previous` one; returns whether it was.
    fn note_use(
        &self,
        of: Option<Log>,
        id: &[u8; 16],
        previous: Option<Time>,
        now: Time,
    ) -> Result<bool>;
}

/// The store as a thing of its own: changes, erasing, damage.
pub(crate) trait Upkeep {
    /// Whether the session may be used again: its store is still the one under its address.
    fn is_usable(&self) -> bool;
    /// A number that moves whenever another session has changed the store; an error if the store
    /// was removed or replaced.
    fn version(&self) -> Result<i64>;
    /// A mark for each registered identity. It is another one whenever events were appended to its
    /// log or cut off it, or another tree head was stored; tokens and settings do not change it.
    /// All facts and all forgetting come with events. An engine that is told which log changed may
    /// count.
    fn marks(&self) -> Result<Vec<(Identity, Mark)>>;
    /// Whether what was forgotten may still be in the store's files.
    fn erase_pending(&self) -> Result<bool>;
    /// Called before the commit of a transaction that emptied events: marks the store, and clears
    /// what that transaction would leave behind.
    fn mark_erased(&self, log: Log, head: Seq, freed: u64) -> Result<()>;
    /// Damage of the store's files, as the engine reports it.
    fn file_damage(&self) -> Result<Vec<String>>;
    /// Parts of the schema that are missing, changed or foreign.
    fn schema_damage(&self) -> Result<Vec<(String, &'static str)>>;
    /// After how many intact transactions or frames the store's journal is damaged.
    fn journal_damage(&self) -> Result<Option<u64>>;
    /// Rows that belong to no registered identity: a table, and how many.
    fn rows_of_nobody(&self) -> Result<Vec<(&'static str, u64)>>;
    /// Damage of the index of names, given the names of all events in order: a place, and what.
    fn index_damage(&self, log: Log, names: &[EventRef]) -> Result<Vec<(String, String)>>;
}
