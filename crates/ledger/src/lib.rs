//! Evidence that needs no trust in a store: a Merkle tree over the log, signed tree heads, proofs,
//! and signed statements.
//!
//! **Invariants**
//! - Pure and `no_std`: bytes in, bytes out. Keys are arguments; the crate reads and writes none.
//! - All formats are published ones, to the byte: RFC 6962 trees, C2SP `signed-note`,
//!   `tlog-checkpoint`, `tlog-proof`, `tlog-cosignature` and `tlog-witness`, DSSE 1.0 with in-toto
//!   Statement v1. Third-party tools can check each of them.
//! - A signature counts only if the caller trusts the key, if it is valid under strict Ed25519, and
//!   if the key is not weak. Input in any other than the exact form is rejected.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod account;
pub mod act;
pub mod base64;
pub mod claim;
pub mod cosignature;
pub mod dsse;
mod entry;
pub mod governance;
pub mod head;
pub mod key;
pub mod note;
pub mod proof;
pub mod rules;
pub mod tree;

pub use act::{Act, ActEvent};
pub use claim::{Bundled, Certificate, KeyStatement, RulesApproval, SentStatement};
pub use cosignature::{CosignRequest, Cosignature, WitnessKey};
pub use entry::{Entry, write_entry};
pub use governance::Governance;
pub use head::TreeHead;
pub use key::{PublicKey, SecretKey};
pub use note::{Note, NoteKey, NoteSigner};
pub use proof::ProofFile;
pub use rules::{ApprovalFault, Basis, RuleSetName, RulesEvent, RulesFault, RulesHistory, Step};
pub use tree::{Edge, Hash, Nodes, entry_hash};
