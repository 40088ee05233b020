//! Hot sums: sums in memory that recent events changed, completed from the store where needed.
//!
//! **Invariants**
//! - A sum is *partial* (only events after `saved`) or *whole* (the stored sum and all events
//!   since). Both are exact, because sums form a group: whole = stored + partial.
//! - A sum is *settled* while the sums of the facts that are derived from it contain its
//!   contributions. Before it changes, they are subtracted; once it is whole again, the new ones
//!   are added. A derived fact is published, and its sum saved, only after all its sources are
//!   settled.
//! - Hot sums are a cache. If they are lost at any moment, they are computed again from the stored
//!   sums and at most [`SAVE_EVERY`] events after them.

use crate::Error;
use crate::changes::Changes;
use ipse_consolidate::{Group, RuleSet, Tally};
use ipse_core::wire::Wire;
use ipse_core::{Fact, FactId, FactKey, Identity, Seq, sha256};
use ipse_store::{Pass, View};
use std::collections::{BTreeMap, BTreeSet};

/// Events after which changed sums are saved: the maximum that a restart folds again.
pub const SAVE_EVERY: u64 = 4096;
/// Maximum number of unsaved sums, however many facts an event feeds.
const MAX_UNSAVED: usize = 16_384;
/// Maximum number of sums in memory between passes. Beyond it the least recently changed ones are
/// evicted, down to half, and read from the store when they change again.
const MAX_HOT: usize = 65_536;
/// Facts, parameters, classes of events and texts that a pass folds before it publishes and saves
/// them and continues with the next slice. Each takes less than 1 kB: 128 MB in total.
pub const SLICE: usize = 131_072;

/// Sums that are completed, published or saved with one call.
const PORTION: usize = 256;

/// The hash that identifies a rule set in pass records.
pub(crate) fn rule_set_of<R: RuleSet>(rules: &R) -> [u8; 32] {
    sha256(&[rules.descriptor().as_bytes()])
}

/// Limits of the sums in memory; tests set lower ones.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// [`SAVE_EVERY`].
    pub(crate) save_every: u64,
    /// [`SLICE`].
    pub(crate) slice: usize,
    /// [`MAX_HOT`].
    pub(crate) most: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { save_every: SAVE_EVERY, slice: SLICE, most: MAX_HOT }
    }
}

struct Sum<T> {
    id: FactId,
    group: Group<T>,
    whole: bool,
    /// Whether the sums of derived facts contain its contributions.
    settled: bool,
    unsaved: bool,
    touched: bool,
    /// The checkpoint of the pass that changed it last.
    used: Seq,
}

/// The sums of one log that are in memory.
pub(crate) struct HotSums<T> {
    /// The last position in the stored sums. Partial sums begin after it.
    saved: Seq,
    /// The last folded position.
    folded: Seq,
    pub(crate) limits: Limits,
    /// The hash of the rule set that the sums follow.
    rule_set: [u8; 32],
    sums: BTreeMap<FactKey, Sum<T>>,
    /// The keys of changed sums, whose facts are to be published.
    touched: Vec<FactKey>,
    /// The unsettled sources of each derived fact.
    unsettled: BTreeMap<FactKey, BTreeSet<FactKey>>,
    /// The number of sums that changed since they were saved.
    unsaved: usize,
}

impl<T: Tally> HotSums<T> {
    pub(crate) fn cold<R: RuleSet<Tally = T>>(rules: &R) -> Self {
        HotSums {
            saved: Seq(0),
            folded: Seq(0),
            limits: Limits::default(),
            rule_set: rule_set_of(rules),
            sums: BTreeMap::new(),
            touched: Vec::new(),
            unsettled: BTreeMap::new(),
            unsaved: 0,
        }
    }

    pub(crate) fn rule_set(&self) -> [u8; 32] {
        self.rule_set
    }

    /// Drops all sums.
    pub(crate) fn cool(&mut self) {
        (self.saved, self.folded) = (Seq(0), Seq(0));
        self.sums.clear();
        self.touched.clear();
        self.unsettled.clear();
        self.unsaved = 0;
    }

    pub(crate) fn folded(&self) -> Seq {
        self.folded
    }

    /// Drops all sums if another process ran a pass meanwhile: it may have saved sums, or forgotten
    /// events that are in ours.
    pub(crate) fn follow(&mut self, checkpoint: Seq, saved: Seq) {
        if (self.folded, self.saved) != (checkpoint, saved) {
            self.cool();
            (self.saved, self.folded) = (saved, saved);
        }
    }

    /// Inserts a sum that is whole up to `saved`, and marks its fact for publishing.
    pub(crate) fn put_whole(&mut self, id: FactId, key: FactKey, group: Group<T>) {
        let used = self.folded;
        let (whole, settled, unsaved, touched) = (true, true, false, true);
        let sum = Sum { id, group, whole, settled, unsaved, touched, used };
        self.touched.push(key.clone());
        self.sums.insert(key, sum);
    }

    /// Adds the sum of more events. If the events are new, the fact and the facts that are derived
    /// from it are marked for publishing.
    pub(crate) fn merge<R: RuleSet<Tally = T>>(
        &mut self,
        rules: &R,
        identity: &Identity,
        key: FactKey,
        part: Group<T>,
        is_new: bool,
    ) {
        if rules.derives() {
            self.unsettle(rules, identity, &key);
            for to in rules.derived_keys(&key) {
                if is_new {
                    let last = Group { tally: T::default(), last: part.last };
                    self.add(identity, to.clone(), last, true);
                }
                self.unsettled.entry(to).or_default().insert(key.clone());
            }
        }
        self.add(identity, key, part, is_new);
    }

    fn add(&mut self, identity: &Identity, key: FactKey, part: Group<T>, is_new: bool) {
        let sum = self.sums.entry(key.clone()).or_insert_with(|| Sum {
            id: FactId::new(identity, &key),
            group: Group::default(),
            whole: false,
            settled: false,
            unsaved: false,
            touched: false,
            used: Seq(0),
        });
        sum.group.merge(&part);
        self.unsaved += usize::from(!sum.unsaved);
        sum.unsaved = true;
        if is_new && !sum.touched {
            sum.touched = true;
            self.touched.push(key);
        }
    }

    /// Subtracts the contributions of a whole sum from derived facts, before it changes.
    fn unsettle<R: RuleSet<Tally = T>>(&mut self, rules: &R, identity: &Identity, key: &FactKey) {
        let sum = self.sums.get_mut(key).filter(|sum| sum.whole && sum.settled);
        let Some(sum) = sum else { return };
        sum.settled = false;
        for (to, tally) in rules.derived(key, &sum.group.tally) {
            self.add(identity, to, Group { tally: tally.negated(), last: None }, false);
        }
    }

    /// Makes a sum whole, and replaces the contributions of the stored sum to derived facts with
    /// its own.
    fn settle<R: RuleSet<Tally = T>>(
        &mut self,
        rules: &R,
        identity: &Identity,
        key: &FactKey,
        view: View<'_>,
    ) -> Result<(), Error> {
        let sum = self.sums.get_mut(key).filter(|sum| !sum.settled);
        let Some(sum) = sum else { return Ok(()) };
        let mut moved = Vec::new();
        if !sum.whole {
            let stored = stored_group(view, &sum.id)?;
            let stale = rules.derived(key, &stored.tally).into_iter();
            moved.extend(stale.map(|(to, tally)| (to, tally.negated())));
            sum.group.merge(&stored);
            sum.whole = true;
        }
        moved.extend(rules.derived(key, &sum.group.tally));
        sum.settled = true;
        for (to, tally) in moved {
            self.add(identity, to, Group { tally, last: None }, false);
        }
        Ok(())
    }

    /// Settles the sources of all derived facts that are marked for publishing.
    fn settle_touched<R: RuleSet<Tally = T>>(
        &mut self,
        rules: &R,
        identity: &Identity,
        view: View<'_>,
    ) -> Result<(), Error> {
        if self.unsettled.is_empty() {
            return Ok(());
        }
        let HotSums { touched, unsettled, .. } = self;
        let due = touched.iter().filter_map(|key| unsettled.remove(key));
        for key in due.flatten().collect::<BTreeSet<_>>() {
            self.settle(rules, identity, &key, view)?;
        }
        Ok(())
    }

    /// Stores the facts of all changed sums, deletes facts without support, and records both in
    /// `changes`.
    pub(crate) fn publish<R: RuleSet<Tally = T>>(
        &mut self,
        rules: &R,
        identity: &Identity,
        checkpoint: Seq,
        pass: &Pass<'_>,
        changes: &mut Changes,
    ) -> Result<(), Error> {
        self.settle_touched(rules, identity, pass.view())?;
        for keys in std::mem::take(&mut self.touched).chunks(PORTION) {
            self.complete(keys, pass.view())?;
            let (mut facts, mut gone) = (Vec::new(), Vec::new());
            for key in keys {
                let Some(sum) = self.sums.get_mut(key) else { continue };
                sum.touched = false;
                sum.used = checkpoint;
                match sum.group.publish(rules, key)? {
                    Some(fact) => facts.push((sum.id, fact)),
                    None => gone.push((sum.id, key)),
                }
            }
            let changed = pass.put_facts(&facts)?;
            let changed = facts.into_iter().zip(changed).filter(|(_, changed)| *changed);
            changed.for_each(|((id, fact), _)| changes.put(id, fact));
            let ids: Vec<FactId> = gone.iter().map(|(id, _)| *id).collect();
            let existed = pass.remove_facts(&ids)?;
            let removed = gone.into_iter().zip(existed).filter(|(_, existed)| *existed);
            removed.for_each(|((_, key), _)| changes.remove(key.clone()));
        }
        Ok(())
    }

    /// Makes partial sums whole by adding the stored sums and last supporting events.
    fn complete(&mut self, keys: &[FactKey], view: View<'_>) -> Result<(), Error> {
        let partial = |key: &&FactKey| self.sums.get(*key).is_some_and(|sum| !sum.whole);
        let keys: Vec<&FactKey> = keys.iter().filter(partial).collect();
        let ids: Vec<FactId> = keys.iter().map(|key| self.sums[*key].id).collect();
        for (key, stored) in keys.into_iter().zip(stored_groups(view, &ids)?) {
            if let Some(sum) = self.sums.get_mut(key) {
                sum.group.merge(&stored);
                sum.whole = true;
            }
        }
        Ok(())
    }

    /// Whether enough events were folded or enough sums changed since the last save.
    pub(crate) fn is_save_due(&self, checkpoint: Seq) -> bool {
        checkpoint.0 - self.saved.0 >= self.limits.save_every || self.unsaved > MAX_UNSAVED
    }

    /// Keeps changed sums in memory only. Returns the last position in the saved sums.
    pub(crate) fn keep(&mut self, checkpoint: Seq) -> Seq {
        self.folded = checkpoint;
        self.saved
    }

    /// Saves all changed sums. Returns the last position in them, the checkpoint.
    pub(crate) fn save_all<R: RuleSet<Tally = T>>(
        &mut self,
        rules: &R,
        identity: &Identity,
        checkpoint: Seq,
        pass: &Pass<'_>,
    ) -> Result<Seq, Error> {
        self.folded = checkpoint;
        let unsettled = std::mem::take(&mut self.unsettled).into_values();
        for key in unsettled.flatten().collect::<BTreeSet<_>>() {
            self.settle(rules, identity, &key, pass.view())?;
        }
        let unsaved = self.sums.iter().filter(|(_, sum)| sum.unsaved);
        let unsaved: Vec<FactKey> = unsaved.map(|(key, _)| key.clone()).collect();
        for keys in unsaved.chunks(PORTION) {
            self.complete(keys, pass.view())?;
            let state =
                |key| self.sums.get(key).map(|sum| (sum.id, stored_state(&sum.group.tally)));
            pass.put_tallies(&keys.iter().filter_map(state).collect::<Vec<_>>())?;
        }
        self.sums.values_mut().for_each(|sum| sum.unsaved = false);
        self.saved = checkpoint;
        self.unsaved = 0;
        Ok(checkpoint)
    }

    /// Evicts the least recently changed sums if there are too many. Unsaved sums stay.
    pub(crate) fn evict(&mut self) {
        let limit = self.limits.most;
        if self.sums.len() <= limit {
            return;
        }
        let saved = self.sums.values().filter(|sum| !sum.unsaved);
        let mut used: Vec<Seq> = saved.map(|sum| sum.used).collect();
        let going = (self.sums.len() - limit / 2).min(used.len());
        if going == 0 {
            return;
        }
        let (_, last_to_go, _) = used.select_nth_unstable(going - 1);
        let last_to_go = *last_to_go;
        self.sums.retain(|_, sum| sum.unsaved || sum.used > last_to_go);
    }
}

/// The stored sums of facts, each with the last supporting event, in the order of the ids.
pub(crate) fn stored_groups<T: Tally>(
    view: View<'_>,
    ids: &[FactId],
) -> Result<Vec<Group<T>>, Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let (states, facts) = (view.tallies(ids)?, view.facts_by_id(ids)?);
    let one = |((id, state), fact): ((&FactId, Option<Vec<u8>>), Option<Fact>)| {
        let mut group = Group { last: fact.map(|fact| fact.last), ..Group::default() };
        if let Some(state) = state {
            let mut wire = Wire(&state);
            let tally = T::decode(&mut wire);
            let tally = wire.finish(tally).flatten();
            group.tally = tally.ok_or_else(|| Error::Damaged(format!("tally of {id}")))?;
        }
        Ok(group)
    };
    ids.iter().zip(states).zip(facts).map(one).collect()
}

/// The stored sum of a fact, with its last supporting event.
pub fn stored_group<T: Tally>(view: View<'_>, id: &FactId) -> Result<Group<T>, Error> {
    Ok(stored_groups(view, &[*id])?.pop().unwrap_or_default())
}

/// The stored form of a sum; `None` for zero, which is not stored.
pub(crate) fn stored_state<T: Tally>(tally: &T) -> Option<Vec<u8>> {
    if tally.is_zero() {
        return None;
    }
    let mut state = Vec::new();
    tally.encode(&mut state);
    Some(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipse_consolidate::V1;
    use ipse_core::FactKind;

    #[test]
    fn the_least_recently_touched_leave_and_unsaved_ones_stay() {
        let mut hot = HotSums::cold(&V1);
        for number in 0..100 {
            let key = FactKey::new(FactKind::ZoneRisk, &[&format!("z{number}")]);
            let (whole, unsaved) = (true, number % 10 == 0);
            let (group, used, id) = (Group::default(), Seq(number), FactId([0; 16]));
            let (settled, touched) = (false, false);
            hot.sums.insert(key, Sum { id, group, whole, settled, unsaved, touched, used });
        }
        hot.limits.most = 100;
        hot.evict();
        assert_eq!(hot.sums.len(), 100, "within the limit nothing leaves");
        hot.limits.most = 60;
        hot.evict();
        assert!(hot.sums.len() <= 60);
        assert!(hot.sums.values().all(|sum| sum.unsaved || sum.used > Seq(70)));
        assert_eq!(hot.sums.values().filter(|sum| sum.unsaved).count(), 10);
    }
}
