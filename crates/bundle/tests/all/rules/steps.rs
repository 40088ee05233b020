//! Changes of rules in a log: correct ones, and parts to make false ones from.

use crate::forge::{Log, MANIFEST, PassData, house, operator, salt, time};
use ipse_consolidate::Rules;
use ipse_core::{Admitted, Seq, sha256};
use ipse_door::house_event;
use ipse_ledger::dsse::sign;
use ipse_ledger::{Basis, Entry, NoteSigner, RuleSetName, RulesApproval, RulesEvent, Step};

/// The rules that a log begins with.
pub const FIRST: Rules = Rules::V1;
/// The rules that it changes to.
pub const SECOND: Rules = Rules::V2;

pub fn name(rules: Rules) -> RuleSetName {
    RuleSetName { version: rules.version().into(), hash: rules.hash() }
}

/// A rule set that no verifier knows.
pub fn unknown(version: &str, file: &str) -> RuleSetName {
    RuleSetName { version: version.into(), hash: sha256(&[file.as_bytes()]) }
}

/// Signs an approval.
pub fn basis(approval: &RulesApproval, signer: &NoteSigner) -> Basis {
    let RulesApproval { checkpoint, report, .. } = *approval;
    Basis::Approved { checkpoint, report, approval: sign(&approval.statement(), signer) }
}

impl Log {
    pub fn next_seq(&self) -> u64 {
        self.rows.len() as u64 + 1
    }

    /// Appends a step, without its pass.
    pub fn step(&mut self, rules: RuleSetName, step: Step) -> u64 {
        let (seq, event) = (self.next_seq(), RulesEvent { rules, step });
        let id = RulesEvent::id(Seq(seq));
        self.push(&house_event("ipse.rules", &id, time(seq), &event.data(), salt(seq)))
    }

    pub fn propose(&mut self, rules: Rules) -> u64 {
        self.step(name(rules), Step::Proposed { file: rules.descriptor() })
    }

    pub fn withdraw(&mut self, rules: Rules) -> u64 {
        self.step(name(rules), Step::Withdrawn)
    }

    /// Appends an activation, without its pass. These rules are in force from there on.
    pub fn put_in_force(&mut self, rules: Rules, basis: Basis) -> u64 {
        let seq = self.step(name(rules), Step::Active(basis));
        self.rules.push((seq, rules));
        seq
    }

    /// The correct approval of a change at the next position.
    pub fn approval(&self, rules: Rules) -> RulesApproval {
        let checkpoint = self.rows.len() as u64;
        RulesApproval {
            identity: self.identity(),
            checkpoint: Seq(checkpoint),
            from: self.rules_at(checkpoint).hash(),
            rules: name(rules),
            report: sha256(&[b"report", &checkpoint.to_be_bytes()]),
        }
    }

    /// Appends an approved activation, without its pass.
    pub fn approve(&mut self, rules: Rules) -> u64 {
        let basis = basis(&self.approval(rules), &operator());
        self.put_in_force(rules, basis)
    }

    /// Appends the pass over all events that must follow a change.
    pub fn rules_pass_with(&mut self, change: impl FnOnce(&mut PassData)) -> u64 {
        self.checkpoint = 0;
        self.pass_with(|data| {
            data.trigger = "rules";
            change(data);
        })
    }

    pub fn rules_pass(&mut self) -> u64 {
        self.rules_pass_with(|_| {})
    }

    /// Approved activation and pass.
    pub fn activate(&mut self, rules: Rules) -> u64 {
        self.approve(rules);
        self.rules_pass()
    }

    pub fn back(&mut self, to: Rules) -> u64 {
        self.put_in_force(to, Basis::Back);
        self.rules_pass()
    }

    pub fn begin_with(&mut self, rules: Rules) -> u64 {
        self.put_in_force(rules, Basis::First)
    }

    /// Replaces the event at a position; its entry is computed again.
    pub fn replace(&mut self, seq: u64, event: &Admitted) {
        let row = &mut self.rows[seq as usize - 1];
        let Admitted { event_ref, event_type, time, digest, canonical, .. } = event.clone();
        row.entry = Entry { seq: Seq(seq), event_ref, time, event_type, digest };
        row.event = Some(canonical);
    }

    /// The step at a position.
    pub fn step_at(&self, seq: u64) -> RulesEvent {
        let event = self.rows[seq as usize - 1].event.clone().unwrap();
        RulesEvent::read(Seq(seq), event.as_bytes()).unwrap()
    }

    /// Changes the step at a position; its id stays.
    pub fn alter(&mut self, seq: u64, change: impl FnOnce(&mut RulesEvent)) {
        let mut event = self.step_at(seq);
        change(&mut event);
        self.alter_data(seq, |_| event.data());
    }

    /// Changes the data of the step at a position; its id stays.
    pub fn alter_data(&mut self, seq: u64, change: impl FnOnce(String) -> String) {
        let data = change(self.step_at(seq).data());
        self.replace(seq, &house(seq, &RulesEvent::id(Seq(seq)), "ipse.rules", &data));
    }

    /// Changes the approval of the activation at a position, and signs it.
    pub fn approve_again(
        &mut self,
        seq: u64,
        signer: &NoteSigner,
        change: impl FnOnce(&mut RulesApproval),
    ) {
        let RulesEvent { rules, step } = self.step_at(seq);
        let Step::Active(Basis::Approved { checkpoint, report, .. }) = step else { panic!() };
        let from = self.rules_at(seq - 1).hash();
        let identity = self.identity();
        let mut approval = RulesApproval { identity, checkpoint, from, rules, report };
        change(&mut approval);
        let signed = sign(&approval.statement(), signer);
        self.alter(seq, |event| {
            event.step = Step::Active(Basis::Approved { checkpoint, report, approval: signed });
        });
    }
}

/// First, second, first, second, and back; an event is forgotten, a proposal is withdrawn.
///
/// Activations at 11, 18 and 25; back at 29. The passes of changes are one later.
pub fn changes() -> Log {
    let mut log = Log::new(MANIFEST);
    log.events(1..=6);
    log.pass();
    log.propose(SECOND);
    log.events(9..=10);
    log.activate(SECOND);
    log.events(13..=14);
    log.forget(&[9]);
    log.pass();
    log.propose(FIRST);
    log.activate(FIRST);
    log.events(20..=22);
    log.propose(SECOND);
    log.events(24..=24);
    log.activate(SECOND);
    log.events(27..=28);
    log.back(FIRST);
    log.events(31..=33);
    log.pass();
    log.propose(SECOND);
    log.withdraw(SECOND);
    log.events(37..=38);
    assert_eq!(log.rows.len(), 38);
    log
}

/// A log that begins with the second rules.
pub fn begun() -> Log {
    let mut log = Log::new(MANIFEST);
    log.begin_with(SECOND);
    log.events(2..=7);
    log.pass();
    log.events(9..=10);
    log
}

/// Six events, their pass, and an open proposal of the second rules at seq 8.
pub fn proposed() -> Log {
    let mut log = Log::new(MANIFEST);
    log.events(1..=6);
    log.pass();
    log.propose(SECOND);
    log
}
