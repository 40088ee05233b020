//! The workspace as its tests see it: crates, files, and which lines are code that ships.
//!
//! **Invariant:** files are read when a test runs and named relative to the root, so that a fault
//! can be opened from where `cargo` was started.
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod page;

use std::fs;
use std::path::{Path, PathBuf};

/// The directory that holds the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The text of a file.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("{path} cannot be read ({error}); write it"))
}

/// A file of TOML.
pub(crate) fn read_toml(path: &str) -> toml::Table {
    read(path).parse().unwrap_or_else(|error| panic!("{path} is not TOML: {error}"))
}

/// The directories under `crates/` that hold a crate, by name.
pub(crate) fn crates() -> Vec<String> {
    children("crates")
        .into_iter()
        .filter(|path| root().join(path).join("Cargo.toml").is_file())
        .map(|path| path["crates/".len()..].to_string())
        .collect()
}

/// Every file under a directory whose name ends so, by path; none where there is no directory.
pub(crate) fn files(under: &str, ending: &str) -> Vec<String> {
    let (directories, files): (Vec<_>, Vec<_>) =
        children(under).into_iter().partition(|path| root().join(path).is_dir());
    let deeper = directories.iter().flat_map(|directory| self::files(directory, ending));
    files.into_iter().filter(|path| path.ends_with(ending)).chain(deeper).collect()
}

fn children(directory: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(root().join(directory)) else { return Vec::new() };
    let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
    let mut paths: Vec<_> =
        entries.map(|entry| format!("{directory}/{}", name(entry.unwrap()))).collect();
    paths.sort();
    paths
}

/// Fails with every fault on a line of its own.
#[track_caller]
pub(crate) fn report(faults: &[String]) {
    assert!(faults.is_empty(), "{} fault(s):\n{}\n", faults.len(), faults.join("\n"));
}

/// One file of Rust.
pub(crate) struct Source {
    /// Relative to the root.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
}

/// Every file of Rust in the crates.
pub(crate) fn sources() -> Vec<Source> {
    let all: Vec<_> =
        files("crates", ".rs").into_iter().map(|path| Source { text: read(&path), path }).collect();
    assert!(all.len() > 40, "BUG: the walk of crates/ saw only {} files", all.len());
    all
}

/// Every file of Rust that ships: those under a `src`.
pub(crate) fn shipped_sources() -> Vec<Source> {
    sources().into_iter().filter(|source| source.path.contains("/src/")).collect()
}

impl Source {
    /// The name of the directory under `crates/`.
    pub(crate) fn crate_name(&self) -> &str {
        self.path.split('/').nth(1).unwrap()
    }

    /// Whether one line is exactly this.
    pub(crate) fn has_line(&self, wanted: &str) -> bool {
        self.text.lines().any(|line| line == wanted)
    }

    /// Every line with its number.
    pub(crate) fn numbered(&self) -> Vec<(usize, &str)> {
        self.text.lines().enumerate().map(|(at, line)| (at + 1, line)).collect()
    }

    /// The same, comments included, without the items under `#[cfg(test)]`.
    pub(crate) fn shipped(&self) -> Vec<(usize, &str)> {
        let lines: Vec<_> = self.text.lines().collect();
        let mut shipped = Vec::new();
        let mut at = 0;
        while at < lines.len() {
            if lines[at] == "#[cfg(test)]" {
                at = item_end(&lines, at + 1);
            } else {
                shipped.push((at + 1, lines[at]));
            }
            at += 1;
        }
        shipped
    }

    /// As [`Source::shipped`], without comments; examples in doc comments are tests.
    pub(crate) fn shipped_code(&self) -> Vec<(usize, &str)> {
        let mut lines = self.shipped();
        lines.retain(|(_, line)| !is_comment(line));
        lines
    }

    /// The names of its tests: the functions below `#[test]`, inside `proptest!` too.
    pub(crate) fn tests(&self) -> Vec<&str> {
        let mut tests = Vec::new();
        let mut awaited = false;
        for line in self.text.lines().map(str::trim_start) {
            if line == "#[test]" {
                awaited = true;
            } else if awaited && declares_function(line) {
                let (_, name) = line.split_once("fn ").unwrap();
                tests.push(name.split(['(', '<']).next().unwrap());
                awaited = false;
            }
        }
        tests
    }

    /// Every function: the number of its first line, that line, and how many lines it has.
    pub(crate) fn functions(&self) -> Vec<(usize, &str, usize)> {
        let lines: Vec<_> = self.text.lines().collect();
        let starts = (0..lines.len()).filter(|&at| declares_function(lines[at]));
        starts.map(|at| (at + 1, lines[at].trim(), item_end(&lines, at) - at + 1)).collect()
    }
}

/// The index of the last line of the item that starts here, as `rustfmt` lays it out: it may end
/// before any brace opens (`;`, `{}`), and else does at the brace below its own first column.
fn item_end(lines: &[&str], start: usize) -> usize {
    let last = lines.len() - 1;
    let is_head_end = |at: &usize| !is_comment(lines[*at]) && code(lines[*at]).ends_with(HEAD_ENDS);
    let head = (start..=last).find(is_head_end).unwrap_or(last);
    if !code(lines[head]).ends_with('{') {
        return head;
    }
    let closes =
        |line: &str| line.trim_start().starts_with('}') && indent(line) == indent(lines[start]);
    (head + 1..=last).find(|&at| closes(lines[at])).unwrap_or(last)
}

const HEAD_ENDS: [char; 3] = ['{', '}', ';'];

/// A line without the remark behind it.
fn code(line: &str) -> &str {
    line.split(" // ").next().unwrap().trim_end()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn declares_function(line: &str) -> bool {
    let qualifies = |word: &str| {
        matches!(word, "pub" | "const" | "async" | "unsafe" | "extern" | "\"C\"")
            || word.starts_with("pub(")
            || word.ends_with(')')
    };
    let before = line.trim_start().split_once("fn ").map(|(before, _)| before);
    before.is_some_and(|before| before.split_whitespace().all(qualifies))
}
