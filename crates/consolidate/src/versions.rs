//! The rule sets of this build, as a value.
//!
//! The pass records of a log name the rules that its facts follow, by version and hash. [`Rules`]
//! is that name as a small value, and this file is the only mapping between the two.
//!
//! [`Rules`] does not implement [`RuleSet`]. Each rule set keeps sums of its own
//! type, and [`with_rules!`](crate::with_rules) turns the value into the rule set once per call;
//! its body is compiled for each rule set. Folding therefore costs the same as with a single rule
//! set, sums of two rule sets cannot be mixed, and an encoded sum needs no tag. To add a rule set,
//! add a variant, list it in [`Rules::ALL`] and add an arm to the macro; the compiler finds every
//! place that lacks something.
//!
//! **Invariants:** a version names one rule set, and so does a hash. An unknown one is `None`,
//! never the default.

use crate::{RuleSet, with_rules};
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::sha256;

/// A rule set of this build. The default is the one that a new log gets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Rules {
    /// The rule set of the paper: `docs/formats/fact.md`.
    #[default]
    V1,
    /// The rule set that also notices change: `docs/formats/fact.md`, part v2.
    V2,
}

impl Rules {
    /// All of them, the oldest first.
    pub const ALL: &[Rules] = &[Rules::V1, Rules::V2];

    /// The versions of all of them, for messages.
    pub fn versions() -> String {
        Self::ALL.iter().map(|rules| rules.version()).collect::<Vec<_>>().join(", ")
    }

    /// The rules of that version, as facts and pass records name it.
    pub fn of_version(version: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rules| rules.version() == version)
    }

    /// The rules whose descriptor has that hash.
    pub fn of_hash(hash: &[u8; 32]) -> Option<Self> {
        Self::ALL.iter().copied().find(|rules| rules.hash() == *hash)
    }

    /// The rules that a pass record names; `None` unless version and hash belong together.
    pub fn recorded(version: &str, hash: &[u8; 32]) -> Option<Self> {
        Self::of_version(version).filter(|rules| rules.hash() == *hash)
    }

    /// The name that every fact carries as `rule_version`.
    pub fn version(self) -> &'static str {
        with_rules!(self, |rules| rules.version())
    }

    /// Canonical JSON that pins the rules.
    pub fn descriptor(self) -> String {
        with_rules!(self, |rules| rules.descriptor())
    }

    /// The hash of the descriptor, as in pass records.
    pub fn hash(self) -> [u8; 32] {
        sha256(&[self.descriptor().as_bytes()])
    }
}

/// Evaluates an expression with a reference to the rule set that a [`Rules`] stands
/// for. The expression is compiled once for each rule set, as the body of a generic function is.
///
/// ```
/// use ipse_consolidate::{RuleSet, Rules, with_rules};
///
/// assert_eq!(with_rules!(Rules::default(), |rules| rules.version()), "v1");
/// ```
#[macro_export]
macro_rules! with_rules {
    ($value:expr, |$rules:ident| $body:expr) => {
        match $value {
            $crate::Rules::V1 => {
                let $rules = &$crate::V1;
                $body
            }
            $crate::Rules::V2 => {
                let $rules = &$crate::V2;
                $body
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_hashes_name_one_rule_set_each() {
        for rules in Rules::ALL.iter().copied() {
            assert_eq!(Rules::of_version(rules.version()), Some(rules));
            assert_eq!(Rules::of_hash(&rules.hash()), Some(rules));
            assert_eq!(Rules::recorded(rules.version(), &rules.hash()), Some(rules));
            assert_eq!(Rules::recorded(rules.version(), &[0; 32]), None);
        }
        for unknown in ["", "v0", "V1", "v1 ", "v9"] {
            assert_eq!(Rules::of_version(unknown), None, "{unknown:?}");
            assert_eq!(Rules::recorded(unknown, &Rules::V1.hash()), None, "{unknown:?}");
        }
        assert_eq!(Rules::of_hash(&[0; 32]), None);
    }

    /// The descriptor is a format: every pass record of every log contains its hash.
    #[test]
    fn the_descriptors_are_pinned() {
        let hash = |rules: Rules| ipse_core::hex::encode(&rules.hash());
        let v1 = "0d622c5ec366d5c27c2cb8fc1f0562c49e09f3245f9487e0b393033dc4d74174";
        let v2 = "55f0e110eeb0e510f5343485d00df15c57864aa31af20afd2b058ca84fb2dda4";
        assert_eq!((hash(Rules::V1).as_str(), hash(Rules::V2).as_str()), (v1, v2));
    }
}
