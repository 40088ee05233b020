//! A failing engine for tests: it wraps another engine and makes single calls fail.
//!
//! **Invariants:** calls of all sessions of the store are counted in their order; a failing call is
//! either not made, or made and reported as failed. Without a planned fault every result is that of
//! the wrapped engine.

use crate::audit::{Pair, RawEvent, RawFact, RawPass};
use crate::session::{
    Access, Artefacts, ByEnd, Chunks, Cosignatures, Duty, Engine, Events, Facts, Identities, Log,
    Mark, Order, Page, Passes, Pick, Result, Session, Settings, Span, StatementRow, Statements,
    Tokens, Transactions, Trees, Typed, Upkeep, Visit, Wanted,
};
use crate::store::Store;
use crate::{
    Cosigned, Erased, Error, Location, Owed, Patience, Producer, Registered, Signatures, Stored,
    TokenRow,
};
use ipse_core::{Admitted, Digest, EventRef, Fact, FactId, Identity, Seq, Time};
use ipse_ledger::Entry;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The effect of a failing call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The call was not made.
    NotMade,
    /// The call was made, and only its result was lost.
    MadeAndLost,
}

/// The planned fault of a failing store, and the number of calls so far.
#[derive(Clone, Default)]
pub struct Faults(Arc<Mutex<Plan>>);

#[derive(Default)]
struct Plan {
    calls: u64,
    /// The first failing call, its effect, and whether all later calls fail too.
    fault: Option<(u64, Failure, bool)>,
}

impl Faults {
    /// Plans one fault and resets the counter: call number `call`, from 1, fails. If `for_good`,
    /// all later calls fail too.
    pub fn plan(&self, call: u64, failure: Failure, for_good: bool) {
        *self.plan_now() = Plan { calls: 0, fault: Some((call, failure, for_good)) };
    }

    /// Removes the fault and resets the counter.
    pub fn clear(&self) {
        *self.plan_now() = Plan::default();
    }

    /// The number of calls since the last reset.
    pub fn calls(&self) -> u64 {
        self.plan_now().calls
    }

    fn plan_now(&self) -> MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut plan = self.plan_now();
        plan.calls += 1;
        let number = plan.calls;
        let fault =
            plan.fault.filter(|(from, _, for_good)| number == *from || *for_good && number > *from);
        drop(plan);
        match fault {
            None => call(),
            Some((_, Failure::NotMade, _)) => Err(Error::Full),
            Some((_, Failure::MadeAndLost, _)) => {
                let _ = call();
                Err(Error::Full)
            }
        }
    }
}

impl Store {
    /// The same store behind an engine that fails as planned.
    pub fn failing(&self, faults: &Faults) -> Result<Store> {
        Store::over(Box::new(FailingEngine { store: self.clone(), faults: faults.clone() }))
    }
}

struct FailingEngine {
    store: Store,
    faults: Faults,
}

impl Engine for FailingEngine {
    fn location(&self) -> &Location {
        self.store.location()
    }

    fn session(&self, duty: Duty) -> Result<Box<dyn Session>> {
        let inner = self.faults.call(|| self.store.engine().session(duty))?;
        Ok(Box::new(Failing { inner, faults: self.faults.clone() }))
    }

    fn finish_erasing(&self, patience: Patience) -> Result<Erased> {
        self.faults.call(|| self.store.engine().finish_erasing(patience))
    }

    fn copy_to(&self, path: &Path) -> Result<()> {
        self.faults.call(|| self.store.engine().copy_to(path))
    }
}

impl Session for Failing {}

struct Failing {
    inner: Box<dyn Session>,
    faults: Faults,
}

/// Implements the traits of a session: each operation is one call, which may fail.
macro_rules! calls {
    ($(impl $trait:ident { $($operation:ident($($name:ident: $type:ty),*) -> $value:ty;)* }
       $(then { $($own:item)* })?)*) => {
        $(impl $trait for Failing {
            $(fn $operation(&self, $($name: $type),*) -> Result<$value> {
                self.faults.call(|| self.inner.$operation($($name),*))
            })*
            $($($own)*)?
        })*
    };
}

calls! {
    impl Transactions {
        begin(access: Access) -> ();
        commit() -> ();
        savepoint() -> ();
        release() -> ();
    }
    then {
        fn rollback(&self) {
            self.inner.rollback();
        }
        fn rollback_to(&self) {
            self.inner.rollback_to();
        }
    }
    impl Identities {
        log(identity: &Identity) -> Option<Log>;
        manifests() -> Vec<(String, String)>;
        register(canonical: &str) -> Registered;
        remove(log: Log) -> ();
    }
    impl Events {
        head(log: Log) -> Seq;
        find(log: Log, names: &[EventRef]) -> Vec<Option<Seq>>;
        insert(log: Log, first: Seq, events: &[&Admitted]) -> ();
        empty(log: Log, seqs: &[Seq]) -> u64;
        names(log: Log, seqs: &[Seq]) -> Vec<EventRef>;
        typed(log: Log, range: Span, limit: usize) -> Vec<Typed>;
        typed_at(log: Log, seqs: &[Seq]) -> Vec<Typed>;
        entries(log: Log, range: Span, limit: usize) -> Vec<(Entry, bool)>;
        entries_at(log: Log, seqs: &[Seq]) -> Vec<(Entry, bool)>;
        stored(log: Log, pick: &Pick<'_>, limit: usize) -> Vec<Stored>;
        last_recorded(log: Log, by: Time) -> Option<(Seq, Time)>;
        contents(log: Log, seqs: &[Seq]) -> Vec<String>;
        raw_events(log: Log, range: Span, limit: usize) -> Vec<RawEvent>;
    }
    impl Chunks {
        visit_chunks(log: Log, ends: Span, order: Order, visit: &mut Visit<'_>) -> ();
        raw_chunks(log: Log, ends: &[Seq]) -> Vec<Option<Pair>>;
        chunk_names(log: Log, end: Seq) -> Vec<EventRef>;
        chunk_ends(log: Log, range: Span) -> Vec<Seq>;
        put_chunk(log: Log, replaced: Span, body: &[u8], names: &[EventRef]) -> ();
    }
    impl Passes {
        passes(log: Log, range: Span, order: Order, limit: usize) -> Vec<RawPass>;
        pass_count(log: Log) -> u64;
        put_pass(log: Log, pass: &RawPass) -> ();
    }
    impl Facts {
        facts(log: Log, from: u64, limit: usize, wanted: Wanted<'_>) -> Page<Fact>;
        facts_by_id(log: Log, ids: &[FactId]) -> Vec<Option<Fact>>;
        forgotten_of(log: Log, ids: &[FactId]) -> Vec<u64>;
        put_facts(log: Log, facts: &[(FactId, Fact)]) -> Vec<bool>;
        remove_facts(log: Log, ids: &[FactId]) -> Vec<bool>;
        count_forgotten(log: Log, counts: &[(FactId, u64)]) -> ();
        tallies(log: Log, ids: &[FactId]) -> Vec<Option<Vec<u8>>>;
        put_tallies(log: Log, tallies: &[(FactId, Option<Vec<u8>>)]) -> ();
        tally_bytes(log: Log) -> u64;
        remove_all_facts(log: Log) -> ();
        raw_facts(log: Log, from: u64, limit: usize) -> Page<RawFact>;
        raw_tallies(log: Log, from: u64, limit: usize) -> Page<Pair>;
    }
    impl Trees {
        nodes(log: Log, ends: Span, order: Order, limit: usize) -> ByEnd;
        tree_head(log: Log) -> Option<String>;
        swap_tree_head(log: Log, old: Option<&str>, new: &str, nodes: &ByEnd) -> bool;
    }
    impl Cosignatures {
        cosignatures(log: Log, sizes: Span, order: Order, limit: usize) -> Vec<Cosigned>;
        put_cosignature(log: Log, cosigned: &Cosigned) -> ();
    }
    impl Statements {
        statement_count(log: Log) -> u64;
        statements(log: Log, from: u64, limit: usize) -> Vec<StatementRow>;
        envelopes(log: Log, numbers: &[u64]) -> Vec<String>;
        put_statement(log: Log, statement: &StatementRow, envelope: &str) -> ();
        producers(log: Log) -> Vec<Producer>;
        put_producer(log: Log, key: &str, sources: Option<&[String]>) -> Producer;
        revoke_producer(log: Log, name: &str) -> bool;
    }
    impl Settings {
        signatures(log: Log) -> Signatures;
        set_signatures(log: Log, signatures: Signatures) -> ();
        max_ahead(log: Log) -> Option<u64>;
        set_max_ahead(log: Log, hours: Option<u64>) -> ();
        retention(log: Log) -> Option<String>;
        set_retention(log: Log, retention: Option<&str>) -> ();
        owed_acts(log: Log) -> Vec<Owed>;
        owe_act(log: Log, act: &str, data: &str) -> ();
        settle_act(number: i64) -> ();
    }
    impl Tokens {
        tokens(of: Option<Log>) -> Vec<TokenRow>;
        token(of: Option<Log>, token_id: &[u8; 16]) -> Option<TokenRow>;
        any_live_token(now: Time) -> bool;
        put_token(of: Option<Log>, token: &TokenRow) -> ();
        revoke_token(of: Option<Log>, token_id: &[u8; 16], now: Time) -> bool;
        note_use(of: Option<Log>, id: &[u8; 16], previous: Option<Time>, now: Time) -> bool;
    }
    impl Artefacts {
        artefact(log: Log, sha256: &Digest) -> Option<Vec<u8>>;
        artefacts(log: Log) -> Vec<Vec<u8>>;
        put_artefact(log: Log, sha256: &Digest, bytes: &[u8]) -> bool;
    }
    impl Upkeep {
        version() -> i64;
        marks() -> Vec<(Identity, Mark)>;
        erase_pending() -> bool;
        mark_erased(log: Log, head: Seq, freed: u64) -> ();
        file_damage() -> Vec<String>;
        schema_damage() -> Vec<(String, &'static str)>;
        journal_damage() -> Option<u64>;
        rows_of_nobody() -> Vec<(&'static str, u64)>;
        index_damage(log: Log, names: &[EventRef]) -> Vec<(String, String)>;
    }
    then {
        fn is_usable(&self) -> bool {
            self.inner.is_usable()
        }
    }
}
