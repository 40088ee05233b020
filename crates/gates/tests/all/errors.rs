//! The tables of bad files under `tests/cases`: every error with its exact line, field and words.
//!
//! A case changes a file of the fixture (several changes are joined by ` & `); under it, indented,
//! stands every error that comes of it.

use super::fixture::{Files, check};
use ipse_gates::{FileError, MAX_FILE_BYTES, MAX_LIST, MAX_PARAMS, MAX_RULES, MAX_SKILLS};
use ipse_gates::{GateFile, Policy, Registry, Temperament};
use std::fmt::Write;

fn errors(case: &str) -> Vec<String> {
    let mut files = Files::base();
    case.split(" & ").for_each(|change| files.change(change));
    match files.gates() {
        Ok(_) => vec!["fine".to_string()],
        Err(errors) => errors.iter().map(|error| reported(error, case)).collect(),
    }
}

/// An error, after its file where that is not the one that was changed first.
fn reported(error: &FileError, case: &str) -> String {
    let name = error.file.name();
    if case.starts_with(name) { error.to_string() } else { format!("{name}: {error}") }
}

#[test]
fn registry() {
    check(include_str!("../cases/registry-errors.txt"), 40, errors);
}

#[test]
fn policy() {
    check(include_str!("../cases/policy-errors.txt"), 40, errors);
}

#[test]
fn temperament() {
    check(include_str!("../cases/temperament-errors.txt"), 30, errors);
}

#[test]
fn files_that_do_not_fit_each_other() {
    check(include_str!("../cases/unfit.txt"), 30, errors);
}

/// What is said of a registry; empty if nothing is.
fn said(text: &str) -> Vec<String> {
    let errors = Registry::parse(text).err().unwrap_or_default();
    errors.iter().map(ToString::to_string).collect()
}

const REGISTRY_HEAD: &str = "format = \"ipse-ecm-registry/1\"\n[skills]\n";

#[test]
fn the_limits_are_named() {
    let comment = |length: usize| REGISTRY_HEAD.to_string() + &"#".repeat(length);
    let room = MAX_FILE_BYTES - REGISTRY_HEAD.len();
    assert!(said(&comment(room)).is_empty());
    assert_eq!(said(&comment(room + 1)), ["line 1: the file is larger than 1048576 bytes"]);

    let skills = |count: usize| {
        (0..count).fold(REGISTRY_HEAD.to_string(), |text, n| {
            text + &format!("s{n} = {{ risk = 0, ethics = 1 }}\n")
        })
    };
    assert!(said(&skills(MAX_SKILLS)).is_empty());
    assert_eq!(
        said(&skills(MAX_SKILLS + 1)),
        ["line 2, skills: there are 4097 of them; at most 4096"]
    );

    let params = |count: usize| {
        let head = format!("{REGISTRY_HEAD}[skills.a]\nrisk = 0\nethics = 1\n");
        (0..count).fold(head, |text, n| text + &format!("params.p{n} = {{ type = \"text\" }}\n"))
    };
    assert!(said(&params(MAX_PARAMS)).is_empty());
    let words = "line 6, skills.a.params: there are 65 of them; at most 64";
    assert_eq!(said(&params(MAX_PARAMS + 1)), [words]);

    let list = |count: usize| {
        let names: Vec<String> = (0..count).map(|n| format!("\"t{n}\"")).collect();
        let names = names.join(",");
        let head = format!("{REGISTRY_HEAD}[skills.a]\nrisk = 0\nethics = 1\n");
        format!("{head}requires = [\"target_class\"]\ntargets = [{names}]\n")
    };
    assert!(said(&list(MAX_LIST)).is_empty());
    let words = "line 7, skills.a.targets: must list 1 to 1024 texts, not 1025";
    assert_eq!(said(&list(MAX_LIST + 1)), [words]);
}

#[test]
fn names_have_a_length() {
    let skill = |length: usize| {
        let name = "s".repeat(length);
        format!("{REGISTRY_HEAD}{name} = {{ risk = 0, ethics = 1 }}\n")
    };
    assert!(said(&skill(256)).is_empty());
    let error = &said(&skill(257))[0];
    assert!(error.ends_with("…: is 257 bytes long; at most 256 are allowed"), "{error}");
    let param = |length: usize| {
        let name = "p".repeat(length);
        let text = "{ type = \"boolean\" }";
        format!("{REGISTRY_HEAD}a.risk = 0\na.ethics = 1\na.params.{name} = {text}\n")
    };
    assert!(said(&param(64)).is_empty());
    let error = &said(&param(65))[0];
    assert!(error.ends_with("p: is 65 bytes long; at most 64 are allowed"), "{error}");
}

#[test]
fn a_file_has_a_thousand_rules_and_no_more() {
    let policy = |clamps: usize, forbids: usize| {
        let mut text = "format = \"ipse-policy/1\"\nunlisted_skills = \"deny\"\n".to_string();
        for _ in 0..clamps {
            text += "[[skills.a.clamp]]\nparam = \"p\"\nmin = 1\n";
        }
        for _ in 0..forbids {
            text += "[[skills.b.forbid]]\n";
        }
        Policy::parse(&text).err().unwrap_or_default()
    };
    assert_eq!(policy(MAX_RULES / 2, MAX_RULES / 2), []);
    let errors = policy(MAX_RULES / 2, MAX_RULES / 2 + 1);
    let words = "skills.b.forbid: with these the file has more than 1024 rules";
    assert!(errors.len() == 1 && errors[0].to_string().ends_with(words), "{errors:?}");
    let head = "format = \"ipse-temperament/1\"\nrisk_appetite = 0\nethical_floor = 0\n";
    let checks = |count: usize| head.to_string() + &"[[human_check]]\n".repeat(count);
    assert!(Temperament::parse(&checks(MAX_RULES)).is_ok());
    assert!(Temperament::parse(&checks(MAX_RULES + 1)).is_err());
}

#[test]
fn of_many_errors_the_first_are_told() {
    let mut text = REGISTRY_HEAD.to_string();
    (0..1000).for_each(|n| writeln!(text, "x{n} = 1").unwrap());
    assert_eq!(said(&text).len(), 64);
    assert_eq!(said(&"[\n".repeat(1000)).len(), 64);
}

#[test]
fn a_file_says_which_it_is() {
    for which in GateFile::ALL {
        let text = format!("format = \"{}\"\nand = nonsense", which.formats()[0]);
        assert_eq!(GateFile::of(&text), Some(which));
        assert_eq!(GateFile::parse(which.name()), Some(which));
    }
    for text in ["", "format = 1", "format = \"ipse-policy/2\"", "[format]", "\u{1}"] {
        assert_eq!(GateFile::of(text), None, "{text}");
    }
    assert_eq!(GateFile::of(&(" ".repeat(MAX_FILE_BYTES) + "format = \"ipse-policy/1\"")), None);
}
