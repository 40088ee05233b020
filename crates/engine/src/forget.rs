//! Forgetting: facts become byte-equal to those of a log that never had the events.
//!
//! **Invariants**
//! - Sums form a group, so forgetting is subtraction: the cost depends on the forgotten events, not
//!   on the history. The sums of derived facts change by the difference between the contributions
//!   of the old and the new whole sums.
//! - Forgetting is one transaction: the `forget` events, the deleted content, the facts, the pass
//!   record.
//! - The entry of a forgotten event stays; `forget` events and pass records are never forgotten.

use crate::governor::settle;
use crate::hot_sums::{HotSums, stored_groups, stored_state};
use crate::latest::latest;
use crate::pass::PassReport;
use crate::rules::LogRules;
use crate::{Error, Host, census};
use ipse_consolidate::{Derived, Group, RuleSet, Tally};
use ipse_core::event::FORGET;
use ipse_core::json::{Members, list, quoted};
use ipse_core::{Admitted, EventRef, FactId, FactKey, Identity, Seq, Time, is_housekeeping};
use ipse_door::house_event;
use ipse_ledger::account::{MAX_REFS, can_be_forgotten};
use ipse_store::{Appended, Erased, Erasing, Pass, Patience, Store, View};
use std::collections::{BTreeMap, BTreeSet};

/// A selection of events to forget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selection {
    /// The events with these refs.
    Refs(Vec<EventRef>),
    /// All events before a time, including intents.
    Before(Time),
    /// All events before the newest N by position. Housekeeping is not counted; intents are
    /// forgotten with the events around them.
    AllBut(u64),
}

/// The result of forgetting.
#[derive(Debug)]
pub struct Forgotten {
    /// The number of events that were forgotten now.
    pub events: u64,
    /// The number of selected events that were forgotten before.
    pub already: u64,
    /// The report of the pass; `None` if there was nothing to forget.
    pub pass: Option<PassReport>,
    /// Whether the file or its write-ahead log may still hold forgotten content. The next process
    /// that opens the store for writing erases it.
    pub erase_pending: bool,
}

/// The inputs of forgetting.
pub(crate) struct ForgetJob<'l> {
    pub(crate) store: &'l Store,
    pub(crate) identity: &'l Identity,
    pub(crate) rules: &'l mut LogRules,
    pub(crate) host: &'l mut dyn Host,
}

impl ForgetJob<'_> {
    /// Forgets the selected events. The flag of an error says whether the commit itself failed.
    pub(crate) fn run(self, which: &Selection) -> Result<Forgotten, (Error, bool)> {
        let ForgetJob { store, identity, rules, host } = self;
        let mut eraser = store.eraser(identity).map_err(before_commit)?;
        let mut erasing = eraser.begin().map_err(before_commit)?;
        settle(erasing.batch(), host).map_err(before_commit)?;
        let chosen = SelectedEvents::inside(&mut erasing, which).map_err(before_commit)?;
        let mut pass = None;
        if !chosen.events.is_empty() {
            let done = rules.forget(&mut erasing, &chosen, identity, host);
            pass = done.map_err(before_commit)?;
            erasing.commit().map_err(|error| (error.into(), true))?;
        } else {
            drop(erasing);
        }
        // The forgetting is durable, so failing to erase the bytes now is no error. The eraser is
        // dropped first, because its maintenance thread may hold a lock.
        drop(eraser);
        let erased = store.finish_erasing(Patience::Some);
        let erase_pending = !erased.is_ok_and(|erased| erased == Erased::Gone);
        let (events, already) = (chosen.events.len() as u64, chosen.already);
        Ok(Forgotten { events, already, pass, erase_pending })
    }
}

fn before_commit(error: impl Into<Error>) -> (Error, bool) {
    (error.into(), false)
}

/// The selected events of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SelectedEvents {
    /// Events that are not forgotten yet, by position.
    pub events: BTreeMap<Seq, EventRef>,
    /// The number of selected events that were forgotten before.
    pub already: u64,
}

/// Looks events up by name.
type Find<'f> = dyn FnMut(&[EventRef]) -> Result<Vec<Option<Seq>>, ipse_store::Error> + 'f;

/// Removes duplicate names.
fn distinct(refs: &[EventRef]) -> Vec<EventRef> {
    refs.iter().copied().collect::<BTreeSet<_>>().into_iter().collect()
}

impl SelectedEvents {
    /// Applies a selection to a log. Fails if it names an event that cannot be forgotten.
    pub fn of(view: View<'_>, which: &Selection) -> Result<Self, Error> {
        Self::by(which, view, &mut |names| view.find_all(names))
    }

    fn inside(erasing: &mut Erasing<'_>, which: &Selection) -> Result<Self, Error> {
        // The batch looks up names in memory, which is faster for many.
        let found = match which {
            Selection::Refs(refs) => erasing.batch().find_all(&distinct(refs))?,
            _ => Vec::new(),
        };
        Self::by(which, erasing.batch().view(), &mut |_| Ok(found.clone()))
    }

    fn by(which: &Selection, view: View<'_>, find: &mut Find<'_>) -> Result<Self, Error> {
        match which {
            Selection::Refs(refs) => Self::by_name(refs, view, find),
            Selection::Before(time) => Self::first(view, |_, happened| happened < *time),
            Selection::AllBut(kept) => {
                let all = census(view)?.events;
                Self::first(view, |before, _| before < all.saturating_sub(*kept))
            }
        }
    }

    fn by_name(refs: &[EventRef], view: View<'_>, find: &mut Find<'_>) -> Result<Self, Error> {
        let mut chosen = SelectedEvents { events: BTreeMap::new(), already: 0 };
        let names = distinct(refs);
        let found = find(&names)?.into_iter().zip(&names);
        let known = |(seq, name): (Option<Seq>, &EventRef)| seq.ok_or(Error::UnknownEvent(*name));
        let seqs = found.map(known).collect::<Result<Vec<_>, _>>()?;
        for ((entry, forgotten), name) in view.entries_at(&seqs)?.into_iter().zip(names) {
            if !can_be_forgotten(&entry.event_type) {
                return Err(Error::NeverForgotten(name, entry.event_type));
            }
            match forgotten {
                true => chosen.already += 1,
                false => drop(chosen.events.insert(entry.seq, name)),
            }
        }
        Ok(chosen)
    }

    /// Selects events by `take`, which gets the number of earlier events and the time.
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
        Ok(SelectedEvents { events, already: 0 })
    }

    /// Appends the `forget` events and deletes the content of the selected events.
    pub(crate) fn erase(
        &self,
        erasing: &mut Erasing<'_>,
        host: &mut dyn Host,
    ) -> Result<(), Error> {
        let events = self.forget_events(erasing.batch().head(), host);
        let appended = erasing.batch().append_all(&events, |_| None)?;
        // The id of each contains its position, so no other event has the same name.
        for (event, appended) in events.iter().zip(appended) {
            let Appended::New(_) = appended else {
                return Err(Error::Damaged(format!("name of {}", event.event_ref)));
            };
        }
        erasing.erase(&self.events.keys().copied().collect::<Vec<_>>())?;
        Ok(())
    }

    /// The `forget` events for the positions after `head`.
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

/// The contributions of events that are about to be forgotten.
pub(crate) struct ForgottenSums<T> {
    names: BTreeSet<EventRef>,
    facts: BTreeMap<FactKey, ForgottenSum<T>>,
    /// The derived facts that the events supported, and the number of supporting events of each.
    derived: BTreeMap<FactKey, u64>,
}

/// The contributions of the events to one fact.
struct ForgottenSum<T> {
    /// The number of observations.
    observations: u64,
    /// The negated contributions, to be added to the stored sum.
    back: T,
}

/// A fact with its corrected sum.
struct CorrectedFact<'k, T> {
    id: FactId,
    key: &'k FactKey,
    group: Group<T>,
    /// The number of its observations that were forgotten.
    observations: u64,
}

impl<T: Tally> ForgottenSums<T> {
    pub(crate) fn read<R: RuleSet<Tally = T>>(
        view: View<'_>,
        rules: &R,
        rule_set: [u8; 32],
        chosen: &SelectedEvents,
    ) -> Result<Self, Error> {
        let progress = view.progress()?;
        let names = chosen.events.values().copied().collect();
        let mut facts: BTreeMap<FactKey, ForgottenSum<T>> = BTreeMap::new();
        let mut derived: BTreeMap<FactKey, u64> = BTreeMap::new();
        // Facts of other rules are deleted anyway.
        let ours = progress.rule_set == rule_set;
        let folded = chosen.events.keys().filter(|seq| ours && **seq <= progress.checkpoint);
        view.each_event_at(&folded.copied().collect::<Vec<_>>(), |seq, event| {
            // An event counts once for a derived fact, even through several sources.
            let mut supported: BTreeMap<FactKey, bool> = BTreeMap::new();
            for part in rules.contributions(event).unwrap_or_default() {
                for to in rules.derived_keys(&part.key) {
                    *supported.entry(to).or_default() |= part.supports;
                }
                let nothing = || ForgottenSum { observations: 0, back: T::default() };
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
        Ok(ForgottenSums { names, facts, derived })
    }

    /// Subtracts the contributions from stored sums, and puts the results into `hot`, which must be
    /// empty.
    pub(crate) fn retract<R: RuleSet<Tally = T>>(
        &self,
        pass: &Pass<'_>,
        rules: &R,
        hot: &mut HotSums<T>,
        identity: &Identity,
        checkpoint: Seq,
    ) -> Result<(), Error> {
        let mut moved = Derived::default();
        let id = |key: &FactKey| FactId::new(identity, key);
        let (fed, derived): (Vec<_>, Vec<_>) =
            (self.facts.keys().map(id).collect(), self.derived.keys().map(id).collect());
        let mut righted = Vec::new();
        let groups: Vec<Group<T>> = stored_groups(pass.view(), &fed)?;
        for (((key, lesson), id), mut group) in self.facts.iter().zip(fed).zip(groups) {
            let had = rules.derives().then(|| group.tally.clone());
            group.tally.add(&lesson.back);
            had.iter().for_each(|had| moved.replace(rules, key, had, &group.tally));
            righted.push(CorrectedFact { id, key, group, observations: lesson.observations });
        }
        let groups: Vec<Group<T>> = stored_groups(pass.view(), &derived)?;
        for (((key, observations), id), mut group) in self.derived.iter().zip(derived).zip(groups) {
            group.tally.add(&moved.take(key).tally);
            righted.push(CorrectedFact { id, key, group, observations: *observations });
        }
        store_righted(pass, &righted)?;
        let orphan = |it: &&CorrectedFact<'_, T>| {
            it.group.last.is_some_and(|last| self.names.contains(&last.event_ref))
        };
        let orphans: BTreeSet<FactKey> =
            righted.iter().filter(orphan).map(|it| it.key.clone()).collect();
        let derived = self.derived.keys().cloned().collect();
        let mut lasts = latest(pass.view(), rules, orphans.clone(), &derived, checkpoint)?.found;
        for CorrectedFact { id, key, mut group, .. } in righted {
            if orphans.contains(key) {
                group.last = lasts.remove(key);
            }
            hot.put_whole(id, key.clone(), group);
        }
        Ok(())
    }
}

/// Stores corrected sums, and the counts of forgotten observations.
fn store_righted<T: Tally>(pass: &Pass<'_>, righted: &[CorrectedFact<'_, T>]) -> Result<(), Error> {
    let states = righted.iter().map(|it| (it.id, stored_state(&it.group.tally)));
    pass.put_tallies(&states.collect::<Vec<_>>())?;
    let counts = righted.iter().filter(|it| it.observations > 0);
    pass.count_forgotten(&counts.map(|it| (it.id, it.observations)).collect::<Vec<_>>())?;
    Ok(())
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
        let chosen = SelectedEvents { events, already: 0 };
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
