//! The packages that a build links: the library stays small, a server build has no experiments.
//!
//! **Invariant:** the answer is Cargo's own (`cargo tree`), for the features that are named and for
//! this platform, build scripts included. What only tests need is not counted.
#![allow(missing_docs, clippy::unwrap_used)]

mod workspace;

use std::collections::BTreeSet;
use std::process::Command;
use workspace::{report, root};

/// The most packages that a program compiles for `ipse::Memory`, its own included: each one is code
/// to trust on a robot.
const MAX_LIBRARY_PACKAGES: usize = 76;

/// Packages for terminals, servers and pictures: a program that remembers needs none of them.
const NOT_FOR_PROGRAMS: [&str; 11] = [
    "axum",
    "clap",
    "comfy-table",
    "hyper",
    "indicatif",
    "ipse-cli",
    "ipse-http",
    "ipse-reproduce",
    "kuva",
    "png",
    "tokio",
];

/// Packages of the experiments, which a server build leaves out.
const EXPERIMENTS: [&str; 3] = ["ipse-reproduce", "kuva", "png"];

/// The packages behind a package of the workspace, itself included, each as `name version`.
fn packages(of: &str, features: &[&str]) -> BTreeSet<String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--locked", "--edges", "normal,build", "--prefix", "none"]);
    cargo.args(["--package", of]);
    let output = cargo.args(features).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let package = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    lines.lines().filter(|line| !line.is_empty()).map(package).collect()
}

fn links(packages: &BTreeSet<String>, name: &str) -> bool {
    packages.iter().any(|package| package.split(' ').next() == Some(name))
}

#[test]
fn the_library_is_small() {
    let library = packages("ipse", &[]);
    assert!(links(&library, "rusqlite"), "the control");
    let found = NOT_FOR_PROGRAMS.iter().filter(|name| links(&library, name));
    let say = |name| format!("crates/ipse: links `{name}`; move what needs it to crates/cli");
    let mut faults: Vec<_> = found.map(say).collect();
    if library.len() > MAX_LIBRARY_PACKAGES {
        let (count, all) = (library.len(), Vec::from_iter(library).join(", "));
        faults.push(format!(
            "crates/ipse: {count} packages, at most {MAX_LIBRARY_PACKAGES}; make what is new a \
             feature, or do without it: {all}"
        ));
    }
    report(&faults);
}

#[test]
fn encryption_is_a_feature_of_the_library() {
    assert!(!links(&packages("ipse", &[]), "pkcs5"), "passphrases are off by default");
    assert!(links(&packages("ipse", &["--features", "passphrase"]), "pkcs5"));
    assert!(links(&packages("ipse-cli", &["--no-default-features"]), "pkcs5"), "on in the binary");
}

#[test]
fn a_server_build_has_no_experiments() {
    let (whole, server) =
        (packages("ipse-cli", &[]), packages("ipse-cli", &["--no-default-features"]));
    assert!(NOT_FOR_PROGRAMS.iter().all(|name| links(&whole, name)), "the control");
    assert!(links(&server, "axum"), "the control");
    let found = EXPERIMENTS.iter().filter(|name| links(&server, name));
    let say = |name| format!("crates/cli: `{name}` without the feature `experiments`");
    report(&found.map(say).collect::<Vec<_>>());
}
