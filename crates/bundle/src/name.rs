//! The names of members, and their order.
//!
//! **Invariant:** the order of the variants is the order in the archive. Names and their texts map
//! one to one, so every other text is rejected.

use std::fmt;

/// A member of a bundle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Name {
    Manifest,
    Certificate,
    Events,
    Entries,
    Facts,
    RuleSet,
    EcmRegistry,
    Policy,
    Temperament,
    TreeHead,
    /// A producer's statement, numbered from 1.
    Signature(u32),
    LogKey,
    OperatorKey,
    ProducerKeys,
    Sums,
    SumsSignature,
}

impl Name {
    /// The names with a fixed text.
    const FIXED: [(Name, &str); 15] = [
        (Name::Manifest, "manifest.json"),
        (Name::Certificate, "certificate.dsse.json"),
        (Name::Events, "events.jsonl"),
        (Name::Entries, "entries.jsonl"),
        (Name::Facts, "facts.jsonl"),
        (Name::RuleSet, "rule-set.json"),
        (Name::EcmRegistry, "gates/ecm-registry.toml"),
        (Name::Policy, "gates/policy.toml"),
        (Name::Temperament, "gates/temperament.toml"),
        (Name::TreeHead, "tree-head.note"),
        (Name::LogKey, "keys/log.vkey"),
        (Name::OperatorKey, "keys/operator.pub"),
        (Name::ProducerKeys, "keys/producers.vkey"),
        (Name::Sums, "SHA256SUMS"),
        (Name::SumsSignature, "SHA256SUMS.sig"),
    ];

    /// The members that every bundle has.
    pub(crate) const REQUIRED: [Name; 10] = [
        Name::Manifest,
        Name::Certificate,
        Name::Events,
        Name::Entries,
        Name::RuleSet,
        Name::TreeHead,
        Name::LogKey,
        Name::OperatorKey,
        Name::Sums,
        Name::SumsSignature,
    ];

    /// The files of the gates, in the order of their manifest fields.
    pub(crate) const GATES: [Name; 3] = [Name::EcmRegistry, Name::Policy, Name::Temperament];

    /// Parses the name of a member.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some((name, _)) = Self::FIXED.iter().find(|(_, fixed)| *fixed == text) {
            return Some(*name);
        }
        let number = text.strip_prefix("signatures/")?.strip_suffix(".dsse.json")?;
        let name = Name::Signature(number.parse().ok().filter(|number| *number > 0)?);
        (name.to_string() == text).then_some(name)
    }

    /// Whether this member may directly follow `last`: names ascend, and statements are numbered
    /// without gaps.
    pub(crate) fn follows(self, last: Option<Name>) -> bool {
        match (last, self) {
            (Some(Name::Signature(last)), Name::Signature(this)) => {
                last.checked_add(1) == Some(this)
            }
            (last, Name::Signature(this)) => last < Some(self) && this == 1,
            (last, _) => last < Some(self),
        }
    }
}

/// The names of the files of the gates, in the order of their manifest fields.
pub fn gate_names() -> [String; 3] {
    Name::GATES.map(|name| name.to_string())
}

/// The name of a producer's statement by its number, from 1.
pub fn signature_name(number: u32) -> String {
    Name::Signature(number).to_string()
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Name::Signature(number) = self {
            return write!(f, "signatures/{number:06}.dsse.json");
        }
        let fixed = Self::FIXED.iter().find(|(name, _)| name == self);
        f.write_str(fixed.map_or("", |(_, text)| *text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_determine_each_other() {
        for (name, text) in Name::FIXED {
            assert_eq!((name.to_string().as_str(), Name::parse(text)), (text, Some(name)));
        }
        for number in [1, 999_999, 1_000_000, u32::MAX] {
            let name = Name::Signature(number);
            assert_eq!(Name::parse(&name.to_string()), Some(name));
        }
        for text in ["", "x", "signatures/1.dsse.json", "signatures/000000.dsse.json"] {
            assert_eq!(Name::parse(text), None, "{text}");
        }
        assert_eq!(Name::parse("signatures/0000001.dsse.json"), None);
        assert_eq!(Name::parse("signatures/+00001.dsse.json"), None);
    }

    #[test]
    fn order() {
        let [one, two] = [1, 2].map(Name::Signature);
        assert!(Name::Manifest.follows(None) && one.follows(Some(Name::TreeHead)));
        assert!(two.follows(Some(one)) && Name::LogKey.follows(Some(two)));
        assert!(!two.follows(Some(Name::TreeHead)) && !two.follows(Some(two)));
        assert!(!one.follows(Some(Name::LogKey)) && !Name::Facts.follows(Some(Name::Facts)));
    }
}
