//! What the connection of a writer may do: this list, and nothing that is not on it.
//!
//! **Invariants:** the manifest table is on no list but the one for reading; no statement inside a
//! trigger writes (ours only raise), so a trigger planted from outside makes its statement fail.
//! SQLite asks at preparation, before a statement has touched anything.

use crate::Error;
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

const MAY_INSERT: [&str; 7] = ["event", "chunk", "run", "piece", "pass", "fact", "tally"];
const MAY_UPDATE: [&str; 2] = ["fact", "tally"];
/// Facts and tallies leave when another rule set starts over, runs and small chunks when they are
/// merged.
const MAY_DELETE: [&str; 5] = ["fact", "tally", "run", "piece", "chunk"];
const MAY_CALL: [&str; 3] = ["coalesce", "count", "max"];

/// Sets the authorizer, once, for the life of the connection.
pub(super) fn confine_to_append_and_pass(connection: &mut Connection) -> Result<(), Error> {
    connection
        .authorizer(Some(|context: AuthContext<'_>| {
            if allowed(&context) { Authorization::Allow } else { Authorization::Deny }
        }))
        .map_err(Error::while_trying("confine the writer"))
}

fn allowed(context: &AuthContext<'_>) -> bool {
    let outside_triggers = context.accessor.is_none();
    match context.action {
        AuthAction::Select | AuthAction::Read { .. } => true,
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => true,
        AuthAction::Function { function_name } => MAY_CALL.contains(&function_name),
        AuthAction::Insert { table_name } => outside_triggers && MAY_INSERT.contains(&table_name),
        AuthAction::Update { table_name, .. } => {
            outside_triggers && MAY_UPDATE.contains(&table_name)
        }
        AuthAction::Delete { table_name } => outside_triggers && MAY_DELETE.contains(&table_name),
        _ => false,
    }
}
