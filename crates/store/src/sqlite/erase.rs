//! Erasing: what was forgotten leaves the file and its write-ahead log.
//!
//! **Invariants**
//! - The transaction that deletes content marks the store; the mark goes only once no page of the
//!   file and no frame of the log can hold that content any more.
//! - A mark is deleted only by a process that read it before it erased.

use super::slack::Pages;
use super::{MAX_SEQ, connect};
use crate::{Erased, Error, Patience};
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// Trees whose pages hold what was derived from events: texts, sums, ids of facts.
const DERIVED: [&str; 5] = ["chunk", "fact", "fact_by_id", "tally", "tally_by_id"];
/// How often to try while readers keep the write-ahead log from being cut, and how long to wait for
/// them each time and after it: two seconds together.
const TRIES: u32 = 100;
const WAIT: Duration = Duration::from_millis(10);
/// Of a file with so many free bytes, a quarter of all, the space is given back.
const MUCH_FREE: i64 = 1 << 20;

/// Marks the store as one whose files may hold what was forgotten, and clears the pages that the
/// transaction wrote. `head` and `first` are places of the log.
pub(super) fn mark_erased(
    connection: &Connection,
    head: i64,
    first: i64,
    freed: u64,
) -> Result<(), Error> {
    let rewrite = !clear_pages(connection, first)?;
    // No two forgettings end at one position: the process that deletes this mark has read it.
    let freed = i64::try_from(freed).unwrap_or(i64::MAX);
    connection
        .execute("INSERT INTO erase_pending (at, rewrite) VALUES (?1, ?2)", (head, rewrite))
        .and_then(|_| connection.execute("UPDATE space SET freed = freed + ?1", [freed]))
        .map(drop)
        .map_err(Error::while_trying("note what is to be erased"))
}

/// Returns whether this SQLite can.
fn clear_pages(connection: &Connection, first: i64) -> Result<bool, Error> {
    let Some(mut pages) = Pages::of(connection) else { return Ok(false) };
    DERIVED.iter().try_for_each(|tree| pages.clear_all(tree))?;
    // In a log that stands alone in its table events are only ever added at the end, where no cell
    // moves, and a row that gets smaller moves none. Logs that grow side by side split each other's
    // pages, at any time before.
    if has_company(connection, first)? {
        pages.clear_all("event")?;
    }
    Ok(true)
}

/// Whether other logs than the one that begins here have events.
fn has_company(connection: &Connection, first: i64) -> Result<bool, Error> {
    let last = first | MAX_SEQ.cast_signed();
    connection
        .prepare_cached("SELECT 1 FROM event WHERE at < ?1 OR at > ?2 LIMIT 1")
        .and_then(|mut statement| statement.exists((first, last)))
        .map_err(Error::while_trying("look for other logs"))
}

/// Erases what a forgetting before left behind.
pub(super) fn finish_erasing(path: &Path, patience: Patience) -> Result<Erased, Error> {
    let tries = match patience {
        Patience::None => 1,
        Patience::Some => TRIES,
    };
    Ok(if finish(path, tries)? { Erased::Gone } else { Erased::Pending })
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

/// Tries while another process is in the way. SQLite does not wait for one that copies the log.
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
