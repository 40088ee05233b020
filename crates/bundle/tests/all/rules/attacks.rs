//! Attacks on changes of rules. Each is sealed again with the trusted keys.

use super::steps::{FIRST, SECOND, basis, begun, changes, name, proposed, unknown};
use crate::attacks::{Attack, Case, refused};
use crate::forge::{Draft, Log, house, log_key, operator, producer_event, robot, signer};
use ipse_core::{Digest, Identity, Seq};
use ipse_ledger::dsse::sign;
use ipse_ledger::rules::MAX_DESCRIPTOR_BYTES;
use ipse_ledger::{Basis, Certificate, RulesApproval, RulesEvent, Step};

/// The first activation of [`changes`], and the place of its faults.
const ACTIVE: u64 = 11;
const AT_ACTIVE: &str = "rules event at seq 11";
/// The last activation of the same rules.
const AGAIN: u64 = 25;
/// The position after [`proposed`].
const AT_NEXT: &str = "rules event at seq 9";

fn sealed(log: &Log) -> Case {
    Case::of(log.draft().pack())
}

/// [`changes`] with a changed log.
fn changed(change: fn(&mut Log)) -> Case {
    let mut log = changes();
    change(&mut log);
    sealed(&log)
}

/// [`changes`] with changed members.
fn drafted(change: fn(&mut Draft)) -> Case {
    let mut draft = changes().draft();
    change(&mut draft);
    Case::of(draft.pack())
}

/// [`changes`] with another approval of the first activation, signed by the operator.
fn approved(change: fn(&mut RulesApproval)) -> Case {
    let mut log = changes();
    log.approve_again(ACTIVE, &operator(), change);
    sealed(&log)
}

/// [`proposed`] with more.
fn then(more: fn(&mut Log)) -> Case {
    let mut log = proposed();
    more(&mut log);
    sealed(&log)
}

/// Other text as the approval of the first activation.
fn approval_text(make: fn(&Log) -> String) -> Case {
    let mut log = changes();
    let text = make(&log);
    log.alter(ACTIVE, |event| {
        let Step::Active(Basis::Approved { approval, .. }) = &mut event.step else { panic!() };
        *approval = text;
    });
    sealed(&log)
}

fn approval_of(event: &mut RulesEvent) -> &mut String {
    let Step::Active(Basis::Approved { approval, .. }) = &mut event.step else { panic!() };
    approval
}

/// A step of the second rules, with their pass.
fn with_pass(log: &mut Log, step: Step) {
    let seq = log.step(name(SECOND), step);
    log.rules.push((seq, SECOND));
    log.rules_pass();
}

/// Leaves the event at a position out of a bundle.
fn without(log: &Log, mut draft: Draft, seq: u64) -> Case {
    let gone = format!("{}\n", log.rows[seq as usize - 1].event.clone().unwrap());
    let before = draft.events.len();
    draft.events.retain(|line| *line != gone);
    assert_eq!(draft.events.len() + 1, before);
    Case::of(draft.pack())
}

const UNREADABLE: &str = "cannot be read";
const OTHER_APPROVAL: &str = "its approval is for another rule set or report";
const NOT_SIGNED: &str = "its approval is not signed by a trusted operator key";
const NOT_IN_FORCE: &str = "names rules that were not in force";
const WRONG_CHECKPOINT: &str = "is not between the last change of rules and this one";

pub const ATTACKS: &[Attack] = &[
    // Approvals.
    refused("approvals of two activations swapped", AT_ACTIVE, OTHER_APPROVAL, || {
        changed(|log| {
            let mut texts = [ACTIVE, AGAIN].map(|seq| approval_of(&mut log.step_at(seq)).clone());
            texts.reverse();
            for (seq, text) in [ACTIVE, AGAIN].into_iter().zip(texts) {
                log.alter(seq, |event| *approval_of(event) = text);
            }
        })
    }),
    refused("whole activations swapped", AT_ACTIVE, WRONG_CHECKPOINT, || {
        changed(|log| {
            let steps = [AGAIN, ACTIVE].map(|seq| log.step_at(seq));
            for (seq, step) in [ACTIVE, AGAIN].into_iter().zip(steps) {
                log.alter(seq, |event| *event = step);
            }
        })
    }),
    refused("approval used twice", "rules event at seq 25", WRONG_CHECKPOINT, || {
        changed(|log| {
            let step = log.step_at(ACTIVE);
            log.alter(AGAIN, |event| *event = step);
        })
    }),
    refused(
        "approval used again after going back",
        "rules event at seq 40",
        WRONG_CHECKPOINT,
        || {
            changed(|log| {
                log.propose(SECOND);
                let step = log.step_at(AGAIN).step;
                with_pass(log, step);
            })
        },
    ),
    refused("approval of a later position", AT_NEXT, WRONG_CHECKPOINT, || {
        then(|log| {
            let mut approval = log.approval(SECOND);
            approval.checkpoint = Seq(9);
            log.put_in_force(SECOND, basis(&approval, &operator()));
            log.rules_pass();
        })
    }),
    refused("approval by a stranger", AT_ACTIVE, NOT_SIGNED, || {
        changed(|log| log.approve_again(ACTIVE, &signer("operator", 66), |_| {}))
    }),
    refused("approval by a producer", AT_ACTIVE, NOT_SIGNED, || {
        changed(|log| log.approve_again(ACTIVE, &robot(), |_| {}))
    }),
    refused("approval by the log", AT_ACTIVE, NOT_SIGNED, || {
        changed(|log| {
            let key = log_key(&log.identity());
            log.approve_again(ACTIVE, &key, |_| {});
        })
    }),
    refused("approval for another identity", AT_ACTIVE, "for another identity", || {
        approved(|approval| approval.identity = Identity([7; 32]))
    }),
    refused("approval from other rules", AT_ACTIVE, "for a change from other rules", || {
        approved(|approval| approval.from = SECOND.hash())
    }),
    refused("approval of another checkpoint", AT_ACTIVE, OTHER_APPROVAL, || {
        approved(|approval| approval.checkpoint.0 -= 1)
    }),
    refused("approval of another report", AT_ACTIVE, OTHER_APPROVAL, || {
        approved(|approval| approval.report[0] ^= 1)
    }),
    refused("approval of other rules", AT_ACTIVE, OTHER_APPROVAL, || {
        approved(|approval| approval.rules = name(FIRST))
    }),
    refused("approval of another version", AT_ACTIVE, OTHER_APPROVAL, || {
        approved(|approval| approval.rules.version = "v9".into())
    }),
    refused("event with another checkpoint", AT_ACTIVE, OTHER_APPROVAL, || {
        changed(|log| log.alter_data(ACTIVE, |data| data.replace(":10,", ":9,")))
    }),
    refused("approval that is no envelope", AT_ACTIVE, "its approval cannot be read", || {
        approval_text(|_| "yes".into())
    }),
    refused("certificate as approval", AT_ACTIVE, "its approval cannot be read", || {
        approval_text(|log| {
            let certificate = Certificate { manifest: log.manifest.clone() };
            sign(&certificate.statement(), &operator())
        })
    }),
    refused("approval with a member more", AT_ACTIVE, "not a statement about rules", || {
        approval_text(|log| {
            let mut statement = log.approval(SECOND).statement();
            statement.predicate = statement.predicate.replacen('{', "{\"a\":1,", 1);
            sign(&statement, &operator())
        })
    }),
    refused("false approval before the range", AT_ACTIVE, NOT_SIGNED, || {
        let mut log = changes();
        log.approve_again(ACTIVE, &robot(), |_| {});
        Case::of(log.draft_of(20, 38, 0).pack())
    }),
    // Proposals.
    refused("descriptor altered", "rules event at seq 8", "a descriptor with another hash", || {
        changed(|log| log.alter_data(8, |data| data.replace("fine_digits", "fine")))
    }),
    refused("descriptor too large", AT_NEXT, "a descriptor that is too large", || {
        then(|log| {
            let file = "x".repeat(MAX_DESCRIPTOR_BYTES + 1);
            log.step(unknown("v9", &file), Step::Proposed { file });
        })
    }),
    refused("version with another hash", AT_NEXT, "a version that names another hash", || {
        then(|log| {
            log.step(unknown(SECOND.version(), "{}"), Step::Proposed { file: "{}".into() });
        })
    }),
    refused("first version with another hash", AT_NEXT, "names another hash", || {
        then(|log| {
            log.step(unknown(FIRST.version(), "{}"), Step::Proposed { file: "{}".into() });
        })
    }),
    refused("withdrawn version with another hash", "rules event at seq 10", "another hash", || {
        then(|log| {
            log.withdraw(SECOND);
            log.step(unknown(SECOND.version(), "{}"), Step::Proposed { file: "{}".into() });
        })
    }),
    refused("proposal twice", AT_NEXT, "in force or proposed already", || {
        then(|log| {
            log.propose(SECOND);
        })
    }),
    refused("proposal of the rules in force", AT_NEXT, "in force or proposed already", || {
        then(|log| {
            log.propose(FIRST);
        })
    }),
    refused("withdrawal without proposal", AT_NEXT, "without an open proposal", || {
        then(|log| {
            log.withdraw(FIRST);
        })
    }),
    // Activations.
    refused("activation without proposal", "rules event at seq 8", "without an open", || {
        let mut log = Log::new(crate::forge::MANIFEST);
        log.events(1..=6);
        log.pass();
        log.activate(SECOND);
        sealed(&log)
    }),
    refused("activation after withdrawal", "rules event at seq 10", "without an open", || {
        then(|log| {
            log.withdraw(SECOND);
            log.activate(SECOND);
        })
    }),
    refused("one proposal, two activations", "rules event at seq 13", "without an open", || {
        then(|log| {
            log.activate(SECOND);
            log.back(FIRST);
            log.activate(SECOND);
        })
    }),
    refused("activation of the rules in force", "rules event at seq 14", "in force or", || {
        then(|log| {
            log.activate(SECOND);
            log.propose(FIRST);
            log.back(FIRST);
            log.activate(FIRST);
        })
    }),
    refused("activation without approval", AT_ACTIVE, UNREADABLE, || {
        changed(|log| {
            log.alter_data(ACTIVE, |data| {
                let from = data.find("\"approval\"").unwrap();
                let to = data.find("\"checkpoint\"").unwrap();
                format!("{}{}", &data[..from], &data[to..])
            });
        })
    }),
    refused("activation that says it is going back", AT_ACTIVE, UNREADABLE, || {
        changed(|log| log.alter_data(ACTIVE, |data| data.replacen('{', "{\"back\":true,", 1)))
    }),
    refused("going back in place of an activation", AT_ACTIVE, "no activation is left", || {
        changed(|log| log.alter(ACTIVE, |event| event.step = Step::Active(Basis::Back)))
    }),
    refused("going back with nothing to undo", AT_NEXT, "no activation is left to undo", || {
        then(|log| {
            log.back(FIRST);
        })
    }),
    refused("going back from the first rules", "rules event at seq 11", "no activation", || {
        let mut log = begun();
        log.back(FIRST);
        sealed(&log)
    }),
    refused(
        "going back to the wrong rules",
        "rules event at seq 29",
        "not in force before",
        || changed(|log| log.alter(29, |event| event.rules = name(SECOND))),
    ),
    refused("going back once more than forward", "rules event at seq 43", "no activation", || {
        changed(|log| {
            log.back(SECOND);
            log.back(FIRST);
            log.back(SECOND);
        })
    }),
    refused("first rules in the middle", AT_NEXT, "is not its first event", || {
        then(|log| {
            log.begin_with(SECOND);
            log.pass();
        })
    }),
    refused("first rules at the second event", "rules event at seq 2", "is not its first", || {
        let mut log = begun();
        let step = log.step_at(1);
        log.replace(1, &crate::forge::event(99));
        let data = step.data();
        log.replace(2, &house(2, "rules:2", "ipse.rules", &data));
        sealed(&log)
    }),
    // The event.
    refused("member more in the data", AT_ACTIVE, UNREADABLE, || {
        changed(|log| log.alter_data(ACTIVE, |data| data.replacen('{', "{\"a\":1,", 1)))
    }),
    refused("unknown stage", AT_ACTIVE, UNREADABLE, || {
        changed(|log| log.alter_data(ACTIVE, |data| data.replace("\"active\"", "\"on\"")))
    }),
    refused("hash in upper case", "rules event at seq 8", UNREADABLE, || {
        changed(|log| {
            let hash = name(SECOND).hex();
            log.alter_data(8, |data| data.replace(&hash, &hash.to_uppercase()));
        })
    }),
    refused("id of another position", AT_ACTIVE, UNREADABLE, || {
        changed(|log| {
            let data = log.step_at(ACTIVE).data();
            log.replace(ACTIVE, &house(ACTIVE, "rules:12", "ipse.rules", &data));
        })
    }),
    refused("rules by a producer", "events.jsonl, line 9", "a type that only ipse may", || {
        then(|log| {
            let data = RulesEvent { rules: name(SECOND), step: Step::Withdrawn }.data();
            log.push(&producer_event(9, "robot-7", "ipse.rules", &data));
        })
    }),
    refused("rules event forgotten", "events.jsonl, seq 8", "cannot be forgotten", || {
        changed(|log| {
            log.forget(&[8]);
            log.pass();
        })
    }),
    refused("rules event said to be forgotten", "forget event at seq 39", "content exists", || {
        changed(|log| {
            let names = [log.name(8)];
            log.say_forgotten(&names);
            log.pass();
        })
    }),
    refused("rules event forgotten before the range", "events.jsonl, seq 8", "is missing", || {
        let mut log = changes();
        log.forget(&[8]);
        log.pass();
        Case::of(log.draft_of(20, 40, 0).pack())
    }),
    refused("rules event left out", "events.jsonl, seq 11", "cannot be forgotten", || {
        let log = changes();
        without(&log, log.draft(), ACTIVE)
    }),
    refused("earlier rules event left out", "events.jsonl, seq 11", "before its range", || {
        let log = changes();
        without(&log, log.draft_of(20, 38, 0), ACTIVE)
    }),
    refused("later rules event put in", "events.jsonl, seq 11", "outside of the range", || {
        let log = changes();
        let mut draft = log.draft_of(1, 10, 6);
        let event = log.rows[ACTIVE as usize - 1].event.clone().unwrap();
        // The forget event after the range is last.
        draft.events.insert(draft.events.len() - 1, format!("{event}\n"));
        Case::of(draft.pack())
    }),
    // Passes.
    refused("activation missing", "pass record at seq 9", NOT_IN_FORCE, || {
        then(|log| {
            log.rules.push((8, SECOND));
            log.rules_pass();
            log.rules.clear();
        })
    }),
    refused("pass under the rules before", "pass record at seq 12", NOT_IN_FORCE, || {
        then(|log| {
            log.activate(SECOND);
            log.events(11..=11);
            let rules = std::mem::take(&mut log.rules);
            log.pass();
            log.rules = rules;
        })
    }),
    refused("pass under the rules before a change", "pass record at seq 10", NOT_IN_FORCE, || {
        then(|log| {
            log.approve(SECOND);
            let rules = std::mem::take(&mut log.rules);
            log.rules_pass();
            log.rules = rules;
        })
    }),
    refused("pass with the hash of other rules", "pass record at seq 10", NOT_IN_FORCE, || {
        then(|log| {
            log.approve(SECOND);
            log.rules_pass_with(|data| {
                data.rule_set = ipse_core::hex::encode(&FIRST.hash());
            });
        })
    }),
    refused("pass of a change missing", AT_NEXT, "is not followed by its pass", || {
        then(|log| {
            log.approve(SECOND);
            log.events(10..=12);
            log.rules_pass_with(|data| data.trigger = "manual");
        })
    }),
    refused("pass of the last change missing", AT_NEXT, "is not followed by its pass", || {
        then(|log| {
            log.approve(SECOND);
            log.rules.clear();
        })
    }),
    refused("pass of going back missing", "rules event at seq 11", "not followed", || {
        then(|log| {
            log.activate(SECOND);
            log.put_in_force(FIRST, Basis::Back);
            log.events(12..=12);
        })
    }),
    refused("pass of a change over its end only", "pass record at seq 10", "from seq 1", || {
        then(|log| {
            log.approve(SECOND);
            log.pass_with(|data| data.trigger = "rules");
        })
    }),
    refused("pass of a change by hand", "pass record at seq 10", "triggered by rules", || {
        then(|log| {
            log.approve(SECOND);
            log.rules_pass_with(|data| data.trigger = "manual");
        })
    }),
    refused("pass of no change", "pass record at seq 9", "none changed before it", || {
        then(|log| {
            log.rules_pass();
        })
    }),
    refused("pass of the first rules", "pass record at seq 2", "none changed before it", || {
        let mut log = Log::new(crate::forge::MANIFEST);
        log.begin_with(SECOND);
        log.rules_pass();
        sealed(&log)
    }),
    // The members of the bundle.
    refused(
        "rule set of other rules",
        "rule-set.json",
        "in force at seq 33 are others: v1",
        || drafted(|draft| draft.rule_set = SECOND.descriptor()),
    ),
    refused("rule set of later rules", "rule-set.json", "in force at seq 6 are others: v1", || {
        let mut draft = changes().draft_of(1, ACTIVE, 6);
        draft.rule_set = SECOND.descriptor();
        Case::of(draft.pack())
    }),
    refused("rule set of other rules in a range", "rule-set.json", "are others", || {
        let mut draft = changes().draft_of(20, 24, 0);
        draft.rule_set = SECOND.descriptor();
        Case::of(draft.pack())
    }),
    refused("facts of other rules", "facts.jsonl", "fact", || {
        let mut log = changes();
        let mut draft = log.draft();
        log.rules = vec![(1, SECOND)];
        draft.facts = Some(log.facts(33));
        Case::of(draft.pack())
    }),
    refused("facts and rule set of other rules", "rule-set.json", "are others: v1", || {
        let mut log = changes();
        let mut draft = log.draft();
        log.rules = vec![(1, SECOND)];
        (draft.facts, draft.rule_set) = (Some(log.facts(33)), SECOND.descriptor());
        Case::of(draft.pack())
    }),
    refused("entry with another digest", "events.jsonl, line 10", "digest of its entry", || {
        changed(|log| log.rows[ACTIVE as usize - 1].entry.digest = Digest([0; 32]))
    }),
];
