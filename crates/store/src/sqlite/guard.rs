//! What a connection that writes may do: the list of its duty, and nothing that is not on it.
//!
//! **Invariants:** the manifest table is on no list but the one for reading; no statement inside a
//! trigger writes (ours only raise), so a trigger planted from outside makes its statement fail.
//! SQLite asks at preparation, before a statement has touched anything.

use crate::Error;
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Duty {
    /// Appending and passes.
    Write,
    /// The same, and taking content out of events.
    Forget,
    /// Settings, and nothing else.
    Configure,
}

const MAY_INSERT: [&str; 7] = ["event", "chunk", "run", "piece", "pass", "fact", "tally"];
const MAY_UPDATE: [&str; 2] = ["fact", "tally"];
/// Facts and tallies leave when another rule set starts over or their events are forgotten, runs
/// and small chunks when they are merged.
const MAY_DELETE: [&str; 5] = ["fact", "tally", "run", "piece", "chunk"];
const MAY_CALL: [&str; 4] = ["coalesce", "count", "max", "octet_length"];
/// What forgetting changes besides: an event's content, the unused part of a page, and how much
/// space that left.
const MAY_EMPTY: [(&str, &str); 4] =
    [("event", "payload"), ("event", "columns"), ("sqlite_dbpage", "data"), ("space", "freed")];

/// Sets the authorizer, once, for the life of the connection.
pub(super) fn confine(connection: &mut Connection, duty: Duty) -> Result<(), Error> {
    connection
        .authorizer(Some(move |context: AuthContext<'_>| {
            if allowed(&context, duty) { Authorization::Allow } else { Authorization::Deny }
        }))
        .map_err(Error::while_trying("confine the writer"))
}

fn allowed(context: &AuthContext<'_>, duty: Duty) -> bool {
    let outside_triggers = context.accessor.is_none();
    match context.action {
        AuthAction::Select | AuthAction::Read { .. } => true,
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => true,
        AuthAction::Function { function_name } => MAY_CALL.contains(&function_name),
        _ if !outside_triggers => false,
        _ if duty == Duty::Configure => may_configure(&context.action),
        AuthAction::Insert { table_name: "erase_pending" } => duty == Duty::Forget,
        AuthAction::Insert { table_name } => MAY_INSERT.contains(&table_name),
        AuthAction::Update { table_name, column_name } => {
            let may_empty = MAY_EMPTY.contains(&(table_name, column_name));
            MAY_UPDATE.contains(&table_name) || duty == Duty::Forget && may_empty
        }
        AuthAction::Delete { table_name } => MAY_DELETE.contains(&table_name),
        _ => false,
    }
}

fn may_configure(action: &AuthAction<'_>) -> bool {
    matches!(
        action,
        AuthAction::Insert { table_name: "setting" }
            | AuthAction::Update { table_name: "setting", .. }
            | AuthAction::Delete { table_name: "setting" }
    )
}
