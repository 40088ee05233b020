//! Evidence that needs no trust in a store: a Merkle tree over the log, signed tree heads, proofs,
//! and signed statements.
//!
//! **Invariants**
//! - Pure and `no_std`: bytes in, bytes out. Keys are handed in; nothing here reads or writes one.
//! - Formats are those of others, to the byte: RFC 6962 trees, C2SP `signed-note`,
//!   `tlog-checkpoint` and `tlog-proof`, DSSE 1.0 with in-toto Statement v1. So tools that we did
//!   not write can check every one of them.
//! - A signature counts only under a key that the caller trusts, only if it is strictly Ed25519,
//!   and never under a weak key. What does not have exactly the form it must have is refused.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod account;
pub mod base64;
pub mod claim;
pub mod dsse;
mod entry;
pub mod head;
pub mod key;
pub mod note;
pub mod proof;
pub mod tree;

pub use claim::{Bundled, Certificate, SentStatement};
pub use entry::{Entry, write_entry};
pub use head::TreeHead;
pub use key::{PublicKey, SecretKey};
pub use note::{Note, NoteKey, NoteSigner};
pub use proof::ProofFile;
pub use tree::{Edge, Hash, Nodes, entry_hash};
