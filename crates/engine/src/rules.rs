//! The rules of a log, and passes under them.
//!
//! **Invariants**
//! - This file is the only place that reads which rules a log follows: those of its newest pass, or
//!   [`Rules::default`] before the first one.
//! - A log that follows unknown rules keeps its facts: no pass runs, and nothing is forgotten or
//!   deleted.
//! - A handle reads the rules of its log inside the transaction of each pass, so it follows a log
//!   whose rules another process has changed.

use crate::forget::{ForgottenSums, SelectedEvents};
use crate::hot_sums::{HotSums, Limits};
use crate::pass::{self, PassInput, PassReport};
use crate::{Error, Host, Trigger};
use ipse_consolidate::{RuleSet, Rules, with_rules};
use ipse_core::{Identity, hex};
use ipse_ledger::account::PassClaim;
use ipse_store::Progress;
use ipse_store::{Batch, Erasing, View};

/// The rules that the facts of a log follow: those of its newest pass, or the default before the
/// first pass. Unknown rules are an error.
pub fn rules_of(view: View<'_>) -> Result<Rules, Error> {
    rules_in(&view.progress()?)
}

fn rules_in(progress: &Progress) -> Result<Rules, Error> {
    let Progress { rule_version, rule_set, .. } = progress;
    if rule_version.is_empty() {
        return Ok(Rules::default());
    }
    let unknown = || Error::unknown_rules(rule_version, hex::encode(rule_set));
    Rules::recorded(rule_version, rule_set).ok_or_else(unknown)
}

/// The rules that the last of these pass records names.
pub(crate) fn rules_recorded(passes: &[PassClaim]) -> Result<Rules, Error> {
    let Some(PassClaim { rule_version, rule_set, .. }) = passes.last() else {
        return Ok(Rules::default());
    };
    let rules = hex::decode(rule_set).and_then(|hash| Rules::recorded(rule_version, &hash));
    rules.ok_or_else(|| Error::unknown_rules(rule_version, rule_set.clone()))
}

/// Runs passes and forgets events under one rule set. Each call costs one dynamic dispatch.
trait Consolidator: Send {
    fn rule_set(&self) -> [u8; 32];

    fn pass(
        &mut self,
        batch: &mut Batch<'_>,
        errand: PassInput<'_>,
    ) -> Result<Option<PassReport>, Error>;

    /// Forgets events; the pass subtracts their contributions.
    fn forget(
        &mut self,
        erasing: &mut Erasing<'_>,
        chosen: &SelectedEvents,
        errand: PassInput<'_>,
    ) -> Result<Option<PassReport>, Error>;

    /// Drops all sums that are in memory.
    fn cool(&mut self);

    /// The same, and sets the limits of the sums in memory.
    fn limit(&mut self, limits: Limits);
}

/// Rules, with their sums in memory.
struct ActiveRules<R: RuleSet> {
    rules: R,
    hot: HotSums<R::Tally>,
}

impl<R> Consolidator for ActiveRules<R>
where
    R: RuleSet<Tally: Send> + Send,
{
    fn rule_set(&self) -> [u8; 32] {
        self.hot.rule_set()
    }

    fn pass(
        &mut self,
        batch: &mut Batch<'_>,
        errand: PassInput<'_>,
    ) -> Result<Option<PassReport>, Error> {
        pass::run(batch, &self.rules, &mut self.hot, errand, None)
    }

    fn forget(
        &mut self,
        erasing: &mut Erasing<'_>,
        chosen: &SelectedEvents,
        errand: PassInput<'_>,
    ) -> Result<Option<PassReport>, Error> {
        let view = erasing.batch().view();
        let taught = ForgottenSums::read(view, &self.rules, self.hot.rule_set(), chosen)?;
        chosen.erase(erasing, &mut *errand.host)?;
        pass::run(erasing.batch(), &self.rules, &mut self.hot, errand, Some(&taught))
    }

    fn cool(&mut self) {
        self.hot.cool();
    }

    fn limit(&mut self, limits: Limits) {
        self.hot.cool();
        self.hot.limits = limits;
    }
}

fn under<R>(rules: R) -> Box<dyn Consolidator>
where
    R: RuleSet<Tally: Send> + Send + 'static,
{
    let hot = HotSums::cold(&rules);
    Box::new(ActiveRules { rules, hot })
}

/// The rules that a handle applies: those of its log, or others that a caller chose.
pub(crate) struct LogRules {
    consolidator: Box<dyn Consolidator>,
    /// The rules of the log, when they were last read; `None` if a caller chose the rules.
    of_log: Option<Rules>,
    limits: Limits,
}

impl LogRules {
    /// The rules of the log at the begin of each pass.
    pub(crate) fn log() -> Self {
        let rules = Rules::default();
        Self::with(with_rules!(rules, |rules| under(*rules)), Some(rules))
    }

    /// Rules that a caller chose. A pass deletes the facts of other rules.
    pub(crate) fn chosen<R>(rules: R) -> Self
    where
        R: RuleSet<Tally: Send> + Send + 'static,
    {
        Self::with(under(rules), None)
    }

    fn with(consolidator: Box<dyn Consolidator>, of_log: Option<Rules>) -> Self {
        LogRules { consolidator, of_log, limits: Limits::default() }
    }

    /// Reads the progress of the log, and switches to its rules if another process has changed
    /// them.
    fn follow(&mut self, view: View<'_>) -> Result<Progress, Error> {
        let progress = view.progress()?;
        if let Some(rules) = self.of_log {
            let Progress { rule_version, rule_set, .. } = &progress;
            let same = *rule_set == self.consolidator.rule_set() && rule_version == rules.version();
            let now = if same { rules } else { rules_in(&progress)? };
            if now != rules {
                self.consolidator = with_rules!(now, |rules| under(*rules));
                self.consolidator.limit(self.limits);
                self.of_log = Some(now);
            }
        }
        Ok(progress)
    }

    /// Runs a pass inside a batch.
    pub(crate) fn pass(
        &mut self,
        batch: &mut Batch<'_>,
        identity: &Identity,
        host: &mut dyn Host,
        trigger: Trigger,
    ) -> Result<Option<PassReport>, Error> {
        let progress = self.follow(batch.view())?;
        self.consolidator.pass(batch, PassInput { identity, host, trigger, progress })
    }

    /// Forgets events, and runs the pass that subtracts their contributions.
    pub(crate) fn forget(
        &mut self,
        erasing: &mut Erasing<'_>,
        chosen: &SelectedEvents,
        identity: &Identity,
        host: &mut dyn Host,
    ) -> Result<Option<PassReport>, Error> {
        let progress = self.follow(erasing.batch().view())?;
        let errand = PassInput { identity, host, trigger: Trigger::Forget, progress };
        self.consolidator.forget(erasing, chosen, errand)
    }

    /// Drops all sums that are in memory.
    pub(crate) fn cool(&mut self) {
        self.consolidator.cool();
    }

    /// Sets other limits, so that a test reaches them with few events and facts.
    pub(crate) fn limit(&mut self, change: impl FnOnce(&mut Limits)) {
        change(&mut self.limits);
        self.consolidator.limit(self.limits);
    }
}
