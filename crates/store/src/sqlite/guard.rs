//! What a connection that writes may do: the list of its duty, and nothing that is not on it.
//!
//! **Invariants:** the manifest table is on no list but the one for reading; no statement inside a
//! trigger writes (ours only raise), so a trigger planted from outside makes its statement fail.
//! SQLite asks at preparation, before a statement has touched anything.

use crate::Error;
use crate::session::Duty;
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

const MAY_INSERT: [&str; 8] =
    ["event", "chunk", "run", "piece", "pass", "fact", "tally", "statement"];
const MAY_UPDATE: [&str; 2] = ["fact", "tally"];
/// Facts and tallies leave when another rule set starts over or their events are forgotten, runs
/// and small chunks when they are merged.
const MAY_DELETE: [&str; 5] = ["fact", "tally", "run", "piece", "chunk"];
const MAY_CALL: [&str; 5] = ["coalesce", "count", "instr", "max", "octet_length"];
/// What forgetting changes besides: an event's content, the unused part of a page, and how much
/// space that left.
const MAY_EMPTY: [(&str, &str); 4] =
    [("event", "payload"), ("event", "columns"), ("sqlite_dbpage", "data"), ("space", "freed")];

/// What settings change.
const MAY_CONFIGURE: [(&str, &str); 7] = [
    ("insert", "retention"),
    ("update", "retention"),
    ("delete", "retention"),
    ("insert", "producer"),
    ("update", "producer"),
    ("insert", "policy"),
    ("update", "policy"),
];
/// What a tree head changes.
const MAY_SIGN: [(&str, &str); 3] =
    [("insert", "tree"), ("insert", "tree_head"), ("update", "tree_head")];

/// What registering changes.
const MAY_REGISTER: [(&str, &str); 1] = [("insert", "manifest")];

/// What may change of a token that is there.
const MAY_MARK: [&str; 2] = ["revoked", "last_used"];

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
        // Reading the version of the schema; with a value it would be set.
        AuthAction::Pragma { pragma_name: "user_version", pragma_value: None } => true,
        AuthAction::Function { function_name } => MAY_CALL.contains(&function_name),
        _ if !outside_triggers => false,
        _ if duty == Duty::Register => changes_only(&context.action, &MAY_REGISTER),
        _ if duty == Duty::Configure => changes_only(&context.action, &MAY_CONFIGURE),
        _ if duty == Duty::Sign => changes_only(&context.action, &MAY_SIGN),
        _ if duty == Duty::Tokens => puts_or_marks_tokens(&context.action),
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

/// Whether rows of these tables are all that changes.
fn changes_only(action: &AuthAction<'_>, tables: &[(&str, &str)]) -> bool {
    let (verb, table) = match action {
        AuthAction::Insert { table_name } => ("insert", table_name),
        AuthAction::Update { table_name, .. } => ("update", table_name),
        AuthAction::Delete { table_name } => ("delete", table_name),
        _ => return false,
    };
    tables.contains(&(verb, table))
}

/// Whether a token is added, or marked as used or revoked.
fn puts_or_marks_tokens(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Insert { table_name } => *table_name == "token",
        AuthAction::Update { table_name, column_name } => {
            *table_name == "token" && MAY_MARK.contains(column_name)
        }
        _ => false,
    }
}
