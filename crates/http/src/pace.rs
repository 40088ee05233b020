//! How fast each token may propose: an even pace, with some at once.
//!
//! **Invariants:** what one token does takes nothing from another; a request that comes too early
//! moves nothing, so that whoever knocks on is let in when whoever waits is; tokens that have not
//! asked for a while take no room.

use ipse_access::TokenId;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const MINUTE: u64 = 60_000_000;
/// The part of a minute's requests that may come at once: those of ten seconds.
const AT_ONCE: u64 = 6;

/// The paces of all tokens.
pub(crate) struct Paces {
    /// Microseconds between two requests at an even pace, and of those that may come at once.
    every: u64,
    ahead: u64,
    /// When each token's next request would be even, in microseconds since the server began.
    even: Mutex<BTreeMap<[u8; 16], u64>>,
}

impl Paces {
    /// So many requests a minute for each token.
    pub(crate) fn of(per_minute: u64) -> Self {
        let every = (MINUTE / per_minute.max(1)).max(1);
        let ahead = every * (per_minute / AT_ONCE).saturating_sub(1);
        Paces { every, ahead, even: Mutex::default() }
    }

    /// Lets a request through, or says how many seconds it has to wait.
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
        assert_eq!(through(&paces, 2, 5000, 30), 10, "each token for itself");
        assert_eq!(paces.admit(&TokenId([1; 16]), Duration::from_millis(5000)), Err(1));
        assert_eq!(through(&paces, 1, 5999, 30), 0);
        assert_eq!(through(&paces, 1, 6000, 30), 1, "one a second");
        assert_eq!(through(&paces, 1, 9000, 30), 3);
        assert_eq!(through(&paces, 1, 99_000, 30), 10, "and not more after a rest");
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
