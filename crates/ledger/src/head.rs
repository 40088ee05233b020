//! Tree heads: the size and root of a log (C2SP `tlog-checkpoint`).

use crate::base64;
use crate::tree::Hash;
use alloc::format;
use alloc::string::{String, ToString};
use ipse_core::Identity;

/// Size and root of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TreeHead {
    /// The name of the log.
    pub origin: String,
    /// The number of entries.
    pub size: u64,
    /// The root over all entries.
    pub root: Hash,
}

impl TreeHead {
    /// The origin of an identity's log.
    pub fn origin_of(identity: &Identity) -> String {
        format!("ipse/{identity}")
    }

    /// The text that is signed: three lines.
    pub fn text(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.size, base64::encode(&self.root))
    }

    /// Parses exactly the form of `text`. Extension lines are rejected, because they cannot be
    /// audited.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.split('\n');
        let head = TreeHead {
            origin: lines.next().filter(|origin| !origin.is_empty())?.to_string(),
            size: number(lines.next()?)?,
            root: base64::decode_hash(lines.next()?)?,
        };
        lines.next().is_none().then_some(head)
    }
}

/// A decimal number without leading zeros.
pub(crate) fn number(text: &str) -> Option<u64> {
    let number: u64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}
