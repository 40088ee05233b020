//! The authorizer of a connection that writes: it allows only what the duty of the session needs.
//!
//! **Invariants:** only the duty to register may write the manifest table; no statement inside a
//! trigger may write (ours only raise), so a trigger added by an attacker makes its statement fail.
//! SQLite calls the authorizer when it prepares a statement, before any change.

use crate::Error;
use crate::session::Duty;
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

const MAY_INSERT: [&str; 9] =
    ["event", "chunk", "run", "piece", "pass", "fact", "tally", "statement", "act_owed"];
const MAY_UPDATE: [&str; 2] = ["fact", "tally"];
/// Facts and tallies are deleted when another rule set starts or their events are forgotten, runs
/// and small chunks when they are merged, owed acts when they are in the log.
const MAY_DELETE: [&str; 6] = ["fact", "tally", "run", "piece", "chunk", "act_owed"];
const MAY_CALL: [&str; 7] = ["coalesce", "count", "instr", "length", "max", "octet_length", "sum"];
/// Columns that only forgetting may change: the content of an event, the unused part of a page, and
/// the count of freed bytes.
const MAY_EMPTY: [(&str, &str); 4] =
    [("event", "payload"), ("event", "columns"), ("sqlite_dbpage", "data"), ("space", "freed")];

/// Changes of the settings.
const MAY_CONFIGURE: [(&str, &str); 7] = [
    ("insert", "retention"),
    ("update", "retention"),
    ("delete", "retention"),
    ("insert", "producer"),
    ("update", "producer"),
    ("insert", "policy"),
    ("update", "policy"),
];
/// Changes when an event is appended beside settings or tokens: the event, what is derived from it
/// when it fills a chunk, and the row of an owed act.
const MAY_APPEND: [(&str, &str); 9] = [
    ("insert", "event"),
    ("insert", "chunk"),
    ("delete", "chunk"),
    ("insert", "run"),
    ("delete", "run"),
    ("insert", "piece"),
    ("delete", "piece"),
    ("insert", "act_owed"),
    ("delete", "act_owed"),
];
/// Changes when a tree head is stored.
const MAY_SIGN: [(&str, &str); 3] =
    [("insert", "tree"), ("insert", "tree_head"), ("update", "tree_head")];

/// Changes when a cosignature is stored.
const MAY_COSIGN: [(&str, &str); 1] = [("insert", "cosignature")];

/// Changes when a manifest is registered, and when an identity without events is removed with its
/// settings. A trigger rejects the deletion of a manifest with events.
const MAY_REGISTER: [(&str, &str); 10] = [
    ("insert", "manifest"),
    ("insert", "retired"),
    ("delete", "manifest"),
    ("delete", "token"),
    ("delete", "producer"),
    ("delete", "policy"),
    ("delete", "retention"),
    ("delete", "tree_head"),
    ("delete", "artefact"),
    ("delete", "act_owed"),
];

/// Changes when a file is stored.
const MAY_STORE_FILES: [(&str, &str); 1] = [("insert", "artefact")];

/// Columns of a stored token that may change.
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
        _ if duty == Duty::Configure => {
            changes_only(&context.action, &MAY_CONFIGURE)
                || changes_only(&context.action, &MAY_APPEND)
        }
        _ if duty == Duty::Sign => changes_only(&context.action, &MAY_SIGN),
        _ if duty == Duty::Artefacts => changes_only(&context.action, &MAY_STORE_FILES),
        _ if duty == Duty::Tokens => {
            puts_or_marks_tokens(&context.action) || changes_only(&context.action, &MAY_APPEND)
        }
        _ if duty == Duty::Cosign => changes_only(&context.action, &MAY_COSIGN),
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

/// Whether an action is one of these changes.
fn changes_only(action: &AuthAction<'_>, tables: &[(&str, &str)]) -> bool {
    let (verb, table) = match action {
        AuthAction::Insert { table_name } => ("insert", table_name),
        AuthAction::Update { table_name, .. } => ("update", table_name),
        AuthAction::Delete { table_name } => ("delete", table_name),
        _ => return false,
    };
    tables.contains(&(verb, table))
}

/// Whether an action adds a token, or marks one as used or revoked.
fn puts_or_marks_tokens(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Insert { table_name } => *table_name == "token",
        AuthAction::Update { table_name, column_name } => {
            *table_name == "token" && MAY_MARK.contains(column_name)
        }
        _ => false,
    }
}
