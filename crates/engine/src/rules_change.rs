//! Changing the rules of a log: propose, withdraw, activate, go back, begin with.
//!
//! **Invariants**
//! - A change is checked against the log inside the transaction that writes it.
//! - A change and the pass that derives all facts again are one transaction. *If the process dies
//!   before the commit:* the old rules and all their facts are in the store. *If it dies after it:*
//!   the new ones are.
//! - An activation needs an approval that an operator key signed, about a report with the same hash
//!   that the log gives now.

use crate::Error;
use crate::log::Log;
use crate::pass::PassReport;
use crate::rules::{known, name_of};
use crate::rules_report::RulesReport;
use ipse_consolidate::Rules;
use ipse_core::event::RULES;
use ipse_core::{Admitted, Identity, Seq};
use ipse_door::{house_event, printable};
use ipse_ledger::dsse;
use ipse_ledger::{
    Basis, NoteKey, RuleSetName, RulesApproval, RulesEvent, RulesFault, RulesHistory, Step,
};
use ipse_store::View;

/// Why the rules were not changed. Nothing was written.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RulesError {
    /// The change does not follow from the log.
    #[error("{}: the change {}", .0.code(), .0.message())]
    Fault(RulesFault),
    /// The approval is not signed by the operator, or is about another change.
    #[error("not_signed: {0}")]
    NotApproved(String),
    /// The report of the approval is not the one that the log gives at that position.
    #[error(
        "report_moved: the approved report is not the one that the log gives now: make and approve \
         another"
    )]
    ReportMoved,
}

impl RulesError {
    /// The code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            RulesError::Fault(fault) => fault.code(),
            RulesError::NotApproved(_) => "not_signed",
            RulesError::ReportMoved => "report_moved",
        }
    }
}

/// A durable change of rules.
#[derive(Debug)]
pub struct RulesChange {
    /// The position of the event.
    pub seq: Seq,
    /// The event.
    pub event: RulesEvent,
    /// The pass over the whole log, if the rules in force changed.
    pub pass: Option<PassReport>,
}

impl Log {
    /// Records a proposal. It changes no fact.
    pub fn propose_rules(&mut self, rules: Rules) -> Result<RulesChange, Error> {
        let event =
            RulesEvent { rules: name_of(rules), step: Step::Proposed { file: rules.descriptor() } };
        self.change_rules(|_, _| Ok(event))
    }

    /// Ends an open proposal.
    pub fn withdraw_rules(&mut self, rules: &RuleSetName) -> Result<RulesChange, Error> {
        let event = RulesEvent { rules: rules.clone(), step: Step::Withdrawn };
        self.change_rules(|_, _| Ok(event))
    }

    /// Puts rules in force that the operator approved. `operators` are the operator's public keys.
    pub fn activate_rules(
        &mut self,
        rules: Rules,
        approval: &str,
        operators: &[NoteKey],
    ) -> Result<RulesChange, Error> {
        let identity = *self.identity();
        self.change_rules(|view, history| {
            let event = approved(approval, operators)?;
            let from = history.in_force();
            if event.rules != name_of(rules) {
                let (wanted, other) = (rules.version(), &event.rules.version);
                let fault = format!("the approval is for `{}`, not {wanted}", printable(other));
                return Err(RulesError::NotApproved(fault).into());
            }
            // Before the report, which costs a walk over the log.
            history.check(view.head()?.next(), &event).map_err(RulesError::Fault)?;
            if let Some(fault) = event.approval_fault(from, &identity, operators) {
                return Err(RulesError::NotApproved(fault.to_string()).into());
            }
            check_report(view, &identity, from, &event)?;
            Ok(event)
        })
    }

    /// Undoes the newest activation that is not undone yet.
    pub fn go_back(&mut self) -> Result<RulesChange, Error> {
        self.change_rules(|_, history| {
            let fault = RulesError::Fault(RulesFault::NothingToGoBackTo);
            let rules = history.previous().ok_or(fault)?.clone();
            Ok(RulesEvent { rules, step: Step::Active(Basis::Back) })
        })
    }

    /// Lets an empty log begin with rules that are not the default.
    pub fn begin_with_rules(&mut self, rules: Rules) -> Result<RulesChange, Error> {
        let step = Step::Active(Basis::First);
        self.change_rules(|_, _| Ok(RulesEvent { rules: name_of(rules), step }))
    }
}

/// Checks an event against the log.
pub(crate) fn checked(
    history: &RulesHistory,
    seq: Seq,
    event: &RulesEvent,
) -> Result<Option<Rules>, Error> {
    history.check(seq, event).map_err(RulesError::Fault)?;
    match &event.step {
        Step::Proposed { .. } | Step::Withdrawn => Ok(None),
        Step::Active(Basis::First) => known(&event.rules).map(|_| None),
        Step::Active(_) => known(&event.rules).map(Some),
    }
}

/// The event at a position, as it is stored.
pub(crate) fn stored_event(seq: Seq, event: &RulesEvent, host: &mut dyn crate::Host) -> Admitted {
    house_event(RULES, &RulesEvent::id(seq), host.now(), &event.data(), host.salt())
}

/// The activation that a signed approval is about.
fn approved(approval: &str, operators: &[NoteKey]) -> Result<RulesEvent, Error> {
    let opened = dsse::open(approval.as_bytes(), RulesApproval::TYPE, operators);
    let (statement, _) = opened.map_err(|error| RulesError::NotApproved(error.to_string()))?;
    let not_one = || RulesError::NotApproved("the file is not an approval of rules".to_owned());
    let approved = RulesApproval::read(&statement).ok_or_else(not_one)?;
    let basis = Basis::Approved {
        checkpoint: approved.checkpoint,
        report: approved.report,
        approval: approval.to_owned(),
    };
    Ok(RulesEvent { rules: approved.rules, step: Step::Active(basis) })
}

/// Computes the approved report again and compares its hash.
fn check_report(
    view: View<'_>,
    identity: &Identity,
    from: &RuleSetName,
    event: &RulesEvent,
) -> Result<(), Error> {
    let Step::Active(Basis::Approved { checkpoint, report, .. }) = &event.step else {
        return Ok(());
    };
    let (from, to) = (known(from)?, known(&event.rules)?);
    if *checkpoint > view.head()? {
        return Err(RulesError::ReportMoved.into());
    }
    let again = RulesReport::compute(view, identity, *checkpoint, from, to)?;
    match again.hash() == *report {
        true => Ok(()),
        false => Err(RulesError::ReportMoved.into()),
    }
}
