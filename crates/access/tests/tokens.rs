//! Tokens: the format of the text, until when a token is valid, and that a store never has the
//! text.
#![allow(missing_docs, clippy::unwrap_used)]

use ipse_access::{
    Denied, MAX_LIFE, MAX_NAME_BYTES, MAX_SOURCES, MIN_LIFE, NewToken, Owner, Role, State, Token,
    TokenError, TokenId, Tokens, USE_EVERY, check, damaged, make, parse, tokens,
};
use ipse_core::sources::SourcesError;
use ipse_core::{Identity, Time, hex, sha256};
use ipse_store::{Location, Store};
use proptest::prelude::*;
use std::path::PathBuf;
use tempfile::TempDir;

/// A store with one identity.
struct World {
    path: PathBuf,
    store: Store,
    identity: Identity,
    /// Removed with the store when the test ends.
    _directory: TempDir,
}

impl World {
    fn new() -> Self {
        let _directory = tempfile::tempdir().unwrap();
        let path = _directory.path().join("tokens.db");
        let store = Store::create(&Location::file(&path)).unwrap();
        let identity = registered(&store, "a");
        World { path, store, identity, _directory }
    }

    fn second_identity(&self) -> Identity {
        registered(&self.store, "b")
    }
}

fn registered(store: &Store, agent: &str) -> Identity {
    let manifest = format!("{{\"agent_id\":\"{agent}\"}}");
    store.register(&manifest).unwrap().identity
}

const NOW: i64 = 1_800_000_000_000_000;
/// The golden identity of `vectors/manifest`.
const GOLDEN: &str = "b113b1a485f0f31fc71582f00278878e70a9c23f5af27820ba7d58f5af8d60ff";

fn at(micros: i64) -> Time {
    Time::from_micros(micros).unwrap()
}

fn new(role: Role) -> NewToken {
    NewToken { role, name: None, sources: Vec::new(), expires: None }
}

fn made(identity: &Identity, random: u8) -> (String, Token) {
    make(identity, new(Role::Planner), [random; 32], at(NOW)).unwrap()
}

/// The text of a token is a format: if this test fails, do not edit the literals.
#[test]
fn a_tokens_text_hash_and_id_are_golden() {
    let identity = Identity::parse(GOLDEN).unwrap();
    let random = std::array::from_fn(|place| place as u8);
    let (text, token) = make(&identity, new(Role::Auditor), random, at(NOW)).unwrap();
    let secret = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
    assert_eq!(text, format!("ipse_{GOLDEN}_{secret}"));
    let hash = "de9b08d81aa2cdacfc7e8edb703008701214fb80bd562ba97bb11eaccf74b11f";
    assert_eq!(hex::encode(&token.hash), hash);
    assert_eq!(token.id.to_string(), "tk_6e5361ac862cc2370c3e4e7cb32fbfcc");
    assert_eq!(TokenId::parse("tk_6e5361ac862cc2370c3e4e7cb32fbfcc"), Some(token.id));
    assert_eq!(parse(&text), Some((Owner::Identity(identity), token.hash)));
    let (text, token) = make(Owner::Store, new(Role::Observer), random, at(NOW)).unwrap();
    assert_eq!(text, format!("ipse_observer_{secret}"));
    assert_eq!(parse(&text), Some((Owner::Store, token.hash)));
}

#[test]
fn what_is_almost_a_token_is_none() {
    let (text, _) = made(&Identity([0xab; 32]), 0xff);
    assert!(text.ends_with("__8"), "the secret may contain the separator: {text}");
    assert!(parse(&text).is_some());
    for almost in [
        "".to_string(),
        "ipse_".to_string(),
        text[1..].to_string(),
        text[..text.len() - 1].to_string(),
        format!("{text}="),
        format!("{text}A"),
        format!(" {text}"),
        format!("{text}\n"),
        format!("Bearer {text}"),
        text.to_uppercase(),
        text.replacen("ab", "AB", 1),
        text.replacen("ipse_", "ipse-", 1),
        text.replacen("b_", "b-", 1),
        text.replacen("__8", "__9", 1),
        text.replacen("__8", "//8", 1),
        text.replacen('a', "é", 1),
    ] {
        assert_eq!(parse(&almost), None, "{almost:?}");
    }
}

proptest! {
    #[test]
    fn a_token_is_its_own_only_text(identity: [u8; 32], random: [u8; 32], place in 0..113_usize,
                                    instead in any::<char>()) {
        let identity = Identity(identity);
        let (text, token) = make(&identity, new(Role::Planner), random, at(NOW)).unwrap();
        prop_assert_eq!(text.len(), 113);
        prop_assert_eq!(parse(&text), Some(((&identity).into(), sha256(&[text.as_bytes()]))));
        prop_assert_eq!(check(std::slice::from_ref(&token), &text, at(NOW)), Ok(&token));
        let mut other: String = text[..place].to_string();
        other.push(instead);
        other.push_str(&text[place + 1..]);
        let denied = check(std::slice::from_ref(&token), &other, at(NOW)) == Err(Denied::Unknown);
        prop_assert!(denied || other == text);
    }

    #[test]
    fn whatever_is_taken_for_a_token_is_one(
        text in "ipse_[0-9a-f]{63,64}[0-9a-fA-F_-]{1,2}[A-Za-z0-9_=-]{42,43}",
    ) {
        if let Some((Owner::Identity(identity), hash)) = parse(&text) {
            let beginning = format!("ipse_{identity}_");
            prop_assert!(text.starts_with(&beginning) && text.len() == 113);
            prop_assert_eq!(hash, sha256(&[text.as_bytes()]));
        }
    }

    #[test]
    fn no_text_makes_reading_fail(text in any::<String>()) {
        prop_assert_eq!(parse(&text), None);
        prop_assert_eq!(TokenId::parse(&text), None);
    }
}

#[test]
fn a_token_is_valid_until_its_microsecond_or_until_it_is_revoked() {
    let identity = Identity([1; 32]);
    let expires = NOW + MIN_LIFE;
    let short = NewToken { expires: Some(at(expires)), ..new(Role::Planner) };
    let (text, token) = make(&identity, short, [1; 32], at(NOW)).unwrap();
    let (other_text, other) = made(&identity, 2);
    let (unknown, _) = made(&identity, 3);
    let all = [other.clone(), token.clone()];
    assert_eq!(check(&all, &text, at(NOW)), Ok(&token));
    assert_eq!(check(&all, &text, at(expires - 1)), Ok(&token));
    assert_eq!(check(&all, &text, at(expires)), Err(Denied::Expired));
    assert_eq!(check(&all, &other_text, at(expires + 1)), Ok(&other), "it never expires");
    assert_eq!(check(&all, &unknown, at(NOW)), Err(Denied::Unknown));
    assert_eq!(check(&[], &text, at(NOW)), Err(Denied::Unknown));
    let mut revoked = token;
    revoked.row.revoked = Some(at(NOW + 1));
    let all = [revoked.clone(), other];
    assert_eq!(check(&all, &text, at(NOW)), Err(Denied::Revoked), "at any time");
    assert_eq!(check(&all, &text, at(expires)), Err(Denied::Revoked));
    assert_eq!(revoked.state(at(expires)), State::Revoked);
}

#[test]
fn limits_are_refused_by_name() {
    let checked = |change: &dyn Fn(&mut NewToken)| {
        let mut token = new(Role::Producer);
        change(&mut token);
        token.check(at(NOW))
    };
    let name = |name: &str| checked(&|token| token.name = Some(name.to_string()));
    for good in ["a", "ward 3, arm é", &"x".repeat(MAX_NAME_BYTES)] {
        assert_eq!(name(good), Ok(()), "{good}");
    }
    for bad in ["", &"x".repeat(MAX_NAME_BYTES + 1), "a\nb", "a\u{85}", "tk_1", "ipse_x"] {
        assert_eq!(name(bad), Err(TokenError::Name), "{bad:?}");
    }
    let source = |source: &str| checked(&|token| token.sources = vec![source.to_string()]);
    assert_eq!(source(&"x".repeat(256)), Ok(()));
    for bad in ["", "ipse", "a\tb", &"x".repeat(257)] {
        assert_eq!(source(bad), Err(SourcesError::Entry(bad.to_string()).into()), "{bad:?}");
    }
    let many = |n: usize| checked(&|token| token.sources = vec!["a".to_string(); n]);
    assert_eq!(many(MAX_SOURCES), Ok(()));
    assert_eq!(many(MAX_SOURCES + 1), Err(SourcesError::TooMany(MAX_SOURCES + 1).into()));
    for role in Role::ALL.into_iter().filter(|role| *role != Role::Producer) {
        let token = NewToken { sources: vec!["a".into()], ..new(role) };
        assert_eq!(token.check(at(NOW)), Err(TokenError::SourcesOf(role)));
    }
    let life = |micros: i64| checked(&|token| token.expires = Some(at(NOW + micros)));
    assert_eq!((life(MIN_LIFE), life(MAX_LIFE)), (Ok(()), Ok(())));
    for bad in [MIN_LIFE - 1, MAX_LIFE + 1, 0, -NOW] {
        assert_eq!(life(bad), Err(TokenError::Life), "{bad}");
    }
}

#[test]
fn words_and_rights() {
    for role in Role::ALL {
        assert_eq!(Role::parse(role.name()), Some(role));
    }
    assert_eq!(Role::parse("Planner"), None);
    let identity = Identity([1; 32]);
    let twice = vec!["arm".to_string(), "leg".into(), "arm".into()];
    let of_sources = NewToken { sources: twice, ..new(Role::Producer) };
    let (_, some) = make(&identity, of_sources, [1; 32], at(NOW)).unwrap();
    assert_eq!(some.sources.as_deref(), Some(&["arm".to_string(), "leg".into()][..]));
    assert!(some.may_send("leg") && !some.may_send("le") && !some.may_send("arm\nleg"));
    let (_, any) = make(&identity, new(Role::Producer), [2; 32], at(NOW)).unwrap();
    assert!(any.may_send("whatever"));
    for (sources, reporting) in
        [(&["arm"][..], "arm"), (&["arm*"], "http"), (&["arm", "leg"], "http"), (&[], "http")]
    {
        let sources = sources.iter().map(ToString::to_string).collect();
        let of_sources = NewToken { sources, ..new(Role::Producer) };
        let (_, token) = make(&identity, of_sources, [4; 32], at(NOW)).unwrap();
        assert_eq!(token.reporting_source(), reporting);
    }
    let star = NewToken { sources: vec!["otel:*".into()], ..new(Role::Producer) };
    let (_, star) = make(&identity, star, [5; 32], at(NOW)).unwrap();
    assert!(star.may_send("otel:a") && !star.may_send("otel") && !star.may_send("arm"));
    assert!(!made(&identity, 3).1.may_send("arm"), "a planner sends nothing");
}

#[test]
fn a_use_is_noted_at_most_once_a_minute() {
    let world = World::new();
    let mut desk = Tokens::open(&world.store).unwrap();
    let (text, token) = made(&world.identity, 1);
    desk.put(&world.identity, &token).unwrap();
    let mut noted = |now: i64| {
        let (identity, token) = desk.admit(&text, at(now)).unwrap().unwrap();
        desk.note_use(identity, &token, at(now)).unwrap()
    };
    assert!(noted(NOW));
    assert!(!noted(NOW + USE_EVERY - 1));
    assert!(noted(NOW + USE_EVERY));
    assert!(!noted(NOW + 1), "a clock that went back a little");
    assert!(noted(NOW - USE_EVERY), "a clock that went back far is used again");
    // Two handles read the same row: only one of them writes.
    let (_, seen) = desk.admit(&text, at(NOW)).unwrap().unwrap();
    assert!(desk.note_use(&world.identity, &seen, at(NOW)).unwrap());
    assert!(!desk.note_use(&world.identity, &seen, at(NOW)).unwrap());
    assert_eq!(desk.of(&world.identity).unwrap()[0].last_used, Some(at(NOW)));
}

#[test]
fn a_token_of_one_identity_is_not_found_under_another() {
    let world = World::new();
    let second = world.second_identity();
    let mut desk = Tokens::open(&world.store).unwrap();
    assert!(!desk.any_live(at(NOW)).unwrap());
    let (text, token) = made(&world.identity, 1);
    desk.put(&world.identity, &token).unwrap();
    assert!(desk.any_live(at(NOW)).unwrap());
    let ours = Owner::Identity(world.identity);
    assert_eq!(desk.admit(&text, at(NOW)).unwrap(), Ok((ours, token.clone())));
    assert_eq!(check(&desk.of(&second).unwrap(), &text, at(NOW)), Err(Denied::Unknown));
    let moved = text.replace(&world.identity.to_string(), &second.to_string());
    let stranger = text.replace(&world.identity.to_string(), &"0".repeat(64));
    for other in [moved.as_str(), &stranger, "ipse_", ""] {
        assert_eq!(desk.admit(other, at(NOW)).unwrap(), Err(Denied::Unknown), "{other}");
    }
    assert!(!desk.revoke(&second, &token.id, at(NOW)).unwrap());
    assert!(desk.revoke(&world.identity, &token.id, at(NOW)).unwrap());
    assert_eq!(desk.admit(&text, at(NOW)).unwrap(), Err(Denied::Revoked));
}

#[test]
fn the_token_of_an_observer_belongs_to_the_store() {
    let world = World::new();
    let mut desk = Tokens::open(&world.store).unwrap();
    let observer = |owner: Owner| make(owner, new(Role::Observer), [9; 32], at(NOW));
    assert_eq!(observer((&world.identity).into()).unwrap_err(), TokenError::Owner);
    for role in Role::ALL.into_iter().filter(|role| *role != Role::Observer) {
        let made = make(Owner::Store, new(role), [9; 32], at(NOW));
        assert_eq!(made.unwrap_err(), TokenError::Owner, "{}", role.name());
    }
    let (text, token) = observer(Owner::Store).unwrap();
    desk.put(Owner::Store, &token).unwrap();
    assert!(desk.any_live(at(NOW)).unwrap());
    assert_eq!(desk.admit(&text, at(NOW)).unwrap(), Ok((Owner::Store, token.clone())));
    assert_eq!(desk.of(&world.identity).unwrap(), []);
    assert!(desk.is_live(Owner::Store, &token.id, at(NOW)).unwrap());
    for almost in [
        text.replacen("observer_", "observer", 1),
        text.replacen("observer_", "Observer_", 1),
        format!("{text}A"),
        text[..text.len() - 1].to_string(),
    ] {
        assert_eq!(parse(&almost), None, "{almost}");
    }
    assert!(desk.revoke(Owner::Store, &token.id, at(NOW)).unwrap());
    assert_eq!(desk.admit(&text, at(NOW)).unwrap(), Err(Denied::Revoked));
    // A role that does not fit its owner is damage.
    let reader = world.store.reader().unwrap();
    assert_eq!(damaged(reader.view(&world.identity).unwrap().view()).unwrap(), []);
    let db = rusqlite::Connection::open(&world.path).unwrap();
    db.execute_batch("DROP TRIGGER token_is_frozen; UPDATE token SET role = 'operator'").unwrap();
    let found = damaged(reader.view(&world.identity).unwrap().view()).unwrap();
    assert_eq!(found, [token.id]);
    assert!(desk.admit(&text, at(NOW)).is_err());
}

#[test]
fn a_token_is_in_no_file_of_its_store() {
    let world = World::new();
    // An open read transaction keeps the write-ahead log.
    let reader = rusqlite::Connection::open(&world.path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM manifest").unwrap();
    let mut desk = Tokens::open(&world.store).unwrap();
    let random = std::array::from_fn(|place| (place * 7 + 130) as u8);
    let (text, token) = make(&world.identity, new(Role::Operator), random, at(NOW)).unwrap();
    desk.put(&world.identity, &token).unwrap();
    let (identity, seen) = desk.admit(&text, at(NOW)).unwrap().unwrap();
    desk.note_use(identity, &seen, at(NOW)).unwrap();
    desk.revoke(identity, &token.id, at(NOW)).unwrap();
    drop(desk);
    let (mut bytes, mut files) = (Vec::new(), Vec::new());
    for file in std::fs::read_dir(world.path.parent().unwrap()).unwrap() {
        let path = file.unwrap().path();
        bytes.extend(std::fs::read(&path).unwrap());
        files.push(path.extension().unwrap().to_string_lossy().into_owned());
    }
    assert!(files.iter().any(|name| name == "db-wal"), "{files:?}");
    let holds = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    assert!(holds(&token.hash), "the hash is stored");
    let secret = &text[text.len() - 43..];
    for needle in [&random[..], secret.as_bytes(), &secret.as_bytes()[..16], b"ipse_"] {
        assert!(!holds(needle), "{:?}", String::from_utf8_lossy(needle));
    }
    assert!(!holds(hex::encode(&random).as_bytes()));
}

#[test]
fn a_row_that_was_tampered_with_is_damage() {
    let world = World::new();
    let (_, token) = made(&world.identity, 1);
    Tokens::open(&world.store).unwrap().put(&world.identity, &token).unwrap();
    let db = rusqlite::Connection::open(&world.path).unwrap();
    db.execute_batch("DROP TRIGGER token_is_frozen").unwrap();
    for sql in ["UPDATE token SET role = 'king'", "UPDATE token SET hash = zeroblob(32)"] {
        db.execute_batch(sql).unwrap();
        let reader = world.store.reader().unwrap();
        let error = tokens(reader.view(&world.identity).unwrap().view()).unwrap_err();
        let expected = format!("the store is damaged: token {} cannot be read", token.id);
        assert_eq!(error.to_string(), expected);
        db.execute_batch("UPDATE token SET role = 'planner'").unwrap();
    }
}
