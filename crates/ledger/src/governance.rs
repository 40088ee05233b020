//! The settings in force: a function of the acts of a log.
//!
//! **Invariants**
//! - The settings at a position are the defaults, then the baseline, then the later acts.
//! - An act that does not follow from the acts before it is a fault, and changes nothing here.
//! - A key is compared whole, never by its short id. Positions decide, never times.

use crate::act::{Act, ActEvent, Baseline, LogSettings, ProducerKey, TokenRecord};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use ipse_core::Seq;

/// The registration of a producer's key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyStanding {
    /// The key and its sources.
    pub producer: ProducerKey,
    /// The act that registered it; 0 for a key that was there before acts were recorded.
    pub since: Seq,
    /// The act that revoked it.
    pub revoked: Option<Seq>,
}

/// A token that acts name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenStanding {
    /// Its properties; `None` if it was there before acts were recorded.
    pub record: Option<TokenRecord>,
    /// Whether an act revoked it.
    pub revoked: bool,
}

/// Why an event of a producer may not count as signed by a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PositionFault {
    /// No act registered the key.
    Unregistered,
    /// The event stands before the act at this position, which registered the key.
    Before(Seq),
    /// The event stands after the act at this position, which revoked the key.
    After(Seq),
}

impl fmt::Display for PositionFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PositionFault::Unregistered => f.write_str("no act registered the key"),
            PositionFault::Before(seq) => write!(f, "the key was registered later, at seq {seq}"),
            PositionFault::After(seq) => write!(f, "the key was revoked before, at seq {seq}"),
        }
    }
}

/// The acts of a log so far, and the settings that they give.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Governance {
    settings: LogSettings,
    /// Producers by verifier key.
    producers: BTreeMap<String, KeyStanding>,
    /// Tokens by id.
    tokens: BTreeMap<String, TokenStanding>,
    /// The position of the last part of the baseline.
    baseline: Option<Seq>,
    acts: Vec<(Seq, ActEvent)>,
    /// Whether an act is in the log and could not be read or does not follow.
    incomplete: bool,
}

impl Governance {
    /// The acts, in order.
    pub fn acts(&self) -> &[(Seq, ActEvent)] {
        &self.acts
    }

    /// Whether the log began to record acts later than events: it has a baseline.
    pub fn has_baseline(&self) -> bool {
        self.baseline.is_some()
    }

    /// Whether an act is missing here.
    pub fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// The settings after the last act.
    pub fn settings(&self) -> &LogSettings {
        &self.settings
    }

    /// The keys of producers.
    pub fn producers(&self) -> impl Iterator<Item = &KeyStanding> {
        self.producers.values()
    }

    /// The standing of a verifier key.
    pub fn producer(&self, key: &str) -> Option<&KeyStanding> {
        self.producers.get(key)
    }

    /// The tokens by id.
    pub fn tokens(&self) -> &BTreeMap<String, TokenStanding> {
        &self.tokens
    }

    /// Records that an act is in the log whose content is not known here.
    pub fn unknown(&mut self) {
        self.incomplete = true;
    }

    /// Adds the act at a position. Returns the reason if it does not follow from the acts before.
    pub fn add(&mut self, seq: Seq, event: ActEvent) -> Result<(), String> {
        let applied = self.apply(seq, &event.act);
        match applied {
            Ok(()) => self.acts.push((seq, event)),
            Err(_) => self.incomplete = true,
        }
        applied
    }

    fn apply(&mut self, seq: Seq, act: &Act) -> Result<(), String> {
        match act {
            Act::Baseline(baseline) => return self.begin(seq, baseline),
            Act::ProducerRegistered(producer) => return self.register(seq, producer),
            Act::ProducerRevoked(producer) => return self.revoke(seq, producer),
            Act::TokenCreated(token) => return self.create_token(token),
            Act::TokenRevoked(token) => return self.revoke_token(token),
            Act::Signatures(from, to) => {
                set(&mut self.settings.signatures, from, to).ok_or("the signature requirement")
            }
            Act::Retention(from, to) => {
                set(&mut self.settings.retention, from, to).ok_or("the retention")
            }
            Act::MaxAhead(from, to) => {
                set(&mut self.settings.max_ahead, from, to).ok_or("max_ahead")
            }
            Act::KeyChanged(_) | Act::Erased => Ok(()),
        }
        .map_err(|what| format!("changes {what} from a value that was not in force"))
    }

    fn begin(&mut self, seq: Seq, part: &Baseline) -> Result<(), String> {
        let continues = self.baseline.is_some_and(|before| before.next() == seq);
        if !self.acts.is_empty() && !continues {
            return Err("is a baseline, but other acts stand before it".to_string());
        }
        if continues && part.settings != self.settings {
            return Err("is a part of a baseline with other settings".to_string());
        }
        (self.settings, self.baseline) = (part.settings.clone(), Some(seq));
        for (producer, revoked) in &part.producers {
            let revoked = revoked.then_some(seq);
            let standing = KeyStanding { producer: producer.clone(), since: Seq(0), revoked };
            self.producers.insert(producer.key.to_string(), standing);
        }
        let known = || TokenStanding { record: None, revoked: false };
        self.tokens.extend(part.tokens.iter().map(|token| (token.clone(), known())));
        Ok(())
    }

    fn register(&mut self, seq: Seq, producer: &ProducerKey) -> Result<(), String> {
        let key = producer.key.to_string();
        if self.producers.contains_key(&key) {
            return Err("registers a key that was registered before".to_string());
        }
        let standing = KeyStanding { producer: producer.clone(), since: seq, revoked: None };
        self.producers.insert(key, standing);
        Ok(())
    }

    fn revoke(&mut self, seq: Seq, producer: &ProducerKey) -> Result<(), String> {
        match self.producers.get_mut(&producer.key.to_string()) {
            Some(known) if known.producer == *producer && known.revoked.is_none() => {
                known.revoked = Some(seq);
                Ok(())
            }
            Some(known) if known.revoked.is_some() => Err("revokes a key twice".to_string()),
            Some(_) => Err("revokes a key with other sources".to_string()),
            None => Err("revokes a key that was not registered".to_string()),
        }
    }

    fn create_token(&mut self, token: &TokenRecord) -> Result<(), String> {
        let standing = TokenStanding { record: Some(token.clone()), revoked: false };
        match self.tokens.contains_key(&token.token_id) {
            true => Err("creates a token that was created before".to_string()),
            false => {
                self.tokens.insert(token.token_id.clone(), standing);
                Ok(())
            }
        }
    }

    fn revoke_token(&mut self, token: &TokenRecord) -> Result<(), String> {
        let known = self.tokens.get_mut(&token.token_id);
        let known = known.filter(|known| known.record.as_ref().is_none_or(|it| it == token));
        match known {
            Some(known) if !known.revoked => {
                known.revoked = true;
                Ok(())
            }
            Some(_) => Err("revokes a token twice".to_string()),
            None => Err("revokes a token that was not created".to_string()),
        }
    }

    /// The first event of a statement that none of its signers could sign, with the reason. One
    /// signer is enough if it could sign every event.
    pub fn statement_fault(
        &self,
        signers: impl IntoIterator<Item = String>,
        seqs: &[Seq],
    ) -> Option<(Seq, PositionFault)> {
        let fault =
            |key: &String| seqs.iter().find_map(|seq| Some((*seq, self.check(key, *seq).err()?)));
        let mut first = None;
        for key in signers {
            match fault(&key) {
                None => return None,
                found => first = first.or(found),
            }
        }
        first
    }

    /// Whether a key could sign the event at a position: it stands after the act that registered
    /// the key, and before the one that revoked it. Without acts every position is fine.
    pub fn check(&self, key: &str, seq: Seq) -> Result<(), PositionFault> {
        if self.acts.is_empty() {
            return Ok(());
        }
        match self.producers.get(key) {
            None if self.incomplete => Ok(()),
            None => Err(PositionFault::Unregistered),
            Some(known) if seq <= known.since => Err(PositionFault::Before(known.since)),
            Some(known) => match known.revoked {
                Some(revoked) if seq >= revoked => Err(PositionFault::After(revoked)),
                _ => Ok(()),
            },
        }
    }
}

/// Changes a value if it was `from`.
fn set<T: PartialEq + Clone>(value: &mut T, from: &T, to: &T) -> Option<()> {
    (value == from && from != to).then(|| *value = to.clone())
}
