//! Counts the recent intents of each skill that were not denied, for the rate limits of a policy.
//!
//! **Invariants**
//! - Counts come from the log, so that neither a restart nor another process on the same store
//!   resets a limit.
//! - Each part of the log is read once. Intents older than the longest window use no memory.
//! - A count inside a transaction reads only the intents of the last second, because [`Prepared`]
//!   proves that the others were read before the transaction.

use ipse_core::event::MAX_DEPTH;
use ipse_core::{Ruling, Seq, Time, json_parse};
use ipse_engine::{Error, LogView};
use ipse_inspect::Look;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The longest window of a rate limit, in microseconds. Older intents are not counted.
const LONGEST: i64 = 86_400_000_000;
/// The log is read again before a transaction if the last read is older than this, in microseconds.
/// Opening the store for that costs more than reading a second of intents.
const FRESH: u64 = 1_000_000;

/// The rate windows of one agent.
#[derive(Default)]
pub(crate) struct Windows {
    /// Held by the request that reads the log before its transaction. No transaction waits for it.
    reading: Mutex<()>,
    counted: Mutex<Counted>,
}

/// Proof that the log was read before the transaction.
#[must_use = "a count inside a transaction requires it"]
pub(crate) struct Prepared(());

impl Windows {
    /// Reads the log up to now, on a read-only connection.
    pub(crate) fn prepare(&self, look: &Look, now: Time) -> Result<Prepared, Error> {
        if self.counted().is_fresh(now) {
            return Ok(Prepared(()));
        }
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        // Another request may have read the log meanwhile.
        let after = match self.counted() {
            counted if counted.is_fresh(now) => return Ok(Prepared(())),
            counted => counted.read,
        };
        let part = look.past(|past| Part::read(past, after, now))?;
        self.counted().add(part, now);
        Ok(Prepared(()))
    }

    /// Counts the intents of a skill in the last `seconds` that were not denied, inside the
    /// transaction that appends the next one.
    pub(crate) fn count(
        &self,
        _: Prepared,
        past: &LogView<'_>,
        skill: &str,
        now: Time,
        seconds: u64,
    ) -> Result<u64, Error> {
        let mut counted = self.counted();
        let part = Part::read(past, counted.read, now)?;
        counted.add(part, now);
        Ok(counted.count(skill, now, seconds))
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of the log: the intents in it that were not denied, newest first.
struct Part {
    head: Seq,
    found: Vec<(Seq, String, Time)>,
}

impl Part {
    fn read(past: &LogView<'_>, after: Seq, now: Time) -> Result<Self, Error> {
        let oldest = now.micros().saturating_sub(LONGEST);
        let mut found = Vec::new();
        let head = past.intents(after, |stored| {
            let skill = let_through(&stored.canonical);
            found.extend(skill.map(|skill| (stored.seq, skill, stored.time)));
            stored.time.micros() > oldest
        })?;
        Ok(Part { head, found })
    }
}

/// The intents that were not denied, and the position and time of the last read.
#[derive(Default)]
struct Counted {
    read: Seq,
    read_at: Option<Time>,
    times: BTreeMap<String, VecDeque<Time>>,
}

impl Counted {
    fn is_fresh(&self, now: Time) -> bool {
        self.read_at.is_some_and(|then| now.micros().abs_diff(then.micros()) < FRESH)
    }

    fn add(&mut self, part: Part, now: Time) {
        // A transaction may have counted some of these intents already.
        let read = self.read;
        let new = part.found.into_iter().rev().filter(|(seq, ..)| *seq > read);
        for (_, skill, time) in new {
            self.times.entry(skill).or_default().push_back(time);
        }
        (self.read, self.read_at) = (read.max(part.head), Some(now));
        let oldest = now.micros().saturating_sub(LONGEST);
        self.times.retain(|_, times| {
            while times.front().is_some_and(|time| time.micros() <= oldest) {
                times.pop_front();
            }
            !times.is_empty()
        });
    }

    fn count(&mut self, skill: &str, now: Time, seconds: u64) -> u64 {
        let long = i64::try_from(seconds.saturating_mul(1_000_000)).unwrap_or(LONGEST);
        let since = now.micros().saturating_sub(long.min(LONGEST));
        let Some(times) = self.times.get_mut(skill) else { return 0 };
        times.retain(|time| time.micros() > since);
        times.len() as u64
    }
}

/// The skill of an intent that was not denied. An intent that waits for confirmation counts.
fn let_through(canonical: &str) -> Option<String> {
    let value = json_parse::parse(canonical.as_bytes(), MAX_DEPTH).ok()?;
    let data = value.as_object()?.get("data")?.as_object()?;
    let ruling = Ruling::parse(data.get("verdict")?.as_text()?)?;
    let skill = data.get("skill_id")?.as_text()?;
    (ruling != Ruling::Denied).then(|| skill.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipse_core::Admitted;
    use ipse_door::{Origin, Salt, admit};
    use ipse_engine::{Host, Memory, Policy};
    use ipse_store::{Location, Store};
    use std::path::Path;

    struct Still;

    impl Host for Still {
        fn now(&self) -> Time {
            time(0)
        }

        fn salt(&mut self) -> Salt {
            [7; 16]
        }
    }

    fn time(seconds: i64) -> Time {
        Time::from_micros(1_800_000_000_000_000 + seconds * 1_000_000).unwrap()
    }

    fn intent(number: i64, verdict: &str) -> Admitted {
        let event = format!(
            "{{\"id\":\"intent:{number:032x}\",\"source\":\"ipse\",\"type\":\"intent\",\
             \"time\":\"{}\",\"data\":{{\"skill_id\":\"grasp\",\"verdict\":\"{verdict}\"}}}}",
            time(number)
        );
        admit(event.as_bytes(), Origin::House, || [7; 16]).unwrap()
    }

    fn memory(path: &Path) -> (Memory, Look) {
        let store = Store::create(&Location::file(path)).unwrap();
        let identity = store.register("{\"agent_id\":\"a\"}").unwrap().identity;
        let memory = Memory::open(&store, identity, Policy::default(), Box::new(Still), None);
        (memory.unwrap(), Look::at(&store, identity))
    }

    /// The number of intents that a transaction has to read now, and its count.
    fn inside(windows: &Windows, prepared: Prepared, memory: &Memory, now: Time) -> (u64, u64) {
        let done = memory.append_judged(|past| {
            let (after, mut visited) = (windows.counted().read, 0);
            past.intents(after, |_| {
                visited += 1;
                true
            })?;
            let recent = windows.count(prepared, past, "grasp", now, 86_400)?;
            Ok(Err::<(Admitted, ()), _>((visited, recent)))
        });
        done.unwrap().unwrap_err()
    }

    #[test]
    fn a_transaction_reads_only_the_intents_since_the_log_was_read_before_it() {
        let directory = tempfile::tempdir().unwrap();
        let (memory, look) = memory(&directory.path().join("store.db"));
        let before: Vec<_> = (0..300).map(|n| intent(n, "admitted")).collect();
        memory.append_all(&before).unwrap();
        let windows = Windows::default();
        let prepared = windows.prepare(&look, time(300)).unwrap();
        // These are appended between the read and the transaction.
        memory.append_all(&[intent(300, "clamped"), intent(301, "denied")]).unwrap();
        assert_eq!(inside(&windows, prepared, &memory, time(301)), (2, 301));
        // Within a second the log is not read again before the transaction, and no intent is
        // counted twice.
        memory.append_all(&[intent(302, "needs_confirmation")]).unwrap();
        let prepared = windows.prepare(&look, time(301)).unwrap();
        assert_eq!(inside(&windows, prepared, &memory, time(301)), (1, 302));
        memory.append_all(&[intent(303, "admitted")]).unwrap();
        let prepared = windows.prepare(&look, time(302)).unwrap();
        assert_eq!(inside(&windows, prepared, &memory, time(302)), (0, 303));
    }

    #[test]
    fn a_part_that_a_transaction_counted_meanwhile_is_not_counted_again() {
        let directory = tempfile::tempdir().unwrap();
        let (memory, look) = memory(&directory.path().join("store.db"));
        memory.append_all(&[intent(0, "admitted"), intent(1, "admitted")]).unwrap();
        let windows = Windows::default();
        let slow = look.past(|past| Part::read(past, Seq(0), time(2))).unwrap();
        let prepared = windows.prepare(&look, time(2)).unwrap();
        assert_eq!(inside(&windows, prepared, &memory, time(2)).1, 2);
        windows.counted().add(slow, time(2));
        let prepared = windows.prepare(&look, time(2)).unwrap();
        assert_eq!(inside(&windows, prepared, &memory, time(2)).1, 2);
    }
}
