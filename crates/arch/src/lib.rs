//! Tests about the workspace itself; nothing to call, everything is in `tests/`.
//!
//! **Guarantees**, while `cargo test -p ipse-arch` is green:
//! - The crate graph is the one in `ARCHITECTURE.md`, and nothing that runs a pass (`consolidate`,
//!   `store`, `engine`) has a path to `manifest` (`tests/graph.rs`).
//! - The library `ipse` links few packages, none of them for terminals, servers or pictures, and a
//!   server build links no experiments (`tests/links.rs`).
//! - Every file says first what it is for, fits its limits and names nothing on the ban list; the
//!   pure crates are `no_std`, and none is unsafe (`tests/house.rs`).
//! - The pages a reader is promised exist, their links lead somewhere, and every rule of the door
//!   is documented under its code (`tests/docs.rs`).
//!
//! A failing test names the file, the line and what to do instead.
