//! The agent handle: record events, read facts, propose intents, verify.
//!
//! **Invariants**
//! - An event is durable when its receipt is returned.
//! - Reading facts never waits for a writer.
//! - No operation here changes a manifest, so learning never changes the identity.

use crate::answer::Answer;
use crate::event::Event;
use crate::fact::{Fact, Query};
use crate::files::directory_of;
use crate::gates::GateFiles;
use crate::intent::{Intent, OutcomeReport};
use crate::keys::{KeyDirectory, KeyError};
use crate::{DirectoryNotary, Error, Result, SystemHost};
use ipse_core::{Admitted, EventRef, FactId, FactKey, FactKind, Identity, Seq};
use ipse_door::{Origin, admit};
use ipse_engine::trail::{IntentStanding, Listing, Proposal};
use ipse_engine::{
    Appended, Forgotten, Host, Log, MAX_FACTS, Memory, Notary, PassReport, Policy, Selection,
    hint_of, refusal_of,
};
use ipse_exchange::{Export, Exported, Imported, Keys, Options, Range, import_shared, with_export};
use ipse_inspect::explain::{ExplainedEvent, Explanation};
use ipse_inspect::verify::{Report, verify};
use ipse_inspect::{Day, DriftReport, Look, Rules, Skills, Standing};
use ipse_intents::{Decision, Desk, decide};
use ipse_manifest::Manifest;
use ipse_store::{Location, Store};
use std::fmt;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The name in records of intents and decisions; a server writes a token id there.
const BY: &str = "library";

/// Settings for opening an agent.
#[derive(Clone, Default)]
pub struct Opening {
    /// When passes run automatically. Default: after 64 new events, and after one second without a
    /// new one. `every: 1` updates the facts at every record. It is not the policy that judges
    /// intents: that is one of the `gates`.
    pub policy: Policy,
    /// The key directory. Default: the store's path plus `.keys`.
    pub keys: Option<PathBuf>,
    /// The passphrase of the private keys. In a build without the Cargo feature `passphrase` it is
    /// an error ([`KeyError::PassphraseUnsupported`]).
    pub passphrase: Option<String>,
    /// The files that judge intents. Without them [`Agent::propose`] returns an error.
    pub gates: Option<GateFiles>,
    /// The rule set that a new log begins with; [`Rules::V2`] also notices when a rate changes. For
    /// a log with events, other rules than its own are an error: a change of rules needs the
    /// operator's approval (`ipse rules`).
    pub rules: Option<Rules>,
}

impl fmt::Debug for Opening {
    /// Does not show the passphrase.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Opening { policy, keys, passphrase, gates, rules } = self;
        f.debug_struct("Opening")
            .field("policy", policy)
            .field("keys", keys)
            .field("passphrase", &passphrase.as_ref().map(|_| "…"))
            .field("gates", gates)
            .field("rules", rules)
            .finish()
    }
}

/// A handle to an agent in a store. Clones share the state, and threads may use them at the same
/// time: writers take turns, and reading facts waits for no writer. Another process may open the
/// same store. A write waits up to 10 seconds for it and is then an error (`store_busy`).
///
/// Facts follow events when a pass runs: after [`Policy::every`] new events, after
/// [`Policy::quiet`] without one, at [`Agent::consolidate`], and when the agent is opened.
#[derive(Clone)]
pub struct Agent {
    memory: Memory,
    look: Look,
    store: Store,
    keys: KeyDirectory,
    passphrase: Option<String>,
    desk: Option<std::sync::Arc<Desk>>,
    signs: bool,
}

/// The place of a recorded event in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    /// The name of the event.
    pub event_ref: EventRef,
    /// The position of the event.
    pub seq: Seq,
    /// Whether the event was already stored with the same content.
    pub duplicate: bool,
    /// Advice about an event that is stored and feeds fewer facts than intended, such as one with
    /// the outcome `failure` in place of `failed`.
    pub hint: Option<String>,
}

impl Agent {
    /// Registers a manifest in the store at a path and opens the agent. Creates the store and its
    /// keys if they do not exist. A manifest that is already registered is not changed.
    ///
    /// A key whose public half (`log.vkey`, `operator.pub`) is in the key directory is not
    /// replaced, even if its private half is missing. The private half is then kept elsewhere, and
    /// the agent does not sign ([`Agent::signs`]).
    pub fn register(store: impl AsRef<Path>, manifest: &Manifest) -> Result<Self> {
        Self::register_with(store, manifest, Opening::default())
    }

    /// Like [`Agent::register`], with settings. The gates, the passphrase and the key directory are
    /// checked first: if one of them cannot be used, nothing is created or registered.
    pub fn register_with(
        store: impl AsRef<Path>,
        manifest: &Manifest,
        opening: Opening,
    ) -> Result<Self> {
        let location = Location::parse(store)?;
        check(&location, manifest, &opening)?;
        let store = Store::create(&location)?;
        let identity = store.register(&manifest.canonical())?.identity;
        let passphrase = opening.passphrase.as_deref();
        let keys = key_directory(store.location(), &opening);
        keys.create(&identity, &mut SystemHost::random, passphrase)?;
        Self::of(store, identity, opening)
    }

    /// Opens a registered agent and folds the events that no pass has covered. A store of an older
    /// version of ipse is migrated first. So the process must be able to write to the store and to
    /// its directory. [`identities`](crate::identities()) lists the agents of a store.
    pub fn open(store: impl AsRef<Path>, identity: Identity) -> Result<Self> {
        Self::open_with(store, identity, Opening::default())
    }

    /// Like [`Agent::open`], with settings. Tree heads are signed if the log's key can be used
    /// ([`Agent::signs`]). A damaged key is an error. So is a wrong passphrase, or any passphrase
    /// in a build without the Cargo feature `passphrase`.
    pub fn open_with(
        store: impl AsRef<Path>,
        identity: Identity,
        opening: Opening,
    ) -> Result<Self> {
        let location = Location::parse(store)?;
        let (store, _) = Store::open_migrated(&location)?;
        Self::of(store, identity, opening)
    }

    fn of(store: Store, identity: Identity, opening: Opening) -> Result<Self> {
        let keys = key_directory(store.location(), &opening);
        let Opening { policy, passphrase, gates, rules, .. } = opening;
        begin_with(&store, identity, rules)?;
        keys.check_passphrase(passphrase.as_deref())?;
        let notary = notary(&keys, &identity, passphrase.as_deref())?;
        let signs = notary.is_some();
        let host = Box::new(SystemHost::new());
        let memory = Memory::open(&store, identity, policy, host, notary)?;
        let look = Look::at(&store, identity);
        let desk = match gates {
            Some(files) => {
                let gates = files.bound_to(&look.standing()?.manifest)?;
                files.keep(&store, &identity)?;
                Some(std::sync::Arc::new(Desk::new(memory.clone(), look.clone(), gates)))
            }
            None => None,
        };
        Ok(Agent { memory, look, store, keys, passphrase, desk, signs })
    }

    /// The identity: the SHA-256 of the manifest.
    pub fn identity(&self) -> Identity {
        *self.look.identity()
    }

    /// Whether tree heads of the log are signed. They are not if the log's private key
    ///
    /// - is missing,
    /// - is encrypted, and the agent was opened without a passphrase,
    /// - is in a file that others may read or write, or that this process may not read,
    /// - is in a directory that others may write to.
    ///
    /// [`KeyDirectory::log_signer`] returns the reason.
    pub fn signs(&self) -> bool {
        self.signs
    }

    /// The stored manifest. Its bytes are checked, but not against the identity: that is
    /// [`Standing::is_unchanged`].
    pub fn manifest(&self) -> Result<Manifest> {
        Ok(Manifest::from_canonical(self.look.standing()?.manifest.as_bytes())?)
    }

    /// The stored manifest as text, whether it matches the identity, and the numbers of events and
    /// passes.
    pub fn standing(&self) -> Result<Standing> {
        Ok(self.look.standing()?)
    }

    /// The engine's handle: subscriptions, fact tables, appending in batches.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Queries on the log that have no method here.
    pub fn look(&self) -> &Look {
        &self.look
    }

    /// Records an event durably. A duplicate is no error. The facts change with the next pass
    /// ([`Opening::policy`]).
    ///
    /// An event without a skill, or with names that no rule reads, is stored and feeds no fact.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let at = |name: &str| (name == "commissioned_at").then(|| "2026-05-01T00:00:00Z".into());
    /// # let manifest = ipse::Manifest::new(|name| at(name).or_else(|| Some("1".repeat(64))))?;
    /// # let agent = ipse::Agent::register(directory.path().join("robot.db"), &manifest)?;
    /// use ipse::Event;
    ///
    /// let attempt = Event::attempt("grasp").target("cup").param("force_n", 25);
    /// let receipt = agent.record(attempt.success())?;
    /// println!("{} is at {}", receipt.event_ref, receipt.seq);
    /// agent.consolidate()?; // Or wait for the next pass.
    /// assert_eq!(agent.fact("grasp", "cup", "*").map(|fact| fact.observations()), Some(1));
    /// # Ok::<(), ipse::Error>(())
    /// ```
    pub fn record(&self, event: impl Into<Event>) -> Result<Receipt> {
        let json = event.into().json(&mut SystemHost::new())?;
        self.record_json(json.as_bytes())
    }

    /// Records an event that is already JSON, in the form of CloudEvents 1.0.
    pub fn record_json(&self, event: &[u8]) -> Result<Receipt> {
        let admitted = admitted(event)?;
        let (event_ref, hint) = (admitted.event_ref, hint(&admitted));
        let done = self.memory.append_all(&[admitted])?;
        receipt(event_ref, done.appended[0], hint)
    }

    /// Records events durably in one transaction, which is faster than one by one. Returns a
    /// receipt for each event, in order.
    ///
    /// If the door refuses an event, none is stored, and the error is that of the first such event.
    /// An event that only the log rejects (a conflict, or forgotten before) has its own error and
    /// does not stop the others.
    pub fn record_all(
        &self,
        events: impl IntoIterator<Item = impl Into<Event>>,
    ) -> Result<Vec<Result<Receipt>>> {
        let host = &mut SystemHost::new();
        let admit = |event: Event| admitted(event.json(host)?.as_bytes());
        let events: Vec<_> =
            events.into_iter().map(Into::into).map(admit).collect::<Result<_>>()?;
        let done = self.memory.append_all(&events)?;
        let one = |(event, appended): (&Admitted, Appended)| {
            receipt(event.event_ref, appended, hint(event))
        };
        Ok(events.iter().zip(done.appended).map(one).collect())
    }

    /// Imports lines of JSON and runs a pass at the end. Rejected lines are listed, up to 1000;
    /// the rest is imported. Another format, such as CSV or one JSON array, is an error.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let at = |name: &str| (name == "commissioned_at").then(|| "2026-05-01T00:00:00Z".into());
    /// # let manifest = ipse::Manifest::new(|name| at(name).or_else(|| Some("1".repeat(64))))?;
    /// # let agent = ipse::Agent::register(directory.path().join("robot.db"), &manifest)?;
    /// let lines = r#"{"id":"1","type":"note","time":"2026-05-06T10:00:00Z"}
    /// {"id":"2","type":"note","time":"yesterday"}"#;
    /// let imported = agent.import(lines.as_bytes())?; // Or a file.
    /// for (line, why) in &imported.listed {
    ///     println!("line {line}: {} in `{}`: {}", why.rule.code(), why.field, why.message);
    /// }
    /// assert_eq!((imported.appended, imported.refused), (1, 1));
    /// # Ok::<(), ipse::Error>(())
    /// ```
    ///
    /// Lines that have arrived are stored before the reader is polled again, and the agent can be
    /// used meanwhile. The input may therefore be a pipe that stays open, read in its own thread.
    /// Passes run as after [`Agent::record`] ([`Opening::policy`]).
    ///
    /// If the reader fails, the error has the code `truncated` and contains the last line up to
    /// which events are durable ([`Cut`](crate::ExchangeError::Cut)). Importing the whole input
    /// again is safe: lines with an `id` that are already stored are duplicates.
    pub fn import(&self, input: impl Read + Send) -> Result<Imported> {
        let options = Options { live: true, ..Options::default() };
        let host = &mut SystemHost::new();
        Ok(import_shared(&self.memory, input, &options, host, &mut |_| {})?)
    }

    /// Runs a pass now; returns `None` if there are no new events. In that case it reloads facts
    /// that another handle or process computed, as [`Agent::refresh`] does.
    pub fn consolidate(&self) -> Result<Option<PassReport>> {
        let pass = self.memory.consolidate()?;
        if pass.is_none() {
            self.refresh()?;
        }
        Ok(pass)
    }

    /// Reloads the facts if another handle or process ran a pass or forgot events since; returns
    /// whether it did. Handles do not watch the store: a program that shares its store calls this
    /// before it consults. A server calls it automatically.
    pub fn refresh(&self) -> Result<bool> {
        Ok(self.memory.reload_if_moved()?)
    }

    /// The matching facts, the most confident first, as of the last pass that this handle knows:
    /// its own passes, and those of others up to the last [`Agent::refresh`].
    pub fn facts(&self, query: &Query) -> Vec<Fact> {
        let chosen = self.memory.known().choose(&query.0);
        chosen.into_iter().map(|fact| Fact::new(self.look.identity(), fact)).collect()
    }

    /// The fact about a skill with one target and one environment. `*` stands for attempts that
    /// name none; it is no wildcard. [`Agent::facts`] searches.
    pub fn fact(&self, skill: &str, target: &str, environment: &str) -> Option<Fact> {
        let key = FactKey::new(FactKind::SkillSuccessRate, &[skill, target, environment]);
        let known = self.memory.known();
        known.get(&key).map(|fact| Fact::new(self.look.identity(), fact.clone()))
    }

    /// The matching facts with their consultation, for an intent and for a prompt, as of the last
    /// pass that this handle knows ([`Agent::refresh`]).
    ///
    /// Returns at most 1000 facts, the most confident ones, because an intent may echo no more. If
    /// a query without a limit matches more, it is answered and recorded as a query with the limit
    /// 1000. [`Agent::facts`] returns all of them.
    pub fn consult(&self, query: &Query) -> Answer {
        let (known, identity) = (self.memory.known(), self.look.identity());
        let (mut query, mut chosen) = (query.clone(), known.chosen(&query.0));
        if chosen.facts.len() > MAX_FACTS {
            query = query.limit(MAX_FACTS);
            chosen.facts.truncate(MAX_FACTS);
        }
        Answer::new(identity, known.checkpoint(), known.rule_version(), &query, chosen)
    }

    /// Whether the success rates of the last seven days left those of the 56 days before, as of a
    /// day or of the newest day with an attempt.
    pub fn drift(&self, day: Option<Day>) -> Result<DriftReport> {
        Ok(self.look.drift(day)?)
    }

    /// Explains a fact, with one page of its evidence, from 1 to [`Explanation::pages`]. Any other
    /// page is [`Error::NoPage`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let at = |name: &str| (name == "commissioned_at").then(|| "2026-05-01T00:00:00Z".into());
    /// # let manifest = ipse::Manifest::new(|name| at(name).or_else(|| Some("1".repeat(64))))?;
    /// # let agent = ipse::Agent::register(directory.path().join("robot.db"), &manifest)?;
    /// # agent.record(ipse::Event::attempt("grasp").target("cup").success())?;
    /// # agent.consolidate()?;
    /// let fact = agent.fact("grasp", "cup", "*").expect("an attempt");
    /// let explanation = agent.explain(&fact.id(), 1)?;
    /// for event in &explanation.evidence {
    ///     println!("{} {} {}", event.seq, event.event_ref, event.canonical);
    /// }
    /// print!("{}", explanation.page()); // The same for people, with the arithmetic.
    /// # Ok::<(), ipse::Error>(())
    /// ```
    pub fn explain(&self, fact: &FactId, page: usize) -> Result<Explanation> {
        if page > 0
            && let Some(explanation) = self.look.explanation(fact, page)?
        {
            return Ok(explanation);
        }
        let first = self.look.explanation(fact, 1)?.ok_or(Error::NoFact(*fact))?;
        Err(Error::NoPage { asked: page, pages: first.pages() })
    }

    /// Explains an event: the facts it feeds, and its trail if it is an action.
    pub fn explain_event(&self, event: &EventRef) -> Result<ExplainedEvent> {
        self.look.event(event, Listing::default())?.ok_or(Error::NoEvent(*event))
    }

    /// Proposes an intent: audits it, judges it by the gates and records it durably. A denied
    /// intent is no error: act only if [`Proposal::may_act`], with the values of
    /// [`Proposal::admitted`].
    ///
    /// ```
    /// # fn act(agent: &ipse::Agent) -> ipse::Result<()> {
    /// use ipse::{Decision, Intent, IntentStanding, Query};
    ///
    /// let answer = agent.consult(&Query::skill("grasp"));
    /// let intent = Intent::new("grasp").target("cup").param("force_n", 45).consulted(&answer);
    /// let mut proposal = agent.propose(&intent)?;
    /// if proposal.standing() == IntentStanding::Waiting {
    ///     println!("ask a person: {}", proposal.reasons().join("; "));
    ///     proposal = agent.decide(&proposal.event_ref(), Decision::Confirmed)?;
    /// }
    /// if let Some(force) = proposal.admitted("force_n") {
    ///     println!("grasp with {force} N");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn propose(&self, intent: &Intent) -> Result<Proposal> {
        let desk = self.desk.as_ref().ok_or(Error::NoGates)?;
        let body = intent.json()?;
        Ok(desk.propose(body.as_bytes(), BY, &mut SystemHost::new())??)
    }

    /// Up to `limit` intents that wait for a person's decision, newest first. An intent whose time
    /// to confirm has expired is not listed.
    pub fn waiting(&self, limit: u64) -> Result<Vec<Proposal>> {
        let (now, waiting) = (SystemHost::new().now(), Some(IntentStanding::Waiting));
        Ok(self.look.intents(Seq::MAX, limit, waiting, now)?.intents)
    }

    /// Records a person's decision about an intent that waits for one.
    pub fn decide(&self, intent: &EventRef, decision: Decision) -> Result<Proposal> {
        let host = &mut SystemHost::new();
        Ok(decide(&self.memory, &self.look, intent, decision, BY, host)??)
    }

    /// Reports the outcome of an intent durably. Only an intent that is admitted, clamped or
    /// confirmed has an outcome. A report that is sent again is a duplicate and no error.
    pub fn report(&self, intent: &EventRef, report: &OutcomeReport) -> Result<Receipt> {
        let source = report.source_name();
        let report = ipse_intents::Report::read(report.json()?.as_bytes())?;
        let append =
            |event: &Admitted| Ok(self.memory.append_all(std::slice::from_ref(event))?.appended[0]);
        let sent = report.send(&self.look, intent, source, &mut SystemHost::new(), append)?;
        let (event, appended) = sent?;
        receipt(event.event_ref, appended, hint(&event))
    }

    /// The skills of the registry, if the agent was opened with gate files, and the skills in facts
    /// as of the last pass that this handle knows.
    pub fn skills(&self) -> Skills {
        let registry = self.desk.as_ref().map(|desk| desk.gates().registry());
        Skills::new(registry, self.memory.known().iter().map(|fact| &fact.fact.key))
    }

    /// Forgets events permanently: facts become equal to those of a log without them. If one of
    /// them is unknown, nothing is forgotten.
    ///
    /// ```
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let at = |name: &str| (name == "commissioned_at").then(|| "2026-05-01T00:00:00Z".into());
    /// # let manifest = ipse::Manifest::new(|name| at(name).or_else(|| Some("1".repeat(64))))?;
    /// # let agent = ipse::Agent::register(directory.path().join("robot.db"), &manifest)?;
    /// # for patient in ["p-17", "p-3"] {
    /// #     agent.record(ipse::Event::attempt("handover").success().with("patient", patient))?;
    /// # }
    /// # agent.consolidate()?;
    /// let mut after = Some(ipse::Seq(0));
    /// let mut about = Vec::new();
    /// while let Some(seq) = after {
    ///     let query = ipse::LogQuery { after: seq, limit: 1000, filter: Default::default() };
    ///     let page = agent.look().log(&query)?;
    ///     let rows = page.rows.iter().map(|row| &row.stored);
    ///     let rows = rows.filter(|it| it.data_text("patient").as_deref() == Some("p-17"));
    ///     about.extend(rows.map(|it| it.event_ref));
    ///     after = page.next_after;
    /// }
    /// assert_eq!(agent.forget(about)?.events, 1);
    /// assert_eq!(agent.fact("handover", "*", "*").map(|fact| fact.observations()), Some(1));
    /// # Ok::<(), ipse::Error>(())
    /// ```
    pub fn forget(&self, events: impl IntoIterator<Item = EventRef>) -> Result<Forgotten> {
        Ok(self.memory.forget(&Selection::Refs(events.into_iter().collect()))?)
    }

    /// Writes a bundle of the whole log. It can be verified without the store, in a program with
    /// [`verify_bundle`](crate::verify_bundle).
    ///
    /// It contains the facts of the last pass. Events after that pass are in the bundle and in no
    /// fact of it: call [`Agent::consolidate`] first.
    pub fn export(&self, out: &mut dyn Write) -> Result<Exported> {
        let operator = self.keys.operator_signer(self.passphrase.as_deref())?;
        let notary = notary(&self.keys, self.look.identity(), self.passphrase.as_deref())?;
        let gates = Vec::new();
        let keys = Keys {
            operator,
            log: self.keys.evidence(self.look.identity())?.log_keys,
            notary,
            gates,
        };
        let (range, write) =
            (Range::default(), |export: &Export<'_>| export.write(out, &mut |_, _| {}));
        Ok(with_export(&self.store, self.look.identity(), &keys, range, write)?)
    }

    /// Recomputes everything that is stored or signed, and reports mismatches. A mismatch is no
    /// error: the store is sound if [`Report::findings`] is empty.
    pub fn verify(&self) -> Result<Report> {
        self.keys.check_public()?;
        let outside = self.keys.evidence(self.look.identity())?;
        let manifest = self.look.standing()?.manifest;
        let reader = self.store.reader()?;
        let snapshot = reader.view(self.look.identity())?;
        Ok(verify(&snapshot, self.look.identity(), &manifest, &outside, &mut |_, _| {})?)
    }
}

impl fmt::Debug for Agent {
    /// Shows the identity and the store, and no content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("identity", &self.identity())
            .field("store", self.store.location())
            .field("signs", &self.signs)
            .finish_non_exhaustive()
    }
}

/// Validates an event at the door.
fn admitted(event: &[u8]) -> Result<Admitted> {
    Ok(admit(event, Origin::Producer, || SystemHost::new().salt())?)
}

/// The receipt of a stored event.
/// Advice for the sender of an event.
fn hint(event: &Admitted) -> Option<String> {
    hint_of(&event.event_type, &ipse_door::unused(event))
}

fn receipt(event_ref: EventRef, appended: Appended, hint: Option<String>) -> Result<Receipt> {
    match appended {
        Appended::New(seq) => Ok(Receipt { event_ref, seq, duplicate: false, hint }),
        Appended::Duplicate(seq) => Ok(Receipt { event_ref, seq, duplicate: true, hint }),
        other => {
            Err(refusal_of(other).expect("BUG: an event is neither in the log nor not").into())
        }
    }
}

fn key_directory(store: &Location, opening: &Opening) -> KeyDirectory {
    match &opening.keys {
        Some(path) => KeyDirectory::at(path),
        None => KeyDirectory::of_store(store),
    }
}

/// Checks everything that a registration needs before anything is created.
fn check(store: &Location, manifest: &Manifest, opening: &Opening) -> Result<()> {
    if let Some(files) = &opening.gates {
        files.bound_to(&manifest.canonical())?;
    }
    let keys = key_directory(store, opening);
    let passphrase = opening.passphrase.as_deref();
    keys.check_passphrase(passphrase)?;
    // If the directory of the store is missing, creating the store reports that error first.
    if store.path().is_none_or(|path| directory_of(path).is_dir()) {
        keys.check_place()?;
        keys.check_operator(manifest, passphrase)?;
        notary(&keys, &manifest.identity(), passphrase)?;
    }
    Ok(())
}

/// Lets an empty log begin with rules other than the default.
fn begin_with(store: &Store, identity: Identity, rules: Option<Rules>) -> Result<()> {
    let Some(rules) = rules else { return Ok(()) };
    let look = Look::at(store, identity);
    if look.rule_sets()?.in_force.version != rules.version() {
        Log::open(store, identity, Box::new(SystemHost::new()))?.begin_with_rules(rules)?;
    }
    Ok(())
}

/// The notary of a log; `None` if its private key is missing, or encrypted and no passphrase is
/// given. A damaged key or a wrong passphrase is an error.
fn notary(
    keys: &KeyDirectory,
    identity: &Identity,
    passphrase: Option<&str>,
) -> Result<Option<Box<dyn Notary>>> {
    match DirectoryNotary::open(keys, identity, passphrase) {
        Ok(notary) => Ok(Some(Box::new(notary))),
        Err(error @ KeyError::WrongPassphrase(_)) => Err(error.into()),
        Err(error) if error.is_damage() => Err(error.into()),
        Err(_) => Ok(None),
    }
}
