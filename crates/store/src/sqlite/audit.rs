//! Checks of the whole file: SQLite's integrity check, the schema, and rows without an identity.

use super::STEPS;
use crate::Error;
use crate::session::Result;
use rusqlite::Connection;

/// Tables whose rows belong to a log, and the expression for the log number.
const OF_A_LOG: [(&str, &str); 17] = [
    ("event", "at >> 40"),
    ("chunk", "at >> 40"),
    ("run", "at >> 40"),
    ("piece", "number >> 40"),
    ("pass", "at >> 40"),
    ("fact", "log"),
    ("tally", "log"),
    ("tree", "at >> 40"),
    ("tree_head", "log"),
    ("cosignature", "log"),
    ("producer", "log"),
    ("policy", "log"),
    ("statement", "number >> 40"),
    ("retention", "log"),
    ("act_owed", "log"),
    ("artefact", "log"),
    // Tokens of the store itself have the number 0.
    ("token", "nullif(log, 0)"),
];

/// Damage that SQLite's integrity check finds.
pub(super) fn file_damage(connection: &Connection) -> Result<Vec<String>> {
    let lines = texts(connection, "PRAGMA integrity_check(20)")?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// Tables, indexes, views and triggers that are missing, changed or foreign.
pub(super) fn schema_damage(connection: &Connection) -> Result<Vec<(String, &'static str)>> {
    let attempt = Error::while_trying("compare the schema");
    let fresh = Connection::open_in_memory().map_err(&attempt)?;
    STEPS.iter().try_for_each(|step| fresh.execute_batch(step)).map_err(&attempt)?;
    let sql = "SELECT type || ' ' || name || char(10) || coalesce(sql, '') \
               FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1";
    let (ours, theirs) = (texts(&fresh, sql)?, texts(connection, sql)?);
    let name = |text: &String| text.lines().next().unwrap_or_default().to_string();
    let has = |all: &[String], one: &String| all.iter().any(|other| name(other) == name(one));
    let lost = ours.iter().filter(|one| !theirs.contains(one));
    let lost = lost.map(|one| (name(one), if has(&theirs, one) { "changed" } else { "missing" }));
    let more = theirs.iter().filter(|one| !has(&ours, one)).map(|one| (name(one), "not ours"));
    Ok(lost.chain(more).collect())
}

/// Rows that belong to no registered identity: the table and the number of rows.
pub(super) fn rows_of_nobody(connection: &Connection) -> Result<Vec<(&'static str, u64)>> {
    let mut found = Vec::new();
    for (table, log) in OF_A_LOG {
        let sql =
            format!("SELECT count(*) FROM {table} WHERE {log} NOT IN (SELECT log FROM manifest)");
        let count: i64 = connection
            .query_row(&sql, [], |row| row.get(0))
            .map_err(Error::while_trying("look for rows without an identity"))?;
        if count != 0 {
            found.push((table, count.unsigned_abs()));
        }
    }
    Ok(found)
}

fn texts(connection: &Connection, sql: &str) -> Result<Vec<String>> {
    let read = || {
        connection.prepare(sql)?.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()
    };
    read().map_err(Error::while_trying("check the file"))
}
