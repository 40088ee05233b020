//! Attacks on the removal of identities: a manifest with events stays.

use super::guards::{ground, store};
use super::{Guarded, create, open};
use crate::Error;
use crate::session::Duty;

/// The duty to register may delete a manifest, and the trigger in the file keeps one with events.
/// No other duty may delete one at all.
#[test]
fn a_manifest_with_events_is_removed_by_no_connection() {
    let store = store();
    let before = ground(&store.path);
    for duty in [Duty::Register, Duty::Write, Duty::Forget, Duty::Configure, Duty::Tokens] {
        let session = Guarded::of(&store.path, duty);
        for sql in [
            "DELETE FROM manifest",
            "DELETE FROM event",
            "UPDATE manifest SET log = 9",
            "DELETE FROM retired",
            "INSERT OR REPLACE INTO manifest SELECT * FROM manifest",
        ] {
            assert!(session.try_statement(sql).is_err(), "{duty:?} allowed: {sql}");
        }
    }
    let opened = open(&store.path).unwrap();
    assert!(matches!(opened.remove(&store.identity), Err(Error::NotEmpty)));
    assert_eq!(ground(&store.path), before);
    // An empty one can be deleted by the duty to register, and by no other.
    create(&store.path).unwrap().register("{\"agent_id\":\"b\"}").unwrap();
    for duty in [Duty::Write, Duty::Forget, Duty::Configure, Duty::Sign, Duty::Tokens] {
        let denied = Some(rusqlite::ErrorCode::AuthorizationForStatementDenied);
        let sql = "DELETE FROM manifest WHERE log = 2";
        let error = Guarded::of(&store.path, duty).try_statement(sql).unwrap_err();
        assert_eq!(error.sqlite_error_code(), denied, "{duty:?}");
    }
    assert_eq!(opened.reader().unwrap().manifests().unwrap().len(), 2);
}
