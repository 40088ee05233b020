//! The index of event refs. It appends only: no insert writes to a random page.
//!
//! The newest refs are in memory. After every 4096 events they become a sorted run on disk; sixteen
//! runs of one size are merged into one. A filter per run, held in memory, rejects nearly every new
//! ref without a lookup on disk.
//!
//! **Invariants**
//! - The runs of a log are adjacent and cover all sealed events. If one is missing, all are created
//!   again from the log: a lost index costs time, but no duplicate is stored.
//! - The index in memory is trusted only after a commit: a rolled-back batch clears it.

use super::{at, seq_of};
use crate::Error;
use crate::session::Log;
use ipse_core::chunk::CHUNK_EVENTS;
use ipse_core::{Admitted, EventRef, Seq};
use rusqlite::{Connection, OptionalExtension};
use std::collections::BTreeMap;

/// Number of runs of one size that are merged into one.
const MERGED: usize = 16;
/// Entries per piece: the row of a piece fills one page without an overflow page.
const PIECE_ENTRIES: usize = 330;
/// Bytes per entry: eight of the ref, four for the distance from the run's first event.
const ENTRY: usize = 12;
/// Filter bits per ref: about one new ref in five hundred is a false positive.
const FILTER_BITS: usize = 16;
/// Bytes per block of a filter: one cache line.
const BLOCK: usize = 64;
/// Bits set per ref within its block.
const PROBES: usize = 6;

/// The part of the index of one log that is in memory.
#[derive(Default)]
pub(super) struct Refs {
    /// Sorted runs, oldest first.
    runs: Vec<Run>,
    /// Refs after the last run, as integers for fast comparison.
    tail: BTreeMap<u128, Seq>,
    /// The log and last position that this describes; `None` before the first load and after a
    /// rollback.
    known: Option<(i64, Seq)>,
    /// Whether the index has changes that are not committed.
    unsure: bool,
}

struct Run {
    first: Seq,
    last: Seq,
    first_piece: i64,
    filter: Vec<u8>,
}

impl Run {
    fn len(&self) -> usize {
        (self.last.0 - self.first.0 + 1) as usize
    }
}

impl Refs {
    pub(super) fn committed(&mut self) {
        self.unsure = false;
    }

    /// Clears the index if it has uncommitted changes. Filters are cleared too: another process may
    /// store a different run of the same positions.
    pub(super) fn rolled_back(&mut self) {
        if self.unsure {
            *self = Refs::default();
        }
    }

    /// Updates the index to the last position, if another process or a rollback changed it.
    pub(super) fn follow(
        &mut self,
        connection: &Connection,
        log: Log,
        head: Seq,
    ) -> Result<(), Error> {
        if self.known == Some((log.number, head)) {
            return Ok(());
        }
        if self.known.is_some_and(|(number, _)| number != log.number) {
            *self = Refs::default();
        }
        self.load_runs(connection, log)?;
        let sealed = Seq(head.0 / CHUNK_EVENTS as u64 * CHUNK_EVENTS as u64);
        if !self.covers(sealed) {
            // The new runs exist only if this transaction commits.
            self.unsure = true;
            self.make_again(connection, log, sealed)?;
        }
        self.load_tail(connection, log, sealed, head)?;
        self.known = Some((log.number, head));
        Ok(())
    }

    fn covers(&self, sealed: Seq) -> bool {
        let mut next = Seq(1);
        for run in &self.runs {
            if run.first != next || run.filter.len() != filter_length(run.len()) {
                return false;
            }
            next = run.last.next();
        }
        next == sealed.next()
    }

    /// Loads the runs, and reuses the filters that are in memory.
    fn load_runs(&mut self, connection: &Connection, log: Log) -> Result<(), Error> {
        let mut runs = stored_runs(connection, log)?;
        for run in &mut runs {
            let same = |old: &&mut Run| (old.first, old.last) == (run.first, run.last);
            run.filter = match self.runs.iter_mut().find(same) {
                Some(old) => std::mem::take(&mut old.filter),
                None => stored_filter(connection, log, run)?,
            };
        }
        self.runs = runs;
        Ok(())
    }

    fn load_tail(
        &mut self,
        connection: &Connection,
        log: Log,
        sealed: Seq,
        head: Seq,
    ) -> Result<(), Error> {
        let attempt = Error::while_trying("read the newest refs");
        let sql = "SELECT at, event_ref FROM event WHERE at BETWEEN ?1 AND ?2";
        let mut statement = connection.prepare_cached(sql).map_err(&attempt)?;
        let rows = statement
            .query_map((at(log, sealed.next()), at(log, head)), |row| {
                Ok((u128::from_be_bytes(row.get(1)?), seq_of(row.get(0)?)))
            })
            .map_err(&attempt)?;
        self.tail = rows.collect::<rusqlite::Result<_>>().map_err(&attempt)?;
        Ok(())
    }

    /// The position of the event with this name, if it is in the log.
    pub(super) fn find(
        &self,
        connection: &Connection,
        log: Log,
        event_ref: &EventRef,
    ) -> Result<Option<Seq>, Error> {
        if let Some(seq) = self.tail.get(&u128::from_be_bytes(event_ref.0)) {
            return Ok(Some(*seq));
        }
        for run in self.runs.iter().rev() {
            if may_hold(&run.filter, event_ref)
                && let Some(seq) = look_up(connection, log, run, event_ref)?
            {
                return Ok(Some(seq));
            }
        }
        Ok(None)
    }

    /// Adds events that were appended from `first` on.
    pub(super) fn add(&mut self, log: Log, first: Seq, events: &[&Admitted]) {
        self.unsure = true;
        let follows = self.known == Some((log.number, Seq(first.0 - 1)));
        self.known = follows.then(|| (log.number, Seq(first.0 - 1 + events.len() as u64)));
        if follows {
            let names = events.iter().map(|event| u128::from_be_bytes(event.event_ref.0));
            self.tail.extend(names.zip((first.0..).map(Seq)));
        }
    }

    /// Called after the chunk that ends at `last` was stored. If the chunk is full and holds the
    /// newest events, they become a run. Older events have a run, or get one at the next `follow`.
    pub(super) fn sealed(
        &mut self,
        connection: &Connection,
        log: Log,
        last: Seq,
        names: &[EventRef],
    ) -> Result<(), Error> {
        let is_newest = self.known == Some((log.number, last));
        match is_newest && names.len() == CHUNK_EVENTS && self.tail.len() == CHUNK_EVENTS {
            true => self.seal_run(connection, log, last),
            false => Ok(()),
        }
    }

    fn seal_run(&mut self, connection: &Connection, log: Log, last: Seq) -> Result<(), Error> {
        let tail = std::mem::take(&mut self.tail);
        let entries = tail.into_iter().map(|(name, seq)| ((name >> 64) as u64, seq)).collect();
        let first = Seq(last.0 + 1 - CHUNK_EVENTS as u64);
        let names = sealed_refs(connection, log, last)?;
        self.put_run(connection, log, (first, last), entries, &names)?;
        self.merge(connection, log)
    }

    /// Merges the newest sixteen runs while they have the same size.
    fn merge(&mut self, connection: &Connection, log: Log) -> Result<(), Error> {
        while self.runs.len() >= MERGED {
            let newest = &self.runs[self.runs.len() - MERGED..];
            if newest.iter().any(|run| run.len() != newest[0].len()) {
                return Ok(());
            }
            let (first, last) = (newest[0].first, newest[MERGED - 1].last);
            let mut entries = Vec::with_capacity(newest[0].len() * MERGED);
            let mut names = Vec::with_capacity(newest[0].len() * MERGED);
            for run in newest {
                entries.extend(read_run(connection, log, run)?);
                let mut chunk = run.first.0 - 1 + CHUNK_EVENTS as u64;
                while chunk <= run.last.0 {
                    names.extend(sealed_refs(connection, log, Seq(chunk))?);
                    chunk += CHUNK_EVENTS as u64;
                }
            }
            entries.sort_unstable();
            for run in self.runs.split_off(self.runs.len() - MERGED) {
                remove_run(connection, log, &run)?;
            }
            self.put_run(connection, log, (first, last), entries, &names)?;
        }
        Ok(())
    }

    fn put_run(
        &mut self,
        connection: &Connection,
        log: Log,
        (first, last): (Seq, Seq),
        entries: Vec<(u64, Seq)>,
        names: &[EventRef],
    ) -> Result<(), Error> {
        let attempt = Error::while_trying("write a run of refs");
        let first_piece = next_piece(connection, log).map_err(&attempt)?;
        let sql = "INSERT INTO piece (number, refs) VALUES (?1, ?2)";
        for (number, piece) in (first_piece..).zip(entries.chunks(PIECE_ENTRIES)) {
            let bytes = encode_piece(piece, first);
            connection
                .prepare_cached(sql)
                .and_then(|mut statement| statement.execute((number, bytes)))
                .map_err(&attempt)?;
        }
        let filter = make_filter(names);
        let row = (at(log, last), first.0.cast_signed(), first_piece, &filter);
        let sql = "INSERT INTO run (at, first_seq, first_piece, filter) VALUES (?1, ?2, ?3, ?4)";
        connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(row))
            .map_err(&attempt)?;
        self.runs.push(Run { first, last, first_piece, filter });
        Ok(())
    }

    /// Creates all runs again from the refs in the chunks.
    fn make_again(&mut self, connection: &Connection, log: Log, sealed: Seq) -> Result<(), Error> {
        let attempt = Error::while_trying("rebuild the runs of refs");
        let bounds = (at(log, Seq(0)), at(log, Seq::MAX));
        for table in ["DELETE FROM run WHERE at", "DELETE FROM piece WHERE number"] {
            connection.execute(&format!("{table} BETWEEN ?1 AND ?2"), bounds).map_err(&attempt)?;
        }
        self.runs.clear();
        let size = CHUNK_EVENTS as u64;
        for last in (1..=sealed.0 / size).map(|number| Seq(number * size)) {
            let names = sealed_refs(connection, log, last)?;
            let positions = (last.0 - size + 1..).map(Seq);
            let names = names.iter().map(|name| u128::from_be_bytes(name.0));
            self.tail = names.zip(positions).collect();
            self.seal_run(connection, log, last)?;
        }
        Ok(())
    }
}

/// The runs of a log, oldest first, without their filters.
fn stored_runs(connection: &Connection, log: Log) -> Result<Vec<Run>, Error> {
    let bounds = (at(log, Seq(0)), at(log, Seq::MAX));
    let sql = "SELECT at, first_seq, first_piece FROM run WHERE at BETWEEN ?1 AND ?2 ORDER BY at";
    let read = || {
        let mut statement = connection.prepare_cached(sql)?;
        let rows = statement.query_map(bounds, |row| {
            let first = Seq(row.get::<_, i64>(1)?.unsigned_abs());
            let last = seq_of(row.get(0)?);
            Ok(Run { first, last, first_piece: row.get(2)?, filter: Vec::new() })
        })?;
        rows.collect::<rusqlite::Result<_>>()
    };
    read().map_err(Error::while_trying("read the runs of refs"))
}

fn stored_filter(connection: &Connection, log: Log, run: &Run) -> Result<Vec<u8>, Error> {
    connection
        .prepare_cached("SELECT filter FROM run WHERE at = ?1")
        .and_then(|mut statement| statement.query_row([at(log, run.last)], |row| row.get(0)))
        .map_err(Error::while_trying("read the filter of a run"))
}

/// Looks up names without the index in memory: in the rows after the last run, then run by run.
pub(super) fn find_stored(
    connection: &Connection,
    log: Log,
    head: Seq,
    names: &[EventRef],
) -> Result<Vec<Option<Seq>>, Error> {
    let runs = stored_runs(connection, log)?;
    // An index with a gap cannot prove absence: then every row is searched.
    let mut covered = Seq(0);
    let whole = runs.iter().all(|run| {
        let adjacent = run.first == covered.next();
        covered = run.last;
        adjacent
    });
    let from = if whole { covered.next() } else { Seq(1) };
    let attempt = Error::while_trying("look for an event");
    let sql = "SELECT at FROM event WHERE at BETWEEN ?1 AND ?2 AND event_ref = ?3";
    let mut statement = connection.prepare_cached(sql).map_err(&attempt)?;
    let mut one = |name: &EventRef| {
        let bounds = (at(log, from), at(log, head), name.0);
        let in_rows = statement
            .query_row(bounds, |row| row.get(0).map(seq_of))
            .optional()
            .map_err(&attempt)?;
        let runs = if whole && in_rows.is_none() { &runs[..] } else { &[] };
        let in_run = |found: Option<Seq>, run| match found {
            Some(seq) => Ok(Some(seq)),
            None => look_up(connection, log, run, name),
        };
        runs.iter().rev().try_fold(in_rows, in_run)
    };
    names.iter().map(&mut one).collect()
}

/// Damage of the stored index, given the names of all events in order.
pub(super) fn damage(
    connection: &Connection,
    log: Log,
    names: &[EventRef],
) -> Result<Vec<(String, String)>, Error> {
    let mut found = Vec::new();
    let mut tell = |place: String, what: &str| found.push((place, what.to_string()));
    let sealed = names.len() / CHUNK_EVENTS * CHUNK_EVENTS;
    let mut next = Seq(1);
    let mut known_pieces = 0;
    for run in stored_runs(connection, log)? {
        let place = format!("index of seq {}..{}", run.first, run.last);
        if run.first != next || run.last < run.first || run.last.0 > sealed as u64 {
            tell(place, "does not follow the run before it, or covers missing events");
            next = run.last.next();
            continue;
        }
        next = run.last.next();
        known_pieces += pieces(&run);
        let covered = &names[run.first.0 as usize - 1..run.last.0 as usize];
        let mut entries: Vec<_> =
            covered.iter().map(prefix).zip((run.first.0..).map(Seq)).collect();
        entries.sort_unstable();
        // A missing or unreadable piece makes `read_run` fail.
        if !read_run(connection, log, &run).is_ok_and(|stored| stored.into_iter().eq(entries)) {
            tell(place, "does not match the events that it covers");
        } else if stored_filter(connection, log, &run)? != make_filter(covered) {
            tell(place, "has a filter that does not match its entries");
        }
    }
    if next.0 <= sealed as u64 {
        tell(format!("index of seq {next}..{sealed}"), "is missing");
    }
    let (low, high) = (at(log, Seq(0)), at(log, Seq::MAX));
    let count: i64 = connection
        .query_row(
            "SELECT count(*) FROM piece WHERE number BETWEEN ?1 AND ?2",
            [low, high],
            |row| row.get(0),
        )
        .map_err(Error::while_trying("count the pieces of refs"))?;
    if found.is_empty() && count.unsigned_abs() as usize != known_pieces {
        found.push(("index".to_string(), "has pieces that belong to no run".to_string()));
    }
    Ok(found)
}

fn prefix(event_ref: &EventRef) -> u64 {
    u64::from_be_bytes(*event_ref.0.first_chunk().expect("BUG: a ref has sixteen bytes"))
}

/// The names of the events of a full chunk.
fn sealed_refs(connection: &Connection, log: Log, last: Seq) -> Result<Vec<EventRef>, Error> {
    connection
        .prepare_cached("SELECT refs FROM chunk WHERE at = ?1")
        .and_then(|mut statement| {
            statement.query_row([at(log, last)], |row| {
                let refs = row.get_ref(0)?.as_blob()?;
                Ok(refs.as_chunks().0.iter().map(|name| EventRef(*name)).collect())
            })
        })
        .map_err(Error::while_trying("read the refs of a chunk"))
}

/// The next free piece number. Each log has its own range of numbers.
fn next_piece(connection: &Connection, log: Log) -> rusqlite::Result<i64> {
    let (low, high) = (at(log, Seq(0)), at(log, Seq::MAX));
    let sql = "SELECT coalesce(max(number), ?1) + 1 FROM piece WHERE number BETWEEN ?1 AND ?2";
    connection.prepare_cached(sql)?.query_row((low, high), |row| row.get(0))
}

fn encode_piece(entries: &[(u64, Seq)], first: Seq) -> Vec<u8> {
    let entry = |(prefix, seq): &(u64, Seq)| {
        let mut bytes = [0; ENTRY];
        bytes[..8].copy_from_slice(&prefix.to_be_bytes());
        // A run has fewer than 2³² events: its size is 4096 times a power of sixteen.
        bytes[8..].copy_from_slice(&((seq.0 - first.0) as u32).to_be_bytes());
        bytes
    };
    entries.iter().flat_map(entry).collect()
}

fn decode_piece(bytes: &[u8], first: Seq) -> impl Iterator<Item = (u64, Seq)> {
    bytes.as_chunks::<ENTRY>().0.iter().map(move |entry| {
        let number = |from: usize, to: usize| {
            entry[from..to].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        (number(0, 8), Seq(first.0 + number(8, ENTRY)))
    })
}

fn read_piece(connection: &Connection, number: i64) -> Result<Vec<u8>, Error> {
    let found: Option<Vec<u8>> = connection
        .prepare_cached("SELECT refs FROM piece WHERE number = ?1")
        .and_then(|mut statement| statement.query_row([number], |row| row.get(0)).optional())
        .map_err(Error::while_trying("read a piece of refs"))?;
    found.ok_or_else(|| Error::Corrupt(format!("piece {number} of the ref index is missing")))
}

fn pieces(run: &Run) -> usize {
    run.len().div_ceil(PIECE_ENTRIES)
}

fn read_run(connection: &Connection, _log: Log, run: &Run) -> Result<Vec<(u64, Seq)>, Error> {
    let mut entries = Vec::with_capacity(run.len());
    for number in (run.first_piece..).take(pieces(run)) {
        entries.extend(decode_piece(&read_piece(connection, number)?, run.first));
    }
    Ok(entries)
}

fn remove_run(connection: &Connection, log: Log, run: &Run) -> Result<(), Error> {
    let attempt = Error::while_trying("remove a merged run of refs");
    let last_piece = run.first_piece + pieces(run).cast_signed() as i64 - 1;
    connection
        .prepare_cached("DELETE FROM piece WHERE number BETWEEN ?1 AND ?2")
        .and_then(|mut statement| statement.execute((run.first_piece, last_piece)))
        .map_err(&attempt)?;
    connection
        .prepare_cached("DELETE FROM run WHERE at = ?1")
        .and_then(|mut statement| statement.execute([at(log, run.last)]))
        .map(drop)
        .map_err(&attempt)
}

/// Searches a run for a ref. Refs are hashes, so interpolation finds nearly the right piece.
fn look_up(
    connection: &Connection,
    log: Log,
    run: &Run,
    event_ref: &EventRef,
) -> Result<Option<Seq>, Error> {
    let wanted = prefix(event_ref);
    let count = pieces(run);
    let guess = ((u128::from(wanted) * run.len() as u128) >> 64) as usize / PIECE_ENTRIES;
    let mut piece = guess.min(count - 1);
    let mut seen_left = false;
    loop {
        let bytes = read_piece(connection, run.first_piece + piece.cast_signed() as i64)?;
        let entries: Vec<(u64, Seq)> = decode_piece(&bytes, run.first).collect();
        let damaged = || Error::Corrupt("a piece of the ref index is empty".into());
        let (least, _) = *entries.first().ok_or_else(damaged)?;
        let (greatest, _) = *entries.last().ok_or_else(damaged)?;
        if wanted < least && piece > 0 && !seen_left {
            piece -= 1;
            continue;
        }
        let from = entries.partition_point(|(prefix, _)| *prefix < wanted);
        for (_, seq) in entries[from..].iter().take_while(|(prefix, _)| *prefix == wanted) {
            if name_at(connection, log, *seq)? == Some(*event_ref) {
                return Ok(Some(*seq));
            }
        }
        if wanted < greatest || piece + 1 == count {
            return Ok(None);
        }
        seen_left = true;
        piece += 1;
    }
}

fn name_at(connection: &Connection, log: Log, seq: Seq) -> Result<Option<EventRef>, Error> {
    connection
        .prepare_cached("SELECT event_ref FROM event WHERE at = ?1")
        .and_then(|mut statement| {
            statement.query_row([at(log, seq)], |row| row.get(0).map(EventRef)).optional()
        })
        .map_err(Error::while_trying("read an event's name"))
}

fn filter_length(refs: usize) -> usize {
    (refs * FILTER_BITS / 8).div_ceil(BLOCK) * BLOCK
}

/// The block of a ref, and the bits in it. A ref is a hash, so its bytes serve as random bits.
fn block_and_bits(length: usize, event_ref: &EventRef) -> (usize, [(usize, u8); PROBES]) {
    let number = |from: usize| {
        event_ref.0[from..from + 8].iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte))
    };
    let block = ((u128::from(number(8)) * (length / BLOCK) as u128) >> 64) as usize * BLOCK;
    let bits = number(0);
    let probe = |n: usize| {
        let bit = (bits >> (9 * n)) as usize & (BLOCK * 8 - 1);
        (bit / 8, 1 << (bit % 8))
    };
    (block, std::array::from_fn(probe))
}

fn make_filter(names: &[EventRef]) -> Vec<u8> {
    let mut filter = vec![0; filter_length(names.len())];
    for name in names {
        let (block, bits) = block_and_bits(filter.len(), name);
        bits.iter().for_each(|(byte, bit)| filter[block + byte] |= bit);
    }
    filter
}

fn may_hold(filter: &[u8], event_ref: &EventRef) -> bool {
    let (block, bits) = block_and_bits(filter.len(), event_ref);
    bits.iter().all(|(byte, bit)| filter[block + byte] & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(n: u32) -> EventRef {
        EventRef::new("test", &n.to_string())
    }

    #[test]
    fn filters_hold_what_was_put_in_and_little_else() {
        let names: Vec<EventRef> = (0..4096).map(name).collect();
        let filter = make_filter(&names);
        assert!((0..4096).all(|n| may_hold(&filter, &name(n))));
        let in_vain = (10_000..110_000).filter(|n| may_hold(&filter, &name(*n))).count();
        assert!(in_vain < 500, "{in_vain} of 100000");
    }

    #[test]
    fn pieces_survive_their_bytes() {
        let entries: Vec<(u64, Seq)> = (0..300).map(|n| (n * n * 7919, Seq(100 + n))).collect();
        let bytes = encode_piece(&entries, Seq(100));
        assert!(decode_piece(&bytes, Seq(100)).eq(entries));
    }
}
