//! The tree against its definition: every size up to 256, every proof, every change of a proof.
#![allow(missing_docs, clippy::unwrap_used)]

mod all;

use all::All;
use ipse_core::{hex, sha256};
use ipse_ledger::tree::{self, Hash, consistency, inclusion, is_consistent};
use ipse_ledger::{Edge, entry_hash};

const MOST: u64 = 256;

fn entry(n: u64) -> Hash {
    entry_hash(format!("entry {n}").as_bytes())
}

/// The definition in RFC 6962, section 2.1.
fn defined(entries: &[Hash]) -> Hash {
    match entries {
        [] => sha256(&[]),
        [one] => *one,
        _ => {
            let mut k = 1;
            while k * 2 < entries.len() {
                k *= 2;
            }
            sha256(&[&[1], &defined(&entries[..k]), &defined(&entries[k..])])
        }
    }
}

/// Subtrees and the roots of every size.
fn grown() -> (All, Vec<Hash>) {
    let (mut edge, mut all, mut roots) = (Edge::default(), All::default(), Vec::new());
    roots.push(edge.root());
    for n in 0..MOST {
        all.push(&mut edge, entry(n));
        roots.push(edge.root());
        assert_eq!(Edge::new(edge.size(), edge.subtrees().to_vec()).unwrap(), edge);
        let more = [edge.subtrees(), &[[0; 32]]].concat();
        assert_eq!(Edge::new(edge.size(), more), None);
    }
    (all, roots)
}

#[test]
fn roots_are_as_defined() {
    let (all, roots) = grown();
    let entries: Vec<Hash> = (0..MOST).map(entry).collect();
    for size in 0..=MOST {
        let want = defined(&entries[..size as usize]);
        assert_eq!(roots[size as usize], want, "grown to {size}");
        assert_eq!(tree::root(&all, size).unwrap(), want, "from subtrees, {size}");
    }
}

/// All proofs with one hash changed, left out or added, or with two hashes swapped.
fn spoilt(proof: &[Hash]) -> Vec<Vec<Hash>> {
    let mut all = Vec::new();
    for at in 0..proof.len() {
        let mut changed = proof.to_vec();
        changed[at][at % 32] ^= 1 << (at % 8);
        all.push(changed);
        let mut shorter = proof.to_vec();
        shorter.remove(at);
        all.push(shorter);
        let mut longer = proof.to_vec();
        longer.insert(at, proof[at]);
        all.push(longer);
        let mut swapped = proof.to_vec();
        swapped.swap(at, (at + 1) % proof.len());
        if swapped != proof {
            all.push(swapped);
        }
    }
    all.push([proof, &[[7; 32]]].concat());
    all
}

#[test]
fn every_entry_of_every_tree_is_proved_and_nothing_else() {
    let (all, roots) = grown();
    for size in 1..=MOST {
        let root = Some(roots[size as usize]);
        for index in 0..size {
            let proof = inclusion(&all, index, size).unwrap().unwrap();
            let leads_to = |index, size, proof: &[Hash]| {
                tree::root_from_inclusion(&entry(index), index, size, proof)
            };
            assert_eq!(leads_to(index, size, &proof), root, "{index} of {size}");
            for bad in spoilt(&proof) {
                assert_ne!(leads_to(index, size, &bad), root, "{index} of {size}");
            }
            let other = tree::root_from_inclusion(&entry(index + 1), index, size, &proof);
            assert_ne!(other, root, "another entry");
            let elsewhere = tree::root_from_inclusion(&entry(index), index ^ 1, size, &proof);
            assert_ne!(elsewhere, root, "another place");
        }
        assert_eq!(inclusion(&all, size, size).unwrap(), None);
        assert_eq!(tree::root_from_inclusion(&entry(0), size, size, &[]), None);
    }
}

#[test]
fn every_beginning_of_every_tree_is_proved_and_nothing_else() {
    let (all, roots) = grown();
    let mut pairs = 0;
    for new in 0..=MOST {
        for old in 0..=new {
            pairs += 1;
            let proof = consistency(&all, old, new).unwrap().unwrap();
            let head = |size: u64| (size, &roots[size as usize]);
            assert!(is_consistent(head(old), head(new), &proof), "{old} to {new}");
            for bad in spoilt(&proof) {
                assert!(!is_consistent(head(old), head(new), &bad), "{old} to {new}");
            }
            let wrong = [9; 32];
            assert!(!is_consistent((old, &wrong), head(new), &proof), "{old} to {new}");
            if old > 0 {
                assert!(!is_consistent(head(old), (new, &wrong), &proof), "{old} to {new}");
            }
            if old > 0 && old < new {
                assert!(!is_consistent(head(old - 1), head(new), &proof) || old == 1);
            }
        }
        assert_eq!(consistency(&all, new + 1, new).unwrap(), None);
        assert!(!is_consistent((new + 1, &roots[0]), (new, &roots[new as usize]), &[]));
    }
    assert_eq!(pairs, 33_153);
}

/// The inputs and roots that certificate-transparency publishes for its own tests.
#[test]
fn published_roots() {
    let text = include_str!("../../../vectors/ledger/rfc6962.json");
    let vector: serde_json::Value = serde_json::from_str(text).unwrap();
    let bytes = |value: &serde_json::Value| {
        let text = value.as_str().unwrap();
        (0..text.len() / 2)
            .map(|at| u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).unwrap())
            .collect::<Vec<u8>>()
    };
    let mut edge = Edge::default();
    assert_eq!(hex::encode(&edge.root()), vector["empty"].as_str().unwrap());
    let inputs = vector["inputs"].as_array().unwrap();
    let roots = vector["roots"].as_array().unwrap();
    assert_eq!((inputs.len(), roots.len()), (8, 8));
    for (input, root) in inputs.iter().zip(roots) {
        edge.push(entry_hash(&bytes(input)), |_, _, _| {});
        assert_eq!(hex::encode(&edge.root()), root.as_str().unwrap());
    }
}
