//! The checks over all entries and events, made after the walk, with their texts.
//!
//! **Invariant:** a check over entries and events is written here and nowhere else. A new one is a
//! new [`Check`], and both verifiers report it.

use crate::walk::{Walk, rules_place};
use ipse_consult::answer::counted;
use ipse_core::{EventRef, Identity, Seq};
use ipse_ledger::account::{Fault, PassClaim};
use ipse_ledger::{ApprovalFault, NoteKey};

/// A check over all entries and events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// Every forgotten event is named by a `forget` event.
    Forgetting,
    /// Changes of rules are allowed and approved.
    Rules,
    /// Pass records say what the log says.
    Passes,
    /// Intents and decisions are ones that ipse can have written.
    Intents,
}

/// What a check needs besides the walk.
pub struct Context<'a> {
    /// The names of all entries, in order.
    pub names: &'a [EventRef],
    /// The first position whose event the verifier has.
    pub from: Seq,
    /// The identity of the log.
    pub identity: &'a Identity,
    /// The keys that may approve rules. Without them approvals are not checked.
    pub operators: &'a [NoteKey],
}

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// The mismatches, with their places.
    pub faults: Vec<Fault>,
    /// Statements that none of the given keys signed. They may be valid under another key.
    pub untrusted: Vec<Fault>,
    /// What holds if there are no faults. `None` if the log has nothing to check.
    pub holds: Option<String>,
    /// What was not compared.
    pub limits: Vec<String>,
}

impl Check {
    /// All checks, in the order of a report.
    pub const ALL: [Check; 4] = [Check::Forgetting, Check::Rules, Check::Passes, Check::Intents];

    /// The name in a report.
    pub fn name(self) -> &'static str {
        match self {
            Check::Forgetting => "forgetting",
            Check::Rules => "rules",
            Check::Passes => "passes",
            Check::Intents => "intents",
        }
    }

    /// Makes the check after the walk over all entries.
    pub fn run(self, walk: &Walk, context: &Context<'_>) -> Outcome {
        match self {
            Check::Forgetting => forgetting(walk),
            Check::Rules => rules(walk, context),
            Check::Passes => passes(walk, context),
            Check::Intents => intents(walk),
        }
    }
}

fn forgetting(walk: &Walk) -> Outcome {
    let holds = "every missing event is named by a later forget event, and no other".to_owned();
    Outcome { faults: walk.forgets.faults(), holds: Some(holds), ..Outcome::default() }
}

fn rules(walk: &Walk, context: &Context<'_>) -> Outcome {
    let changes = walk.rules.changes();
    let count = counted(changes.len() as u64, "change");
    let holds = format!("{count} of rules: each is allowed, and its pass follows it");
    let holds = Some(holds).filter(|_| !changes.is_empty());
    let mut found = Outcome { holds, ..Outcome::default() };
    for (seq, event, before) in &walk.approvals {
        if context.operators.is_empty() {
            let limit = "approvals of rules were not checked: no key of an operator was found";
            found.limits = vec![limit.to_owned()];
            break;
        }
        let fault = event.approval_fault(before, context.identity, context.operators);
        let Some(fault) = fault else { continue };
        let (faults, named) = match &fault {
            ApprovalFault::Untrusted(ids) => (&mut found.untrusted, format!("; it names {ids}")),
            ApprovalFault::Wrong(_) => (&mut found.faults, String::new()),
        };
        faults.push((rules_place(*seq), format!("{fault}{named}")));
    }
    let is_alone =
        |seq: &Seq| walk.rules.is_change(*seq) && walk.passes.binary_search(&seq.next()).is_err();
    let alone = changes.iter().map(|(seq, _)| *seq).filter(is_alone);
    let message = "is not followed by its pass";
    found.faults.extend(alone.map(|seq| (rules_place(seq), message.to_owned())));
    found
}

/// Compares each pass record with the previous one and with the log.
fn passes(walk: &Walk, &Context { names, from, .. }: &Context<'_>) -> Outcome {
    let mut found = Outcome::default();
    let (mut before, mut count, mut unknown, mut early) = (None::<&PassClaim>, 0, 0, 0);
    for record in &walk.records {
        let previous = std::mem::replace(&mut before, record.claimed.as_ref());
        let Some(claimed) = &record.claimed else { continue };
        let (first, last) = (claimed.first, claimed.last);
        let since = match previous {
            _ if first < from => None,
            _ if first == Seq(1) => Some(0),
            Some(previous) if Some(first) == record.follows => Some(previous.counted),
            _ => None,
        };
        let (forgets, rules) = (&walk.forgets, &walk.rules);
        let mut wrong = claimed.contradictions(record.follows, since, names, forgets, rules);
        let is_compared = since.is_some() && !forgets.any(first..=last);
        if is_compared && record.lists_idle == Some(false) {
            wrong.push("its list of skipped events is not the one that the rules give");
        }
        let place = format!("pass record at seq {}", record.seq);
        found.faults.extend(wrong.into_iter().map(|wrong| (place.clone(), wrong.to_owned())));
        count += 1;
        unknown += u64::from(record.lists_idle.is_none());
        // The events forgotten before the range are unknown, so the counts are too.
        early += u64::from(first < from);
    }
    let records = counted(count, "pass record");
    found.holds = Some(format!("{records}: ranges without gap or overlap, counts as in the log"));
    if unknown > 0 {
        let records = counted(unknown, "pass record");
        let what = format!("{records} under rules that this verifier does not know");
        found.limits.push(format!("skipped events not compared: {what}"));
    }
    if early > 0 {
        let what = "counts not compared for passes that began before the range";
        found.limits.push(format!("{what}: {early}"));
    }
    found
}

fn intents(walk: &Walk) -> Outcome {
    let ((proposed, decided), unknown) = (walk.intents.counts(), walk.intents.unknown());
    let (intents, decisions) = (counted(proposed, "intent"), counted(decided, "decision"));
    let holds = format!(
        "{intents}, {decisions}: each verdict is the most severe of its gates; each decision is in \
         time, and the only one about an intent that waited"
    );
    let limits = (unknown > 0).then(|| {
        format!("{} about intents before the range: not compared", counted(unknown, "decision"))
    });
    Outcome {
        faults: walk.intents.faults().to_vec(),
        holds: Some(holds).filter(|_| proposed + decided > 0),
        limits: limits.into_iter().collect(),
        ..Outcome::default()
    }
}
