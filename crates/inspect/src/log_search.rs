//! Searching a log: a filter on the time and the content of events.
//!
//! A filter runs in two steps. The columns of a chunk give the candidates among its 4096 events,
//! and the stored bytes of each candidate decide.
//!
//! **Invariants**
//! - The events found are those that [`LogFilter::matches`] accepts, whichever chunks exist.
//! - A forgotten event keeps its time and its type, and has no other content to find.
//! - A search reads one window of the log at a time, so its caller can stop it anywhere.

use crate::log_summary::Content;
use crate::{Error, LogRow, Signers};
use ipse_core::chunk::{CHUNK_EVENTS, Chunk, Dictionary, OUTCOME, SKILL, SOURCE, TARGET, TYPE};
use ipse_core::event::{FORGET, FORGOTTEN, PASS_RECORD};
use ipse_core::{Event, Outcome, Seq, Time, is_housekeeping};
use ipse_store::{Scan, Stored, View};
use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};

/// The events to find. Every given part must hold.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LogFilter {
    /// The first time of an event.
    pub since: Option<Time>,
    /// The last time of an event.
    pub until: Option<Time>,
    /// The `skill_id` of an attempt or an intent.
    pub skill: Option<String>,
    /// The `target_class` of an attempt or an intent.
    pub target: Option<String>,
    /// Only attempts with the outcome `failed`.
    pub failed: bool,
    /// The type of an event.
    pub event_type: Option<String>,
    /// The source of an event.
    pub source: Option<String>,
}

impl LogFilter {
    /// Whether the filter accepts every event.
    pub fn is_empty(&self) -> bool {
        *self == LogFilter::default()
    }

    /// Whether no event can match, because the period ends before it begins.
    pub fn is_backwards(&self) -> bool {
        self.since.zip(self.until).is_some_and(|(since, until)| since > until)
    }

    /// Whether a stored event is to be found.
    pub fn matches(&self, stored: &Stored) -> bool {
        let is_type = |wanted: &String| *wanted == stored.event_type;
        if !self.includes(stored.time) || !self.event_type.as_ref().is_none_or(is_type) {
            return false;
        }
        !self.asks_for_content()
            || Content::read(stored, |content| self.accepts(content)).unwrap_or(false)
    }

    fn accepts(&self, content: &Content<'_>) -> bool {
        let columns = &content.columns;
        let is = |wanted: &Option<String>, text: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == text)
        };
        is(&self.skill, columns.skill)
            && is(&self.target, columns.target)
            && is(&self.source, columns.source)
            && (!self.failed || columns.outcome == Some(Outcome::Failed))
    }

    fn includes(&self, time: Time) -> bool {
        self.since.is_none_or(|since| since <= time) && self.until.is_none_or(|until| time <= until)
    }

    /// Whether a forgotten event cannot match.
    fn asks_for_content(&self) -> bool {
        self.failed || self.skill.is_some() || self.target.is_some() || self.source.is_some()
    }

    /// Whether an event of this type may name a skill that its typed columns do not have.
    fn may_name_more(&self, event_type: &str) -> bool {
        is_housekeeping(event_type) && ![PASS_RECORD, FORGET, FORGOTTEN].contains(&event_type)
    }

    /// Whether an event may match, by its typed columns alone.
    fn may_match(&self, event: &Event<'_>) -> bool {
        if !self.includes(event.time) {
            return false;
        }
        if event.event_type == FORGOTTEN {
            return !self.asks_for_content();
        }
        let columns = &event.columns;
        let more = self.may_name_more(event.event_type);
        let is = |wanted: &Option<String>, text: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| Some(wanted) == text)
        };
        is(&self.event_type, Some(event.event_type))
            && is(&self.source, columns.source)
            && (!self.failed || columns.outcome == Some(Outcome::Failed))
            && (more || is(&self.skill, columns.skill) && is(&self.target, columns.target))
    }
}

/// The candidates in a part of a log.
struct Candidates<'f> {
    filter: &'f LogFilter,
    found: Vec<Seq>,
    times: Vec<i64>,
}

impl Scan<Error> for Candidates<'_> {
    fn chunk(&mut self, first: Seq, chunk: &Chunk<'_>, places: Range<usize>) -> Result<(), Error> {
        let damaged = || Error::Damaged(format!("the chunk that begins at seq {first}"));
        let words = Dictionary::decode(chunk.dictionary).ok_or_else(damaged)?;
        let tests = Tests::of(self.filter, &words);
        let timed = self.filter.since.is_some() || self.filter.until.is_some();
        if timed {
            chunk.times.unpack(chunk.count, &mut self.times);
        }
        for place in places {
            let time = self.times.get(place).copied().filter(|_| timed);
            let in_time = !timed
                || time.and_then(Time::from_micros).is_some_and(|it| self.filter.includes(it));
            if in_time && tests.pass(chunk, place).ok_or_else(damaged)? {
                self.found.push(Seq(first.0 + place as u64));
            }
        }
        Ok(())
    }

    fn event(&mut self, seq: Seq, event: &Event<'_>) -> Result<(), Error> {
        if self.filter.may_match(event) {
            self.found.push(seq);
        }
        Ok(())
    }
}

/// The codes of a chunk that a filter accepts.
struct Tests {
    types: Vec<TypeTest>,
    /// Fields whose code must be accepted, whatever the type.
    fields: Vec<(usize, Vec<bool>)>,
    /// The same for the fields that some types have only in their content.
    named: Vec<(usize, Vec<bool>)>,
}

/// The treatment of the events of one type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TypeTest {
    Never,
    /// Forgotten, and only time and type count.
    Always,
    Fields,
    FieldsAndNames,
}

impl Tests {
    fn of(filter: &LogFilter, words: &Dictionary<'_>) -> Self {
        let text = |id: &usize| id.checked_sub(1).and_then(|id| words.texts.get(id).copied());
        let test = |id: &usize| match text(id).unwrap_or_default() {
            FORGOTTEN if filter.asks_for_content() => TypeTest::Never,
            FORGOTTEN => TypeTest::Always,
            name if filter.event_type.as_deref().is_some_and(|it| it != name) => TypeTest::Never,
            name if filter.may_name_more(name) => TypeTest::Fields,
            _ => TypeTest::FieldsAndNames,
        };
        let types = words.fields[TYPE].iter().map(test).collect();
        let equal = |(field, wanted): (usize, &Option<String>)| {
            let wanted = wanted.as_deref()?;
            let accepts = |id: &usize| text(id) == Some(wanted);
            Some((field, words.fields[field].iter().map(accepts).collect::<Vec<_>>()))
        };
        let named = [(SKILL, &filter.skill), (TARGET, &filter.target)];
        let mut fields: Vec<_> = equal((SOURCE, &filter.source)).into_iter().collect();
        if filter.failed {
            let failed = |value: &usize| ipse_core::chunk::outcome_of(*value);
            let failed = |value: &usize| failed(value) == Some(Outcome::Failed);
            fields.push((OUTCOME, words.fields[OUTCOME].iter().map(failed).collect()));
        }
        Tests { types, fields, named: named.into_iter().filter_map(equal).collect() }
    }

    /// Whether the event at a place may match; `None` if the chunk is damaged.
    fn pass(&self, chunk: &Chunk<'_>, place: usize) -> Option<bool> {
        let test = *self.types.get(chunk.fields[TYPE].get(place)?)?;
        let named: &[_] = match test {
            TypeTest::Never => return Some(false),
            TypeTest::Always => return Some(true),
            TypeTest::Fields => &[],
            TypeTest::FieldsAndNames => &self.named,
        };
        for (field, accepts) in self.fields.iter().chain(named) {
            if !*accepts.get(chunk.fields[*field].get(place)?)? {
                return Some(false);
            }
        }
        Some(true)
    }
}

/// Positions per window: a full chunk.
const WINDOW: u64 = CHUNK_EVENTS as u64;
/// Events that are read together. The content of an event has at most 256 KiB.
const READ_AT_ONCE: u64 = 64;

/// A search over a range of a log, from one of its ends.
pub struct LogSearch<'v> {
    view: View<'v>,
    filter: LogFilter,
    signers: Signers,
    newest_first: bool,
    /// The part that was not searched yet: the next position and the end, both included.
    rest: Option<(Seq, Seq)>,
    candidates: VecDeque<Seq>,
    read: VecDeque<Stored>,
    /// Events to read together at most.
    at_once: u64,
    cost: SearchCost,
}

/// The work of a search so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SearchCost {
    /// The number of positions whose columns were searched.
    pub positions: u64,
    /// The number of events that were read.
    pub events: u64,
}

/// One step of a search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// The next event that matches.
    Row(Box<LogRow>),
    /// A part of the log without another match: a window, or one candidate.
    Nothing,
    /// The search is complete.
    End,
}

impl<'v> LogSearch<'v> {
    /// A search over a range. An event is read when its step comes, with at most `at_once` others.
    pub fn new(
        view: View<'v>,
        range: RangeInclusive<Seq>,
        filter: &LogFilter,
        newest_first: bool,
        at_once: u64,
    ) -> Result<Self, Error> {
        let (first, last) = (Seq(range.start().0.max(1)), (*range.end()).min(view.head()?));
        Ok(LogSearch {
            view,
            filter: filter.clone(),
            signers: Signers::of(view)?,
            newest_first,
            rest: (first <= last).then_some((first, last)),
            candidates: VecDeque::new(),
            read: VecDeque::new(),
            at_once: at_once.clamp(1, READ_AT_ONCE),
            cost: SearchCost::default(),
        })
    }

    /// The work so far.
    pub fn cost(&self) -> SearchCost {
        self.cost
    }

    /// The next position that was not decided yet, in the direction of the search.
    pub fn next_position(&self) -> Option<Seq> {
        let read = self.read.front().map(|stored| stored.seq);
        let edge = |(first, last)| if self.newest_first { last } else { first };
        read.or(self.candidates.front().copied()).or(self.rest.map(edge))
    }

    /// Goes on with the search.
    pub fn step(&mut self) -> Result<Found, Error> {
        if self.read.is_empty() && !self.candidates.is_empty() {
            self.read_candidates()?;
        }
        if let Some(stored) = self.read.pop_front() {
            return Ok(match self.filter.matches(&stored) {
                true => Found::Row(Box::new(LogRow::new(stored, &self.signers))),
                false => Found::Nothing,
            });
        }
        let Some((first, last)) = self.rest else { return Ok(Found::End) };
        self.search_window(first, last)?;
        Ok(Found::Nothing)
    }

    /// Searches the columns of the next window.
    fn search_window(&mut self, first: Seq, last: Seq) -> Result<(), Error> {
        let around = |seq: Seq| (seq.0 - 1) / WINDOW * WINDOW;
        let window = match self.newest_first {
            false => first..=last.min(Seq(around(first) + WINDOW)),
            true => first.max(Seq(around(last) + 1))..=last,
        };
        self.cost.positions += window.end().0 - window.start().0 + 1;
        self.rest = match self.newest_first {
            false => Some((window.end().next(), last)),
            true => Some((first, Seq(window.start().0 - 1))),
        };
        self.rest = self.rest.filter(|(first, last)| first <= last);
        let mut found: Vec<Seq> = if self.filter.is_empty() {
            (window.start().0..=window.end().0).map(Seq).collect()
        } else {
            let (found, times) = (Vec::new(), Vec::new());
            let mut candidates = Candidates { filter: &self.filter, found, times };
            self.view.scan(window, &mut candidates)?;
            candidates.found
        };
        if self.newest_first {
            found.reverse();
        }
        self.candidates = found.into();
        Ok(())
    }

    /// Reads the next candidates that are next to each other.
    fn read_candidates(&mut self) -> Result<(), Error> {
        let Some(start) = self.candidates.pop_front() else { return Ok(()) };
        let (mut low, mut high) = (start, start);
        while high.0 - low.0 + 1 < self.at_once {
            match self.candidates.front() {
                Some(next) if *next == high.next() => high = *next,
                Some(next) if next.next() == low => low = *next,
                _ => break,
            }
            self.candidates.pop_front();
        }
        let mut read = self.view.stored_in(low..=high)?;
        if self.newest_first {
            read.reverse();
        }
        self.cost.events += read.len() as u64;
        self.read = read.into();
        Ok(())
    }
}
