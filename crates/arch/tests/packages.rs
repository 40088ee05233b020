//! A crate is whole: its own directory holds every file that its code includes, so that a package
//! or a source archive of it compiles.
//!
//! **Invariant:** a file that must also lie elsewhere is a copy, byte for byte.
#![allow(missing_docs, clippy::unwrap_used)]

mod workspace;

use std::path::{Component, Path, PathBuf};
use workspace::{Source, read, report, root, sources};

/// Files of a crate, and the files for people and other programs that they are copies of.
const COPIES: [(&str, &str); 6] = [
    ("crates/consolidate/src/rule-set-v1.json", "vectors/rule-set-v1.json"),
    ("crates/consolidate/src/rule-set-v2.json", "vectors/rule-set-v2.json"),
    ("crates/gates/src/example/ecm-registry.toml", "examples/gates/ecm-registry.toml"),
    ("crates/gates/src/example/policy.toml", "examples/gates/policy.toml"),
    ("crates/gates/src/example/temperament.toml", "examples/gates/temperament.toml"),
    ("crates/manifest/src/golden.canonical.json", "vectors/manifest/golden.canonical.json"),
];

/// What takes a file into the code, and the attribute that takes a module from another place.
const INCLUDES: [&str; 4] = ["include_str!(\"", "include_bytes!(\"", "include!(\"", "#[path = \""];

/// The tests of a crate may read the vectors and examples of the repository; a package of the crate
/// compiles without its tests.
fn is_test(source: &Source) -> bool {
    source.path.split('/').nth(2) == Some("tests")
}

/// A path with its `..` taken out.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
        plain
    })
}

/// The files that one file of Rust includes, relative to the root.
fn included(source: &Source) -> Vec<PathBuf> {
    let directory = Path::new(&source.path).parent().unwrap();
    let after = |word| source.text.split(word).skip(1);
    let paths = INCLUDES.into_iter().flat_map(after).filter_map(|rest| rest.split('"').next());
    paths.map(|path| plain(&directory.join(path))).collect()
}

#[test]
fn a_crate_includes_no_file_from_outside() {
    let mut seen = 0;
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| !is_test(source)) {
        for path in included(source) {
            seen += 1;
            let own = Path::new("crates").join(source.crate_name());
            if !path.starts_with(&own) || !root().join(&path).is_file() {
                let (from, path) = (&source.path, path.display());
                faults.push(format!("{from} includes {path}: put a copy into {}", own.display()));
            }
        }
    }
    assert!(seen > 10, "BUG: only {seen} included files were seen");
    report(&faults);
}

#[test]
fn copies_are_equal() {
    let differs = |(copy, original): &&(&str, &str)| read(copy) != read(original);
    let fault = |(copy, original): &(&str, &str)| format!("{copy} is not {original}: copy it");
    report(&COPIES.iter().filter(differs).map(fault).collect::<Vec<_>>());
}
