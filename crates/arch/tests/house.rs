//! The house rules: headers, limits, attributes, and a ban list that says what to write instead.
//!
//! **Invariant:** limits and headers hold for every file of Rust, tests included; bans hold for
//! what ships: files under `src`, without comments (but see [`Ban::in_comments`]) and without the
//! items under `#[cfg(test)]`.
#![allow(missing_docs, clippy::unwrap_used)]

mod workspace;

use workspace::{Source, crates, report, shipped_sources, sources};

/// Two files fit side by side, and a diff fits a page.
const MAX_COLUMNS: usize = 100;
/// What one reader holds in mind.
const MAX_FILE_LINES: usize = 600;
/// One screen.
const MAX_FUNCTION_LINES: usize = 60;

/// Crates in which no file, clock, environment or random map can be named.
const NO_STD: [&str; 6] = ["core", "manifest", "consolidate", "door", "gates", "ledger"];
/// Crates whose results are exact.
const NO_FLOATS: [&str; 3] = ["core", "consolidate", "gates"];

/// Words that do not ship.
struct Ban {
    words: &'static [&'static str],
    instead: &'static str,
    /// Paths that begin so may use the words.
    except: &'static [&'static str],
    /// Whether comments may not use them either.
    in_comments: bool,
}

const fn ban(words: &'static [&'static str], instead: &'static str) -> Ban {
    Ban { words, instead, except: &[], in_comments: false }
}

const BANS: [Ban; 13] = [
    ban(&["HashMap", "HashSet"], "BTreeMap or BTreeSet: the order can be seen"),
    Ban {
        // The library's host and the binary ask the clock, and a kept tree head has the time of its
        // file; the quiet period of a memory and a progress bar measure.
        except: &[
            "crates/cli/",
            "crates/ipse/src/host.rs",
            "crates/ipse/src/keys/directory.rs",
            "crates/engine/src/memory.rs",
        ],
        ..ban(
            &["SystemTime", "Instant::now"],
            "the `Host` that is handed down: time is an argument",
        )
    },
    Ban {
        except: &["crates/cli/"],
        ..ban(
            &["env::var", "env::var_os", "env::vars", "env::vars_os"],
            "an argument: only the binary reads the environment",
        )
    },
    Ban {
        except: &[
            "crates/ipse/src/files.rs",
            // Pipes and devices, which cannot be replaced.
            "crates/cli/src/output.rs",
            // The lock, which stays empty.
            "crates/ipse/src/keys/directory.rs",
            // A file of the kernel.
            "crates/cli/src/experiments/instruments.rs",
            // The write-ahead log, whose own bytes are written again.
            "crates/store/src/sqlite/wal.rs",
            // Stores of experiments, in a directory of their own.
            "crates/reproduce/src/runtime/stream.rs",
        ],
        ..ban(
            &["File::create", "File::create_new", "File::options", "OpenOptions", "fs::write"],
            "`ipse::files`, or `Output` on the command line: no file is written in place",
        )
    },
    Ban {
        except: &["crates/ipse/src/files.rs", "crates/reproduce/src/runtime/stream.rs"],
        ..ban(
            &["fs::copy", "fs::rename", "fs::hard_link"],
            "`ipse::files`: a name is durable when its directory is synced",
        )
    },
    Ban {
        // The engine itself, and the two files that choose it.
        except: &[
            "crates/store/src/sqlite/",
            "crates/store/src/store.rs",
            "crates/store/src/lib.rs",
        ],
        ..ban(&["rusqlite", "sqlite::"], "a handle of `ipse_store`: SQLite is one of its engines")
    },
    Ban {
        except: &[
            // Experiments, whose stores are files in a directory of their own.
            "crates/reproduce/",
            // Keys lie beside a store that is a file.
            "crates/ipse/src/keys/directory.rs",
        ],
        ..ban(&["store: &Path", "db: &Path"], "`Location`: not every store is a file")
    },
    ban(
        &["println!", "eprintln!", "print!", "eprint!"],
        "a returned value, or the writer that is handed down: the terminal is an argument",
    ),
    ban(&[".unwrap()"], "`?`, or `.expect(\"BUG: ...\")` with the invariant that makes it whole"),
    ban(&["todo!", "unimplemented!"], "the code, or an error that names the limit"),
    Ban {
        in_comments: true,
        ..ban(&["TODO", "FIXME"], "the deed, or an issue: nothing on main waits to be done")
    },
    ban(&["f32"], "`f64` where JSON is read, `Micro` where something is computed"),
    ban(
        &["mod utils", "mod helpers", "mod common", "mod manager"],
        "a name that says what the module does",
    ),
];

/// An `.expect(` without `BUG:`: the file, how its argument begins, why it stands.
const EXPECTS: [(&str, &str, &str); 2] = [
    (
        "crates/ipse/src/host.rs",
        "\"the system has no randomness to give\"",
        "the machine's fault, not ours, and nothing can be appended without a salt",
    ),
    ("crates/core/src/json_parse.rs", "b'", "the parser's own method, which returns an error"),
];

const EXPECT_INSTEAD: &str =
    "return an error with `?`, or begin the message with `BUG:` and the broken invariant";

/// One fault for every line of every source that the check objects to.
fn each_line<'a>(
    sources: &'a [Source],
    lines: impl Fn(&'a Source) -> Vec<(usize, &'a str)>,
    check: impl Fn(&Source, &str) -> Option<String>,
) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources {
        for (number, line) in lines(source) {
            let fault = check(source, line);
            faults.extend(fault.map(|fault| format!("{}:{number}: {fault}", source.path)));
        }
    }
    faults
}

/// Whether the word stands in the line, and not as a part of a longer one; a number may precede it,
/// as in `1f32`.
fn names(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let runs_on_left = word.starts_with(char::is_alphabetic)
            && before.is_some_and(|c| c.is_alphabetic() || c == '_');
        let runs_on_right = word.ends_with(char::is_alphanumeric)
            && after.is_some_and(|c| c.is_alphanumeric() || c == '_');
        !runs_on_left && !runs_on_right
    })
}

/// What follows each `.expect(`, on its line or, where `rustfmt` broke it, on the next.
fn expect_arguments(source: &Source) -> Vec<(usize, &str)> {
    let code = source.shipped_code();
    let mut arguments = Vec::new();
    for (at, (number, line)) in code.iter().enumerate() {
        for argument in line.split(".expect(").skip(1) {
            let next = code.get(at + 1).map_or("", |(_, next)| next.trim());
            arguments.push((*number, if argument.is_empty() { next } else { argument }));
        }
    }
    arguments
}

/// The root files of a crate that hold any code, `main.rs` included.
fn roots() -> Vec<Source> {
    let is_root = |path: &str| {
        path.matches('/').count() == 3
            && (path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs"))
    };
    let mut roots = shipped_sources();
    roots.retain(|source| is_root(&source.path));
    assert!(crates().iter().all(|name| roots.iter().any(|root| root.crate_name() == name)));
    roots.retain(|source| !source.shipped_code().is_empty());
    roots
}

/// The attribute must stand in the roots of these crates; what undoes it must stand nowhere.
fn demand(of_crates: &[&str], attribute: &str, undone_by: &str) -> Vec<String> {
    let concerns = |source: &Source| of_crates.contains(&source.crate_name());
    let mut sources = shipped_sources();
    sources.retain(concerns);
    let mut faults = each_line(&sources, Source::shipped_code, |_, line| {
        names(line, undone_by).then(|| format!("remove `{undone_by}`; it undoes `{attribute}`"))
    });
    let roots = roots().into_iter().filter(concerns);
    let without = roots.filter(|root| !root.has_line(attribute));
    faults.extend(without.map(|root| format!("{}: write `{attribute}`", root.path)));
    faults
}

#[test]
fn every_file_begins_with_what_it_guarantees() {
    let mut all = sources();
    all.retain(|source| !source.text.starts_with("//! "));
    let say = |source: &Source| {
        format!(
            "{}:1: begin with `//! ` and what the file is for, then its invariants",
            source.path
        )
    };
    report(&all.iter().map(say).collect::<Vec<_>>());
}

#[test]
fn the_pure_crates_are_without_std() {
    report(&demand(&NO_STD, "#![no_std]", "extern crate std"));
}

#[test]
fn no_crate_is_unsafe() {
    let all = crates();
    let all: Vec<_> = all.iter().map(String::as_str).collect();
    report(&demand(&all, "#![forbid(unsafe_code)]", "allow(unsafe_code)"));
}

#[test]
fn the_exact_crates_compute_with_no_float() {
    let attribute = "#![deny(clippy::float_arithmetic)]";
    report(&demand(&NO_FLOATS, attribute, "allow(clippy::float_arithmetic"));
}

#[test]
fn no_line_is_too_long() {
    report(&each_line(&sources(), Source::numbered, |_, line| {
        let columns = line.chars().count();
        (columns > MAX_COLUMNS)
            .then(|| format!("{columns} columns; break the line at {MAX_COLUMNS} or before"))
    }));
}

#[test]
fn no_file_is_too_long() {
    let say = |source: &Source| {
        let lines = source.text.lines().count();
        let fault = format!(
            "{}: {lines} lines; cut it into modules of at most {MAX_FILE_LINES}",
            source.path
        );
        (lines > MAX_FILE_LINES).then_some(fault)
    };
    report(&sources().iter().filter_map(say).collect::<Vec<_>>());
}

#[test]
fn no_function_is_too_long() {
    let mut faults = Vec::new();
    for source in sources() {
        let mut functions = source.functions();
        functions.retain(|(_, _, lines)| *lines > MAX_FUNCTION_LINES);
        faults.extend(functions.iter().map(|(number, head, lines)| {
            format!(
                "{}:{number}: `{head}` has {lines} lines; cut it into functions of at most \
                 {MAX_FUNCTION_LINES} (aim for 25)",
                source.path
            )
        }));
    }
    report(&faults);
}

#[test]
fn nothing_banned_ships() {
    let mut faults = Vec::new();
    for Ban { words, instead, except, in_comments } in BANS {
        let lines = if in_comments { Source::shipped } else { Source::shipped_code };
        faults.extend(each_line(&shipped_sources(), lines, |source, line| {
            let excepted = except.iter().any(|path| source.path.starts_with(path));
            let word = words.iter().find(|word| !excepted && names(line, word))?;
            Some(format!("`{word}` is banned; use {instead}"))
        }));
    }
    report(&faults);
}

#[test]
fn every_expect_states_a_bug() {
    let mut stale = EXPECTS.to_vec();
    let mut faults = Vec::new();
    for source in shipped_sources() {
        for (number, argument) in expect_arguments(&source) {
            let is_it = |(path, begins, _): &(&str, &str, &str)| {
                source.path == *path && argument.starts_with(begins)
            };
            stale.retain(|known| !is_it(known));
            if !argument.contains("BUG:") && !EXPECTS.iter().any(is_it) {
                faults.push(format!("{}:{number}: {EXPECT_INSTEAD}", source.path));
            }
        }
    }
    faults.extend(stale.iter().map(|(path, begins, _)| {
        format!("{path}: `.expect({begins}` is gone; take it out of EXPECTS in tests/house.rs")
    }));
    report(&faults);
}

#[test]
fn a_word_is_found_whole() {
    for (line, word, want) in [
        ("use std::collections::HashMap;", "HashMap", true),
        ("struct MyHashMap;", "HashMap", false),
        ("let hash = HashMaps;", "HashMap", false),
        ("eprintln!()", "println!", false),
        ("let x = y.unwrap()?;", ".unwrap()", true),
        ("x.unwrap_or_default()", ".unwrap()", false),
        ("1.0f32", "f32", true),
        ("0xf32", "f32", false),
        ("env::var_os(name)", "env::var", false),
        ("pub(crate) mod utils;", "mod utils", true),
    ] {
        assert_eq!(names(line, word), want, "{word} in {line}");
    }
}

const SAMPLE: &str = r#"//! A file.
#[cfg(test)]
use a::{
    b,
};
fn one() {}
#[cfg(test)]
#[allow(x)]
mod tests {
    pub(in a::b) fn two(
        a: u8,
    ) -> u8
    where
        A: B,
    { // why
        if a {
            a;
        }
    }

    fn three();
}
impl A {
    const fn four(
    ) -> X;
}
"#;

#[test]
fn the_scanner_knows_tests_and_functions() {
    let source = Source { path: "crates/a/src/lib.rs".into(), text: SAMPLE.into() };
    let shipped: Vec<_> = source.shipped_code().into_iter().map(|(_, line)| line).collect();
    assert_eq!(shipped, ["fn one() {}", "impl A {", "    const fn four(", "    ) -> X;", "}"]);
    let functions = source.functions();
    let lengths: Vec<_> = functions.iter().map(|(at, _, lines)| (*at, *lines)).collect();
    assert_eq!(lengths, [(6, 1), (10, 10), (21, 1), (24, 2)]);
}
