//! Forgetting: facts become byte-equal to those of a log that never had the events.
//!
//! **Invariants**
//! - Sums form a group, so forgetting is subtraction: what an event added is taken away again, and
//!   the cost follows the forgotten events, not the history.
//! - It is one transaction: the events that say so, the content that goes, the facts, the record.
//! - What stays of an event is its entry; `forget` events and pass records are never forgotten.

use crate::hot::{Hot, put_tally, stored_group};
use crate::latest::latest;
use crate::pass::{self, PassReport, Trigger};
use crate::rebuild::rebuild_without;
use crate::{Diff, Error, Host, census};
use ipse_consolidate::{Group, RuleSet, Tally};
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

/// What forgetting would do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preview {
    /// The events that would be forgotten, in the order of the log.
    pub events: Vec<EventRef>,
    /// Events that had been forgotten before.
    pub already: u64,
    /// How the stored facts would move, events that no pass has folded yet included.
    pub facts: Diff,
}

/// Looks what forgetting would do; writes nothing.
pub fn preview<R: RuleSet>(view: View<'_>, rules: &R, which: &Which) -> Result<Preview, Error> {
    let chosen = Chosen::by(which, view, &mut |name| view.find(name))?;
    let mut facts = Diff::default();
    if !chosen.events.is_empty() {
        let without = chosen.events.keys().copied().collect();
        let after = rebuild_without(view, rules, view.head()?, &without)?.facts;
        facts = Diff::between(view.facts()?, after);
    }
    let (events, already) = (chosen.events.into_values().collect(), chosen.already);
    Ok(Preview { events, already, facts })
}

/// Everything that forgetting works with.
pub(crate) struct Forgetting<'l, R: RuleSet> {
    pub(crate) path: &'l Path,
    pub(crate) identity: &'l Identity,
    pub(crate) rules: &'l R,
    pub(crate) hot: &'l mut Hot<R::Tally>,
    pub(crate) host: &'l mut dyn Host,
}

impl<R: RuleSet> Forgetting<'_, R> {
    /// Forgets; the flag says whether the commit itself failed.
    pub(crate) fn run(mut self, which: &Which) -> Result<Forgotten, (Error, bool)> {
        let mut eraser = Eraser::open(self.path, self.identity).map_err(before_commit)?;
        let mut erasing = eraser.begin().map_err(before_commit)?;
        let chosen = Chosen::inside(&mut erasing, which).map_err(before_commit)?;
        let mut pass = None;
        if !chosen.events.is_empty() {
            pass = self.take_out(&chosen, &mut erasing).map_err(before_commit)?;
            erasing.commit().map_err(|error| (error.into(), true))?;
        } else {
            drop(erasing);
        }
        // It is forgotten and durable: if the bytes cannot go yet, that is no failure.
        let erase_pending = !eraser.finish().unwrap_or(false);
        let (events, already) = (chosen.events.len() as u64, chosen.already);
        Ok(Forgotten { events, already, pass, erase_pending })
    }

    fn take_out(
        &mut self,
        chosen: &Chosen,
        erasing: &mut Erasing<'_>,
    ) -> Result<Option<PassReport>, Error> {
        let rule_set = self.hot.rule_set();
        let taught = Taught::read(erasing.batch().view(), self.rules, rule_set, chosen)?;
        for event in chosen.forget_events(erasing.batch().head(), self.host) {
            // Its name holds its position, so nothing else can have it.
            let Appended::New(_) = erasing.batch().append(&event)? else {
                return Err(Error::Damaged(format!("name of {}", event.event_ref)));
            };
        }
        erasing.erase(&chosen.events.keys().copied().collect::<Vec<_>>())?;
        pass::run(
            erasing.batch(),
            self.rules,
            self.hot,
            self.identity,
            self.host,
            Trigger::Forget,
            Some(&taught),
        )
    }
}

fn before_commit(error: impl Into<Error>) -> (Error, bool) {
    (error.into(), false)
}

/// The events that are meant.
struct Chosen {
    events: BTreeMap<Seq, EventRef>,
    already: u64,
}

impl Chosen {
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

    /// The events that say so, as they follow the head.
    fn forget_events(&self, head: Seq, host: &mut dyn Host) -> Vec<Admitted> {
        let names: Vec<EventRef> = self.events.values().copied().collect();
        let event = |(seq, names): (u64, &[EventRef])| {
            let names = list(names.iter().map(|name| quoted(&name.to_string())));
            let data = Members::new().raw("event_refs", names).finish();
            house_event("forget", &format!("forget:{seq}"), host.now(), &data, host.salt())
        };
        (head.0 + 1..).zip(names.chunks(MAX_REFS)).map(event).collect()
    }
}

/// What events taught that are about to be forgotten.
pub(crate) struct Taught<T> {
    names: BTreeSet<EventRef>,
    facts: BTreeMap<FactKey, Lesson<T>>,
}

/// What they taught about one fact.
struct Lesson<T> {
    /// How many of its observations they are.
    observations: u64,
    /// What takes their part out of the stored sum.
    back: T,
}

impl<T: Tally> Taught<T> {
    fn read<R: RuleSet<Tally = T>>(
        view: View<'_>,
        rules: &R,
        rule_set: [u8; 32],
        chosen: &Chosen,
    ) -> Result<Self, Error> {
        let progress = view.progress()?;
        let names = chosen.events.values().copied().collect();
        let mut facts: BTreeMap<FactKey, Lesson<T>> = BTreeMap::new();
        // Facts of other rules make way as a whole.
        let ours = progress.rule_set == rule_set;
        for seq in chosen.events.keys().filter(|seq| ours && **seq <= progress.checkpoint) {
            view.each_event(*seq..=*seq, |seq, event| {
                for part in rules.contributions(event).unwrap_or_default() {
                    let nothing = || Lesson { observations: 0, back: T::default() };
                    let lesson = facts.entry(part.key).or_insert_with(nothing);
                    lesson.observations += u64::from(part.supports);
                    if seq <= progress.tallied {
                        lesson.back.add(&part.tally.negated());
                    }
                }
                Ok::<_, Error>(())
            })?;
        }
        Ok(Taught { names, facts })
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
        let (mut state, mut groups, mut orphans) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (key, lesson) in &self.facts {
            let id = FactId::new(identity, key);
            let mut group: Group<T> = stored_group(pass.view(), &id)?;
            group.tally.add(&lesson.back);
            put_tally(pass, &id, &group.tally, &mut state)?;
            if lesson.observations > 0 {
                pass.count_forgotten(&id, lesson.observations)?;
            }
            if group.last.is_some_and(|last| self.names.contains(&last.event_ref)) {
                orphans.insert(key.clone());
            }
            groups.push((id, key, group));
        }
        let mut lasts = latest(pass.view(), rules, orphans.clone(), checkpoint)?.found;
        for (id, key, mut group) in groups {
            if orphans.contains(key) {
                group.last = lasts.remove(key);
            }
            hot.put_whole(id, key.clone(), group);
        }
        Ok(())
    }
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
