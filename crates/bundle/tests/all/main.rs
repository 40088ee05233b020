//! Bundles: valid ones verify, all others fail, and no input makes the verifier panic.
#![allow(missing_docs, unreachable_pub, clippy::unwrap_used)]

mod attacks;
mod damage;
mod forge;
mod gates;
mod good;
mod rules;
mod witnesses;
