//! Tokens on the command line: shown once, listed without their secret, revoked permanently.

use super::store::{CommandResult, Store, vector};
use ipse_access::{Owner, TokenId, parse};
use ipse_core::{Identity, Time};
use rusqlite::Connection;

fn create(store: &Store, args: &[&str]) -> CommandResult {
    store.run(&[&["token", "create"][..], args].concat())
}

fn identity() -> Identity {
    let text = std::fs::read_to_string(vector("manifest/golden.identity.txt")).unwrap();
    Identity::parse(text.trim()).unwrap()
}

fn id_of(text: &str) -> String {
    TokenId::of(&parse(text.trim()).unwrap().1).to_string()
}

fn list(store: &Store, args: &[&str]) -> serde_json::Value {
    store.run(&[&["token", "list", "--json"][..], args].concat()).json()
}

/// Makes every token expire.
fn expire(store: &Store) {
    let db = Connection::open(&store.path).unwrap();
    let sql = "SELECT sql FROM sqlite_schema WHERE name = 'token_is_frozen'";
    let guard: String = db.query_row(sql, [], |row| row.get(0)).unwrap();
    db.execute_batch("DROP TRIGGER token_is_frozen; UPDATE token SET expires = created").unwrap();
    db.execute_batch(&guard).unwrap();
}

#[test]
fn a_token_alone_goes_to_standard_output() {
    let store = Store::new();
    let ran = create(&store, &["--role", "planner"]);
    let words = ["planner token tk_", "valid until 2", "shown once, stored as a hash"];
    let ran = ran.ended(0, &words);
    assert_eq!(ran.out.matches('\n').count(), 1);
    let (whose, _) = parse(ran.out.trim_end_matches('\n')).unwrap();
    assert_eq!(whose, Owner::Identity(identity()));
    assert!(ran.err.contains(&id_of(&ran.out)) && !ran.err.contains("ipse_"), "{}", ran.err);
    let again = create(&store, &["--role", "planner", "--expires", "never"]);
    let again = again.ended(0, &["until it is revoked"]);
    assert_ne!(again.out, ran.out);
    let listed = store.run(&["token", "list"]).fine().out;
    assert_eq!(listed.matches(" live").count(), 2, "{listed}");
    assert!(!listed.contains("ipse_"), "{listed}");
}

#[test]
fn the_json_of_a_token_has_what_was_given() {
    let store = Store::new();
    let ran = create(&store, &["--role", "auditor", "--expires", "never", "--json"]).fine();
    assert_eq!(ran.members(), ["identity_hash", "role", "token", "token_id"]);
    let json = ran.json();
    assert_eq!(json["identity_hash"], identity().to_string());
    assert_eq!(json["token_id"], id_of(json["token"].as_str().unwrap()));
    let args = ["--role", "producer", "--name", "ärm 7", "--source", "a,b", "--source", "c"];
    let ran = create(&store, &[&args[..], &["--expires", "2w", "--json"]].concat()).fine();
    let members = ["expires", "identity_hash", "name", "role", "sources", "token", "token_id"];
    assert_eq!(ran.members(), members);
    let json = ran.json();
    assert_eq!(json["sources"], serde_json::json!(["a,b", "c"]));
    let listed = list(&store, &[]);
    let [bare, whole] = listed.as_array().unwrap().as_slice() else { panic!("{listed}") };
    let members = |row: &serde_json::Value| row.as_object().unwrap().keys().cloned().collect();
    let of_bare: Vec<String> = members(bare);
    assert_eq!(of_bare, ["created", "role", "state", "token_id"]);
    let of_whole: Vec<String> = members(whole);
    assert_eq!(of_whole, ["created", "expires", "name", "role", "sources", "state", "token_id"]);
    assert_eq!((&whole["name"], &whole["expires"]), (&json["name"], &json["expires"]));
    let time = |name: &str| Time::parse(whole[name].as_str().unwrap()).unwrap().micros();
    assert_eq!(time("expires") - time("created"), 14 * 86_400_000_000);
    store.run(&["token", "revoke", "ärm 7"]).fine();
    let listed = list(&store, &["--all"]);
    assert!(listed[1]["revoked"].is_string() && listed[1]["state"] == "revoked", "{listed}");
}

#[test]
fn a_token_lives_for_ninety_days_unless_something_else_is_said() {
    let store = Store::new();
    create(&store, &["--role", "operator"]).fine();
    let until = ["--role", "operator", "--expires", "2032-01-01T00:00:00+01:00"];
    create(&store, &until).ended(0, &["valid until 2031-12-31T23:00:00Z"]);
    for expires in ["60s", "3653d"] {
        create(&store, &["--role", "operator", "--expires", expires]).fine();
    }
    let row = &list(&store, &[])[0];
    let time = |name: &str| Time::parse(row[name].as_str().unwrap()).unwrap().micros();
    assert_eq!(time("expires") - time("created"), 90 * 86_400_000_000);
}

#[test]
fn what_is_refused_changes_nothing() {
    let store = Store::new();
    let bare = |args: &[&str], words: &[&str]| {
        let ran = create(&store, &[&["--role", "producer"], args].concat());
        assert!(ran.ended(2, words).out.is_empty());
    };
    let producer =
        |args: &[&str], words: &[&str]| bare(&[&["--source", "arm"], args].concat(), words);
    bare(&[], &["give --source SOURCE", "or --any-source"]);
    producer(&["--any-source"], &["cannot be used with"]);
    for expires in ["59s", "0d", "3654d", "2001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"] {
        producer(&["--expires", expires], &["at least a minute and at most ten years"]);
    }
    producer(&["--expires", "999999999999d"], &["at most ten years"]);
    for expires in ["", "30", "-5d", "soon", "1y", "2030-01-01"] {
        producer(&["--expires", expires], &["such as 30d", "never"]);
    }
    for name in ["", &"x".repeat(65), "a\u{7}b", "tk_a", "ipse_b"] {
        producer(&["--name", name], &["1 to 64 bytes", "no control characters"]);
    }
    for source in ["", "ipse", "a\u{1b}[31mb", "*", "a*b", "a**", &"x".repeat(257)] {
        producer(&["--source", source], &["is not a valid source", "1 to 256 bytes", "not `ipse`"]);
    }
    let many: Vec<String> = (0..17).map(|n| format!("--source=arm-{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    bare(&many, &["at most 16 sources", "17"]);
    for role in ["planner", "operator", "auditor"] {
        let ran = create(&store, &["--role", role, "--source", "arm"]);
        ran.ended(2, &["only a producer's token can have sources", role]);
        create(&store, &["--role", role, "--any-source"]).ended(2, &["token of a producer"]);
    }
    create(&store, &["--role", "king"]).ended(2, &["king", "planner", "auditor"]);
    create(&store, &[]).ended(2, &["--role"]);
    store.run(&["token", "list", "--all"]).ended(1, &["no live tokens", "ipse token create"]);
    assert_eq!(list(&store, &["--all"]), serde_json::json!([]));
    let none = Store::nothing();
    create(&none, &["--role", "planner"]).ended(2, &["no store at", "hint:"]);
    assert!(!none.path.exists());
}

#[test]
fn a_token_is_revoked_by_id_name_or_itself_and_once() {
    let store = Store::new();
    let name = |name: &str| create(&store, &["--role", "planner", "--name", name]).fine().out;
    let (one, two, three) = (name("one"), name("two"), name("three"));
    let revoke = |which: &str| store.run(&["token", "revoke", which]);
    let ran = revoke(&id_of(&one)).fine();
    assert_eq!((ran.out, ran.err), (format!("revoked {}\n", id_of(&one)), String::new()));
    assert_eq!(revoke("two").fine().out, format!("revoked {}\n", id_of(&two)));
    assert_eq!(revoke(three.trim()).fine().out, format!("revoked {}\n", id_of(&three)));
    for again in [&id_of(&one), "two", three.trim()] {
        revoke(again).ended(0, &["it was revoked at 2"]);
    }
    let ran = store.run(&["token", "revoke", "two", "--json"]).fine();
    assert_eq!(ran.members(), ["changed", "revoked", "token_id"]);
    assert_eq!(
        (&ran.json()["changed"], ran.json()["token_id"].as_str().unwrap()),
        (&false.into(), id_of(&two).as_str())
    );
    revoke("four").ended(1, &["no token `four`", "nothing was changed", "ipse token list --all"]);
    revoke("tk_00000000000000000000000000000000").ended(1, &["nothing was changed"]);
    revoke("\u{1b}[31m").ended(1, &["no token `\u{fffd}[31m`"]);
    let cut = &three.trim()[..100];
    assert!(!revoke(cut).ended(1, &["no such token"]).err.contains(cut), "it is not shown");
    store.run(&["token", "list"]).ended(1, &["no live tokens; --all lists 3 tokens"]);
    let all = store.run(&["token", "list", "--all"]).fine().out;
    assert_eq!(all.matches(" revoked").count(), 3, "{all}");
}

#[test]
fn where_names_are_shared_the_live_one_is_meant() {
    let store = Store::new();
    let arm =
        || create(&store, &["--role", "producer", "--any-source", "--name", "arm"]).fine().out;
    let first = arm();
    expire(&store);
    store.run(&["token", "list"]).ended(1, &["--all lists 1 token that"]);
    assert_eq!(list(&store, &["--all"])[0]["state"], "expired");
    let second = arm();
    let ids = || {
        let listed = list(&store, &[]);
        listed.as_array().unwrap().iter().map(|row| row["token_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(), [id_of(&second)]);
    let third = arm();
    let words = ["2 live tokens have the name `arm`", &id_of(&second), &id_of(&third)];
    store.run(&["token", "revoke", "arm"]).ended(2, &words);
    assert_eq!(ids(), [id_of(&second), id_of(&third)]);
    store.run(&["token", "revoke", &id_of(&second)]).fine();
    assert_eq!(
        store.run(&["token", "revoke", "arm"]).fine().out.trim(),
        format!("revoked {}", id_of(&third))
    );
    assert_eq!(
        store.run(&["token", "revoke", "arm"]).fine().out.trim(),
        format!("revoked {}", id_of(&first)),
        "one that has expired can be revoked too"
    );
    assert!(ids().is_empty());
}

#[test]
fn identities_have_tokens_of_their_own() {
    let store = Store::new();
    let toml = std::fs::read_to_string(vector("manifest/golden.toml")).unwrap();
    let other = store.write("other.toml", toml.replace("ward-robot-01", "ward-robot-02"));
    let other = store.run(&["init", "--manifest", &other]).fine().out;
    create(&store, &["--role", "planner"]).ended(2, &["several identities", "--identity"]);
    let create = |whose: &str| {
        let args = ["--identity", whose, "token", "create", "--role", "planner", "--name", "arm"];
        store.run(&args).fine().out
    };
    let (ours, theirs) = (create("b113"), create(other.trim()));
    let other_identity = Identity::parse(other.trim()).unwrap();
    assert_eq!(parse(theirs.trim()).unwrap().0, Owner::Identity(other_identity));
    let list = |whose: &str| store.run(&["--identity", whose, "token", "list"]).fine().out;
    assert!(list("b113").contains(&id_of(&ours)) && !list("b113").contains(&id_of(&theirs)));
    let revoke =
        |whose: &str, which: &str| store.run(&["--identity", whose, "token", "revoke", which]);
    revoke("b113", &id_of(&theirs)).ended(1, &["nothing was changed"]);
    revoke("b113", "arm").fine();
    assert!(list(other.trim()).contains(&id_of(&theirs)));
}

#[test]
fn too_many_live_tokens_are_refused_with_what_to_do() {
    let store = Store::new();
    let fill = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
                INSERT INTO token (log, token_id, hash, role, created) \
                SELECT 1, randomblob(16), randomblob(32), 'planner', 0 FROM n";
    Connection::open(&store.path).unwrap().execute_batch(fill).unwrap();
    let words = ["at most 1000 live tokens", "hint:", "ipse token revoke"];
    assert!(create(&store, &["--role", "planner"]).ended(2, &words).out.is_empty());
    let words = ["the store is damaged: token tk_", "cannot be read"];
    store.run(&["token", "list"]).ended(2, &words);
}

#[test]
fn a_store_of_schema_4_gets_tokens_by_the_first_command_that_writes() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let facts = store.snapshot();
    let db = Connection::open(&store.path).unwrap();
    let back = "DROP TRIGGER producer_is_frozen; DROP TRIGGER producer_is_not_replaced; \
                ALTER TABLE producer DROP COLUMN sources; \
                ALTER TABLE policy DROP COLUMN max_ahead; \
                ALTER TABLE fact DROP COLUMN last_worked; \
                DROP TABLE artefact; DROP TABLE cosignature; DROP TABLE act_owed; \
                DROP TABLE retired; DROP INDEX event_of_recorder; \
                DROP INDEX event_of_house; DROP TABLE token; DROP TABLE retention; \
                CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT; \
                PRAGMA user_version = 4";
    db.execute_batch(back).unwrap();
    let words = ["schema 4, older than 11", "hint:", "migrate"];
    store.run(&["token", "list"]).ended(2, &words);
    create(&store, &["--role", "planner", "--expires", "1s"]).ended(2, &["a minute"]);
    store.run(&["token", "list"]).ended(2, &["schema 4"]);
    create(&store, &["--role", "planner"]).fine();
    store.run(&["token", "list"]).fine();
    store.run(&["verify"]).fine();
    assert_eq!(store.snapshot(), facts);
}

#[test]
fn a_token_is_on_standard_output_and_nowhere_else() {
    let store = Store::new();
    // A reader stays open, so that the write-ahead log stays.
    let reader = Connection::open(&store.path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM manifest").unwrap();
    let args = ["--role", "producer", "--name", "arm", "--source", "arm-7"];
    let ran = create(&store, &args).fine();
    let secret = &ran.out.trim()[70..];
    let mut seen = vec![ran.err.into_bytes()];
    for args in [&["token", "list"][..], &["token", "list", "--json"], &["verify"], &["log"]] {
        let ran = store.run(args);
        seen.extend([ran.out.into_bytes(), ran.err.into_bytes()]);
    }
    for file in std::fs::read_dir(store.directory.path()).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            seen.push(std::fs::read(path).unwrap());
        }
    }
    assert!(store.directory.path().join("ipse.db-wal").is_file());
    let all = seen.concat();
    let holds = |needle: &str| all.windows(needle.len()).any(|window| window == needle.as_bytes());
    assert!(holds("arm-7") && !holds(secret) && !holds(&secret[..20]));
}

#[test]
fn the_token_of_an_observer_needs_no_identity() {
    let store = Store::new();
    let other = store.write("other.toml", store.run(&["manifest", "new"]).fine().out);
    store.run(&["init", "--manifest", &other]).fine();
    let made = create(&store, &["--role", "observer", "--name", "prometheus", "--json"]).fine();
    assert_eq!(made.members(), ["expires", "name", "role", "token", "token_id"]);
    let text = made.json()["token"].as_str().unwrap().to_string();
    assert!(text.starts_with("ipse_observer_"), "{text}");
    let identity = identity().to_string();
    let args = ["--identity", &identity, "token", "create", "--role", "observer"];
    store.run(&args).ended(2, &["belongs to the store", "--identity"]);
    create(&store, &["--role", "observer", "--source", "a"]).ended(2, &["only a producer's"]);
    // Listed with those of an identity, and alone.
    let listed = list(&store, &["--observers"]);
    assert_eq!(
        (&listed[0]["role"], &listed[0]["name"]),
        (&"observer".into(), &"prometheus".into())
    );
    let args = ["--identity", &identity, "token", "create", "--role", "planner"];
    store.run(&args).fine();
    let args = ["--identity", &identity, "token", "list", "--json"];
    assert_eq!(store.run(&args).fine().json().as_array().unwrap().len(), 2);
    store.run(&["token", "list"]).ended(2, &["several identities"]);
    store.run(&["--identity", &identity, "verify"]).fine();
    // Revoked by its name, its secret or its id.
    store.run(&["token", "revoke", "nothing"]).ended(2, &["several identities"]);
    store.run(&["token", "revoke", &text]).fine();
    store.run(&["token", "revoke", "prometheus"]).ended(0, &["it was revoked at"]);
    store.run(&["token", "list", "--observers"]).ended(1, &["no live tokens"]);
}
