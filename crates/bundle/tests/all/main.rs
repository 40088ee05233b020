//! Bundles: good ones verify, every other one does not, and nothing makes the verifier panic.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

mod attacks;
mod damage;
mod forge;
mod good;
