//! The signed statements: the manifest of an agent, the events of a producer, the contents of a
//! bundle, the approval of rules.
//!
//! **Invariant:** reading is the exact inverse of writing. A statement with an additional member,
//! another subject or another type is rejected.

use crate::account::can_be_forgotten;
use crate::dsse::Statement;
use crate::rules::RuleSetName;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use ipse_core::event::{FORGET, RULES};
use ipse_core::json::{Members, Object, Value};
use ipse_core::{Digest, EventRef, Identity, Seq, hex, json_parse, sha256};

/// The name of a manifest in a certificate and in a bundle.
pub const MANIFEST: &str = "manifest.json";
/// The name of a bundle's list of hashes.
pub const SUMS: &str = "SHA256SUMS";
/// The name of a rule set's descriptor in an approval and in a bundle.
pub const RULE_SET: &str = "rule-set.json";
/// The maximum nesting of a predicate.
const DEPTH: usize = 4;

fn identity_of(object: &Object<'_>) -> Option<Identity> {
    Identity::parse(object.get("identity_hash")?.as_text()?)
}

/// Reads a predicate, if writing the result gives the same statement.
fn read<T>(
    statement: &Statement,
    predicate_type: &str,
    parts: impl FnOnce(&Object<'_>) -> Option<T>,
    again: impl FnOnce(&T) -> Statement,
) -> Option<T> {
    if statement.predicate_type != predicate_type {
        return None;
    }
    let value = json_parse::parse(statement.predicate.as_bytes(), DEPTH).ok()?;
    let claim = parts(value.as_object()?)?;
    (again(&claim) == *statement).then_some(claim)
}

/// The operator's statement about the identity of the agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// The canonical manifest; its hash is the identity.
    pub manifest: String,
}

impl Certificate {
    /// The predicate type.
    pub const TYPE: &str = "urn:ipse:certificate:v1";

    /// The identity of the manifest.
    pub fn identity(&self) -> Identity {
        Identity(sha256(&[self.manifest.as_bytes()]))
    }

    /// Converts it to a statement.
    pub fn statement(&self) -> Statement {
        let identity = self.identity().to_string();
        let predicate =
            Members::new().text("identity_hash", &identity).raw("manifest", &self.manifest);
        Statement {
            subjects: Vec::from([(MANIFEST.to_string(), identity)]),
            predicate_type: Self::TYPE.to_string(),
            predicate: predicate.finish(),
        }
    }

    /// Reads it from a statement.
    pub fn read(statement: &Statement) -> Option<Self> {
        let parts = |predicate: &Object<'_>| {
            let mut manifest = String::new();
            predicate.get("manifest")?.write(&mut manifest);
            Some(Certificate { manifest })
        };
        read(statement, Self::TYPE, parts, Self::statement)
    }
}

/// A producer's statement about events that it sent to one identity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SentStatement {
    /// The identity that received the events.
    pub identity: Identity,
    /// The names and digests of the events, without duplicate names.
    pub events: Vec<(EventRef, Digest)>,
}

impl SentStatement {
    /// The predicate type.
    pub const TYPE: &str = "urn:ipse:sent:v1";
    /// The maximum number of events of a statement, so that an envelope stays below a megabyte.
    pub const MAX_EVENTS: usize = 4096;
    /// The longest envelope around a statement.
    pub const MAX_ENVELOPE_BYTES: usize = 1 << 20;

    /// Converts it to a statement.
    pub fn statement(&self) -> Statement {
        let subject = |(name, digest): &(EventRef, Digest)| (name.to_string(), digest.to_string());
        let identity = self.identity.to_string();
        Statement {
            subjects: self.events.iter().map(subject).collect(),
            predicate_type: Self::TYPE.to_string(),
            predicate: Members::new().text("identity_hash", &identity).finish(),
        }
    }

    /// Reads it from a statement.
    pub fn read(statement: &Statement) -> Option<Self> {
        let event = |(name, digest): &(String, String)| {
            Some((EventRef::parse(name)?, Digest(hex::decode(digest)?)))
        };
        let parts = |predicate: &Object<'_>| {
            let identity = identity_of(predicate)?;
            let events = statement.subjects.iter().map(event).collect::<Option<Vec<_>>>()?;
            let names: BTreeSet<&EventRef> = events.iter().map(|(name, _)| name).collect();
            let once = names.len() == events.len();
            let fits = (1..=Self::MAX_EVENTS).contains(&events.len());
            (once && fits).then_some(SentStatement { identity, events })
        };
        read(statement, Self::TYPE, parts, Self::statement)
    }
}

/// The operator's statement about the contents of a bundle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bundled {
    /// The identity of the log.
    pub identity: Identity,
    /// The SHA-256 of the list of hashes.
    pub sums: Digest,
    /// The position of the first event.
    pub from: Seq,
    /// The position of the last event. The ledger may be longer.
    pub to: Seq,
    /// The number of entries in the ledger.
    pub size: u64,
    /// The checkpoint of the facts; `None` if the bundle has no facts.
    pub checkpoint: Option<Seq>,
}

impl Bundled {
    /// The predicate type.
    pub const TYPE: &str = "urn:ipse:bundle:v1";

    /// Whether a position is in the range.
    pub fn has(&self, seq: Seq) -> bool {
        (self.from..=self.to).contains(&seq)
    }

    /// The fault of an event that the bundle has or lacks, by its position and type. All events of
    /// the range are there unless they are forgotten. Of the others there are those that the range
    /// cannot be understood without: `forget` events after it and changes of rules before it.
    pub fn presence_fault(&self, seq: Seq, event_type: &str, is_there: bool) -> Option<String> {
        let Bundled { from, to, .. } = self;
        let explains = (event_type == FORGET && seq > *to) || (event_type == RULES && seq < *from);
        match (is_there, self.has(seq)) {
            (true, false) if !explains => {
                Some(format!("lies outside of the range seq {from}..{to}"))
            }
            (false, true) if !can_be_forgotten(event_type) => {
                Some(format!("is missing: {event_type} events cannot be forgotten"))
            }
            (false, false) if explains => {
                let side = if seq > *to { "after" } else { "before" };
                Some(format!("is missing: a bundle has all {event_type} events {side} its range"))
            }
            _ => None,
        }
    }

    /// The contradictions to the rest of the bundle: to its identity, to the size in its tree head,
    /// and to whether it has facts.
    pub fn contradictions(
        &self,
        identity: &Identity,
        size: u64,
        has_facts: bool,
    ) -> impl Iterator<Item = &'static str> {
        let Bundled { from, to, checkpoint, .. } = self;
        let whole = *from == Seq(1);
        let outside = from.0 == 0 || to.0 > self.size || from.0 - 1 > to.0;
        let odd = checkpoint.is_some() != whole;
        let rules = [
            (self.identity != *identity, "is about another identity"),
            (self.size != size, "gives another size than the tree head"),
            (outside, "gives a range that is not in the log"),
            (odd, "must give a checkpoint if and only if the range begins at seq 1"),
            (*checkpoint > Some(*to), "gives a checkpoint beyond its range"),
            (has_facts && !whole, "the range does not begin at seq 1, but facts.jsonl exists"),
            (whole && !has_facts, "the range begins at seq 1, but facts.jsonl is missing"),
        ];
        rules.into_iter().filter(|(wrong, _)| *wrong).map(|(_, message)| message)
    }

    /// Converts it to a statement.
    pub fn statement(&self) -> Statement {
        let checkpoint = self.checkpoint.map_or("null".to_string(), |seq| format!("{seq}"));
        let predicate = Members::new()
            .raw("checkpoint", checkpoint)
            .raw("from", self.from)
            .text("identity_hash", &self.identity.to_string())
            .raw("to", self.to)
            .raw("tree_size", self.size);
        Statement {
            subjects: Vec::from([(SUMS.to_string(), self.sums.to_string())]),
            predicate_type: Self::TYPE.to_string(),
            predicate: predicate.finish(),
        }
    }

    /// Reads it from a statement.
    pub fn read(statement: &Statement) -> Option<Self> {
        let (_, sums) = statement.subjects.first()?;
        let parts = |predicate: &Object<'_>| {
            let count = |name: &str| predicate.get(name)?.as_count();
            let checkpoint = match predicate.get("checkpoint")? {
                Value::Null => None,
                seq => Some(Seq(seq.as_count()?)),
            };
            Some(Bundled {
                identity: identity_of(predicate)?,
                sums: Digest(hex::decode(sums)?),
                from: Seq(count("from")?),
                to: Seq(count("to")?),
                size: count("tree_size")?,
                checkpoint,
            })
        };
        read(statement, Self::TYPE, parts, Self::statement)
    }
}

/// The operator's approval of other rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RulesApproval {
    /// The identity of the log.
    pub identity: Identity,
    /// The position of the report.
    pub checkpoint: Seq,
    /// The hash of the rules in force before.
    pub from: [u8; 32],
    /// The approved rules.
    pub rules: RuleSetName,
    /// The SHA-256 of the report.
    pub report: [u8; 32],
}

impl RulesApproval {
    /// The predicate type.
    pub const TYPE: &str = "urn:ipse:rules:v1";

    /// Converts it to a statement.
    pub fn statement(&self) -> Statement {
        let predicate = Members::new()
            .raw("checkpoint", self.checkpoint)
            .text("from_rule_set_sha256", &hex::encode(&self.from))
            .text("identity_hash", &self.identity.to_string())
            .text("report_sha256", &hex::encode(&self.report))
            .text("rule_version", &self.rules.version);
        Statement {
            subjects: Vec::from([(RULE_SET.to_string(), self.rules.hex())]),
            predicate_type: Self::TYPE.to_string(),
            predicate: predicate.finish(),
        }
    }

    /// Reads it from a statement.
    pub fn read(statement: &Statement) -> Option<Self> {
        let (_, hash) = statement.subjects.first()?;
        let parts = |predicate: &Object<'_>| {
            let text = |name: &str| predicate.get(name)?.as_text();
            let version = text("rule_version")?.to_string();
            Some(RulesApproval {
                identity: identity_of(predicate)?,
                checkpoint: Seq(predicate.get("checkpoint")?.as_count()?),
                from: hex::decode(text("from_rule_set_sha256")?)?,
                rules: RuleSetName { version, hash: hex::decode(hash)? },
                report: hex::decode(text("report_sha256")?)?,
            })
        };
        read(statement, Self::TYPE, parts, Self::statement)
    }
}
