//! Forgetting: content leaves rows and chunks in a transaction, then the file and its write-ahead
//! log.
//!
//! **Invariants**
//! - Nothing but content leaves: position, ref, time, type and digest of an event stay.
//! - The transaction that takes content out marks the store; the mark goes only once no page of the
//!   file and no frame of the log can hold it any more. So whoever opens the store next finishes.

use super::guard::Duty;
use super::seal;
use super::slack::Pages;
use super::write::{Batch, Writer};
use super::{MAX_SEQ, View, connect};
use crate::Error;
use ipse_core::{Identity, Seq};
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Trees whose pages hold what was derived from events: texts, sums, ids of facts.
const DERIVED: [&str; 5] = ["chunk", "fact", "fact_by_id", "tally", "tally_by_id"];
/// How often to try while readers keep the write-ahead log from being cut, and how long to wait for
/// them each time and after it: two seconds together.
const TRIES: u32 = 100;
const WAIT: Duration = Duration::from_millis(10);
/// Of a file with so many free bytes, a quarter of all, the space is given back.
const MUCH_FREE: i64 = 1 << 20;

/// The handle of `forget`, on one identity's log: a connection of its own.
pub struct Eraser {
    writer: Writer,
    path: PathBuf,
}

impl Eraser {
    /// Opens a store for forgetting.
    pub fn open(path: &Path, identity: &Identity) -> Result<Self, Error> {
        let writer = Writer::open_for(path, identity, Duty::Forget)?;
        Ok(Eraser { path: writer.path().to_owned(), writer })
    }

    /// Begins; waits for another process that is writing.
    pub fn begin(&mut self) -> Result<Erasing<'_>, Error> {
        Ok(Erasing { batch: self.writer.begin()?, freed: 0 })
    }

    /// Gets rid of what is still in the file or the write-ahead log; says whether it could.
    pub fn finish(self) -> Result<bool, Error> {
        let Eraser { writer, path } = self;
        // Its maintenance thread may be copying the log.
        drop(writer);
        finish(&path, TRIES)
    }

    /// Runs any statement, to show in a test that the guard refuses it.
    #[doc(hidden)]
    pub fn try_statement(&self, sql: &str) -> rusqlite::Result<()> {
        self.writer.try_statement(sql)
    }
}

/// Forgetting under way: one transaction.
#[must_use = "forgetting that is not committed is rolled back"]
pub struct Erasing<'w> {
    batch: Batch<'w>,
    /// Bytes that were taken out of rows; no later row fits in there.
    freed: i64,
}

impl<'w> Erasing<'w> {
    /// Where the events that say so, and the pass, are put.
    pub fn batch(&mut self) -> &mut Batch<'w> {
        &mut self.batch
    }

    /// Takes the content out of events, given in ascending order, and out of their chunks.
    pub fn erase(&mut self, seqs: &[Seq]) -> Result<(), Error> {
        let View { connection, log } = self.batch.view();
        let attempt = Error::while_trying("forget an event");
        let sql = "SELECT octet_length(payload) + octet_length(columns) FROM event WHERE at = ?1";
        let mut measure = connection.prepare_cached(sql).map_err(&attempt)?;
        let sql = "UPDATE event SET payload = '', columns = x'' WHERE at = ?1";
        let mut update = connection.prepare_cached(sql).map_err(&attempt)?;
        let mut freed = 0;
        for at in seqs.iter().map(|seq| log.at(*seq)) {
            freed += measure.query_row([at], |row| row.get::<_, i64>(0)).map_err(&attempt)?;
            update.execute([at]).map_err(&attempt)?;
        }
        let mut reached = Seq(0);
        for seq in seqs {
            if *seq > reached {
                reached = seal::again(connection, log, *seq, self.batch.head())?;
            }
        }
        self.freed += freed;
        Ok(())
    }

    /// Makes everything durable, in pages that hold no copy of what was taken out.
    pub fn commit(self) -> Result<(), Error> {
        let View { connection, log } = self.batch.view();
        let rewrite = !self.clear_pages()?;
        // No two forgettings end at one position: whoever takes this mark away has seen it before.
        let mark = (log.at(self.batch.head()), rewrite);
        connection
            .execute("INSERT INTO erase_pending (at, rewrite) VALUES (?1, ?2)", mark)
            .and_then(|_| connection.execute("UPDATE space SET freed = freed + ?1", [self.freed]))
            .map_err(Error::while_trying("note what is to be erased"))?;
        self.batch.commit()
    }

    /// Says whether this SQLite can.
    fn clear_pages(&self) -> Result<bool, Error> {
        let View { connection, log } = self.batch.view();
        let Some(mut pages) = Pages::of(connection) else { return Ok(false) };
        DERIVED.iter().try_for_each(|tree| pages.clear_all(tree))?;
        // In a log that stands alone in its table events are only ever added at the end, where no
        // cell moves, and a row that gets smaller moves none. Logs that grow side by side split
        // each other's pages, at any time before.
        if has_company(connection, log.at(Seq(0)))? {
            pages.clear_all("event")?;
        }
        Ok(true)
    }
}

/// Whether other logs than the one that begins here have events.
fn has_company(connection: &Connection, first: i64) -> Result<bool, Error> {
    let last = first | MAX_SEQ.cast_signed();
    connection
        .prepare_cached("SELECT 1 FROM event WHERE at < ?1 OR at > ?2 LIMIT 1")
        .and_then(|mut statement| statement.exists((first, last)))
        .map_err(Error::while_trying("look for other logs"))
}

/// Finishes what a forgetting before left behind, if that takes no waiting; says whether nothing is
/// left.
pub(super) fn finish_at_opening(path: &Path, connection: &Connection) -> Result<bool, Error> {
    // If somebody is in the way, or the disk is full, the mark stays.
    Ok(pending(connection)?.is_empty() || finish(path, 1).unwrap_or(false))
}

/// Marks of what is still to be done, each with whether that takes writing the whole file anew.
pub(super) fn pending(connection: &Connection) -> Result<Vec<(i64, bool)>, Error> {
    let read = || {
        connection
            .prepare("SELECT at, rewrite FROM erase_pending")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()
    };
    read().map_err(Error::while_trying("look for what is to be erased"))
}

/// Says whether everything is gone.
fn finish(path: &Path, tries: u32) -> Result<bool, Error> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection
        .busy_timeout(WAIT)
        // What is left is written anew through a file, however much it is.
        .and_then(|()| connection.pragma_update(None, "temp_store", "DEFAULT"))
        .map_err(Error::while_trying("configure the connection"))?;
    let attempt = Error::while_trying("erase what was forgotten");
    // Marks are read first: what others forget meanwhile is theirs to finish.
    let marks = pending(&connection)?;
    if marks.is_empty() {
        // Whoever erased may have died before this.
        give_back_space(&connection, false);
        return Ok(true);
    }
    let rewrite = marks.iter().any(|(_, rewrite)| *rewrite);
    if rewrite && !patiently(tries, || connection.execute_batch("VACUUM"))? {
        return Ok(false);
    }
    if !cut_log(&connection, tries)? {
        return Ok(false);
    }
    for (at, _) in marks {
        connection.execute("DELETE FROM erase_pending WHERE at = ?1", [at]).map_err(&attempt)?;
    }
    give_back_space(&connection, rewrite);
    Ok(true)
}

/// Copies the write-ahead log into the file and leaves it empty; says whether readers let it.
fn cut_log(connection: &Connection, tries: u32) -> Result<bool, Error> {
    patiently(tries, || {
        connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::TRUNCATE).map(drop)
    })
}

/// Tries while somebody is in the way. SQLite itself does not wait for another that copies the log.
fn patiently(tries: u32, job: impl Fn() -> rusqlite::Result<()>) -> Result<bool, Error> {
    for left in (0..tries).rev() {
        match job().map_err(Error::while_trying("erase what was forgotten")) {
            Err(Error::Busy(_)) if left > 0 => std::thread::sleep(WAIT),
            Err(Error::Busy(_)) => {}
            done => return done.map(|()| true),
        }
    }
    Ok(false)
}

/// Much was forgotten: the file gets smaller. If it cannot, the next forgetting tries again.
fn give_back_space(connection: &Connection, rewritten: bool) {
    let number = |sql| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let (Ok(freed), Ok(unused), Ok(all)) = (
        number("SELECT sum(freed) FROM space"),
        number("SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size"),
        number("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"),
    ) else {
        return;
    };
    let much = freed + unused >= MUCH_FREE.max(all / 4);
    if rewritten || much && connection.execute_batch("VACUUM").is_ok() {
        let _ = connection.execute("UPDATE space SET freed = 0", []);
        let _ = cut_log(connection, TRIES);
    }
}
