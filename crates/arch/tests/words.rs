//! Plain words: a list of words and phrases that no document, help text, message or comment uses.
//!
//! **Invariant:** every text file of the project is read: documents, sources with their names and
//! strings, scripts and configuration. Vectors are data, and this file lists the words.
#![allow(missing_docs, clippy::unwrap_used)]

mod workspace;

use std::fs;
use workspace::{files, report, root};

/// A word or phrase in lower case, and the replacement.
const BANNED: [(&str, &str); 18] = [
    ("whoever", "the reader, the caller, the operator: name the subject"),
    ("whomever", "name the person or the program"),
    ("somebody", "a user, another process: name the subject"),
    ("nobody", "no user, no process: name the subject"),
    ("anybody", "every client: name the subject"),
    ("anew", "again"),
    ("at hand", "available"),
    ("told", "reported, printed, shown"),
    ("so many", "this many, N"),
    ("knock", "request"),
    ("knocks", "requests"),
    ("lets in", "accepts"),
    ("is let in", "is accepted"),
    ("becomes of", "the result of"),
    ("became of", "the result of"),
    ("word for it", "statement"),
    ("by and by", "later"),
    ("takes in", "imports, accepts"),
];

/// The endings of text files that people read.
const ENDINGS: [&str; 12] =
    [".rs", ".md", ".toml", ".json", ".py", ".sql", ".sh", ".mjs", ".js", ".c", ".css", ".service"];
/// Programs without an ending.
const PROGRAMS: [&str; 7] =
    ["test", "bench/run", "bench/attack", "api/check", "interop/run", "sweep/run", ".ci/run"];
const DIRECTORIES: [&str; 10] = [
    "crates", "docs", "bench", "api", "interop", "sweep", "oracle", "examples", "deploy", ".cargo",
];

/// The words of a text with their lines. A mark between two words separates phrases: it is an
/// empty word.
fn words(text: &str) -> Vec<(String, usize)> {
    let mut all = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut word = String::new();
        for letter in line.chars().chain([' ']) {
            if letter.is_alphanumeric() || letter == '_' || letter == '\'' {
                word.extend(letter.to_lowercase());
                continue;
            }
            if !word.is_empty() {
                all.push((std::mem::take(&mut word), number + 1));
            }
            if ".,;:?()\"".contains(letter) {
                all.push((String::new(), number + 1));
            }
        }
    }
    all
}

/// The banned phrases in a text, each with its line.
fn banned(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    let words = words(text);
    let mut found = Vec::new();
    for (phrase, instead) in BANNED {
        let parts: Vec<_> = phrase.split(' ').collect();
        let is_phrase = |it: &&[(String, usize)]| it.iter().map(|(word, _)| word).eq(&parts);
        let hits = words.windows(parts.len()).filter(is_phrase);
        found.extend(hits.map(|it| (it[0].1, phrase, instead)));
    }
    found
}

fn texts() -> Vec<String> {
    let at_root = fs::read_dir(root()).unwrap();
    let names = at_root.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let is_text = |name: &String| ENDINGS.iter().any(|ending| name.ends_with(ending));
    let mut all: Vec<_> = names.filter(is_text).collect();
    all.extend(PROGRAMS.map(str::to_owned));
    for directory in DIRECTORIES {
        all.extend(ENDINGS.iter().flat_map(|ending| files(directory, ending)));
    }
    all.retain(|path| path != "crates/arch/tests/words.rs");
    assert!(all.len() > 400, "BUG: the walk saw only {} files", all.len());
    all
}

#[test]
fn no_text_uses_a_banned_word() {
    let mut faults = Vec::new();
    for path in texts() {
        let Ok(text) = fs::read_to_string(root().join(&path)) else { continue };
        for (line, phrase, instead) in banned(&text) {
            faults.push(format!("{path}:{line}: `{phrase}`; write {instead}"));
        }
    }
    report(&faults);
}

#[test]
fn phrases_are_found_across_lines_and_not_inside_words() {
    let text = "/// As so\n/// many. Whoever_else, retold;\n// NOBODY so; many";
    let lines: Vec<_> = banned(text).into_iter().map(|(line, phrase, _)| (line, phrase)).collect();
    assert_eq!(lines, [(3, "nobody"), (1, "so many")]);
}
