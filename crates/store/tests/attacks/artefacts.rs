//! Attacks on stored files: each is rejected and changes nothing.

use super::{Guarded, create, open};
use crate::session::Duty;
use ipse_core::Identity;
use rusqlite::Connection;
use std::path::PathBuf;
use tempfile::TempDir;

/// A store with one identity and one event.
fn store() -> (TempDir, PathBuf, Identity) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let identity = create(&path).unwrap().register("{\"agent_id\":\"a\"}").unwrap().identity;
    let mut writer = open(&path).unwrap().writer(&identity).unwrap();
    let mut batch = writer.begin().unwrap();
    let line = r#"{"id":"1","type":"note","time":"2026-05-06T10:00:00Z","data":{}}"#;
    let event = ipse_door::admit(line.as_bytes(), ipse_door::Origin::Producer, || [7; 16]);
    batch.append(&event.unwrap()).unwrap();
    batch.commit().unwrap();
    (directory, path, identity)
}

#[test]
fn a_connection_for_files_stores_files_alone() {
    let (_directory, path, _) = store();
    let files = Guarded::of(&path, Duty::Artefacts);
    for sql in [
        "INSERT INTO manifest VALUES (9, 'x', 'y')",
        "INSERT INTO event SELECT at + 1, event_ref, 0, '', x'', x'', '' FROM event",
        "UPDATE event SET payload = '', columns = x''",
        "DELETE FROM fact",
        "INSERT INTO policy VALUES (1, 0, NULL)",
        "INSERT INTO tree_head VALUES (1, 'n')",
        "UPDATE artefact SET bytes = x''",
        "DELETE FROM artefact",
        "DROP TABLE artefact",
        "PRAGMA user_version = 9",
    ] {
        assert!(files.try_statement(sql).is_err(), "allowed: {sql}");
    }
    let sql = "INSERT INTO artefact (log, sha256, bytes) VALUES (1, x'01', x'02')";
    for duty in [Duty::Write, Duty::Forget, Duty::Configure, Duty::Sign, Duty::Tokens] {
        let denied = Some(rusqlite::ErrorCode::AuthorizationForStatementDenied);
        let error = Guarded::of(&path, duty).try_statement(sql).unwrap_err();
        assert_eq!(error.sqlite_error_code(), denied, "{duty:?}");
    }
    files.try_statement(sql).unwrap();
}

#[test]
fn a_stored_file_cannot_be_changed_from_any_connection() {
    let (_directory, path, identity) = store();
    open(&path).unwrap().put_artefact(&identity, b"a file").unwrap();
    let db = Connection::open(&path).unwrap();
    for sql in [
        "UPDATE artefact SET bytes = x''",
        "UPDATE artefact SET log = 2",
        "DELETE FROM artefact",
        "INSERT OR REPLACE INTO artefact SELECT number, log, sha256, x'' FROM artefact",
        "INSERT OR REPLACE INTO artefact SELECT number + 1, log, sha256, x'' FROM artefact",
    ] {
        let error = db.execute_batch(sql).unwrap_err();
        assert!(error.to_string().contains("a stored file"), "{sql}: {error}");
    }
    let name = ipse_core::Digest(ipse_core::sha256(&[b"a file"]));
    let reader = open(&path).unwrap().reader().unwrap();
    let snapshot = reader.view(&identity).unwrap();
    assert_eq!(snapshot.view().artefact(&name).unwrap().as_deref(), Some(&b"a file"[..]));
}
