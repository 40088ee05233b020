//! The rules of a log, and passes under them.
//!
//! **Invariants**
//! - This file is the only place that reads which rules a log follows. The log decides: the last
//!   `ipse.rules` event that activates rules, or [`Rules::default`] without one. A change and its
//!   pass are one transaction, so the newest pass names the same rules.
//! - A log that follows unknown rules keeps its facts: no pass runs, and nothing is forgotten or
//!   deleted.
//! - A handle reads the rules of its log inside the transaction of each pass, so it follows a log
//!   whose rules another process has changed.

use crate::forget::{ForgottenSums, SelectedEvents};
use crate::hot_sums::{HotSums, Limits};
use crate::pass::{self, PassInput, PassReport};
use crate::{Error, Host, Trigger};
use ipse_consolidate::{RuleSet, Rules, with_rules};
use ipse_core::event::RULES;
use ipse_core::{Identity, Seq, hex};
use ipse_ledger::account::PassClaim;
use ipse_ledger::{RuleSetName, RulesEvent, RulesHistory};
use ipse_store::Progress;
use ipse_store::{Batch, Erasing, View};
use std::ops::ControlFlow;

/// The rules that the facts of a log follow: those in force at its end. Unknown rules are an error.
pub fn rules_of(view: View<'_>) -> Result<Rules, Error> {
    let progress = view.progress()?;
    match progress.rule_version.is_empty() {
        // Without a pass, only the first event of the log can say so.
        true => known(rules_history(view)?.in_force()),
        false => rules_in(&progress),
    }
}

/// The rules in force at a position.
pub fn rules_at(view: View<'_>, seq: Seq) -> Result<Rules, Error> {
    known(&rules_name_at(view, seq)?)
}

/// The name of the rules in force at a position.
pub fn rules_name_at(view: View<'_>, seq: Seq) -> Result<RuleSetName, Error> {
    let history = rules_history(view)?;
    let Progress { rule_version, rule_set, .. } = view.progress()?;
    // A caller that chose its own rules named them in no event.
    match history.changes().is_empty() && !rule_version.is_empty() {
        true => Ok(RuleSetName { version: rule_version, hash: rule_set }),
        false => Ok(history.at(seq).clone()),
    }
}

/// The rules in force at every position. Steps that do not follow from the log are left out:
/// verification reports them.
pub fn rules_history(view: View<'_>) -> Result<RulesHistory, Error> {
    let mut events = Vec::new();
    view.house_back(RULES, Seq(1)..=Seq::MAX, |stored| {
        events.extend(
            RulesEvent::read(stored.seq, stored.canonical.as_bytes())
                .map(|event| (stored.seq, event)),
        );
        Ok::<_, Error>(ControlFlow::Continue(()))
    })?;
    let mut history = RulesHistory::new(name_of(Rules::default()));
    for (seq, event) in events.iter().rev() {
        let _ = history.add(*seq, event);
    }
    Ok(history)
}

/// The name of a rule set of this build.
pub fn name_of(rules: Rules) -> RuleSetName {
    RuleSetName { version: rules.version().to_owned(), hash: rules.hash() }
}

/// The rule set of this build with that name.
pub fn known(name: &RuleSetName) -> Result<Rules, Error> {
    let unknown = || Error::unknown_rules(&name.version, name.hex());
    Rules::recorded(&name.version, &name.hash).ok_or_else(unknown)
}

fn rules_in(progress: &Progress) -> Result<Rules, Error> {
    let Progress { rule_version, rule_set, .. } = progress;
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
            let now = match rule_version.is_empty() {
                true => rules_of(view)?,
                false if same => rules,
                false => rules_in(&progress)?,
            };
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
        let starts_over = self.of_log.is_none();
        self.consolidator.pass(batch, PassInput { identity, host, trigger, progress, starts_over })
    }

    /// Derives all facts again under other rules, and follows them from now on. The change of rules
    /// is in the batch already.
    pub(crate) fn change(
        &mut self,
        batch: &mut Batch<'_>,
        identity: &Identity,
        host: &mut dyn Host,
        to: Rules,
    ) -> Result<Option<PassReport>, Error> {
        let (progress, trigger) = (batch.view().progress()?, Trigger::Rules);
        self.consolidator = with_rules!(to, |rules| under(*rules));
        self.consolidator.limit(self.limits);
        self.of_log = Some(to);
        let input = PassInput { identity, host, trigger, progress, starts_over: true };
        self.consolidator.pass(batch, input)
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
        let trigger = Trigger::Forget;
        let starts_over = self.of_log.is_none();
        let errand = PassInput { identity, host, trigger, progress, starts_over };
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
