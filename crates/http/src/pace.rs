//! The rate limit of intents for each token: an even rate, with a burst.
//!
//! **Invariants:** tokens do not affect each other. A rejected request does not push the limit
//! further out. Tokens that have been idle for a while use no memory.

use ipse_access::TokenId;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const MINUTE: u64 = 60_000_000;
/// The fraction of a minute's requests that may come as a burst: those of ten seconds.
const AT_ONCE: u64 = 6;

/// The rate limits of all tokens.
pub(crate) struct Paces {
    /// Microseconds between two requests at an even rate, and the length of a burst.
    every: u64,
    ahead: u64,
    /// The time of each token's next request at an even rate, in microseconds since the server
    /// started.
    even: Mutex<BTreeMap<[u8; 16], u64>>,
}

impl Paces {
    /// Limits each token to this many requests per minute.
    pub(crate) fn of(per_minute: u64) -> Self {
        let every = (MINUTE / per_minute.max(1)).max(1);
        let ahead = every * (per_minute / AT_ONCE).saturating_sub(1);
        Paces { every, ahead, even: Mutex::default() }
    }

    /// Accepts a request, or returns the number of seconds after which to retry.
    pub(crate) fn admit(&self, token: &TokenId, now: Duration) -> Result<(), u32> {
        let now = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        let mut even = self.even.lock().unwrap_or_else(PoisonError::into_inner);
        even.retain(|_, at| *at > now);
        let at = even.get(&token.0).copied().unwrap_or(now);
        let early = (at - now).saturating_sub(self.ahead);
        if early > 0 {
            return Err(u32::try_from(early.div_ceil(1_000_000)).unwrap_or(u32::MAX));
        }
        even.insert(token.0, at + self.every);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through(paces: &Paces, token: u8, millis: u64, times: usize) -> usize {
        let now = Duration::from_millis(millis);
        (0..times).filter(|_| paces.admit(&TokenId([token; 16]), now).is_ok()).count()
    }

    #[test]
    fn a_sixth_at_once_then_an_even_pace() {
        let paces = Paces::of(60);
        assert_eq!(through(&paces, 1, 5000, 30), 10);
        assert_eq!(through(&paces, 2, 5000, 30), 10, "tokens are independent");
        assert_eq!(paces.admit(&TokenId([1; 16]), Duration::from_millis(5000)), Err(1));
        assert_eq!(through(&paces, 1, 5999, 30), 0);
        assert_eq!(through(&paces, 1, 6000, 30), 1, "one a second");
        assert_eq!(through(&paces, 1, 9000, 30), 3);
        assert_eq!(through(&paces, 1, 99_000, 30), 10, "and not more after an idle time");
    }

    #[test]
    fn one_a_minute_is_one() {
        let paces = Paces::of(1);
        assert_eq!(through(&paces, 1, 0, 5), 1);
        assert_eq!(paces.admit(&TokenId([1; 16]), Duration::from_millis(1)), Err(60));
        assert_eq!(through(&paces, 1, 60_000, 5), 1);
    }

    #[test]
    fn who_no_longer_asks_takes_no_room() {
        let paces = Paces::of(600);
        (0..50).for_each(|token| assert_eq!(through(&paces, token, 0, 1), 1));
        assert_eq!(through(&paces, 99, 1000, 1), 1);
        assert_eq!(paces.even.lock().unwrap().len(), 1);
    }
}
