//! The facts of a log as of an earlier position, computed from the nearest saved state.
//!
//! There are two saved states: the empty state before the first event, and the stored sums and
//! facts at the checkpoint. From the first, events are added. From the second, events are
//! subtracted, or added if the position is after it: sums form a group. Facts that none of these
//! events feed equal the stored ones, byte for byte. A derived fact changes with its sources, so
//! their sums are computed too if it is wanted.
//!
//! **Invariants**
//! - The facts equal those of [`crate::rebuild()`] at the same position, byte for byte.
//! - The cost depends on the distance to the nearer state, on the wanted facts, and on a scan of
//!   the times of the log if a last supporting event must be found.
//! - Stored sums are used only if the same rules made them.
//! - Memory holds about [`BYTES_AT_ONCE`] of stored sums at most, and the returned facts.

use crate::differences::{
    DerivedDifferences, Difference, Differences, MovedSum, Stretch, behind, lacks, moved,
};
use crate::facts::{Choice, Chosen, Filter, ScoredFact};
use crate::hot_sums::{rule_set_of, stored_groups};
use crate::latest::latest;
use crate::rules::rules_at;
use crate::scan::fold_wanted;
use crate::{Error, FactTable};
use ipse_consolidate::{Derived, EVERY_FACT, Group, RuleSet, Rules, Tally, Wanted, with_rules};
use ipse_core::{Fact, FactId, FactKey, Seq, sha256};
use ipse_store::Progress;
use ipse_store::View;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The facts as of a position, and the cost of computing them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AsOf<F> {
    /// The facts.
    pub facts: Vec<F>,
    /// The number of facts that match, with those beyond a limit.
    pub total: u64,
    /// The number of positions whose events were folded or searched.
    pub events: u64,
}

/// Bytes of stored sums per turn. Larger sums take several turns, and each turn reads the events
/// again. In memory sums take about sixteen times as much.
const BYTES_AT_ONCE: u64 = 4 << 20;
/// Stored sums per read call: a small part of a turn, because they are in memory together, and
/// enough that the cost of a call does not matter.
const SUMS_AT_ONCE: usize = 256;
/// Fewer events than this feed so few facts that one turn is enough.
const FEW_EVENTS: u64 = 100;
/// Subtracting from a stored sum and searching its last event costs about as much as adding this
/// many events.
const EVENTS_PER_FACT: u64 = 256;
/// The same in nanoseconds for facts that are ranked first, so that few last events are searched.
const RANKED_FACT_NANOS: u64 = 30_000;
/// Nanoseconds to add an event in a log with few facts, and more for each thousand facts, because
/// the sums do not fit into the processor cache. Measured; wrong values only cost time.
const EVENT_NANOS: u64 = 100;
const EVENT_NANOS_PER_1000_FACTS: u64 = 32;

/// All facts as of a position, sorted by kind and key.
pub fn as_of(view: View<'_>, seq: Seq) -> Result<AsOf<Fact>, Error> {
    as_of_with(view, rules_at(view, seq)?, seq)
}

/// The same under rules of this build. Other crates call this and compile nothing generic.
pub fn as_of_with(view: View<'_>, rules: Rules, seq: Seq) -> Result<AsOf<Fact>, Error> {
    with_rules!(rules, |rules| as_of_under(view, rules, seq))
}

/// The same under rules of the caller's choice.
pub fn as_of_under<R: RuleSet>(view: View<'_>, rules: &R, seq: Seq) -> Result<AsOf<Fact>, Error> {
    as_of_from(view, rules, seq, Start::Nearest)
}

/// The saved state to start from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[doc(hidden)]
pub enum Start {
    /// The state with the lower cost.
    Nearest,
    /// The empty state at the beginning of the log.
    Nothing,
    /// The stored sums and facts, if the same rules made them.
    Checkpoint,
}

/// The same from a given state. The facts do not depend on it.
#[doc(hidden)]
pub fn as_of_from<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    seq: Seq,
    start: Start,
) -> Result<AsOf<Fact>, Error> {
    let mut facts = Vec::new();
    let events = each_fact(view, rules, seq, EVERY_FACT, start, &mut facts)?;
    facts.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    Ok(AsOf { total: facts.len() as u64, facts, events })
}

/// The facts as of a position that a filter selects; no others are computed. If a table of the
/// stored facts is in memory, they are not read.
pub fn chosen_as_of(
    view: View<'_>,
    seq: Seq,
    filter: &Filter,
    known: Option<&FactTable>,
) -> Result<AsOf<Arc<ScoredFact>>, Error> {
    chosen_as_of_with(view, rules_at(view, seq)?, seq, filter, known)
}

/// The same under rules of this build.
pub fn chosen_as_of_with(
    view: View<'_>,
    rules: Rules,
    seq: Seq,
    filter: &Filter,
    known: Option<&FactTable>,
) -> Result<AsOf<Arc<ScoredFact>>, Error> {
    with_rules!(rules, |rules| chosen_as_of_under(view, rules, seq, filter, known))
}

/// The same under rules of the caller's choice.
pub fn chosen_as_of_under<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    seq: Seq,
    filter: &Filter,
    known: Option<&FactTable>,
) -> Result<AsOf<Arc<ScoredFact>>, Error> {
    let checkpoint = view.progress()?.checkpoint;
    let known = known.filter(|known| known.checkpoint() == checkpoint);
    let mut chosen = FilteredSink { filter, choice: filter.choice(), known };
    let wanted = |key: &FactKey| filter.matches(key);
    let events = each_fact(view, rules, seq, &wanted, Start::Nearest, &mut chosen)?;
    let Chosen { facts, total } = chosen.choice.finish();
    Ok(AsOf { facts, total, events })
}

/// Sums whose last supporting event is still to be found. For now each has one after the position.
type Orphans<T> = BTreeMap<FactKey, Group<T>>;

/// Orphans, split by whether their facts may be among the best.
struct Contenders<T> {
    chosen: Orphans<T>,
    others: Orphans<T>,
    /// The number of facts of the others.
    left_out: u64,
}

impl<T> Contenders<T> {
    fn all(chosen: Orphans<T>) -> Self {
        Contenders { chosen, others: BTreeMap::new(), left_out: 0 }
    }
}

/// A receiver of facts.
trait FactSink {
    /// Receives one fact.
    fn take(&mut self, fact: Fact) -> Result<(), Error>;

    /// Whether only the best facts are kept.
    fn is_limited(&self) -> bool {
        false
    }

    /// Splits orphans into those whose facts may be among the best, and the others.
    fn contenders<R: RuleSet>(
        &self,
        _: &R,
        orphans: Orphans<R::Tally>,
    ) -> Result<Contenders<R::Tally>, Error> {
        Ok(Contenders::all(orphans))
    }

    /// Counts facts beyond the limit that are not received.
    fn leave_out(&mut self, _: u64) {}

    /// Receives the wanted stored facts.
    fn take_stored(&mut self, view: View<'_>, wanted: Wanted<'_>) -> Result<(), Error> {
        view.each_fact(wanted, |fact| self.take(fact))
    }
}

impl FactSink for Vec<Fact> {
    fn take(&mut self, fact: Fact) -> Result<(), Error> {
        self.push(fact);
        Ok(())
    }
}

/// Keeps the facts that a filter selects.
struct FilteredSink<'f> {
    filter: &'f Filter,
    choice: Choice<'f>,
    /// The stored facts, if they are in memory.
    known: Option<&'f FactTable>,
}

impl FactSink for FilteredSink<'_> {
    fn take(&mut self, fact: Fact) -> Result<(), Error> {
        self.choice.add(Arc::new(ScoredFact::new(fact)?));
        Ok(())
    }

    fn is_limited(&self) -> bool {
        self.filter.limit.is_some()
    }

    /// The rank of a fact does not depend on the last event, so that event is not searched for
    /// facts beyond the limit.
    fn contenders<R: RuleSet>(
        &self,
        rules: &R,
        orphans: Orphans<R::Tally>,
    ) -> Result<Contenders<R::Tally>, Error> {
        if !self.is_limited() {
            return Ok(Contenders::all(orphans));
        }
        let mut facts = Vec::new();
        for (key, group) in &orphans {
            if let Some(fact) = group.publish(rules, key)? {
                facts.push(Arc::new(ScoredFact::new(fact)?));
            }
        }
        facts.retain(|fact| self.filter.selects(fact));
        let published = facts.len();
        let keys = self.choice.contenders(facts);
        let left_out = (published - keys.len()) as u64;
        let (chosen, others) = orphans.into_iter().partition(|(key, _)| keys.contains(key));
        Ok(Contenders { chosen, others, left_out })
    }

    fn leave_out(&mut self, facts: u64) {
        self.choice.leave_out(facts);
    }

    fn take_stored(&mut self, view: View<'_>, wanted: Wanted<'_>) -> Result<(), Error> {
        let Some(known) = self.known else {
            return view.each_fact(wanted, |fact| self.take(fact));
        };
        let facts = known.matching(self.filter).filter(|fact| wanted(&fact.fact.key));
        facts.for_each(|fact| self.choice.add(fact.clone()));
        Ok(())
    }
}

/// Passes the wanted facts as of a position to `taker`. Returns the number of positions read.
fn each_fact<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    seq: Seq,
    wanted: Wanted<'_>,
    start: Start,
    taker: &mut impl FactSink,
) -> Result<u64, Error> {
    // A position beyond the end means the end.
    let seq = seq.min(view.head()?);
    let progress = view.progress()?;
    let saved = progress.rule_set == rule_set_of(rules);
    let distance = Stretch::between(&progress, seq).iter().map(Stretch::len).sum();
    let from_saved = match start {
        Start::Nothing => false,
        Start::Checkpoint => saved,
        Start::Nearest => saved && is_nearer(view, wanted, taker.is_limited(), distance, seq)?,
    };
    let turns = turns(view, wanted, if from_saved { distance } else { seq.0 })?;
    let mut events = 0;
    for turn in 0..turns {
        let its_turn = |key: &FactKey| turns == 1 || turn_of(rules, key, turns) == turn;
        let wanted = |key: &FactKey| wanted(key) && its_turn(key);
        events += if from_saved {
            from_checkpoint(view, rules, &progress, seq, &wanted, taker)?
        } else {
            from_nothing(view, rules, seq, &wanted, taker)?
        };
    }
    Ok(events)
}

/// Whether starting at the checkpoint costs less than starting at the beginning of the log. The
/// number of facts matters too: subtracting from a sum costs more than computing it.
fn is_nearer(
    view: View<'_>,
    wanted: Wanted<'_>,
    ranked: bool,
    distance: u64,
    seq: Seq,
) -> Result<bool, Error> {
    let cost = |facts: u64, each: u64| distance + facts.min(distance) * each;
    if distance >= seq.0 || cost(distance, EVENTS_PER_FACT) < seq.0 {
        return Ok(distance < seq.0);
    }
    let (chosen, all) = counted(view, wanted)?;
    let event_nanos = EVENT_NANOS + all * EVENT_NANOS_PER_1000_FACTS / 1000;
    let each = if ranked { RANKED_FACT_NANOS.div_ceil(event_nanos) } else { EVENTS_PER_FACT };
    Ok(cost(chosen, each) < seq.0)
}

/// The number of wanted stored facts, and of all stored facts.
fn counted(view: View<'_>, wanted: Wanted<'_>) -> Result<(u64, u64), Error> {
    let (chosen, all) = (Cell::new(0), Cell::new(0));
    let count = |key: &FactKey| {
        all.set(all.get() + 1);
        chosen.set(chosen.get() + u64::from(wanted(key)));
        false
    };
    view.each_fact(count, |_| Ok::<_, Error>(()))?;
    Ok((chosen.get(), all.get()))
}

/// The number of turns for the wanted facts, if this many events feed them.
fn turns(view: View<'_>, wanted: Wanted<'_>, events: u64) -> Result<u64, Error> {
    if events < FEW_EVENTS {
        return Ok(1);
    }
    let bytes = view.tally_bytes()?;
    if bytes <= BYTES_AT_ONCE {
        return Ok(1);
    }
    let (chosen, all) = counted(view, wanted)?;
    Ok((bytes / all.max(1) * chosen).div_ceil(BYTES_AT_ONCE).max(1))
}

/// The turn in which a fact is computed. Hashes spread facts evenly. A fact shares the turn of the
/// first fact that is derived from it, because its sum is needed there anyway.
fn turn_of<R: RuleSet>(rules: &R, key: &FactKey, turns: u64) -> u64 {
    let derived = rules.derived_keys(key);
    let key = derived.first().unwrap_or(key);
    let hash = sha256(&[key.kind().name().as_bytes(), key.text().as_bytes()]);
    u64::from(u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])) % turns
}

fn from_nothing<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    seq: Seq,
    wanted: Wanted<'_>,
    taker: &mut impl FactSink,
) -> Result<u64, Error> {
    let (mut done, mut derived) = (Ok(()), Derived::default());
    fold_wanted(view, rules, Seq(1)..=seq, &behind(rules, wanted), |key, group| {
        derived.add(rules, &key, &group);
        if done.is_ok() && (!rules.derives() || wanted(&key)) {
            done = publish(rules, &key, &group, taker);
        }
    })?;
    done?;
    for (key, group) in derived.into_groups().into_iter().filter(|(key, _)| wanted(key)) {
        publish(rules, &key, &group, taker)?;
    }
    Ok(seq.0)
}

fn publish<R: RuleSet>(
    rules: &R,
    key: &FactKey,
    group: &Group<R::Tally>,
    taker: &mut impl FactSink,
) -> Result<(), Error> {
    group.publish(rules, key)?.map_or(Ok(()), |fact| taker.take(fact))
}

fn from_checkpoint<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    progress: &Progress,
    seq: Seq,
    wanted: Wanted<'_>,
    taker: &mut impl FactSink,
) -> Result<u64, Error> {
    let stretches = Stretch::between(progress, seq);
    let differences = Differences::find(view, rules, &stretches, wanted)?;
    taker.take_stored(view, &|key| wanted(key) && !differences.contains(key))?;

    let Differences { fed, derived } = differences;
    let (mut moves, mut orphans) = (DerivedDifferences::default(), BTreeMap::new());
    let mut hand_out = |key: FactKey, group, difference, taker: &mut _| {
        match moved(group, difference, progress, seq) {
            MovedSum::Whole(group) => publish(rules, &key, &group, taker)?,
            MovedSum::Orphan(group) => drop(orphans.insert(key, group)),
        }
        Ok::<_, Error>(())
    };
    each_stored(
        view,
        fed,
        |(key, _)| key,
        |(key, difference), group| {
            check(&key, &group, &difference, progress, seq)?;
            if rules.derives() {
                moves.follow(rules, &key, &group.tally, &difference);
                if !difference.differs || !wanted(&key) {
                    return Ok(());
                }
            }
            hand_out(key, group, difference, taker)
        },
    )?;
    each_stored(
        view,
        derived.iter().cloned(),
        |key| key,
        |key, group| {
            let difference = moves.take(&key);
            check(&key, &group, &difference, progress, seq)?;
            hand_out(key, group, difference, taker)
        },
    )?;
    let Contenders { chosen, others, left_out } = taker.contenders(rules, orphans)?;
    let mut found = adopt(view, rules, chosen, &derived, seq, taker)?;
    if found.missed {
        // A contender has no supporting event, so one of the others may replace it.
        found.events += adopt(view, rules, others, &derived, seq, taker)?.events;
    } else {
        taker.leave_out(left_out);
    }
    Ok(stretches.iter().map(Stretch::len).sum::<u64>() + found.events)
}

/// Passes each item to `each` with the stored sum of its fact. Sums are read in pages.
fn each_stored<I, T: Tally>(
    view: View<'_>,
    items: impl IntoIterator<Item = I>,
    key: impl Fn(&I) -> &FactKey,
    mut each: impl FnMut(I, Group<T>) -> Result<(), Error>,
) -> Result<(), Error> {
    let identity = view.identity();
    let mut items = items.into_iter();
    loop {
        let page: Vec<I> = items.by_ref().take(SUMS_AT_ONCE).collect();
        if page.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = page.iter().map(|item| FactId::new(&identity, key(item))).collect();
        for (item, group) in page.into_iter().zip(stored_groups(view, &ids)?) {
            each(item, group)?;
        }
    }
}

/// Fails if a stored sum lacks events that are to be subtracted.
fn check<T: Tally>(
    key: &FactKey,
    group: &Group<T>,
    difference: &Difference<T>,
    progress: &Progress,
    seq: Seq,
) -> Result<(), Error> {
    let damaged = || format!("sum of the {} fact `{}`", key.kind(), key.text());
    if lacks(group, difference, progress, seq) { Err(Error::Damaged(damaged())) } else { Ok(()) }
}

/// The result of a search for last supporting events.
struct SupportSearch {
    /// The number of searched events.
    events: u64,
    /// Whether a sum has no supporting event, and therefore no fact.
    missed: bool,
}

/// Finds the last supporting events of orphans, and publishes their facts.
fn adopt<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    orphans: Orphans<R::Tally>,
    derived: &BTreeSet<FactKey>,
    seq: Seq,
    taker: &mut impl FactSink,
) -> Result<SupportSearch, Error> {
    let mut lasts = latest(view, rules, orphans.keys().cloned().collect(), derived, seq)?;
    let mut missed = false;
    for (key, Group { tally, .. }) in orphans {
        let last = lasts.found.remove(&key);
        missed |= last.is_none();
        publish(rules, &key, &Group { tally, last }, taker)?;
    }
    Ok(SupportSearch { events: lasts.events, missed })
}
