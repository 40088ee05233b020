//! Looking into an identity's log from outside: what the server answers beside facts.
//!
//! **Invariants:** each look is at one moment of the store, on a connection that only reads; what a
//! look costs follows the page that is asked for, not the log (`explanation` aside, which walks to
//! its evidence).

use crate::answer;
use crate::explain::{Explanation, explained_event, feeds};
use crate::facts::{Consulted, Filter};
use crate::walk::{Walked, forgotten_since, told};
use crate::{
    Claim, Error, Known, Past, Signers, Status, census, chosen_as_of, head_of, prove, registered,
};
use ipse_consolidate::V1;
use ipse_consult::trail::{Found, IntentStanding, Listing, Proposed, Trail};
use ipse_core::intent::{CONFIRMATION, INTENT};
use ipse_core::json::{Members, Value, list};
use ipse_core::{EventRef, FactId, Identity, Seq, Time, is_housekeeping, json_parse};
use ipse_ledger::NoteKey;
use ipse_store::sqlite::{Reader, View};
use ipse_store::{Signatures, Stored};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of events after which a page of the log ends.
const PAGE_BYTES: usize = 4 << 20;

/// Nesting of a pass record: the event, its `data`, `skipped`, a type.
const RECORD_DEPTH: usize = 32;

/// An identity in a store, to be looked at.
#[derive(Clone, Debug)]
pub struct Look {
    path: PathBuf,
    identity: Identity,
}

impl Look {
    /// At this identity of that store.
    pub fn at(path: &Path, identity: Identity) -> Self {
        Look { path: path.to_owned(), identity }
    }

    fn view<T>(&self, look: impl FnOnce(View<'_>) -> Result<T, Error>) -> Result<T, Error> {
        let reader = Reader::open(&self.path)?;
        let snapshot = reader.view(&self.identity)?;
        look(snapshot.view())
    }

    /// The manifest's canonical bytes, and how many events, forgotten ones and passes there are.
    pub fn standing(&self) -> Result<(String, Standing), Error> {
        let reader = Reader::open(&self.path)?;
        let name = self.identity.to_string();
        let manifest = reader.manifests()?.into_iter().find(|(hash, _)| *hash == name);
        let snapshot = reader.view(&self.identity)?;
        let census = census(snapshot.view())?;
        let passes = snapshot.view().pass_count()?;
        let standing = Standing { events: census.events, forgotten: census.forgotten, passes };
        Ok((manifest.map(|(_, canonical)| canonical).unwrap_or_default(), standing))
    }

    /// The last position of the log.
    pub fn head(&self) -> Result<Seq, Error> {
        self.view(|view| Ok(view.head()?))
    }

    /// The facts that a filter chooses of those that the log up to a position gives; `None` if the
    /// log does not reach so far. A table of what is known now saves reading it.
    pub fn as_of(
        &self,
        seq: Seq,
        filter: &Filter,
        known: Option<&Known>,
    ) -> Result<Option<Vec<Arc<Consulted>>>, Error> {
        self.view(|view| {
            if seq > view.head()? {
                return Ok(None);
            }
            Ok(Some(chosen_as_of(view, &V1, seq, filter, known)?.facts))
        })
    }

    /// Whether the log bears out what a planner says that it read before its next intent; and the
    /// facts that its query chooses at its checkpoint, none if the log does not reach so far.
    pub fn claim(
        &self,
        claim: &Claim,
        known: Option<&Known>,
    ) -> Result<(Status, Vec<Arc<Consulted>>), Error> {
        self.view(|view| {
            let (checkpoint, head) = (claim.checkpoint(), view.head()?);
            let facts = match checkpoint <= head {
                true => chosen_as_of(view, &V1, checkpoint, claim.filter(), known)?.facts,
                false => Vec::new(),
            };
            let forgotten = || forgotten_since(view, checkpoint);
            Ok((claim.status(&self.identity, &facts, head, forgotten)?, facts))
        })
    }

    /// The producers that may sign, as keys; `None` if signatures are passed over.
    pub fn producers(&self) -> Result<Option<Vec<NoteKey>>, Error> {
        self.view(|view| {
            let off = view.signatures()? == Signatures::Off;
            Ok(if off { None } else { Some(registered(&view.producers()?)) })
        })
    }

    /// A fact by its id.
    pub fn fact(&self, id: &FactId) -> Result<Option<String>, Error> {
        self.view(|view| {
            let Some(fact) = view.fact(id)? else { return Ok(None) };
            Ok(Some(Consulted::new(fact)?.said(&self.identity).json.clone()))
        })
    }

    /// Why a fact says what it says, with a page of its evidence; `None` if there is no such fact,
    /// or no such page.
    pub fn explanation(&self, id: &FactId, page: usize) -> Result<Option<String>, Error> {
        self.view(|view| {
            let Some(fact) = view.fact(id)? else { return Ok(None) };
            let explanation = Explanation::of(view, &self.identity, &fact, Some(page))?;
            let there = page as u64 <= explanation.pages();
            Ok(there.then(|| explanation.json(&self.identity)))
        })
    }

    /// An event with the facts that it feeds.
    pub fn event(&self, event_ref: &EventRef) -> Result<Option<String>, Error> {
        self.view(|view| {
            let Some(seq) = view.find(event_ref)? else { return Ok(None) };
            let Some(stored) = view.stored(seq)? else { return Ok(None) };
            let (signers, fed) = (Signers::of(view)?, feeds(view, &V1, seq)?);
            let names = signers.names(seq);
            Ok(Some(explained_event(view, &self.identity, &stored, &names, &fed, None)?))
        })
    }

    /// The walk back from an action.
    pub fn action(&self, event_ref: &EventRef, listing: Listing) -> Result<Found, Error> {
        self.view(|view| Trail::of(&Walked(view), &self.identity, event_ref, listing))
    }

    /// Events after a position, in order, at most so many and not much more than 4 MiB of them; and
    /// the position to go on after, if there are more.
    pub fn log(&self, after: Seq, limit: u64) -> Result<String, Error> {
        self.view(|view| {
            let head = view.head()?;
            let signers = Signers::of(view)?;
            let mut last = Seq(after.0.saturating_add(limit)).min(head);
            let (mut events, mut bytes) = (Vec::new(), 0);
            for seq in after.0.saturating_add(1)..=last.0 {
                let Some(stored) = view.stored(Seq(seq))? else { break };
                let event = answer::event(&stored, &signers.names(stored.seq)).finish();
                bytes += event.len();
                events.push(event);
                if bytes > PAGE_BYTES {
                    last = Seq(seq);
                    break;
                }
            }
            let next = (last < head).then_some(last);
            let page = Members::new().raw("head", head).raw("events", list(events));
            Ok(page.optional("next_after", next).finish())
        })
    }

    /// What the log says after a position, in order, at most so many entries: housekeeping with its
    /// data, everything else by its name; and the newest signed tree head.
    pub fn news(
        &self,
        after: Seq,
        limit: u64,
    ) -> Result<(Vec<LogEntry>, Option<SignedHead>), Error> {
        self.view(|view| {
            let last = Seq(after.0.saturating_add(limit)).min(view.head()?);
            let mut entries = Vec::new();
            for seq in after.0.saturating_add(1)..=last.0 {
                let Some(stored) = view.stored(Seq(seq))? else { break };
                let data = is_housekeeping(&stored.event_type).then(|| record(&stored)).flatten();
                let Stored { seq, event_ref, event_type, time, .. } = stored;
                entries.push(LogEntry { seq, event_ref, event_type, time, data });
            }
            Ok((entries, signed(view)?))
        })
    }

    /// Passes before a position, newest first, at most so many; and the position to go on before.
    pub fn passes(&self, before: Seq, limit: u64) -> Result<String, Error> {
        self.view(|view| {
            let end = Seq(before.0.saturating_sub(1)).min(view.head()?);
            let (mut passes, mut next) = (Vec::new(), None);
            view.passes_back(Seq(1)..=end, |stored| {
                if passes.len() as u64 == limit {
                    next = Some(stored.seq.next());
                    return Ok(ControlFlow::Break(()));
                }
                let value = json_parse::parse(stored.canonical.as_bytes(), RECORD_DEPTH).ok();
                let data = value.as_ref().and_then(|value| data_of(value));
                let damaged = || Error::Damaged(format!("pass record at seq {}", stored.seq));
                passes.push(answer::pass(&stored, data.ok_or_else(damaged)?).finish());
                Ok::<_, Error>(ControlFlow::Continue(()))
            })?;
            Ok(Members::new().raw("passes", list(passes)).optional("next_before", next).finish())
        })
    }

    /// Looks at the log as it stands now, outside of any transaction that writes.
    pub fn past<T>(&self, look: impl FnOnce(&Past<'_>) -> Result<T, Error>) -> Result<T, Error> {
        self.view(|view| look(&Past(view)))
    }

    /// An intent; `None` if there is none of that name, or if it was forgotten.
    pub fn intent(&self, name: &EventRef) -> Result<Option<Proposed>, Error> {
        self.view(|view| Proposed::named(&Walked(view), name))
    }

    /// Intents before a position, newest first, at most so many that stand so and are `wanted`;
    /// and the position to go on before.
    pub fn proposed(
        &self,
        before: Seq,
        limit: u64,
        standing: Option<IntentStanding>,
        wanted: impl Fn(&Proposed) -> bool,
    ) -> Result<String, Error> {
        let stands = |it: &Proposed| standing.is_none_or(|so| it.standing() == so);
        let wanted = |it: &Proposed| stands(it) && wanted(it);
        // Most intents of another verdict are passed over without being parsed.
        let verdict = standing.map(|so| format!("\"verdict\":\"{}\"", so.verdict()));
        let verdict = verdict.as_deref().unwrap_or_default();
        self.view(|view| {
            let end = Seq(before.0.saturating_sub(1)).min(view.head()?);
            let walked = Walked(view);
            let decided = standing.map(|standing| decisions(view, standing)).transpose()?.flatten();
            let (mut intents, mut next) = (Vec::new(), None);
            view.house_back(INTENT, Seq(1)..=end, |stored| {
                if stored.is_forgotten() || !stored.canonical.contains(verdict) {
                    return Ok(ControlFlow::Continue(()));
                }
                let told = told(stored)?;
                let seq = told.seq;
                // What is known of decisions saves a search for each of those that have none.
                let proposed = match &decided {
                    Some(decided) if !decided.contains(&told.event_ref) => Proposed::fresh(told),
                    _ => Proposed::at(&walked, told)?,
                };
                let Some(proposed) = proposed.filter(|it| wanted(it)) else {
                    return Ok(ControlFlow::Continue(()));
                };
                if intents.len() as u64 == limit {
                    next = Some(seq.next());
                    return Ok(ControlFlow::Break(()));
                }
                intents.push(proposed.json());
                Ok::<_, Error>(ControlFlow::Continue(()))
            })?;
            let page = Members::new().raw("intents", list(intents));
            Ok(page.optional("next_before", next).finish())
        })
    }

    /// How far the log reaches, and how far its newest signed tree head.
    pub fn heads(&self) -> Result<Heads, Error> {
        self.view(|view| Ok(Heads { head: view.head()?, signed: signed(view)? }))
    }

    /// The newest signed tree head.
    pub fn tree_head(&self) -> Result<Option<SignedHead>, Error> {
        self.view(signed)
    }

    /// The proof that an event is under that head: its index, entry and proof file. The outer
    /// `None` means that there is no such event, the inner one that it is under no head yet.
    pub fn proof(&self, event_ref: &EventRef) -> Result<Option<Option<String>>, Error> {
        self.view(|view| {
            let Some(seq) = view.find(event_ref)? else { return Ok(None) };
            let json = prove(view, seq)?.map(|(entry, proof)| answer::proof(&entry, &proof));
            Ok(Some(json))
        })
    }
}

/// The intents that somebody decided about, if that matters to how they stand.
fn decisions(
    view: View<'_>,
    standing: IntentStanding,
) -> Result<Option<BTreeSet<EventRef>>, Error> {
    if standing.verdict() == standing.name() {
        return Ok(None);
    }
    let mut decided = BTreeSet::new();
    view.house_content(CONFIRMATION, Seq(1)..=view.head()?, |payload| {
        let value = json_parse::parse(payload.as_bytes(), RECORD_DEPTH).ok();
        let data = value.as_ref().and_then(|value| data_of(value));
        let name = data.and_then(|data| EventRef::parse(data.get("intent")?.as_text()?));
        decided.extend(name);
        Ok::<_, Error>(())
    })?;
    Ok(Some(decided))
}

/// How far a log reaches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heads {
    /// Its last position.
    pub head: Seq,
    /// Its newest signed tree head.
    pub signed: Option<SignedHead>,
}

/// A tree head that was signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignedHead {
    /// How many events are under it.
    pub size: u64,
    /// The note.
    pub note: String,
}

fn signed(view: View<'_>) -> Result<Option<SignedHead>, Error> {
    let Some(note) = view.tree_head()? else { return Ok(None) };
    let head = head_of(&note).ok_or(Error::NoHead("that was signed last"))?;
    Ok(Some(SignedHead { size: head.size, note }))
}

/// An event of the log, as those see it who follow it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogEntry {
    /// Its position.
    pub seq: Seq,
    /// Its name.
    pub event_ref: EventRef,
    /// Its type.
    pub event_type: String,
    /// When it happened.
    pub time: Time,
    /// The `data` of what ipse wrote about itself, as JSON.
    pub data: Option<String>,
}

/// How far a log has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Events of producers that are there.
    pub events: u64,
    /// Those that were forgotten.
    pub forgotten: u64,
    /// Passes.
    pub passes: u64,
}

/// The `data` of an event, as JSON.
fn record(stored: &Stored) -> Option<String> {
    let value = json_parse::parse(stored.canonical.as_bytes(), RECORD_DEPTH).ok()?;
    value.as_object()?.get("data").map(answer::written)
}

fn data_of<'v>(value: &'v Value<'_>) -> Option<&'v ipse_core::json::Object<'v>> {
    value.as_object()?.get("data")?.as_object()
}
