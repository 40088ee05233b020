//! Systematic damage: every bit, member, line and truncation; and random bytes.

use crate::forge::{Draft, Files, archive, fails, report, trust_of, trusted, week};
use ipse_bundle::{Trust, verify};
use proptest::prelude::*;
use std::thread;

/// The number of threads that verify bundles.
const THREADS: usize = 2;

/// Asserts that a bundle is rejected with a place.
fn refused(bytes: &[u8], trust: &Trust, what: impl Fn() -> String) {
    let report = verify(&bytes, trust, &[], &mut |_, _| {}).unwrap();
    assert!(!report.passed(), "{} went unnoticed", what());
    let placed = fails(&report).first().is_some_and(|line| !line.starts_with(':'));
    assert!(placed, "{} was refused without a place", what());
}

fn trust() -> Trust {
    trust_of(&trusted()).unwrap()
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = week().draft().pack();
    let trust = trust();
    assert!(report(&bytes, &trusted(), &[]).passed());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (mut bytes, trust) = (bytes.clone(), &trust);
            scope.spawn(move || {
                for bit in (thread..bytes.len() * 8).step_by(THREADS) {
                    bytes[bit / 8] ^= 1 << (bit % 8);
                    refused(&bytes, trust, || format!("bit {} of byte {}", bit % 8, bit / 8));
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
            });
        }
    });
}

#[test]
fn every_cut_is_noticed() {
    let (bytes, trust) = (week().draft().pack(), trust());
    let at_blocks = (0..bytes.len()).step_by(512);
    for length in at_blocks.chain([1, 511, 513, bytes.len() - 1]) {
        refused(&bytes[..length], &trust, || format!("the cut at byte {length}"));
    }
    for more in [1, 511, 512, 1024] {
        let longer = [&bytes[..], &vec![0; more]].concat();
        refused(&longer, &trust, || format!("{more} zeros at the end"));
    }
}

/// All lists with one item deleted, doubled, or swapped with its neighbour.
fn disordered<T: Clone + PartialEq>(list: &[T]) -> Vec<(String, Vec<T>)> {
    let mut all = Vec::new();
    for place in 0..list.len() {
        let mut deleted = list.to_vec();
        deleted.remove(place);
        all.push((format!("{place} deleted"), deleted));
        let mut doubled = list.to_vec();
        doubled.insert(place, list[place].clone());
        all.push((format!("{place} doubled"), doubled));
        if place + 1 < list.len() && list[place] != list[place + 1] {
            let mut swapped = list.to_vec();
            swapped.swap(place, place + 1);
            all.push((format!("{place} swapped with the next"), swapped));
        }
    }
    all
}

/// Whether the missing members are optional, if the operator signs the rest.
fn may_be_missing(files: &Files) -> bool {
    // The last statement, or the producers' keys: nothing else refers to them.
    let has = |wanted: &str| files.iter().any(|(name, _)| name == wanted);
    !has("keys/producers.vkey") || !has("signatures/000002.dsse.json")
}

#[test]
fn members_are_all_there_once_and_in_order() {
    let (draft, trust) = (week().draft(), trust());
    for (what, files) in disordered(&draft.signed(draft.members())) {
        refused(&archive(&files), &trust, || format!("member {what}"));
    }
    for (what, files) in disordered(&draft.members()) {
        let is_bundle = files.len() < draft.members().len() && may_be_missing(&files);
        let bytes = archive(&draft.signed(files));
        match is_bundle {
            true => assert!(report(&bytes, &trusted(), &[]).passed(), "{what}, signed"),
            false => refused(&bytes, &trust, || format!("member {what}, signed")),
        }
    }
}

/// Disorders the lines of a member, with and without signing everything again.
fn lines_of(name: &str, signed: bool) {
    let (draft, trust) = (week().draft(), trust());
    let files = draft.signed(draft.members());
    let place = files.iter().position(|(file, _)| file == name).unwrap();
    let text = String::from_utf8(files[place].1.clone()).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for (what, lines) in disordered(&lines) {
        let mut files = files.clone();
        files[place].1 = lines.concat().into_bytes();
        let bytes = if signed { signed_again(&draft, files) } else { archive(&files) };
        refused(&bytes, &trust, || format!("line {what} of {name}, signed again: {signed}"));
    }
}

fn signed_again(draft: &Draft, mut files: Files) -> Vec<u8> {
    let sums = files.iter().find(|(name, _)| name == "SHA256SUMS").unwrap().1.clone();
    let sums = String::from_utf8(sums).unwrap();
    files.retain(|(name, _)| !name.starts_with("SHA256SUMS"));
    // A changed list of hashes is signed unchanged.
    let changed = sums != crate::forge::sums_of(&draft.members());
    let draft = Draft { sums: changed.then_some(sums), ..draft.clone() };
    archive(&draft.signed(files))
}

#[test]
fn lines_are_all_there_once_and_in_order() {
    for name in ["events.jsonl", "entries.jsonl", "facts.jsonl", "SHA256SUMS"] {
        lines_of(name, false);
        lines_of(name, true);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn random_bytes_are_no_bundle(bytes: Vec<u8>) {
        refused(&bytes, &trust(), || "a heap of bytes".into());
    }

    #[test]
    fn random_changes_are_noticed(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        paste in any::<prop::sample::Index>(),
    ) {
        let good = week().draft().pack();
        let mut bytes = good.clone();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if bytes != good {
            refused(&bytes, &trust(), || "a change".into());
        }
        // A block is moved elsewhere.
        let block: Vec<u8> = bytes.drain(..512).collect();
        let at = paste.index(bytes.len());
        bytes.splice(at..at, block);
        bytes.truncate(cut.index(bytes.len()));
        refused(&bytes, &trust(), || "a cut".into());
    }

    #[test]
    fn members_of_random_bytes_never_panic(
        place in any::<prop::sample::Index>(),
        bytes: Vec<u8>,
        keep in any::<bool>(),
    ) {
        let draft = week().draft();
        let mut files = draft.members();
        let place = place.index(files.len());
        if keep {
            files[place].1.extend(bytes);
        } else {
            files[place].1 = bytes;
        }
        // White space after a producer's envelope is allowed.
        let blank = |file: &Vec<u8>| String::from_utf8_lossy(file).trim().to_string();
        let same = draft.members()[place].1 == files[place].1
            || blank(&draft.members()[place].1) == blank(&files[place].1)
                && files[place].0.starts_with("signatures/");
        if !same {
            refused(&archive(&draft.signed(files)), &trust(), || "a member".into());
        }
    }
}
