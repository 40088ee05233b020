//! Cosignatures of witnesses: a required one must be of exactly this tree head. Every forged bundle
//! is sealed again with the true keys, so only the check of the witness can detect it.

use crate::forge::{Log, fails, reported, signer, trust_of, trusted, week};
use ipse_bundle::{Report, verify};
use ipse_ledger::cosignature::cosigned_text;
use ipse_ledger::{Cosignature, SecretKey, WitnessKey, base64};

const TIME: u64 = 1_790_000_000;

/// A witness with a key of its own.
struct Witness(&'static str, u8);

impl Witness {
    fn key(&self) -> WitnessKey {
        WitnessKey::new(self.0, SecretKey::from_seed(&[self.1; 32]).public()).unwrap()
    }

    /// The line of a cosignature under the text of a tree head.
    fn line(&self, time: u64, head: &str) -> String {
        let signature =
            SecretKey::from_seed(&[self.1; 32]).sign(cosigned_text(time, head).as_bytes());
        let bytes = [&self.key().id()[..], &time.to_be_bytes(), &signature].concat();
        format!("\u{2014} {} {}\n", self.0, base64::encode(&bytes))
    }
}

const FIRST: Witness = Witness("witness.example/w1", 71);
const SECOND: Witness = Witness("an-auditor", 72);

/// Verifies the week with these lines after the signature of the log.
fn verified(lines: &str, required: &[&Witness]) -> Report {
    let mut draft = week().draft();
    draft.head.push_str(lines);
    let mut trust = trust_of(&trusted()).unwrap();
    for witness in required {
        trust.require_witnesses(&witness.key().to_string()).unwrap();
    }
    verify(&draft.pack(), &trust, &[], &mut |_, _| {}).unwrap()
}

fn head() -> String {
    week().head(64).text()
}

/// The only failure of a report.
fn the_failure(report: &Report) -> String {
    let [failure] = fails(report).try_into().unwrap();
    failure
}

#[test]
fn a_cosigned_head_verifies_under_the_keys_of_its_witnesses() {
    let lines = SECOND.line(TIME, &head()) + &FIRST.line(TIME + 1, &head());
    let report = verified(&lines, &[&FIRST, &SECOND]);
    assert!(report.passed(), "{}", reported(&report));
    let text = reported(&report);
    for (witness, when) in [(FIRST, "2026-09-21T14:13:21Z"), (SECOND, "2026-09-21T14:13:20Z")] {
        let key = witness.key().key_id();
        let line = format!("PASS  witness: {key} cosigned these 64 entries at {when}");
        assert!(text.contains(&line), "{line} is not in:\n{text}");
    }
    assert!(!text.contains("LIMIT witness"), "{text}");
    // A later cosignature of the same witness counts too.
    let again = lines + &FIRST.line(TIME + 60, &head());
    let text = reported(&verified(&again, &[&FIRST]));
    assert!(text.contains("2026-09-21T14:14:20Z"), "{text}");
}

#[test]
fn without_a_required_witness_a_limit_says_what_that_means() {
    let text = reported(&verified("", &[]));
    assert!(text.contains("LIMIT witness: none is required, and none cosigned"), "{text}");
    // A wrong cosignature of a witness that is not required is ignored.
    for head in [head(), week().head(40).text()] {
        let report = verified(&FIRST.line(TIME, &head), &[]);
        let text = reported(&report);
        assert!(report.passed() && text.contains("1 cosignature not checked"), "{text}");
    }
    let other = verified(&(SECOND.line(TIME, &head()) + &FIRST.line(1, &head())), &[&FIRST]);
    assert!(other.passed(), "{}", reported(&other));
}

#[test]
fn a_bundle_without_the_required_cosignature_fails() {
    let missing = format!("witness: {} did not cosign this tree head", FIRST.key().key_id());
    let namesake = Witness(FIRST.0, 99);
    let plain = signer(FIRST.0, 71);
    let note = plain.sign(&head()).unwrap();
    let as_log = note.lines().last().unwrap().to_owned() + "\n";
    for (what, lines) in [
        ("no line", String::new()),
        ("another witness", SECOND.line(TIME, &head())),
        ("another key of that name", namesake.line(TIME, &head())),
        ("a note signature by the same key", as_log),
    ] {
        let report = verified(&lines, &[&FIRST]);
        assert!(the_failure(&report).contains(&missing), "{what}: {}", reported(&report));
    }
}

/// The witness signed something else: an older head, a fork, another log, another time.
#[test]
fn a_cosignature_of_something_else_fails() {
    let wrong = format!(
        "witness: the cosignature by {} is not one of this tree head",
        FIRST.key().key_id()
    );
    let mut fork = Log::new(crate::forge::MANIFEST);
    fork.events(101..=120);
    while fork.rows.len() < 64 {
        fork.events(200 + fork.rows.len() as u64..=200 + fork.rows.len() as u64);
    }
    let moved = |by: u64| {
        let line = Cosignature::parse(FIRST.line(TIME, &head()).trim_end()).unwrap();
        let bytes = base64::decode(line.line().rsplit(' ').next().unwrap()).unwrap();
        let bytes = [&bytes[..4], &(TIME + by).to_be_bytes(), &bytes[12..]].concat();
        format!("\u{2014} {} {}\n", FIRST.0, base64::encode(&bytes))
    };
    for (what, lines) in [
        ("an older head", FIRST.line(TIME, &week().head(40).text())),
        ("a fork", FIRST.line(TIME, &fork.head(64).text())),
        ("another log", FIRST.line(TIME, &head().replacen("ipse/", "ipse/0", 1))),
        ("another time", moved(1)),
        ("one good and one bad line", FIRST.line(TIME, &head()) + &moved(2)),
    ] {
        let report = verified(&lines, &[&FIRST]);
        assert!(the_failure(&report).contains(&wrong), "{what}: {}", reported(&report));
    }
    assert!(verified(&moved(0), &[&FIRST]).passed());
}

#[test]
fn lines_that_make_no_note_fail_the_tree_head() {
    let line = FIRST.line(TIME, &head());
    for (what, lines) in [
        ("more than 16 signatures", line.repeat(16)),
        ("an empty line between them", format!("\n{line}")),
        ("no line end", line.trim_end().to_owned()),
    ] {
        let report = verified(&lines, &[&FIRST]);
        let first = fails(&report).remove(0);
        assert!(!report.passed() && first.contains("tree-head.note"), "{what}: {first}");
    }
}

#[test]
fn the_key_of_a_log_is_not_taken_for_a_witness() {
    let mut trust = trust_of(&trusted()).unwrap();
    let log = trusted().lines().find(|line| line.starts_with("ipse/")).unwrap().to_owned();
    for bad in [log.as_str(), "", "\n", "witness.example/w1", &format!("{} x", FIRST.key())] {
        assert!(trust.require_witnesses(bad).is_err(), "{bad}");
    }
    let both = format!("{}\n{}\n", FIRST.key(), SECOND.key());
    trust.require_witnesses(&both).unwrap();
    let report = verify(&week().draft().pack(), &trust, &[], &mut |_, _| {}).unwrap();
    assert_eq!(fails(&report).len(), 2, "{}", reported(&report));
}
