//! What producers signed, and whose signatures count.
//!
//! **Invariants:** an envelope is kept as it came and joins the log in the transaction of its
//! events; it never changes. Which events it covers is written beside it and can be made again.

use super::read::View;
use super::write::Batch;
use super::{LogId, MAX_SEQ, Reader, seq_of};
use crate::{Error, Signatures};
use ipse_core::wire::{self, Wire};
use ipse_core::{Identity, Seq};
use rusqlite::{Connection, Row};
use std::ops::RangeInclusive;

/// A statement of a producer, without its envelope.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed {
    /// Its number, from 1.
    pub number: u64,
    /// The verifier key that signed it.
    pub signer: String,
    /// The positions of its events, ascending.
    pub events: Vec<RangeInclusive<Seq>>,
}

impl Signed {
    /// Whether it covers a position.
    pub fn covers(&self, seq: Seq) -> bool {
        let after = self.events.partition_point(|run| *run.start() <= seq);
        after > 0 && self.events[after - 1].contains(&seq)
    }

    /// Whether it covers these positions, given in ascending order, and no others.
    pub fn covers_exactly(&self, seqs: &[Seq]) -> bool {
        !seqs.is_empty() && runs(seqs) == self.events
    }
}

/// Runs of positions, given in ascending order.
fn runs(seqs: &[Seq]) -> Vec<RangeInclusive<Seq>> {
    let mut runs: Vec<RangeInclusive<Seq>> = Vec::new();
    for seq in seqs {
        match runs.last_mut() {
            Some(run) if run.end().next() == *seq => *run = *run.start()..=*seq,
            _ => runs.push(*seq..=*seq),
        }
    }
    runs
}

fn encode(runs: &[RangeInclusive<Seq>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut before = 0;
    for run in runs {
        let (start, end) = (run.start().0, run.end().0);
        wire::write_u128((start - before).into(), &mut out);
        wire::write_u128((end - start).into(), &mut out);
        before = end;
    }
    out
}

fn decode(bytes: &[u8]) -> Option<Vec<RangeInclusive<Seq>>> {
    let mut wire = Wire(bytes);
    let mut before: u64 = 0;
    let mut runs = Vec::new();
    while !wire.0.is_empty() {
        let start = before.checked_add(u64::try_from(wire.u128()?).ok()?)?;
        let end = start.checked_add(u64::try_from(wire.u128()?).ok()?)?;
        runs.push(Seq(start)..=Seq(end));
        before = end;
    }
    Some(runs)
}

impl Batch<'_> {
    /// Keeps what a producer signed about events at these positions, given in ascending order.
    pub fn put_statement(
        &mut self,
        signer: &str,
        seqs: &[Seq],
        envelope: &str,
    ) -> Result<(), Error> {
        let view = self.view();
        let number = view.statement_count()? + 1;
        if number > MAX_SEQ {
            return Err(Error::Limit("a log holds at most 2^40 - 1 signed statements"));
        }
        let sql = "INSERT OR FAIL INTO statement (number, signer, events, envelope) \
                   VALUES (?1, ?2, ?3, ?4)";
        let row = (view.log.at(Seq(number)), signer, encode(&runs(seqs)), envelope);
        view.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(row))
            .map(drop)
            .map_err(Error::while_trying("keep what a producer signed"))
    }
}

impl View<'_> {
    fn numbers(&self) -> (i64, i64) {
        (self.log.at(Seq(0)), self.log.at(Seq(MAX_SEQ)))
    }

    /// How many statements of producers there are.
    pub fn statement_count(&self) -> Result<u64, Error> {
        let last: Option<i64> = self
            .connection
            .prepare_cached("SELECT max(number) FROM statement WHERE number BETWEEN ?1 AND ?2")
            .and_then(|mut statement| statement.query_row(self.numbers(), |row| row.get(0)))
            .map_err(Error::while_trying("count what producers signed"))?;
        Ok(last.map_or(0, |number| seq_of(number).0))
    }

    /// Every statement, oldest first, without its envelope.
    pub fn statements(&self) -> Result<Vec<Signed>, Error> {
        let attempt = Error::while_trying("read what producers signed");
        let sql = "SELECT number, signer, events FROM statement \
                   WHERE number BETWEEN ?1 AND ?2 ORDER BY number";
        let mut statement = self.connection.prepare_cached(sql).map_err(&attempt)?;
        let rows = statement.query_map(self.numbers(), signed).map_err(&attempt)?;
        rows.map(|row| row.map_err(&attempt)?).collect()
    }

    /// The envelope of a statement.
    pub fn envelope(&self, number: u64) -> Result<String, Error> {
        self.connection
            .prepare_cached("SELECT envelope FROM statement WHERE number = ?1")
            .and_then(|mut statement| {
                statement.query_row([self.log.at(Seq(number))], |row| row.get(0))
            })
            .map_err(Error::while_trying("read what a producer signed"))
    }

    /// The verifier keys of producers, and whether they were revoked.
    pub fn producers(&self) -> Result<Vec<(String, bool)>, Error> {
        producers(self.connection, self.log)
    }

    /// What is to be done about signatures.
    pub fn signatures(&self) -> Result<Signatures, Error> {
        let attempt = Error::while_trying("read the policy on signatures");
        let sql = "SELECT signatures FROM policy WHERE log = ?1";
        let mut statement = self.connection.prepare_cached(sql).map_err(&attempt)?;
        let mut rows = statement.query([self.log.0]).map_err(&attempt)?;
        match rows.next().map_err(&attempt)? {
            None => Ok(Signatures::Record),
            Some(row) => match row.get(0).map_err(&attempt)? {
                0_i64 => Ok(Signatures::Off),
                1 => Ok(Signatures::Record),
                2 => Ok(Signatures::Require),
                other => Err(Error::Corrupt(format!("{other} is no policy on signatures"))),
            },
        }
    }
}

fn signed(row: &Row<'_>) -> rusqlite::Result<Result<Signed, Error>> {
    let number = seq_of(row.get(0)?).0;
    let damaged = || Error::Corrupt(format!("the events of statement {number} cannot be read"));
    let events = decode(row.get_ref(2)?.as_blob()?).ok_or_else(damaged);
    let signer = row.get(1)?;
    Ok(events.map(|events| Signed { number, signer, events }))
}

pub(super) fn producers(connection: &Connection, log: LogId) -> Result<Vec<(String, bool)>, Error> {
    connection
        .prepare_cached("SELECT key, revoked FROM producer WHERE log = ?1 ORDER BY number")
        .and_then(|mut statement| {
            statement.query_map([log.0], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
        .map_err(Error::while_trying("read the producers"))
}

impl Reader {
    /// The verifier keys of an identity's producers, and whether they were revoked.
    pub fn producers(&self, identity: &Identity) -> Result<Vec<(String, bool)>, Error> {
        self.view(identity)?.view().producers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_survive_their_bytes() {
        for seqs in [&[][..], &[1], &[1, 2, 3], &[5, 6, 9, 1 << 39, (1 << 39) + 1]] {
            let seqs: Vec<Seq> = seqs.iter().copied().map(Seq).collect();
            let all = runs(&seqs);
            assert_eq!(decode(&encode(&all)), Some(all.clone()));
            let signed = Signed { number: 1, signer: String::new(), events: all };
            for seq in (0..12).map(Seq) {
                assert_eq!(signed.covers(seq), seqs.contains(&seq), "{seq}");
            }
        }
        assert_eq!(decode(&[0x80]), None);
    }
}
