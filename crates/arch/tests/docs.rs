//! The pages: those a reader is promised exist, their links lead somewhere, their lists are whole.
//!
//! **Invariant:** a page is checked against the workspace it lies in, never against the network.
#![allow(missing_docs, clippy::unwrap_used)]

mod workspace;

use std::fs;
use workspace::page::links;
use workspace::{files, read, report, root};

/// What a reader is promised.
const PAGES: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE",
    "docs/formats/manifest.md",
    "docs/formats/event.md",
    "docs/formats/fact.md",
    "docs/formats/snapshot.md",
    "docs/formats/ledger.md",
    "docs/formats/bundle.md",
    "docs/formats/intent.md",
    "docs/formats/ecm-registry.md",
    "docs/formats/policy.md",
    "docs/formats/temperament.md",
    "docs/glossary.md",
    "docs/guarantees.md",
    "docs/guide/audit.md",
    "docs/guide/by-time.md",
    "docs/guide/clients.md",
    "docs/guide/drift.md",
    "docs/guide/rules.md",
    "docs/guide/forgetting.md",
    "docs/guide/gates.md",
    "docs/guide/identity-changed.md",
    "docs/guide/llm-agents.md",
    "docs/guide/operate.md",
    "docs/guide/reproduce.md",
    "docs/guide/serve.md",
    "docs/guide/signing.md",
    "docs/paper.md",
];

/// The first thing to try, and the one command that checks everything.
const README_LINES: [&str; 2] = ["cargo run --release -- demo", "./test"];

/// Every page: those at the root and those under `docs/`.
fn pages() -> Vec<String> {
    let at_root = fs::read_dir(root()).unwrap();
    let names = at_root.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<_> = names.filter(|name| name.ends_with(".md")).collect();
    pages.sort();
    pages.extend(files("docs", ".md"));
    pages
}

/// What is wrong with a link on a page, if anything.
fn broken(page: &str, target: &str) -> Option<String> {
    let target = target.split('#').next().unwrap();
    if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    if target.starts_with('/') {
        return Some(format!("`{target}` is absolute; write it relative to the page"));
    }
    let path = root().join(page).parent().unwrap().join(target);
    let exists = path.canonicalize().is_ok_and(|path| path.starts_with(root()));
    (!exists).then(|| format!("`{target}` leads nowhere in the workspace; mend the link"))
}

/// The codes of the door's rules.
fn rule_codes(source: &str) -> Vec<&str> {
    source.split("= \"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

#[test]
fn every_promised_page_exists() {
    let missing = PAGES.iter().filter(|page| !root().join(page).is_file());
    report(&missing.map(|page| format!("{page}: missing; write it")).collect::<Vec<_>>());
}

#[test]
fn the_readme_says_how_to_try_and_how_to_test() {
    let readme = read("README.md");
    let has = |wanted: &str| readme.lines().any(|line| line.trim() == wanted);
    let missing = README_LINES.iter().filter(|wanted| !has(wanted));
    let say = |line| format!("README.md: show `{line}` on a line of its own");
    report(&missing.map(say).collect::<Vec<_>>());
}

/// A newcomer reads it in ten minutes.
#[test]
fn the_readme_is_short() {
    let words = read("README.md").split_whitespace().count();
    assert!(words <= 900, "README.md: {words} words; move details to a page under docs/");
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut faults = Vec::new();
    for page in pages() {
        for (number, target) in links(&read(&page)) {
            let fault = broken(&page, target);
            faults.extend(fault.map(|fault| format!("{page}:{number}: {fault}")));
        }
    }
    report(&faults);
}

#[test]
fn every_rule_of_the_door_is_documented() {
    let source = read("crates/door/src/refusal.rs");
    let codes = rule_codes(&source);
    assert!(codes.contains(&"invalid_json"), "BUG: no rules found in refusal.rs: {codes:?}");
    let page = read("docs/formats/event.md");
    let missing = codes.iter().filter(|code| !page.contains(&format!("`{code}`")));
    let say = |code| format!("docs/formats/event.md: say what `{code}` refuses, in backticks");
    report(&missing.map(say).collect::<Vec<_>>());
}

#[test]
fn the_changelog_leads_with_formats_and_identity() {
    let changelog = read("CHANGELOG.md");
    let first = changelog.lines().find(|line| line.starts_with("### "));
    let why = "CHANGELOG.md: what moves a byte of a format or an identity comes first";
    assert_eq!(first, Some("### Formats and identity"), "{why}");
}

#[test]
fn links_are_found_in_prose_only() {
    let page = "[a](b.md) and [`c`](../d.md#e \"f\")\n```\n[no](g.md)\n```\n`h[i](j)` [k](l)\n";
    assert_eq!(links(page), [(1, "b.md"), (1, "../d.md#e"), (5, "l")]);
    assert_eq!(broken("docs/x.md", "../Cargo.toml#members"), None);
    assert_eq!(broken("README.md", "crates"), None);
    assert_eq!(broken("README.md", "https://example.org/x"), None);
    for target in ["nowhere.md", "../", "/etc"] {
        assert!(broken("README.md", target).is_some(), "{target}");
    }
}
