//! Attacks on tokens: only their handle writes them, and only some columns change.

use super::{Guarded, create, open};
use crate::session::Duty;
use crate::{Error, MAX_LIVE_TOKENS, TokenRow};
use ipse_core::{Identity, Time};
use rusqlite::{Connection, ErrorCode};
use std::path::PathBuf;
use tempfile::TempDir;

struct Store {
    _directory: TempDir,
    path: PathBuf,
    identity: Identity,
    other: Identity,
}

/// A store with two identities, and one token of the first.
fn store() -> Store {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store.db");
    let registrar = create(&path).unwrap();
    let identity = registrar.register("{\"agent_id\":\"a\"}").unwrap().identity;
    let other = registrar.register("{\"agent_id\":\"b\"}").unwrap().identity;
    open(&path).unwrap().tokens().unwrap().put(&identity, &token(1)).unwrap();
    Store { _directory: directory, path, identity, other }
}

fn at(micros: i64) -> Time {
    Time::from_micros(micros).unwrap()
}

fn token(n: u8) -> TokenRow {
    TokenRow {
        token_id: [n; 16],
        hash: [n; 32],
        role: "producer".into(),
        name: Some("arm".into()),
        sources: Some(vec!["arm-7".into(), "ärmel".into()]),
        created: at(100),
        expires: Some(at(1000)),
        revoked: None,
        last_used: None,
    }
}

impl Store {
    fn plain(&self) -> Connection {
        Connection::open(&self.path).unwrap()
    }

    fn tokens(&self, identity: &Identity) -> Vec<TokenRow> {
        let reader = open(&self.path).unwrap().reader().unwrap();
        reader.view(identity).unwrap().view().tokens().unwrap()
    }

    fn tables(&self) -> Vec<String> {
        let db = self.plain();
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
        let mut statement = db.prepare(sql).unwrap();
        let names = statement.query_map([], |row| row.get(0)).unwrap();
        names.map(Result::unwrap).collect()
    }
}

#[track_caller]
fn denied(tried: rusqlite::Result<()>, sql: &str) {
    let error = tried.expect_err(sql);
    let code = Some(ErrorCode::AuthorizationForStatementDenied);
    assert_eq!(error.sqlite_error_code(), code, "{sql}: {error}");
}

/// Whether a connection for tokens or settings may insert into a table and delete from it, because
/// an act appends an event: the event, its chunk, its place in the index, the row of an owed act.
fn appending(table: &str) -> (bool, bool) {
    let derived = matches!(table, "chunk" | "run" | "piece" | "act_owed");
    (derived || table == "event", derived)
}

#[test]
fn a_connection_for_tokens_reaches_tokens_alone() {
    let store = store();
    let writer = Guarded::of(&store.path, Duty::Tokens);
    let tables = store.tables();
    assert!(tables.len() >= 16 && tables.contains(&"token".to_string()), "{tables:?}");
    for table in tables.iter().filter(|table| *table != "token") {
        let (inserts, deletes) = appending(table);
        for (allowed, sql) in [
            (inserts, format!("INSERT INTO {table} DEFAULT VALUES")),
            (inserts, format!("REPLACE INTO {table} DEFAULT VALUES")),
            (false, format!("UPDATE {table} SET rowid = 9")),
            (deletes, format!("DELETE FROM {table}")),
            (false, format!("DROP TABLE {table}")),
        ] {
            if !allowed {
                denied(writer.try_statement(&sql), &sql);
            }
        }
    }
    for sql in [
        "DELETE FROM token",
        "DROP TABLE token",
        "DROP TRIGGER token_is_frozen",
        "ALTER TABLE token ADD COLUMN text TEXT",
        "UPDATE token SET role = 'operator'",
        "UPDATE token SET hash = x'00'",
        "UPDATE token SET token_id = x'00'",
        "UPDATE token SET log = 2",
        "UPDATE token SET sources = NULL",
        "UPDATE token SET expires = NULL",
        "UPDATE token SET revoked = 1, name = 'x'",
        "CREATE TRIGGER t AFTER INSERT ON token BEGIN DELETE FROM manifest; END",
        "CREATE TEMP TABLE token (log)",
        "ATTACH ':memory:' AS other",
        "PRAGMA synchronous = OFF",
        "PRAGMA writable_schema = 1",
        "VACUUM",
        "UPDATE sqlite_dbpage SET data = data",
    ] {
        denied(writer.try_statement(sql), sql);
    }
    assert_eq!(store.tokens(&store.identity), [token(1)]);
}

#[test]
fn no_other_connection_writes_tokens() {
    let store = store();
    let writer = Guarded::of(&store.path, Duty::Write);
    let eraser = Guarded::of(&store.path, Duty::Forget);
    let heads = Guarded::of(&store.path, Duty::Sign);
    let settings = Guarded::of(&store.path, Duty::Configure);
    for sql in [
        "INSERT INTO token (log, token_id, hash, role, created) \
         VALUES (1, x'00', x'00', 'operator', 0)",
        "REPLACE INTO token SELECT * FROM token",
        "UPDATE token SET revoked = NULL",
        "UPDATE token SET last_used = 0",
        "UPDATE token SET role = 'operator'",
        "DELETE FROM token",
    ] {
        denied(writer.try_statement(sql), sql);
        denied(eraser.try_statement(sql), sql);
        denied(heads.try_statement(sql), sql);
        denied(settings.try_statement(sql), sql);
    }
    assert_eq!(store.tokens(&store.identity), [token(1)]);
}

/// The triggers reject the change on any connection; without them the authorizer does.
#[test]
fn what_a_token_may_do_never_changes_and_what_is_revoked_stays_revoked() {
    let store = store();
    let db = store.plain();
    db.execute_batch("UPDATE token SET last_used = 5; UPDATE token SET revoked = 7").unwrap();
    db.execute_batch("UPDATE token SET last_used = 6").unwrap();
    for sql in [
        "UPDATE token SET revoked = NULL",
        "UPDATE token SET revoked = 8",
        "UPDATE token SET role = 'operator'",
        "UPDATE token SET hash = x'00'",
        "UPDATE token SET token_id = x'00'",
        "UPDATE token SET log = 2",
        "UPDATE token SET number = 9",
        "UPDATE token SET name = NULL",
        "UPDATE token SET sources = NULL",
        "UPDATE token SET created = 0",
        "UPDATE token SET expires = NULL",
    ] {
        let error = db.execute_batch(sql).expect_err(sql).to_string();
        assert!(error.contains("never changes otherwise"), "{sql}: {error}");
    }
    let writer = Guarded::of(&store.path, Duty::Tokens);
    for over in ["number", "number + 1"] {
        let sql = format!(
            "REPLACE INTO token SELECT {over}, log, token_id, hash, 'operator', name, sources, \
             created, expires, NULL, NULL FROM token"
        );
        for tried in [db.execute_batch(&sql), writer.try_statement(&sql)] {
            assert!(tried.expect_err(&sql).to_string().contains("never replaced"));
        }
    }
    let want = TokenRow { revoked: Some(at(7)), last_used: Some(at(6)), ..token(1) };
    assert_eq!(store.tokens(&store.identity), [want]);
}

#[test]
fn a_planted_trigger_makes_a_put_fail_and_changes_nothing() {
    let store = store();
    let plant = "CREATE TRIGGER t AFTER INSERT ON token BEGIN \
                 UPDATE policy SET signatures = 0; END";
    store.plain().execute_batch(plant).unwrap();
    let mut writer = open(&store.path).unwrap().tokens().unwrap();
    assert!(matches!(writer.put(&store.identity, &token(2)), Err(Error::Database { .. })));
    assert_eq!(store.tokens(&store.identity), [token(1)]);
}

#[test]
fn tokens_of_one_identity_are_not_found_under_another() {
    let store = store();
    let mut writer = open(&store.path).unwrap().tokens().unwrap();
    let bare = TokenRow { name: None, sources: None, expires: None, ..token(2) };
    writer.put(&store.other, &bare).unwrap();
    assert_eq!(store.tokens(&store.identity), [token(1)]);
    assert_eq!(store.tokens(&store.other), std::slice::from_ref(&bare));
    let view = writer.view(&store.other).unwrap();
    assert_eq!(view.token(&[2; 16]).unwrap(), Some(bare));
    assert_eq!(view.token(&[1; 16]).unwrap(), None);
    assert!(!writer.revoke(&store.other, &[1; 16], at(200)).unwrap());
    assert!(!writer.note_use(&store.other, &[1; 16], None, at(200)).unwrap());
    assert_eq!(store.tokens(&store.identity), [token(1)], "it is unchanged");
    let stranger = Identity([9; 32]);
    assert!(matches!(writer.put(&stranger, &token(3)), Err(Error::UnknownIdentity(_))));
    assert!(matches!(writer.view(&stranger), Err(Error::UnknownIdentity(_))));
}

#[test]
fn a_token_is_revoked_once_and_its_use_noted_by_one_of_many() {
    let store = store();
    let mut writer = open(&store.path).unwrap().tokens().unwrap();
    let (identity, id) = (&store.identity, &[1; 16]);
    assert!(writer.note_use(identity, id, None, at(200)).unwrap());
    assert!(!writer.note_use(identity, id, None, at(201)).unwrap(), "another process was first");
    assert!(writer.note_use(identity, id, Some(at(200)), at(202)).unwrap());
    assert!(writer.any_live(at(999)).unwrap());
    assert!(!writer.any_live(at(1000)).unwrap(), "expired at that very microsecond");
    assert!(writer.revoke(identity, id, at(300)).unwrap());
    assert!(!writer.revoke(identity, id, at(301)).unwrap());
    assert!(!writer.any_live(at(400)).unwrap());
    let want = TokenRow { revoked: Some(at(300)), last_used: Some(at(202)), ..token(1) };
    assert_eq!(store.tokens(identity), [want]);
}

#[test]
fn live_tokens_are_limited_by_identity_and_others_do_not_count() {
    let store = store();
    let fill = "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) \
                INSERT INTO token (log, token_id, hash, role, created, revoked, expires) \
                SELECT ?2, randomblob(16), randomblob(32), 'planner', 0, ?3, ?4 FROM n";
    let db = store.plain();
    let most = MAX_LIVE_TOKENS.cast_signed();
    db.execute(fill, (50, 1, Some(1), None::<i64>)).unwrap();
    db.execute(fill, (50, 1, None::<i64>, Some(100))).unwrap();
    db.execute(fill, (most, 2, None::<i64>, None::<i64>)).unwrap();
    db.execute(fill, (most - 1, 1, None::<i64>, None::<i64>)).unwrap();
    let mut writer = open(&store.path).unwrap().tokens().unwrap();
    writer.put(&store.identity, &token(2)).unwrap();
    let refused = writer.put(&store.identity, &token(3)).unwrap_err();
    assert!(matches!(refused, Error::TooManyTokens));
    assert_eq!(refused.to_string(), "an identity has at most 1000 live tokens");
    writer.revoke(&store.identity, &[2; 16], at(100)).unwrap();
    writer.put(&store.identity, &token(3)).unwrap();
    assert_eq!(store.tokens(&store.identity).last(), Some(&token(3)));
}

#[test]
fn a_time_that_is_none_is_damage() {
    let store = store();
    let db = store.plain();
    db.execute_batch("UPDATE token SET last_used = -1").unwrap();
    let reader = open(&store.path).unwrap().reader().unwrap();
    let error = reader.view(&store.identity).unwrap().view().tokens().unwrap_err();
    assert!(error.is_damage(), "{error}");
}
