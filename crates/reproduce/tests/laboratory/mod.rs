//! A lab for tests: a fixed clock, counted salts, a temporary directory.
#![allow(clippy::unwrap_used, dead_code)]

use ipse_core::Time;
use ipse_door::Salt;
use ipse_engine::Host;
use ipse_reproduce::lab::Lab;
use serde_json::Value;

struct Counting(u128);

impl Host for Counting {
    fn now(&self) -> Time {
        Time::from_micros(1_780_000_000_000_000).unwrap()
    }

    fn salt(&mut self) -> Salt {
        self.0 += 1;
        self.0.to_be_bytes()
    }
}

pub(crate) fn lab<T>(experiment: impl FnOnce(&Lab<'_>) -> T) -> T {
    let directory = tempfile::tempdir().unwrap();
    let host = || Box::new(Counting(0)) as Box<dyn Host>;
    experiment(&Lab { directory: directory.path(), host: &host })
}

pub(crate) fn vector(name: &str) -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/").to_owned() + name;
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}
