//! Attacks on cosignatures of witnesses: each is rejected and changes nothing.

use super::{Guarded, create, open};
use crate::session::Duty;
use crate::{Cosigned, PutCosignature};
use rusqlite::{Connection, ErrorCode};

const ROW: &str =
    "INSERT INTO cosignature (log, size, key, line, note) VALUES (1, 3, 'k', 'l', 'n')";

fn cosigned() -> Cosigned {
    Cosigned { size: 3, key: "k".into(), line: "l".into(), note: "n".into() }
}

#[test]
fn a_connection_for_cosignatures_adds_them_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    create(&path).unwrap().register("{\"agent_id\":\"a\"}").unwrap();
    let writer = Guarded::of(&path, Duty::Cosign);
    for sql in [
        "INSERT INTO manifest VALUES (9, 'x', 'y')",
        "INSERT INTO event VALUES (1, zeroblob(16), 0, '', x'', x'', '')",
        "INSERT INTO tree_head VALUES (1, 'n')",
        "INSERT INTO tree VALUES (1, x'')",
        "INSERT INTO policy VALUES (1, 0, NULL)",
        "INSERT INTO artefact VALUES (1, 1, x'', x'')",
        "DELETE FROM fact",
        "DELETE FROM cosignature",
        "UPDATE cosignature SET line = 'x'",
        "DROP TRIGGER cosignature_is_frozen",
        "DROP TABLE cosignature",
        "PRAGMA user_version = 9",
    ] {
        assert!(writer.try_statement(sql).is_err(), "allowed: {sql}");
    }
    writer.try_statement(ROW).unwrap();
    for duty in
        [Duty::Register, Duty::Write, Duty::Forget, Duty::Configure, Duty::Sign, Duty::Tokens]
    {
        let error = Guarded::of(&path, duty).try_statement(ROW).unwrap_err();
        let denied = Some(ErrorCode::AuthorizationForStatementDenied);
        assert_eq!(error.sqlite_error_code(), denied, "{duty:?}: {error}");
    }
}

#[test]
fn a_cosignature_cannot_be_changed_from_any_connection() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let identity = create(&path).unwrap().register("{\"agent_id\":\"a\"}").unwrap().identity;
    let store = open(&path).unwrap();
    assert_eq!(store.cosigner(&identity).unwrap().put(&cosigned()).unwrap(), PutCosignature::New);
    let db = Connection::open(&path).unwrap();
    for sql in [
        "UPDATE cosignature SET line = 'x'",
        "UPDATE cosignature SET size = 2",
        "DELETE FROM cosignature",
        "INSERT OR REPLACE INTO cosignature SELECT number, log, size, key, 'x', note \
         FROM cosignature",
        "INSERT OR REPLACE INTO cosignature SELECT number + 1, log, size, key, 'x', note \
         FROM cosignature",
        ROW,
    ] {
        let error = db.execute_batch(sql).unwrap_err();
        assert!(
            error.to_string().contains("a cosignature is never")
                || error.to_string().contains("a cosignature never changes"),
            "{sql}: {error}"
        );
    }
    for size in ["0", "-1", "1 << 40"] {
        let sql = format!(
            "INSERT INTO cosignature (log, size, key, line, note) VALUES (1, {size}, 'a', '', '')"
        );
        assert!(db.execute_batch(&sql).unwrap_err().to_string().contains("CHECK"), "{size}");
    }
    let reader = store.reader().unwrap();
    assert_eq!(reader.view(&identity).unwrap().view().all_cosignatures().unwrap(), [cosigned()]);
}
