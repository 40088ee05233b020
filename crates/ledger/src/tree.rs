//! The RFC 6962 Merkle tree: roots, inclusion, consistency.
//!
//! **Invariants**
//! - Entries and inner nodes are hashed with different prefixes, so no node is an entry.
//! - A proof has exactly the length that its sizes require. Any other length is rejected.
//! - Appending computes at most the hashes of the right edge, for any size.

use alloc::vec::Vec;
use ipse_core::sha256;

/// A node of the tree.
pub type Hash = [u8; 32];

/// The hash of an entry: a leaf of the tree.
pub fn entry_hash(entry: &[u8]) -> Hash {
    sha256(&[&[0], entry])
}

/// The hash of a node over two others.
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    sha256(&[&[1], left, right])
}

/// The root of a tree without entries.
pub fn empty_root() -> Hash {
    sha256(&[])
}

/// Lookup of complete subtrees. A subtree has `2^level` entries and begins at the entry
/// `index << level`.
pub trait Nodes {
    /// An error of the lookup.
    type Error;

    /// The root of a complete subtree.
    fn node(&self, level: u32, index: u64) -> Result<Hash, Self::Error>;
}

/// The greatest power of two below `n`, which is at least 2.
fn split(n: u64) -> u64 {
    1 << (u64::BITS - 1 - (n - 1).leading_zeros())
}

/// The root over the entries from `from` up to `to`, which must be one subtree.
fn subtree<N: Nodes>(nodes: &N, from: u64, to: u64) -> Result<Hash, N::Error> {
    let n = to - from;
    if n.is_power_of_two() {
        let level = n.trailing_zeros();
        return nodes.node(level, from >> level);
    }
    let middle = from + split(n);
    Ok(node_hash(&subtree(nodes, from, middle)?, &subtree(nodes, middle, to)?))
}

/// The root over the first `size` entries.
pub fn root<N: Nodes>(nodes: &N, size: u64) -> Result<Hash, N::Error> {
    if size == 0 { Ok(empty_root()) } else { subtree(nodes, 0, size) }
}

/// The proof that the entry `index` (from 0) is among the first `size`, the nearest hash first;
/// `None` if it is not.
pub fn inclusion<N: Nodes>(
    nodes: &N,
    index: u64,
    size: u64,
) -> Result<Option<Vec<Hash>>, N::Error> {
    if index >= size {
        return Ok(None);
    }
    let (mut from, mut to) = (0, size);
    let mut proof = Vec::new();
    while to - from > 1 {
        let middle = from + split(to - from);
        if index < middle {
            proof.push(subtree(nodes, middle, to)?);
            to = middle;
        } else {
            proof.push(subtree(nodes, from, middle)?);
            from = middle;
        }
    }
    proof.reverse();
    Ok(Some(proof))
}

/// The proof that the first `old` entries are the beginning of the first `new`; `None` if
/// `old` is greater than `new`. The proof from 0 entries, or to the same tree, is empty.
pub fn consistency<N: Nodes>(nodes: &N, old: u64, new: u64) -> Result<Option<Vec<Hash>>, N::Error> {
    if old > new {
        return Ok(None);
    }
    let mut proof = Vec::new();
    if old == 0 || old == new {
        return Ok(Some(proof));
    }
    // Walk down to the end of the old tree. Its root is omitted if it is one subtree.
    let (mut from, mut to) = (0, new);
    let mut whole = true;
    while to != old {
        let middle = from + split(to - from);
        if old <= middle {
            proof.push(subtree(nodes, middle, to)?);
            to = middle;
        } else {
            proof.push(subtree(nodes, from, middle)?);
            from = middle;
            whole = false;
        }
    }
    if !whole {
        proof.push(subtree(nodes, from, to)?);
    }
    proof.reverse();
    Ok(Some(proof))
}

/// The root that a proof of inclusion leads to; `None` if the proof has the wrong length.
pub fn root_from_inclusion(entry: &Hash, index: u64, size: u64, proof: &[Hash]) -> Option<Hash> {
    if index >= size {
        return None;
    }
    let mut hash = *entry;
    let (mut index, mut last) = (index, size - 1);
    let mut proof = proof.iter();
    while last > 0 {
        // A node without a sibling moves up unchanged.
        if index % 2 == 1 {
            hash = node_hash(proof.next()?, &hash);
        } else if index < last {
            hash = node_hash(&hash, proof.next()?);
        }
        index /= 2;
        last /= 2;
    }
    proof.next().is_none().then_some(hash)
}

/// Whether a proof shows that a tree of `old` entries is the beginning of one of `new`.
pub fn is_consistent(
    (old, old_root): (u64, &Hash),
    (new, new_root): (u64, &Hash),
    proof: &[Hash],
) -> bool {
    if old > new {
        return false;
    }
    if old == new {
        return proof.is_empty() && old_root == new_root;
    }
    if old == 0 {
        return proof.is_empty() && *old_root == empty_root();
    }
    roots_from_consistency(old, new, old_root, proof)
        .is_some_and(|roots| roots == (*old_root, *new_root))
}

/// The two roots that a proof of consistency leads to, for 0 < old < new.
fn roots_from_consistency(
    old: u64,
    new: u64,
    old_root: &Hash,
    proof: &[Hash],
) -> Option<(Hash, Hash)> {
    let mut proof = proof.iter();
    let (mut index, mut last) = (old - 1, new - 1);
    // The old tree's last complete subtree.
    while index % 2 == 1 {
        index /= 2;
        last /= 2;
    }
    let first = if old.is_power_of_two() { *old_root } else { *proof.next()? };
    let (mut from_old, mut from_new) = (first, first);
    while last > 0 {
        if index % 2 == 1 {
            let left = proof.next()?;
            from_old = node_hash(left, &from_old);
            from_new = node_hash(left, &from_new);
        } else if index < last {
            from_new = node_hash(&from_new, proof.next()?);
        }
        index /= 2;
        last /= 2;
    }
    proof.next().is_none().then_some((from_old, from_new))
}

/// The right edge of a growing tree: its complete subtrees, the largest first. It is sufficient to
/// append and to compute the root.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Edge {
    size: u64,
    subtrees: Vec<Hash>,
}

impl Edge {
    /// The edge of `size` entries with these complete subtrees; `None` if their number is wrong.
    pub fn new(size: u64, subtrees: Vec<Hash>) -> Option<Self> {
        (subtrees.len() == size.count_ones() as usize).then_some(Edge { size, subtrees })
    }

    /// The number of entries.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The complete subtrees, the largest first.
    pub fn subtrees(&self) -> &[Hash] {
        &self.subtrees
    }

    /// Adds the hash of an entry, and calls `each` for the subtrees that it completes with level,
    /// index and root, the entry itself first.
    pub fn push(&mut self, entry: Hash, mut each: impl FnMut(u32, u64, &Hash)) {
        let (mut hash, mut index) = (entry, self.size);
        each(0, index, &hash);
        for level in 1..=self.size.trailing_ones() {
            // The number of trailing ones is the number of completed subtrees, so all exist.
            if let Some(left) = self.subtrees.pop() {
                hash = node_hash(&left, &hash);
            }
            index /= 2;
            each(level, index, &hash);
        }
        self.subtrees.push(hash);
        self.size += 1;
    }

    /// The root of the tree.
    pub fn root(&self) -> Hash {
        let mut from_the_right = self.subtrees.iter().rev();
        let Some(last) = from_the_right.next() else { return empty_root() };
        from_the_right.fold(*last, |right, left| node_hash(left, &right))
    }
}
