//! The trail of an action, read from a verified bundle.
//!
//! **Invariants**
//! - Only an [`Opened`] bundle can be read, so the bundle passed verification.
//! - Data outside of the bundle is an error. It is never treated as data that does not exist.
//! - Memory: about seventy bytes per event, and the facts.

use crate::log::MAX_ENTRY_BYTES;
use crate::name::Name;
use crate::open::{Opened, changed};
use crate::source::Part;
use ipse_audit::Index;
use ipse_consolidate::{Groups, RuleSet, Rules, with_rules};
use ipse_consult::Damaged;
use ipse_consult::trail::{
    EventRecord, EvidenceQuery, Found, Listing, Record, Trail, names_intent, naming_text,
};
use ipse_core::event::FORGET;
use ipse_core::{Columns, Event, EventRef, EvidenceKey, Fact, FactKey, Seq, is_housekeeping};
use ipse_door::{MAX_EVENT_BYTES, columns_of, read_stored};
use ipse_ledger::account::forgotten_names;
use ipse_ledger::tree::{Edge, Hash, Nodes, inclusion};
use ipse_ledger::{Entry, ProofFile, entry_hash};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;

/// An error of computing a trail.
#[derive(thiserror::Error, Debug)]
#[non_exhaustive]
pub enum WhyError {
    /// The bundle could not be read.
    #[error("the bundle could not be read")]
    Read(#[from] io::Error),
    /// The trail needs events outside of the range of the bundle.
    #[error("this bundle holds seq {from}..{to} of {size}, but {needed} is needed")]
    Lacks {
        /// The first position of the range.
        from: Seq,
        /// The last position of the range.
        to: Seq,
        /// The length of the log.
        size: u64,
        /// The positions that are needed, as text.
        needed: String,
    },
    /// A derived fact is not valid.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// The sums of a fact are too large to be exact.
    #[error("{0}")]
    Limit(String),
}

impl Opened<'_> {
    /// The trail of an action: the same bytes as from a store with this log and this tree head.
    pub fn why(&self, name: &EventRef, listing: Listing) -> Result<Found, WhyError> {
        Trail::of(&Walk::over(self)?, &self.identity, name, listing)
    }
}

/// The offset of an event that is not in the bundle.
const NOWHERE: u64 = u64::MAX;
/// The level of the smallest subtrees that are kept in addition to entry hashes: 256 entries.
const KEPT_LEVEL: u32 = 8;

/// The log of a bundle, by position and by name.
struct Walk<'o> {
    opened: &'o Opened<'o>,
    entries: Part<'o>,
    events: Part<'o>,
    note: String,
    index: Index,
    /// For each position, the offsets of the entry and of the event in their members.
    places: Vec<[u64; 2]>,
    hashes: Vec<Hash>,
    /// Larger subtrees by level and index.
    subtrees: BTreeMap<(u32, u64), Hash>,
}

impl<'o> Walk<'o> {
    /// Reads the offsets and hashes of all entries and events.
    fn over(opened: &'o Opened<'o>) -> io::Result<Self> {
        let part = |name| opened.part(name).ok_or_else(changed);
        let mut walk = Walk {
            opened,
            entries: part(Name::Entries)?,
            events: part(Name::Events)?,
            note: opened.head_note()?,
            index: Index::default(),
            places: Vec::new(),
            hashes: Vec::new(),
            subtrees: BTreeMap::new(),
        };
        walk.read()?;
        walk.index.sort();
        Ok(walk)
    }

    fn read(&mut self) -> io::Result<()> {
        // The offsets of the next entry and the next event.
        let mut begins = [0, 0];
        for pair in self.opened.log() {
            let (entry, event) = pair?;
            let line = entry.canonical();
            self.index.names.push(entry.event_ref);
            self.places.push([begins[0], if event.is_some() { begins[1] } else { NOWHERE }]);
            begins[0] += line.len() as u64 + 1;
            begins[1] += event.map_or(0, |event| event.len() as u64 + 1);
            self.index.grow(entry_hash(line.as_bytes()), |level, index, hash| match level {
                0 => self.hashes.push(*hash),
                1..KEPT_LEVEL => {}
                _ => drop(self.subtrees.insert((level, index), *hash)),
            });
        }
        Ok(())
    }

    fn size(&self) -> Seq {
        Seq(self.index.names.len() as u64)
    }

    fn lacks(&self, needed: String) -> WhyError {
        let bundled = &self.opened.bundled;
        WhyError::Lacks { from: bundled.from, to: bundled.to, size: bundled.size, needed }
    }

    /// Fails if a range is not in the bundle.
    fn holds(&self, from: Seq, to: Seq) -> Result<(), WhyError> {
        let bundled = &self.opened.bundled;
        match from > to || (bundled.from <= from && to <= bundled.to) {
            true => Ok(()),
            false if from == to => Err(self.lacks(format!("seq {from}"))),
            false => Err(self.lacks(format!("all of seq {from}..{to}"))),
        }
    }

    /// The line of a member at an offset.
    fn line(&self, part: Part<'o>, begins: u64, limit: usize) -> io::Result<String> {
        let mut lines = part.piece(begins, limit as u64 + 1).ok_or_else(changed)?.lines(limit);
        let line = lines.next()?.and_then(Result::ok).ok_or_else(changed)?;
        String::from_utf8(line.to_vec()).map_err(|_| changed())
    }

    fn entry(&self, seq: Seq) -> io::Result<Option<Entry>> {
        let Some([begins, _]) = place(seq).and_then(|at| self.places.get(at)) else {
            return Ok(None);
        };
        let line = self.line(self.entries, *begins, MAX_ENTRY_BYTES)?;
        Entry::parse(line.as_bytes()).map(Some).ok_or_else(changed)
    }

    /// Passes every existing event of a range to `each`, in order.
    fn each(
        &self,
        from: Seq,
        to: Seq,
        mut each: impl FnMut(Seq, &str) -> Result<(), WhyError>,
    ) -> Result<(), WhyError> {
        let seqs = (1..).map(Seq).zip(&self.places);
        let there = seqs.skip_while(|(seq, _)| *seq < from).take_while(|(seq, _)| *seq <= to);
        let mut there = there.filter(|(_, place)| place[1] != NOWHERE).peekable();
        let Some((_, first)) = there.peek() else { return Ok(()) };
        let rest = self.events.piece(first[1], u64::MAX).ok_or_else(changed)?;
        let mut lines = rest.lines(MAX_EVENT_BYTES);
        for (seq, _) in there {
            let line = lines.next()?.and_then(Result::ok).ok_or_else(changed)?;
            each(seq, std::str::from_utf8(line).map_err(|_| changed())?)?;
        }
        Ok(())
    }

    /// Passes every existing event up to a position to `take`, typed for the rules.
    fn each_typed(
        &self,
        up_to: Seq,
        mut take: impl FnMut(Seq, &Event<'_>),
    ) -> Result<(), WhyError> {
        self.holds(Seq(1), up_to)?;
        self.each(Seq(1), up_to, |seq, canonical| {
            let event = read_stored(canonical.as_bytes()).map_err(|_| changed())?;
            take(seq, &event.typed().ok_or_else(changed)?);
            Ok(())
        })
    }
}

impl Walk<'_> {
    fn facts_under<R: RuleSet>(&self, rules: &R, seq: Seq) -> Result<Vec<Fact>, WhyError> {
        let mut groups = Groups::default();
        self.each_typed(seq, |_, event| {
            groups.fold(rules, event);
        })?;
        groups.publish(rules).map_err(|limit| WhyError::Limit(limit.to_string()))
    }

    fn evidence_under<R: RuleSet>(
        &self,
        rules: &R,
        &EvidenceQuery { facts, up_to, wanted, .. }: &EvidenceQuery<'_>,
    ) -> Result<Vec<Vec<Seq>>, WhyError> {
        let mut found: BTreeMap<&FactKey, (&EvidenceKey, VecDeque<Seq>)> = BTreeMap::new();
        found.extend(facts.iter().map(|fact| (&fact.key, (fact, VecDeque::new()))));
        self.each_typed(up_to, |seq, event| {
            // An event supports a derived fact once, even through several facts.
            let mut supported = BTreeSet::new();
            let parts = rules.contributions(event).unwrap_or_default();
            for part in parts.into_iter().filter(|part| part.supports) {
                supported.extend(rules.derived_keys(&part.key));
                supported.insert(part.key);
            }
            for key in &supported {
                let Some((fact, newest)) = found.get_mut(key) else { continue };
                if fact.counts(event.time) {
                    newest.push_front(seq);
                    newest.truncate(wanted);
                }
            }
        })?;
        let newest = |fact: &EvidenceKey| {
            found.get(&fact.key).map(|(_, newest)| newest.iter().copied().collect())
        };
        Ok(facts.iter().map(|fact| newest(fact).unwrap_or_default()).collect())
    }
}

fn place(seq: Seq) -> Option<usize> {
    usize::try_from(seq.0).ok()?.checked_sub(1)
}

impl Nodes for Walk<'_> {
    type Error = io::Error;

    fn node(&self, level: u32, index: u64) -> io::Result<Hash> {
        if let Some(hash) = self.subtrees.get(&(level, index)) {
            return Ok(*hash);
        }
        let [first, end] = [index, index + 1].map(|index| usize::try_from(index << level));
        let (first, end) = (first.map_err(|_| changed())?, end.map_err(|_| changed())?);
        let hashes = self.hashes.get(first..end).ok_or_else(changed)?;
        let mut edge = Edge::default();
        hashes.iter().for_each(|hash| edge.push(*hash, |_, _, _| {}));
        Ok(edge.root())
    }
}

impl Record for Walk<'_> {
    type Error = WhyError;

    fn find(&self, name: &EventRef) -> Result<Option<Seq>, WhyError> {
        Ok(self.index.find(name).map(|at| Seq(at as u64 + 1)))
    }

    fn event(&self, seq: Seq) -> Result<Option<EventRecord>, WhyError> {
        let Some(Entry { event_ref, time, event_type, .. }) = self.entry(seq)? else {
            return Ok(None);
        };
        let begins = place(seq).map_or(NOWHERE, |at| self.places[at][1]);
        if begins == NOWHERE {
            self.holds(seq, seq)?;
            let (outcome, canonical) = (None, None);
            return Ok(Some(EventRecord { seq, event_ref, event_type, time, outcome, canonical }));
        }
        let canonical = self.line(self.events, begins, MAX_EVENT_BYTES)?;
        let columns = columns_of(&canonical).unwrap_or_default();
        let outcome = Columns::decode(&columns).and_then(|columns| columns.outcome);
        let canonical = Some(canonical);
        Ok(Some(EventRecord { seq, event_ref, event_type, time, outcome, canonical }))
    }

    fn rules_at(&self, seq: Seq) -> Result<Option<Rules>, WhyError> {
        let in_force = self.opened.rules.at(seq);
        Ok(Rules::recorded(&in_force.version, &in_force.hash))
    }

    fn facts_at(&self, seq: Seq, rules: Rules) -> Result<Vec<Fact>, WhyError> {
        with_rules!(rules, |rules| self.facts_under(rules, seq))
    }

    fn evidence(&self, behind: &EvidenceQuery<'_>) -> Result<Vec<Vec<Seq>>, WhyError> {
        with_rules!(behind.rules, |rules| self.evidence_under(rules, behind))
    }

    fn naming(&self, intent: &EventRef, after: Seq) -> Result<Vec<Seq>, WhyError> {
        self.holds(after.next(), self.size())?;
        let mut named = Vec::new();
        let text = naming_text(intent);
        self.each(after.next(), self.size(), |seq, canonical| {
            if canonical.contains(&text) && names_intent(canonical, intent) {
                named.push(seq);
            }
            Ok(())
        })?;
        Ok(named)
    }

    fn forgotten_since(&self, seq: Seq) -> Result<bool, WhyError> {
        self.holds(seq.next(), self.size())?;
        let mut found = false;
        self.each(seq.next(), self.size(), |place, canonical| {
            let is_forget = |entry: Entry| entry.event_type == FORGET;
            if found || !canonical.contains("\"type\":\"forget\"") {
                return Ok(());
            }
            if !self.entry(place)?.is_some_and(is_forget) {
                return Ok(());
            }
            for name in forgotten_names(canonical.as_bytes()).into_iter().flatten() {
                let Some(gone) = self.find(&name)?.filter(|gone| *gone <= seq) else { continue };
                let entry = self.entry(gone)?;
                found = found || entry.is_some_and(|entry| !is_housekeeping(&entry.event_type));
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn proof(&self, seq: Seq) -> Result<Option<(Entry, ProofFile)>, WhyError> {
        let (Some(entry), Some(index)) = (self.entry(seq)?, seq.0.checked_sub(1)) else {
            return Ok(None);
        };
        let Some(hashes) = inclusion(self, index, self.opened.head.size)? else { return Ok(None) };
        Ok(Some((entry, ProofFile { index, hashes, note: self.note.clone() })))
    }
}
