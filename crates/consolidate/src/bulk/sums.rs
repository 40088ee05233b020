//! The sum behind one fact while a log is summed in bulk.

use crate::days::{Day, Days};
use crate::feed::{Part, Trait, key_length};
use crate::histogram::Histogram;
use crate::samples::{Home, Samples};
use crate::symbols::{Symbol, Symbols};
use crate::v1::Observed;
use crate::{Group, Tally};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Ordering;
use ipse_core::{EventRef, FactKey, FactKind, Outcome, Seq, Support, Time};

/// Looks up the name of an event, if two have the same time.
pub(crate) type Names<'n> = dyn FnMut(Seq) -> Option<EventRef> + 'n;

/// The most distinct texts of a group that are searched linearly; beyond that, a tree is used.
const FEW_TEXTS: usize = 16;

/// The sum behind one fact.
pub(super) struct Sum {
    kind: FactKind,
    key: [Symbol; 3],
    successes: i64,
    failures: i64,
    incidents: i64,
    uncounted: [i64; Outcome::ALL.len()],
    texts: Texts,
    /// Counts by source and day, if the rules want days.
    days: Vec<(Option<Symbol>, Day, Part<Symbol>, i64)>,
    /// Name and place of each parameter's samples.
    params: Vec<(Symbol, Home)>,
    last: Option<Last>,
}

/// The last supporting event so far; its ref is looked up only for a tie or at the end.
#[derive(Clone, Copy)]
pub(super) struct Last {
    pub(super) time: i64,
    pub(super) seq: u64,
    pub(super) event_ref: Option<EventRef>,
    pub(super) worked: bool,
}

#[derive(Default)]
struct Texts {
    few: Vec<(Symbol, i64)>,
    many: BTreeMap<Symbol, i64>,
}

impl Texts {
    fn add(&mut self, text: Symbol, times: i64) {
        if let Some((_, n)) = self.few.iter_mut().find(|(other, _)| *other == text) {
            *n += times;
        } else if self.few.len() < FEW_TEXTS {
            self.few.push((text, times));
        } else {
            *self.many.entry(text).or_default() += times;
        }
    }
}

impl Last {
    pub(super) fn at(time: i64, first: Seq, place: usize, worked: bool) -> Self {
        Last { time, seq: first.0 + place as u64, event_ref: None, worked }
    }

    /// The later of two events; refs decide where times are equal.
    pub(super) fn later(self, other: Last, refs: &mut Names<'_>) -> Last {
        match self.time.cmp(&other.time) {
            Ordering::Less => other,
            Ordering::Greater => self,
            Ordering::Equal => {
                let mut named = |last: Last| Last {
                    event_ref: last.event_ref.or_else(|| refs(Seq(last.seq))),
                    ..last
                };
                let (ours, theirs) = (named(self), named(other));
                if ours.event_ref < theirs.event_ref { theirs } else { ours }
            }
        }
    }
}

impl Sum {
    pub(super) fn new(kind: FactKind, key: [Symbol; 3]) -> Self {
        Sum {
            kind,
            key,
            successes: 0,
            failures: 0,
            incidents: 0,
            uncounted: [0; Outcome::ALL.len()],
            texts: Texts::default(),
            days: Vec::new(),
            params: Vec::new(),
            last: None,
        }
    }

    /// Adds the same part `n` times.
    pub(super) fn add(&mut self, part: Part<Symbol>, n: i64) {
        match part {
            Part::Ended(Outcome::Success, _) => self.successes += n,
            Part::Ended(Outcome::Failed, reason) => {
                self.failures += n;
                reason.into_iter().for_each(|reason| self.texts.add(reason, n));
            }
            Part::Ended(outcome, _) => self.uncounted[outcome as usize] += n,
            Part::Failure => self.failures += n,
            Part::Incident(reason) => {
                self.incidents += n;
                reason.into_iter().for_each(|reason| self.texts.add(reason, n));
            }
            Part::Property(Trait::Text(text)) => self.texts.add(text, n),
            // Numbers go to the samples.
            Part::Property(Trait::Number(_)) => {}
        }
    }

    /// Adds the same part on several days.
    pub(super) fn add_days(
        &mut self,
        part: Part<Symbol>,
        source: Option<Symbol>,
        days: &[(Day, i64)],
    ) {
        // These counts are read by kinds without days, and show that the sum is not empty.
        self.add(part, days.iter().map(|(_, n)| n).sum());
        self.days.extend(days.iter().map(|(day, n)| (source, *day, part, *n)));
    }

    /// The place of a parameter's samples, which most likely is `likely` among the group's own.
    pub(super) fn home(&mut self, likely: usize, name: Symbol, samples: &mut Samples) -> Home {
        let place = match self.params.get(likely) {
            Some((other, place)) if *other == name => Some(*place),
            _ => self.params.iter().find(|(other, _)| *other == name).map(|(_, place)| *place),
        };
        place.unwrap_or_else(|| {
            let home = samples.home();
            self.params.push((name, home));
            home
        })
    }

    /// Whether nothing was added: the group was planned, but none of its events followed.
    pub(super) fn is_empty(&self) -> bool {
        let counts = self.successes + self.failures + self.incidents;
        counts + self.uncounted.iter().sum::<i64>() == 0
            && self.params.is_empty()
            && self.texts.few.is_empty()
    }

    pub(super) fn support(&mut self, last: Last, refs: &mut Names<'_>) {
        self.last = Some(self.last.map_or(last, |before| before.later(last, refs)));
    }

    /// The key of the fact.
    pub(super) fn key(&self, symbols: &Symbols) -> FactKey {
        let parts = self.key.map(|symbol| symbols.text(symbol));
        FactKey::new(self.kind, &parts[..key_length(self.kind)])
    }

    /// Finishes the group and removes its samples; `None` if its last event is damaged or missing.
    pub(super) fn finish<T: FromSums>(
        self,
        symbols: &Symbols,
        samples: &mut Samples,
        refs: &mut Names<'_>,
    ) -> Option<Group<T>> {
        let last = match self.last {
            None => None,
            Some(last) => Some(Support {
                time: Time::from_micros(last.time)?,
                event_ref: last.event_ref.or_else(|| refs(Seq(last.seq)))?,
                worked: last.worked,
            }),
        };
        Some(Group { tally: T::from_sums(Sums { sum: self, symbols, samples }), last })
    }
}

/// A tally that can be made from the sum of one fact.
pub(crate) trait FromSums: Tally {
    /// Whether counts and parameters are wanted by day, and counts by source.
    const DATED: bool;

    /// The tally.
    fn from_sums(sums: Sums<'_>) -> Self;
}

/// The sum of one fact, in terms of texts.
pub(crate) struct Sums<'s> {
    sum: Sum,
    symbols: &'s Symbols,
    samples: &'s mut Samples,
}

impl Sums<'_> {
    pub(crate) fn kind(&self) -> FactKind {
        self.sum.kind
    }

    /// Passes on the counts by source and day.
    pub(crate) fn each_day(&self, mut each: impl FnMut(Option<&str>, Day, Part<&str>, i64)) {
        let text = |symbol: Symbol| self.symbols.text(symbol);
        for (source, day, part, n) in &self.sum.days {
            let part = match *part {
                Part::Ended(outcome, reason) => Part::Ended(outcome, reason.map(text)),
                Part::Failure => Part::Failure,
                Part::Incident(reason) => Part::Incident(reason.map(text)),
                Part::Property(Trait::Text(name)) => Part::Property(Trait::Text(text(name))),
                Part::Property(Trait::Number(value)) => Part::Property(Trait::Number(value)),
            };
            each(source.map(text), *day, part, *n);
        }
    }

    /// The parameters by name and day.
    pub(crate) fn into_params(self) -> impl Iterator<Item = (String, Days<Histogram>)> {
        let Sums { sum, symbols, samples } = self;
        let taken = move |(name, home)| (String::from(symbols.text(name)), samples.take(home));
        sum.params.into_iter().map(taken)
    }
}

impl FromSums for Observed {
    const DATED: bool = false;

    fn from_sums(Sums { sum, symbols, samples }: Sums<'_>) -> Self {
        let text = |symbol: Symbol| String::from(symbols.text(symbol));
        let counted = |(symbol, n): (Symbol, i64)| (text(symbol), n);
        let uncounted = Outcome::ALL.into_iter().zip(sum.uncounted).filter(|(_, n)| *n > 0);
        let numbers = sum.params.into_iter();
        Observed {
            successes: sum.successes,
            failures: sum.failures,
            incidents: sum.incidents,
            uncounted: uncounted.collect(),
            numbers: numbers.map(|(name, home)| (text(name), samples.take_all(home))).collect(),
            texts: sum.texts.few.into_iter().chain(sum.texts.many).map(counted).collect(),
        }
    }
}
