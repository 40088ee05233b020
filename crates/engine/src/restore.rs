//! Restoring a log that was verified elsewhere: same positions, same facts, same passes.

use crate::head::check;
use crate::rules::rules_recorded;
use crate::{Error, SignedBatch, rebuild_under};
use ipse_consolidate::{RuleSet, with_rules};
use ipse_core::{Admitted, EventRef, FactId, Identity, Seq, hex};
use ipse_ledger::Entry;
use ipse_ledger::account::PassClaim;
use ipse_store::{Restoring, Store};

/// Events per insert.
const PORTION: usize = 256;

/// The parts of a restored log besides its events.
pub struct CompleteLog<'a> {
    /// The pass records of the log, in order.
    pub passes: &'a [PassClaim],
    /// The statements of producers.
    pub statements: &'a [SignedBatch],
    /// The position up to which facts are computed.
    pub checkpoint: Seq,
    /// The last signed tree head of this log. The restored log must continue it.
    pub last_head: Option<&'a str>,
}

/// Restores a whole log in one transaction. The log of the identity must be empty. The facts follow
/// the rules that the last pass record names.
pub fn restore<E: From<Error>>(
    store: &Store,
    identity: &Identity,
    log: impl Iterator<Item = Result<(Entry, Option<Admitted>), E>>,
    whole: &CompleteLog<'_>,
) -> Result<(), E> {
    let rules = rules_recorded(whole.passes)?;
    with_rules!(rules, |rules| restore_under(store, identity, rules, log, whole))
}

/// The same under rules of the caller's choice.
pub fn restore_under<R: RuleSet, E: From<Error>>(
    store: &Store,
    identity: &Identity,
    rules: &R,
    log: impl Iterator<Item = Result<(Entry, Option<Admitted>), E>>,
    whole: &CompleteLog<'_>,
) -> Result<(), E> {
    let mut writer = store.writer(identity).map_err(Error::from)?;
    let mut restoring = writer.restore().map_err(Error::from)?;
    let mut portion = Vec::new();
    for event in log {
        portion.push(event?);
        if portion.len() == PORTION {
            restoring.put(std::mem::take(&mut portion)).map_err(Error::from)?;
        }
    }
    restoring.put(portion).map_err(Error::from)?;
    finish(&mut restoring, identity, rules, whole)?;
    if let Some(note) = whole.last_head {
        let view = restoring.view();
        check(view, view.head().map_err(Error::from)?.0, identity, note)?;
    }
    Ok(restoring.commit().map_err(Error::from)?)
}

fn finish<R: RuleSet>(
    restoring: &mut Restoring<'_>,
    identity: &Identity,
    rules: &R,
    whole: &CompleteLog<'_>,
) -> Result<(), Error> {
    for endorsed in whole.statements {
        let names: Vec<EventRef> = endorsed.names().copied().collect();
        let found: Vec<Seq> = restoring.batch().find_all(&names)?.into_iter().flatten().collect();
        let entries = restoring.view().entries_at(&found)?.into_iter();
        let covered = entries.filter(|(entry, _)| endorsed.covers(&entry.digest));
        let mut seqs: Vec<Seq> = covered.map(|(entry, _)| entry.seq).collect();
        seqs.sort_unstable();
        seqs.dedup();
        if !seqs.is_empty() {
            restoring.batch().put_statement(&endorsed.signer, &seqs, &endorsed.envelope)?;
        }
    }
    for pass in whole.passes {
        let damaged = || Error::Damaged(format!("pass record at seq {}", pass.seq));
        let rule_set = hex::decode(&pass.rule_set).ok_or_else(damaged)?;
        restoring.put_pass((pass.seq, pass.first, pass.last), &pass.rule_version, rule_set)?;
    }
    let facts = rebuild_under(restoring.view(), rules, whole.checkpoint)?.facts;
    let facts = facts.into_iter().map(|fact| (FactId::new(identity, &fact.key), fact));
    Ok(restoring.put_facts(&facts.collect::<Vec<_>>())?)
}
