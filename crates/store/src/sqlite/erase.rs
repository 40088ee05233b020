//! Erasing: removing forgotten content from the file and its write-ahead log.
//!
//! **Invariants**
//! - The transaction that deletes content also inserts an erase mark. The mark is deleted only when
//!   no page of the file and no frame of the log can hold that content any more.
//! - A process deletes only marks that it read before it erased.

use super::slack::Pages;
use super::{MAX_SEQ, connect};
use crate::{Erased, Error, Patience};
use rusqlite::wal::CheckpointMode;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// Tables and indexes with data that is derived from events: texts, tallies, fact ids.
const DERIVED: [&str; 5] = ["chunk", "fact", "fact_by_id", "tally", "tally_by_id"];
/// Number of tries to truncate the write-ahead log while readers use it, and the wait for them
/// during and after each try: two seconds in total.
const TRIES: u32 = 100;
const WAIT: Duration = Duration::from_millis(10);
/// The file is compacted if at least this many bytes and a quarter of the file are free.
const MUCH_FREE: i64 = 1 << 20;

/// Inserts an erase mark, and clears the pages that the transaction wrote. `head` and `first` are
/// keys of the log.
pub(super) fn mark_erased(
    connection: &Connection,
    head: i64,
    first: i64,
    freed: u64,
) -> Result<(), Error> {
    let rewrite = !clear_pages(connection, first)?;
    // Each forget transaction ends at another position, so each mark has its own key. A process
    // cannot delete a mark that it has not read.
    let freed = i64::try_from(freed).unwrap_or(i64::MAX);
    connection
        .execute("INSERT INTO erase_pending (at, rewrite) VALUES (?1, ?2)", (head, rewrite))
        .and_then(|_| connection.execute("UPDATE space SET freed = freed + ?1", [freed]))
        .map(drop)
        .map_err(Error::while_trying("insert an erase mark"))
}

/// Clears pages with derived data. Returns false if this SQLite cannot access pages.
fn clear_pages(connection: &Connection, first: i64) -> Result<bool, Error> {
    let Some(mut pages) = Pages::of(connection) else { return Ok(false) };
    DERIVED.iter().try_for_each(|tree| pages.clear_all(tree))?;
    // If the table has one log only, events are added at the end, where no cell moves, and a row
    // that shrinks moves none. Several logs split each other's pages as they grow.
    if has_company(connection, first)? {
        pages.clear_all("event")?;
    }
    Ok(true)
}

/// Whether logs other than the one that begins at `first` have events.
fn has_company(connection: &Connection, first: i64) -> Result<bool, Error> {
    let last = first | MAX_SEQ.cast_signed();
    connection
        .prepare_cached("SELECT 1 FROM event WHERE at < ?1 OR at > ?2 LIMIT 1")
        .and_then(|mut statement| statement.exists((first, last)))
        .map_err(Error::while_trying("look for other logs"))
}

/// Erases forgotten content that is still in the files.
pub(super) fn finish_erasing(path: &Path, patience: Patience) -> Result<Erased, Error> {
    let tries = match patience {
        Patience::None => 1,
        Patience::Some => TRIES,
    };
    Ok(if finish(path, tries)? { Erased::Gone } else { Erased::Pending })
}

/// The erase marks. The flag says whether the whole file must be rewritten.
pub(super) fn pending(connection: &Connection) -> Result<Vec<(i64, bool)>, Error> {
    let read = || {
        connection
            .prepare("SELECT at, rewrite FROM erase_pending")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()
    };
    read().map_err(Error::while_trying("read the erase marks"))
}

/// Returns whether all forgotten content is erased.
fn finish(path: &Path, tries: u32) -> Result<bool, Error> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection
        .busy_timeout(WAIT)
        // VACUUM may need more temporary space than memory.
        .and_then(|()| connection.pragma_update(None, "temp_store", "DEFAULT"))
        .map_err(Error::while_trying("configure the connection"))?;
    let attempt = Error::while_trying("erase forgotten content");
    // Marks are read first: other processes finish what they forget meanwhile.
    let marks = pending(&connection)?;
    if marks.is_empty() {
        // The process that erased may have died before this.
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
    unmark(&connection, &marks).map_err(&attempt)?;
    give_back_space(&connection, rewrite);
    Ok(true)
}

/// Deletes erase marks, and records that each of their logs is owed an act. If the process dies
/// here, the marks stay and the bytes are erased again.
fn unmark(connection: &Connection, marks: &[(i64, bool)]) -> rusqlite::Result<()> {
    let transaction = connection.unchecked_transaction()?;
    for (at, _) in marks {
        connection.execute("DELETE FROM erase_pending WHERE at = ?1", [at])?;
        let sql = "INSERT INTO act_owed (log, act, data) SELECT log, 'erased', '' FROM manifest \
                   WHERE log = ?1 >> 40 ON CONFLICT (log, act, data) DO NOTHING";
        connection.execute(sql, [at])?;
    }
    transaction.commit()
}

/// Copies the write-ahead log into the file and truncates it. Returns false if readers prevent it.
fn cut_log(connection: &Connection, tries: u32) -> Result<bool, Error> {
    patiently(tries, || {
        connection.wal_checkpoint_v2(None::<&str>, CheckpointMode::TRUNCATE).map(drop)
    })
}

/// Retries while another process holds a lock. SQLite does not wait for one that copies the log.
fn patiently(tries: u32, job: impl Fn() -> rusqlite::Result<()>) -> Result<bool, Error> {
    for left in (0..tries).rev() {
        match job().map_err(Error::while_trying("erase forgotten content")) {
            Err(Error::Busy(_)) if left > 0 => std::thread::sleep(WAIT),
            Err(Error::Busy(_)) => {}
            done => return done.map(|()| true),
        }
    }
    Ok(false)
}

/// Compacts the file if much of it is free. If this fails, the next forgetting retries.
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
