//! The clock and the random numbers of the system.

use ipse_core::Time;
use ipse_door::Salt;
use ipse_engine::Host;
use std::time::{SystemTime, UNIX_EPOCH};

/// Salts drawn at once: one system call for many events.
const SALTS_AT_ONCE: usize = 256;

/// A host with the system's clock and random numbers.
pub struct SystemHost {
    random: Vec<Salt>,
}

impl SystemHost {
    /// Creates a host. It draws salts when the first one is needed.
    pub fn new() -> Self {
        SystemHost { random: Vec::new() }
    }

    /// 32 random bytes, enough for a key.
    pub fn random() -> [u8; 32] {
        drawn()
    }
}

impl Default for SystemHost {
    fn default() -> Self {
        Self::new()
    }
}

impl Host for SystemHost {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let micros = i64::try_from(since.as_micros()).unwrap_or(i64::MAX);
        // A clock beyond the year 9999 reads as 1970. That is safe: no fact uses the time of a
        // pass.
        Time::from_micros(micros).or(Time::from_micros(0)).expect("BUG: 1970 is a time")
    }

    fn salt(&mut self) -> Salt {
        if let Some(salt) = self.random.pop() {
            return salt;
        }
        let bytes: [u8; SALTS_AT_ONCE * 16] = drawn();
        self.random = bytes.as_chunks::<16>().0.to_vec();
        self.random.pop().expect("BUG: salts were just drawn")
    }
}

fn drawn<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has no randomness to give");
    bytes
}
