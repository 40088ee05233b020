//! The facts of a log up to an earlier position, from the saved state that is nearest to it.
//!
//! Two states are saved: nothing, before the first event; and the stored sums and facts, at the
//! checkpoint. From the first, events are added. From the second, events are taken back, or added
//! if the position lies past it: sums form a group. Facts that none of these events feed are the
//! stored ones, byte for byte.
//!
//! **Invariants**
//! - The facts are those of [`crate::rebuild()`] at the same position, byte for byte.
//! - The cost follows the distance to the nearer state, the facts that are wanted, and a look at
//!   the times of the log where a last supporting event must be found.
//! - Stored sums count only if the same rules made them.
//! - Memory holds the sums of at most about [`BYTES_AT_ONCE`], and the facts that are handed out.

use crate::facts::{Choice, Consulted, Filter};
use crate::hot::{rule_set_of, stored_group};
use crate::latest::latest;
use crate::scan::fold_wanted;
use crate::{Error, Known};
use ipse_consolidate::{EVERY_FACT, Group, RuleSet, Tally, Wanted};
use ipse_core::{Fact, FactId, FactKey, Seq, Support, sha256};
use ipse_store::Progress;
use ipse_store::sqlite::View;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The facts up to a position, and what it took to find them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AsOf<F> {
    /// The facts.
    pub facts: Vec<F>,
    /// Positions whose events were folded or searched.
    pub events: u64,
}

/// Bytes of stored sums that are worked on at once; of more, facts are made in several turns, each
/// of which reads the events again. In memory sums take about sixteen times as much.
const BYTES_AT_ONCE: u64 = 4 << 20;
/// Fewer events feed so few facts that one turn does.
const FEW_EVENTS: u64 = 100;
/// To take a sum back from a stored one, and to look for its last event, costs about as much as to
/// add this many events.
const EVENTS_PER_FACT: u64 = 256;
/// The same in nanoseconds for facts that are ranked first, so that few last events are looked for.
const RANKED_FACT_NANOS: u64 = 30_000;
/// Nanoseconds to add an event: of a log with few facts, and more for each thousand facts, because
/// their sums leave the caches of the processor. Measured; wrong figures cost time, nothing else.
const EVENT_NANOS: u64 = 100;
const EVENT_NANOS_PER_1000_FACTS: u64 = 32;

/// All facts up to a position, sorted by kind and key.
pub fn as_of<R: RuleSet>(view: View<'_>, rules: &R, seq: Seq) -> Result<AsOf<Fact>, Error> {
    as_of_from(view, rules, seq, Start::Nearest)
}

/// The saved state to start from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[doc(hidden)]
pub enum Start {
    /// The one that costs less.
    Nearest,
    /// The beginning of the log.
    Nothing,
    /// The stored sums and facts, if the same rules made them.
    Checkpoint,
}

/// The same from either state: the facts are equal.
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
    Ok(AsOf { facts, events })
}

/// The facts up to a position that a filter chooses; no others are made. A table of the stored
/// facts that is in memory saves reading them.
pub fn chosen_as_of<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    seq: Seq,
    filter: &Filter,
    known: Option<&Known>,
) -> Result<AsOf<Arc<Consulted>>, Error> {
    let checkpoint = view.progress()?.checkpoint;
    let known = known.filter(|known| known.checkpoint() == checkpoint);
    let mut chosen = Chosen { filter, choice: filter.choice(), known };
    let wanted = |key: &FactKey| filter.matches(key);
    let events = each_fact(view, rules, seq, &wanted, Start::Nearest, &mut chosen)?;
    Ok(AsOf { facts: chosen.choice.finish(), events })
}

/// Sums whose last supporting event is still to be found; each has a later one for now.
type Orphans<T> = BTreeMap<FactKey, Group<T>>;

/// Takes facts.
trait Taker {
    /// Takes one.
    fn take(&mut self, fact: Fact) -> Result<(), Error>;

    /// Whether it takes the best facts only.
    fn is_limited(&self) -> bool {
        false
    }

    /// Splits orphans into those that make facts which may be taken in the end, and the others.
    fn contenders<R: RuleSet>(
        &self,
        _: &R,
        orphans: Orphans<R::Tally>,
    ) -> Result<[Orphans<R::Tally>; 2], Error> {
        Ok([orphans, BTreeMap::new()])
    }

    /// Takes the stored ones that are wanted.
    fn take_stored(&mut self, view: View<'_>, wanted: Wanted<'_>) -> Result<(), Error> {
        view.each_fact(wanted, |fact| self.take(fact))
    }
}

impl Taker for Vec<Fact> {
    fn take(&mut self, fact: Fact) -> Result<(), Error> {
        self.push(fact);
        Ok(())
    }
}

/// Takes what a filter chooses.
struct Chosen<'f> {
    filter: &'f Filter,
    choice: Choice<'f>,
    /// The stored facts, if they are in memory.
    known: Option<&'f Known>,
}

impl Taker for Chosen<'_> {
    fn take(&mut self, fact: Fact) -> Result<(), Error> {
        self.choice.add(Arc::new(Consulted::new(fact)?));
        Ok(())
    }

    fn is_limited(&self) -> bool {
        self.filter.limit.is_some()
    }

    /// Facts are ranked by figures that do not depend on the last event: of those that a limit
    /// leaves out, it is not looked for.
    fn contenders<R: RuleSet>(
        &self,
        rules: &R,
        orphans: Orphans<R::Tally>,
    ) -> Result<[Orphans<R::Tally>; 2], Error> {
        if !self.is_limited() {
            return Ok([orphans, BTreeMap::new()]);
        }
        let mut facts = Vec::new();
        for (key, group) in &orphans {
            if let Some(fact) = group.publish(rules, key)? {
                facts.push(Arc::new(Consulted::new(fact)?));
            }
        }
        let keys = self.choice.contenders(facts);
        let (chosen, others) = orphans.into_iter().partition(|(key, _)| keys.contains(key));
        Ok([chosen, others])
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

/// Hands the wanted facts up to a position to a taker; says how many positions it took.
fn each_fact<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    seq: Seq,
    wanted: Wanted<'_>,
    start: Start,
    taker: &mut impl Taker,
) -> Result<u64, Error> {
    // A position beyond the end is as good as the end.
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
        let wanted = |key: &FactKey| wanted(key) && (turns == 1 || turn_of(key, turns) == turn);
        events += if from_saved {
            from_checkpoint(view, rules, &progress, seq, &wanted, taker)?
        } else {
            from_nothing(view, rules, seq, &wanted, taker)?
        };
    }
    Ok(events)
}

/// Whether the checkpoint is nearer to a position than the beginning of the log is. Facts count as
/// well: a sum that is taken back costs more than one that is made.
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

/// The number of stored facts that are wanted, and of all.
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

/// The number of turns in which the wanted facts are made, if this many events feed them.
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

/// The turn in which a fact is made. Hashes spread facts evenly.
fn turn_of(key: &FactKey, turns: u64) -> u64 {
    let hash = sha256(&[key.kind().name().as_bytes(), key.text().as_bytes()]);
    u64::from(u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])) % turns
}

fn from_nothing<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    seq: Seq,
    wanted: Wanted<'_>,
    taker: &mut impl Taker,
) -> Result<u64, Error> {
    let mut done = Ok(());
    fold_wanted(view, rules, Seq(1)..=seq, wanted, |key, group| {
        if done.is_ok() {
            done = publish(rules, &key, &group, taker);
        }
    })?;
    done.map(|()| seq.0)
}

fn publish<R: RuleSet>(
    rules: &R,
    key: &FactKey,
    group: &Group<R::Tally>,
    taker: &mut impl Taker,
) -> Result<(), Error> {
    group.publish(rules, key)?.map_or(Ok(()), |fact| taker.take(fact))
}

/// What the events of a stretch do to the stored sums.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Add,
    TakeBack,
    /// They are in neither the stored sums nor those that are asked for.
    Nothing,
}

/// Events between the stored state and the position that is asked about.
struct Stretch {
    range: RangeInclusive<Seq>,
    step: Step,
    /// Whether they stand between the stored facts and the position. Only facts that such events
    /// feed differ from the stored ones.
    differs: bool,
}

impl Stretch {
    /// Stored sums may end before the stored facts do, so there are up to two stretches; first
    /// those that make facts differ.
    fn between(progress: &Progress, seq: Seq) -> Vec<Stretch> {
        let Progress { tallied, checkpoint, .. } = *progress;
        let stretch = |after: Seq, last: Seq, step, differs| Stretch {
            range: after.next()..=last,
            step,
            differs,
        };
        let mut stretches = if seq == checkpoint {
            Vec::new()
        } else if seq <= tallied {
            vec![
                stretch(seq, tallied, Step::TakeBack, true),
                stretch(tallied, checkpoint, Step::Nothing, true),
            ]
        } else if seq < checkpoint {
            vec![
                stretch(seq, checkpoint, Step::Nothing, true),
                stretch(tallied, seq, Step::Add, false),
            ]
        } else {
            vec![
                stretch(checkpoint, seq, Step::Add, true),
                stretch(tallied, checkpoint, Step::Add, false),
            ]
        };
        stretches.retain(|stretch| stretch.len() > 0);
        stretches
    }

    fn len(&self) -> u64 {
        (self.range.end().0 + 1).saturating_sub(self.range.start().0)
    }
}

/// What lies between the stored sum of a fact and the one that is asked for.
#[derive(Default)]
struct Difference<T> {
    /// Added to the stored sum it gives the other.
    sum: T,
    /// The greatest supporting event between the stored fact and the position.
    last: Option<Support>,
}

type Differences<T> = BTreeMap<FactKey, Difference<T>>;

/// How the wanted facts differ from the stored ones, those that do.
fn differences<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    stretches: &[Stretch],
    wanted: Wanted<'_>,
) -> Result<Differences<R::Tally>, Error> {
    let mut found: Differences<R::Tally> = BTreeMap::new();
    for Stretch { range, step, differs } in stretches {
        let mut parts = Vec::new();
        let wanted = |key: &FactKey| wanted(key) && (*differs || found.contains_key(key));
        fold_wanted(view, rules, range.clone(), &wanted, |key, group| parts.push((key, group)))?;
        for (key, group) in parts {
            let difference = found.entry(key).or_default();
            match step {
                Step::Add => difference.sum.add(&group.tally),
                Step::TakeBack => difference.sum.add(&group.tally.negated()),
                Step::Nothing => {}
            }
            difference.last = difference.last.max(group.last.filter(|_| *differs));
        }
    }
    Ok(found)
}

fn from_checkpoint<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    progress: &Progress,
    seq: Seq,
    wanted: Wanted<'_>,
    taker: &mut impl Taker,
) -> Result<u64, Error> {
    let stretches = Stretch::between(progress, seq);
    let differences = differences(view, rules, &stretches, wanted)?;
    let same = |key: &FactKey| wanted(key) && !differences.contains_key(key);
    taker.take_stored(view, &same)?;

    let identity = view.identity()?;
    let mut orphans = BTreeMap::new();
    for (key, difference) in differences {
        let group = stored_group(view, &FactId::new(&identity, &key))?;
        if lacks(&group, &difference, progress, seq) {
            return Err(Error::Damaged(format!("sum of the {} fact `{}`", key.kind(), key.text())));
        }
        match moved(group, difference, progress, seq) {
            Moved::Whole(group) => publish(rules, &key, &group, taker)?,
            Moved::Orphan(group) => drop(orphans.insert(key, group)),
        }
    }
    let [contenders, others] = taker.contenders(rules, orphans)?;
    let mut found = adopt(view, rules, contenders, seq, taker)?;
    if found.missed {
        // A contender turned out to be no fact, so another one may take its place.
        found.events += adopt(view, rules, others, seq, taker)?.events;
    }
    Ok(stretches.iter().map(Stretch::len).sum::<u64>() + found.events)
}

/// A search for last supporting events.
struct Adopted {
    /// Events that were searched.
    events: u64,
    /// Whether a sum has no supporting event, and so makes no fact.
    missed: bool,
}

/// Finds the last supporting events of orphans, and hands out their facts.
fn adopt<R: RuleSet>(
    view: View<'_>,
    rules: &R,
    orphans: Orphans<R::Tally>,
    seq: Seq,
    taker: &mut impl Taker,
) -> Result<Adopted, Error> {
    let mut lasts = latest(view, rules, orphans.keys().cloned().collect(), seq)?;
    let mut missed = false;
    for (key, Group { tally, .. }) in orphans {
        let last = lasts.found.remove(&key);
        missed |= last.is_none();
        publish(rules, &key, &Group { tally, last }, taker)?;
    }
    Ok(Adopted { events: lasts.events, missed })
}

/// The sum behind a fact at the position that is asked about.
enum Moved<T> {
    Whole(Group<T>),
    /// Its last supporting event stands after the position; another one must be found.
    Orphan(Group<T>),
}

/// Whether what is stored lacks the events that stand between it and the position: tables that
/// were emptied by hand must not pass for a log that taught less.
fn lacks<T: Tally>(
    stored: &Group<T>,
    difference: &Difference<T>,
    progress: &Progress,
    seq: Seq,
) -> bool {
    let sum = seq <= progress.tallied && stored.tally.is_zero() && !difference.sum.is_zero();
    sum || seq <= progress.checkpoint && stored.last < difference.last
}

fn moved<T: Tally>(
    mut group: Group<T>,
    difference: Difference<T>,
    progress: &Progress,
    seq: Seq,
) -> Moved<T> {
    group.tally.add(&difference.sum);
    if seq > progress.checkpoint {
        group.last = group.last.max(difference.last);
        return Moved::Whole(group);
    }
    match difference.last {
        // The last supporting event stands up to the position.
        None => Moved::Whole(group),
        Some(_) if group.last > difference.last => Moved::Whole(group),
        // Nothing is left of a fact that began after the position.
        Some(_) if group.tally.is_zero() => Moved::Whole(Group::default()),
        Some(_) => Moved::Orphan(group),
    }
}
