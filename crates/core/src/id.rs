//! Names that are hashes: identity, digest, event ref, fact id; and the seq.
//!
//! **Invariant:** an event ref depends on `(source, id)` alone, a fact id on
//! `(identity, fact_kind, fact_key)` alone: neither depends on position, time or content.

use crate::{FactKey, hex};
use alloc::string::String;
use core::fmt;
use sha2::{Digest as _, Sha256};

/// SHA-256 over the concatenated pieces.
pub fn sha256(pieces: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for piece in pieces {
        hash.update(piece);
    }
    hash.finalize().into()
}

/// SHA-256 over bytes that arrive piece by piece.
#[derive(Clone, Default)]
pub struct Hashing(Sha256);

impl Hashing {
    /// Adds the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The hash of all pieces.
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// SHA-256 of a canonical manifest: names the agent, and partitions all stored data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(pub [u8; 32]);

impl Identity {
    /// Reads the 64 lower-hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        hex::decode(text).map(Identity)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({self})")
    }
}

/// SHA-256 of an event's canonical bytes, salt included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest(pub [u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

/// An event's dense position in its log, from 1; 0 means "before the first event".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Seq(pub u64);

impl Seq {
    /// The last position that a log can have: a store keeps positions in 40 bits.
    pub const MAX: Seq = Seq((1 << 40) - 1);

    /// The next position. `u64::MAX`, which is beyond every log, has none.
    #[must_use]
    pub fn next(self) -> Self {
        Seq(self.0.saturating_add(1))
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! short_hash {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub [u8; 16]);

        impl $name {
            /// Reads the prefixed text form.
            pub fn parse(text: &str) -> Option<Self> {
                hex::decode(text.strip_prefix($prefix)?).map($name)
            }

            fn of(pieces: &[&[u8]]) -> Self {
                let hash = sha256(pieces);
                let mut short = [0; 16];
                short.copy_from_slice(&hash[..16]);
                $name(short)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), hex::encode(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
    };
}

short_hash!(
    /// `ev_` and the first 32 hex digits of SHA-256(source, newline, id): the name of an event.
    EventRef,
    "ev_"
);

short_hash!(
    /// `fa_` and the first 32 hex digits of SHA-256(identity, kind, key): the name of a fact.
    FactId,
    "fa_"
);

impl EventRef {
    /// The ref of the event that `source` names `id`.
    pub fn new(source: &str, id: &str) -> Self {
        Self::of(&[source.as_bytes(), b"\n", id.as_bytes()])
    }
}

impl FactId {
    /// The id of the fact under `key` of `identity`.
    pub fn new(identity: &Identity, key: &FactKey) -> Self {
        let identity: String = hex::encode(&identity.0);
        let kind = key.kind().name();
        Self::of(&[identity.as_bytes(), b"\n", kind.as_bytes(), b"\n", key.text().as_bytes()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn refs_follow_source_and_id() {
        let event = EventRef::new("robot-7", "0");
        assert_eq!(event.to_string(), "ev_8d2542681f7b1c989c336d4d0c6b56c0");
        assert_eq!(EventRef::parse(&event.to_string()), Some(event));
        assert_eq!(EventRef::parse("fa_8d2542681f7b1c989c336d4d0c6b56c0"), None);
    }

    #[test]
    fn no_position_follows_the_last_number() {
        assert_eq!((Seq(1).next(), Seq(u64::MAX).next()), (Seq(2), Seq(u64::MAX)));
    }
}
