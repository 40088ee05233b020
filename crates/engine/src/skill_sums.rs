//! The attempts and parameters of every skill fact by day, whatever rules the log follows.
//!
//! **Invariant:** the sums are those of rule set v2 over all events up to a position. A
//! log that follows v2 has them in the store; for other rules the log is folded. A key without a
//! counted attempt is no fact, and has no sum here.

use crate::Error;
use crate::hot_sums::{stored_group, stored_groups};
use crate::scan::fold_wanted;
use ipse_consolidate::v2::Dated;
use ipse_consolidate::{Group, Rules, Tally, V2};
use ipse_core::{FactId, FactKey, FactKind, Identity, Seq};
use ipse_store::View;
use std::collections::BTreeMap;

/// Stored sums per read call.
const SUMS_AT_ONCE: usize = 256;

/// The sums behind all skill facts as of the checkpoint, by key.
pub fn skill_sums(view: View<'_>, identity: &Identity) -> Result<BTreeMap<FactKey, Dated>, Error> {
    skill_sums_until(view, identity, view.progress()?.checkpoint)
}

/// The sum behind one skill fact of a log that follows v2, as of the checkpoint. Zero without the
/// fact.
pub fn skill_sum(view: View<'_>, identity: &Identity, key: &FactKey) -> Result<Dated, Error> {
    let progress = view.progress()?;
    let mut sum = stored_group::<Dated>(view, &FactId::new(identity, key))?.tally;
    let unsaved = progress.tallied.next()..=progress.checkpoint;
    fold_wanted(view, &V2, unsaved, &|other| other == key, |_, group| sum.add(&group.tally))?;
    Ok(sum)
}

/// The sums of all skill facts as of a position that is not before the checkpoint.
pub fn skill_sums_until(
    view: View<'_>,
    identity: &Identity,
    up_to: Seq,
) -> Result<BTreeMap<FactKey, Dated>, Error> {
    let progress = view.progress()?;
    let is_skill = |key: &FactKey| key.kind() == FactKind::SkillSuccessRate;
    let (mut sums, mut first) = (BTreeMap::new(), Seq(1));
    if progress.rule_set == Rules::V2.hash() {
        let mut keys = Vec::new();
        view.each_fact(is_skill, |fact| {
            keys.push(fact.key);
            Ok::<_, Error>(())
        })?;
        for keys in keys.chunks(SUMS_AT_ONCE) {
            let ids: Vec<FactId> = keys.iter().map(|key| FactId::new(identity, key)).collect();
            let stored: Vec<Group<Dated>> = stored_groups(view, &ids)?;
            sums.extend(keys.iter().cloned().zip(stored.into_iter().map(|group| group.tally)));
        }
        first = progress.tallied.next();
    }
    fold_wanted(view, &V2, first..=up_to, &is_skill, |key, group| {
        sums.entry(key).or_default().add(&group.tally);
    })?;
    sums.retain(|_, sum: &mut Dated| sum.total().n > 0);
    Ok(sums)
}
