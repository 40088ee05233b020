//! Forgetting: facts become byte-equal to those of a log that never had the events.
//!
//! **Invariants**
//! - Sums form a group, so forgetting is subtraction: what an event added is taken away again, and
//!   the cost follows the forgotten events, not the history. The sums of derived facts change by
//!   the difference between the contributions of the old and the new whole sums.
//! - It is one transaction: the events that say so, the content that goes, the facts, the record.
//! - What stays of an event is its entry; `forget` events and pass records are never forgotten.

use crate::hot::{Hot, put_tally, stored_group};
use crate::latest::latest;
use crate::pass::PassReport;
use crate::rules::Following;
use crate::{Error, Host, census};
use ipse_consolidate::{Derived, Group, RuleSet, Tally};
use ipse_core::event::FORGET;
use ipse_core::json::{Members, list, quoted};
use ipse_core::{Admitted, EventRef, FactId, FactKey, Identity, Seq, Time, is_housekeeping};
use ipse_door::house_event;
use ipse_ledger::account::{MAX_REFS, can_be_forgotten};
use ipse_store::Appended;
use ipse_store::sqlite::{Eraser, Erasing, Pass, View};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Which events are to be forgotten.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Which {
    /// These.
    Refs(Vec<EventRef>),
    /// All that happened before, intents too.
    Before(Time),
    /// All but the newest so many by position and what came after the oldest of them; housekeeping
    /// is not counted, and intents go with the events around them.
    AllBut(u64),
}

/// What became of them.
#[derive(Debug)]
pub struct Forgotten {
    /// Events that were forgotten now.
    pub events: u64,
    /// Events that had been forgotten before.
    pub already: u64,
    /// What the pass did; none if there was nothing to forget.
    pub pass: Option<PassReport>,
    /// Whether the file or its write-ahead log may still hold what was forgotten. Whoever opens the
    /// store for writing next finishes.
    pub erase_pending: bool,
}

/// Everything that forgetting works with.
pub(crate) struct Forgetting<'l> {
    pub(crate) path: &'l Path,
    pub(crate) identity: &'l Identity,
    pub(crate) rules: &'l mut Following,
    pub(crate) host: &'l mut dyn Host,
}

impl Forgetting<'_> {
    /// Forgets; the flag says whether the commit itself failed.
    pub(crate) fn run(self, which: &Which) -> Result<Forgotten, (Error, bool)> {
        let Forgetting { path, identity, rules, host } = self;
        let mut eraser = Eraser::open(path, identity).map_err(before_commit)?;
        let mut erasing = eraser.begin().map_err(before_commit)?;
        let chosen = Chosen::inside(&mut erasing, which).map_err(before_commit)?;
        let mut pass = None;
        if !chosen.events.is_empty() {
            let done = rules.forget(&mut erasing, &chosen, identity, host);
            pass = done.map_err(before_commit)?;
            erasing.commit().map_err(|error| (error.into(), true))?;
        } else {
            drop(erasing);
        }
        // It is forgotten and durable: if the bytes cannot go yet, that is no failure.
        let erase_pending = !eraser.finish().unwrap_or(false);
        let (events, already) = (chosen.events.len() as u64, chosen.already);
        Ok(Forgotten { events, already, pass, erase_pending })
    }
}

fn before_commit(error: impl Into<Error>) -> (Error, bool) {
    (error.into(), false)
}

/// The events that a choice names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chosen {
    /// Those that are there, by position.
    pub events: BTreeMap<Seq, EventRef>,
    /// How many more of them had been forgotten before.
    pub already: u64,
}

impl Chosen {
    /// The events that a choice names in a log; an error if it names one that cannot be forgotten.
    pub fn of(view: View<'_>, which: &Which) -> Result<Self, Error> {
        Self::by(which, view, &mut |name| view.find(name))
    }

    fn inside(erasing: &mut Erasing<'_>, which: &Which) -> Result<Self, Error> {
        // Names are looked up in memory, where that is faster for many.
        let mut found = BTreeMap::new();
        if let Which::Refs(refs) = which {
            for name in refs {
                found.extend(erasing.batch().find(name)?.map(|seq| (*name, seq)));
            }
        }
        Self::by(which, erasing.batch().view(), &mut |name| Ok(found.get(name).copied()))
    }

    fn by(
        which: &Which,
        view: View<'_>,
        find: &mut dyn FnMut(&EventRef) -> Result<Option<Seq>, ipse_store::Error>,
    ) -> Result<Self, Error> {
        match which {
            Which::Refs(refs) => Self::by_name(refs, view, find),
            Which::Before(time) => Self::first(view, |_, happened| happened < *time),
            Which::AllBut(kept) => {
                let all = census(view)?.events;
                Self::first(view, |before, _| before < all.saturating_sub(*kept))
            }
        }
    }

    fn by_name(
        refs: &[EventRef],
        view: View<'_>,
        find: &mut dyn FnMut(&EventRef) -> Result<Option<Seq>, ipse_store::Error>,
    ) -> Result<Self, Error> {
        let mut chosen = Chosen { events: BTreeMap::new(), already: 0 };
        for name in refs.iter().collect::<BTreeSet<_>>() {
            let seq = find(name)?.ok_or(Error::UnknownEvent(*name))?;
            view.each_entry(seq..=seq, |entry, forgotten| {
                if !can_be_forgotten(&entry.event_type) {
                    return Err(Error::NeverForgotten(*name, entry.event_type));
                }
                match forgotten {
                    true => chosen.already += 1,
                    false => drop(chosen.events.insert(seq, *name)),
                }
                Ok(())
            })?;
        }
        Ok(chosen)
    }

    /// Events that are there, as far as `take` wants them; it sees how many came before, and when
    /// it happened.
    fn first(view: View<'_>, mut take: impl FnMut(u64, Time) -> bool) -> Result<Self, Error> {
        let mut events = BTreeMap::new();
        let mut before = 0;
        view.each_entry(Seq(1)..=view.head()?, |entry, forgotten| {
            if !forgotten && can_be_forgotten(&entry.event_type) {
                if take(before, entry.time) {
                    events.insert(entry.seq, entry.event_ref);
                }
                before += u64::from(!is_housekeeping(&entry.event_type));
            }
            Ok::<_, Error>(())
        })?;
        Ok(Chosen { events, already: 0 })
    }

    /// Appends the `forget` events and deletes the content of the chosen events.
    pub(crate) fn erase(
        &self,
        erasing: &mut Erasing<'_>,
        host: &mut dyn Host,
    ) -> Result<(), Error> {
        for event in self.forget_events(erasing.batch().head(), host) {
            // Its name holds its position, so nothing else can have it.
            let Appended::New(_) = erasing.batch().append(&event)? else {
                return Err(Error::Damaged(format!("name of {}", event.event_ref)));
            };
        }
        erasing.erase(&self.events.keys().copied().collect::<Vec<_>>())?;
        Ok(())
    }

    /// The events that say so, as they follow the head.
    fn forget_events(&self, head: Seq, host: &mut dyn Host) -> Vec<Admitted> {
        let names: Vec<EventRef> = self.events.values().copied().collect();
        let event = |(seq, names): (u64, &[EventRef])| {
            let names = list(names.iter().map(|name| quoted(&name.to_string())));
            let data = Members::new().raw("event_refs", names).finish();
            house_event(FORGET, &format!("forget:{seq}"), host.now(), &data, host.salt())
        };
        (head.0 + 1..).zip(names.chunks(MAX_REFS)).map(event).collect()
    }
}

/// What events taught that are about to be forgotten.
pub(crate) struct Taught<T> {
    names: BTreeSet<EventRef>,
    facts: BTreeMap<FactKey, Lesson<T>>,
    /// Derived facts that they supported, and how many of the events supported each.
    derived: BTreeMap<FactKey, u64>,
}

/// What they taught about one fact.
struct Lesson<T> {
    /// How many of its observations they are.
    observations: u64,
    /// What takes their part out of the stored sum.
    back: T,
}

/// A fact whose stored sum has been corrected.
struct Righted<'k, T> {
    id: FactId,
    key: &'k FactKey,
    group: Group<T>,
}

impl<T: Tally> Taught<T> {
    pub(crate) fn read<R: RuleSet<Tally = T>>(
        view: View<'_>,
        rules: &R,
        rule_set: [u8; 32],
        chosen: &Chosen,
    ) -> Result<Self, Error> {
        let progress = view.progress()?;
        let names = chosen.events.values().copied().collect();
        let mut facts: BTreeMap<FactKey, Lesson<T>> = BTreeMap::new();
        let mut derived: BTreeMap<FactKey, u64> = BTreeMap::new();
        // Facts of other rules make way as a whole.
        let ours = progress.rule_set == rule_set;
        for seq in chosen.events.keys().filter(|seq| ours && **seq <= progress.checkpoint) {
            view.each_event(*seq..=*seq, |seq, event| {
                // An event counts once for a derived fact, through however many facts.
                let mut supported: BTreeMap<FactKey, bool> = BTreeMap::new();
                for part in rules.contributions(event).unwrap_or_default() {
                    for to in rules.derived_keys(&part.key) {
                        *supported.entry(to).or_default() |= part.supports;
                    }
                    let nothing = || Lesson { observations: 0, back: T::default() };
                    let lesson = facts.entry(part.key).or_insert_with(nothing);
                    lesson.observations += u64::from(part.supports);
                    if seq <= progress.tallied {
                        lesson.back.add(&part.tally.negated());
                    }
                }
                for (key, supports) in supported {
                    *derived.entry(key).or_default() += u64::from(supports);
                }
                Ok::<_, Error>(())
            })?;
        }
        Ok(Taught { names, facts, derived })
    }

    /// Takes it back, from stored sums and from `hot` ones, which must be cold.
    pub(crate) fn retract<R: RuleSet<Tally = T>>(
        &self,
        pass: &Pass<'_>,
        rules: &R,
        hot: &mut Hot<T>,
        identity: &Identity,
        checkpoint: Seq,
    ) -> Result<(), Error> {
        let (mut righted, mut moved) = (Vec::new(), Derived::default());
        for (key, lesson) in &self.facts {
            let id = FactId::new(identity, key);
            let mut group: Group<T> = stored_group(pass.view(), &id)?;
            let had = rules.derives().then(|| group.tally.clone());
            group.tally.add(&lesson.back);
            had.iter().for_each(|had| moved.replace(rules, key, had, &group.tally));
            righted.push(right(pass, id, key, group, lesson.observations)?);
        }
        for (key, observations) in &self.derived {
            let id = FactId::new(identity, key);
            let mut group: Group<T> = stored_group(pass.view(), &id)?;
            group.tally.add(&moved.take(key).tally);
            righted.push(right(pass, id, key, group, *observations)?);
        }
        let orphan = |it: &&Righted<'_, T>| {
            it.group.last.is_some_and(|last| self.names.contains(&last.event_ref))
        };
        let orphans: BTreeSet<FactKey> =
            righted.iter().filter(orphan).map(|it| it.key.clone()).collect();
        let derived = self.derived.keys().cloned().collect();
        let mut lasts = latest(pass.view(), rules, orphans.clone(), &derived, checkpoint)?.found;
        for Righted { id, key, mut group } in righted {
            if orphans.contains(key) {
                group.last = lasts.remove(key);
            }
            hot.put_whole(id, key.clone(), group);
        }
        Ok(())
    }
}

/// Stores a corrected sum, and the number of observations that were forgotten.
fn right<'k, T: Tally>(
    pass: &Pass<'_>,
    id: FactId,
    key: &'k FactKey,
    group: Group<T>,
    observations: u64,
) -> Result<Righted<'k, T>, Error> {
    put_tally(pass, &id, &group.tally, &mut Vec::new())?;
    if observations > 0 {
        pass.count_forgotten(&id, observations)?;
    }
    Ok(Righted { id, key, group })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipse_door::{MAX_EVENT_BYTES, Origin, admit};

    struct Clock;

    impl Host for Clock {
        fn now(&self) -> Time {
            Time::parse("9999-12-31T23:59:59.999999Z").unwrap()
        }

        fn salt(&mut self) -> ipse_door::Salt {
            [7; 16]
        }
    }

    #[test]
    fn forget_events_are_split_and_are_what_the_door_would_have_made() {
        let name = |n: u64| EventRef::new("s", &n.to_string());
        let events = (1..=MAX_REFS as u64 * 2 + 1).map(|n| (Seq(n), name(n))).collect();
        let chosen = Chosen { events, already: 0 };
        let said = chosen.forget_events(Seq(u64::MAX >> 24), &mut Clock);
        assert_eq!(said.len(), 3);
        for event in &said {
            assert!(event.canonical.len() <= MAX_EVENT_BYTES);
            let read = admit(event.canonical.as_bytes(), Origin::House, || [0; 16]).unwrap();
            assert_eq!(read, *event);
        }
        let refs: usize = said.iter().map(|event| event.canonical.matches("\"ev_").count()).sum();
        assert_eq!(refs, MAX_REFS * 2 + 1);
    }
}
