//! The crate graph: who depends on whom, and that nothing which runs a pass can name a manifest.
//!
//! **Invariant:** [`DEPENDS_ON`] is the whole truth about the edges inside the workspace. An edge
//! is a normal dependency, for any platform and with any features; what only tests depend on is no
//! part of the graph. [`OPTIONAL`] lists the edges that a feature switches on.
#![allow(missing_docs, clippy::unwrap_used)]

mod workspace;

use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};
use workspace::{crates, read_toml, report};

/// Each crate with the crates of the workspace that it depends on.
const DEPENDS_ON: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("manifest", &["core"]),
    ("consolidate", &["core"]),
    ("door", &["core"]),
    ("gates", &["core"]),
    ("ledger", &["core"]),
    ("consult", &["core", "consolidate", "ledger"]),
    ("plan", &["core", "consolidate"]),
    ("audit", &["core", "consolidate", "consult", "ledger"]),
    ("bundle", &["core", "manifest", "consolidate", "consult", "audit", "ledger", "door"]),
    ("verify", &["bundle", "gates"]),
    ("store", &["core", "ledger"]),
    ("access", &["core", "store"]),
    ("engine", &["core", "consolidate", "consult", "ledger", "door", "store"]),
    (
        "inspect",
        &[
            "core",
            "consolidate",
            "consult",
            "audit",
            "ledger",
            "door",
            "gates",
            "plan",
            "store",
            "access",
            "engine",
        ],
    ),
    ("intents", &["core", "door", "gates", "engine", "inspect"]),
    ("exchange", &["core", "consolidate", "ledger", "door", "bundle", "store", "engine"]),
    (
        "http",
        &[
            "core", "ledger", "door", "gates", "plan", "access", "store", "engine", "inspect",
            "intents",
        ],
    ),
    (
        "reproduce",
        &["core", "manifest", "consolidate", "door", "gates", "plan", "store", "engine", "inspect"],
    ),
    (
        "ipse",
        &[
            "core", "manifest", "ledger", "door", "gates", "plan", "bundle", "store", "engine",
            "inspect", "intents", "exchange",
        ],
    ),
    (
        "cli",
        &[
            "core",
            "manifest",
            "consolidate",
            "ledger",
            "door",
            "gates",
            "plan",
            "bundle",
            "store",
            "access",
            "engine",
            "inspect",
            "intents",
            "exchange",
            "http",
            "reproduce",
            "ipse",
        ],
    ),
    ("arch", &[]),
];

/// The optional edges: the crate, the crate it may depend on, and the feature that decides.
const OPTIONAL: [(&str, &str, &str); 1] = [("cli", "reproduce", "experiments")];

/// What runs a pass.
const RUNS_A_PASS: [&str; 4] = ["consolidate", "store", "engine", "inspect"];

/// What every crate takes from the workspace.
const SHARED: [&str; 5] = ["version", "edition", "rust-version", "license", "publish"];

type Graph = BTreeMap<String, BTreeSet<String>>;

fn manifest_of(name: &str) -> Table {
    read_toml(&format!("crates/{name}/Cargo.toml"))
}

fn workspace_table() -> Table {
    read_toml("Cargo.toml")["workspace"].as_table().unwrap().clone()
}

fn strings(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn package_name(of_crate: &str) -> String {
    if of_crate == "ipse" { "ipse".into() } else { format!("ipse-{of_crate}") }
}

/// The tables of normal dependencies: the plain one, and those of single platforms.
fn dependency_tables(manifest: &Table) -> Vec<&Table> {
    let platforms = manifest.get("target").and_then(Value::as_table).into_iter();
    let platforms = platforms.flat_map(|all| all.iter()).filter_map(|(_, one)| one.as_table());
    let holders = platforms.chain([manifest]);
    holders.filter_map(|holder| holder.get("dependencies")?.as_table()).collect()
}

/// The crate behind a dependency, if it belongs to the workspace: by path, or by package name even
/// where the dependency was renamed. A path to something unknown is reported under its name.
fn internal(name: &str, spec: &Value, shared: &Table) -> Option<String> {
    let inherits = spec.get("workspace").and_then(Value::as_bool) == Some(true);
    let spec = if inherits { &shared[name] } else { spec };
    let package = spec.get("package").and_then(Value::as_str).unwrap_or(name);
    let known = crates().into_iter().find(|of_crate| package_name(of_crate) == package);
    known.or_else(|| spec.get("path").map(|_| package.to_string()))
}

fn graph() -> Graph {
    let workspace = workspace_table();
    let shared = workspace["dependencies"].as_table().unwrap();
    let edges = |name: &String| {
        let manifest = manifest_of(name);
        let all = dependency_tables(&manifest).into_iter().flatten();
        all.filter_map(|(name, spec)| internal(name, spec, shared)).collect()
    };
    crates().into_iter().map(|name| (name.clone(), edges(&name))).collect()
}

/// A path from one crate to another over one edge or more.
fn path(graph: &Graph, from: &str, to: &str) -> Option<Vec<String>> {
    let mut paths = vec![vec![from.to_string()]];
    let mut seen = BTreeSet::new();
    while let Some(walked) = paths.pop() {
        for next in graph.get(walked.last().unwrap()).into_iter().flatten() {
            let further = [walked.as_slice(), std::slice::from_ref(next)].concat();
            if next == to {
                return Some(further);
            }
            if seen.insert(next) {
                paths.push(further);
            }
        }
    }
    None
}

fn table(rows: &[(&str, &[&str])]) -> Graph {
    let row = |(name, edges): &(&str, &[&str])| {
        (name.to_string(), edges.iter().map(ToString::to_string).collect())
    };
    rows.iter().map(row).collect()
}

#[test]
fn the_dependencies_are_exactly_those_of_the_table() {
    let (want, nothing) = (table(DEPENDS_ON), BTreeSet::new());
    let mut faults = Vec::new();
    for (name, got) in graph() {
        let want = want.get(&name).unwrap_or(&nothing);
        let file = format!("crates/{name}/Cargo.toml");
        faults.extend(got.difference(want).map(|extra| {
            format!(
                "{file}: `{name}` must not depend on `{extra}`; take what it needs as an argument, \
                 or decide for the edge in ARCHITECTURE.md and in DEPENDS_ON"
            )
        }));
        faults.extend(want.difference(&got).map(|missing| {
            format!(
                "{file}: `{name}` no longer depends on `{missing}`; take the edge out of \
                 ARCHITECTURE.md and of DEPENDS_ON"
            )
        }));
    }
    report(&faults);
}

/// The features of a crate that switch an optional dependency on.
fn features_with(manifest: &Table, dependency: &str) -> Vec<String> {
    let features = manifest.get("features").and_then(Value::as_table).into_iter().flatten();
    let wanted = format!("dep:{dependency}");
    let with = features.filter(|(_, parts)| strings(Some(parts)).contains(&&*wanted));
    with.map(|(name, _)| name.clone()).collect()
}

#[test]
fn the_optional_dependencies_are_exactly_those_of_the_table() {
    let workspace = workspace_table();
    let shared = workspace["dependencies"].as_table().unwrap();
    let mut got = Vec::new();
    for name in crates() {
        let manifest = manifest_of(&name);
        for (dependency, spec) in dependency_tables(&manifest).into_iter().flatten() {
            let optional = spec.get("optional").and_then(Value::as_bool) == Some(true);
            let Some(to) = internal(dependency, spec, shared).filter(|_| optional) else {
                continue;
            };
            let features = features_with(&manifest, dependency);
            got.extend(features.into_iter().map(|feature| (name.clone(), to.clone(), feature)));
        }
    }
    let want = OPTIONAL.map(|(from, to, feature)| (from.into(), to.into(), feature.into()));
    assert_eq!(got, want, "an optional edge comes or goes with its row in OPTIONAL");
}

#[test]
fn nothing_that_runs_a_pass_has_a_path_to_the_manifest() {
    let graph = graph();
    let found = RUNS_A_PASS.iter().filter_map(|from| path(&graph, from, "manifest"));
    let say = |path: Vec<String>| {
        format!(
            "{}: a pass could name who the agent is; remove the edge and let `ipse` hand down what \
             is needed, as bytes or an argument",
            path.join(" -> ")
        )
    };
    report(&found.map(say).collect::<Vec<_>>());
}

/// What judges an intent, and what plans. Advice must not be able to change a verdict.
const JUDGES: [&str; 1] = ["gates"];
const ADVISES: [&str; 2] = ["plan", "consolidate"];

#[test]
fn no_gate_has_a_path_to_advice_or_facts() {
    let graph = graph();
    assert!(path(&graph, "inspect", "plan").is_some(), "the control");
    let pairs = JUDGES.iter().flat_map(|from| ADVISES.iter().map(move |to| (from, to)));
    let found = pairs.filter_map(|(from, to)| path(&graph, from, to));
    let say = |path: Vec<String>| {
        format!("{}: a verdict could depend on facts; remove the edge", path.join(" -> "))
    };
    report(&found.map(say).collect::<Vec<_>>());
}

/// Packages that store or connect: the auditor's program must not be able to.
const NOT_FOR_AUDITORS: [&str; 7] =
    ["rusqlite", "libsqlite3-sys", "postgres", "tokio", "mio", "socket2", "rustls"];

#[test]
fn the_auditors_program_links_no_database_and_no_network() {
    let lock = read_toml("Cargo.lock");
    let packages = lock["package"].as_array().unwrap().iter().filter_map(Value::as_table);
    let edges = packages.map(|package| {
        let names = strings(package.get("dependencies"));
        let names = names.iter().map(|name| name.split(' ').next().unwrap().to_string());
        (package["name"].as_str().unwrap().to_string(), names.collect())
    });
    let graph: Graph = edges.collect();
    assert!(path(&graph, "ipse", "rusqlite").is_some(), "the control");
    let found = NOT_FOR_AUDITORS.iter().filter_map(|to| path(&graph, "ipse-verify", to));
    let say = |path: Vec<String>| {
        format!("{}: an auditor reads a file and nothing else; remove the edge", path.join(" -> "))
    };
    report(&found.map(say).collect::<Vec<_>>());
}

#[test]
fn a_path_is_found_however_long() {
    let graph = table(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &["d"]), ("d", &["b"])]);
    assert!(path(&graph, "a", "d").is_some());
    assert!(path(&graph, "b", "b").is_some(), "a cycle ends the search");
    assert!(path(&graph, "d", "a").is_none());
    assert!(path(&self::graph(), "ipse", "manifest").is_some(), "the control");
}

#[test]
fn the_members_are_the_crates_of_the_table() {
    let workspace = workspace_table();
    let list = |key| strings(workspace.get(key));
    let all = "every directory under crates/ is a member, and no other";
    assert_eq!(list("members"), ["crates/*"], "{all}");
    assert!(list("exclude").is_empty(), "{all}");
    let plain = "a plain `cargo run` is `ipse`: keep default-members in Cargo.toml";
    assert_eq!(list("default-members"), ["crates/cli"], "{plain}");
    let want: BTreeSet<_> = DEPENDS_ON.iter().map(|(name, _)| name.to_string()).collect();
    let got: BTreeSet<_> = crates().into_iter().collect();
    assert_eq!(
        got, want,
        "a crate comes or goes with its row in DEPENDS_ON and in ARCHITECTURE.md"
    );
}

#[test]
fn every_member_shares_version_edition_and_lints() {
    let inherits = |value: Option<&Value>| {
        value.and_then(|value| value.get("workspace")).and_then(Value::as_bool) == Some(true)
    };
    let mut faults = Vec::new();
    for name in crates() {
        let (manifest, want) = (manifest_of(&name), package_name(&name));
        let file = format!("crates/{name}/Cargo.toml");
        let package = &manifest["package"];
        if package["name"].as_str() != Some(&want) {
            faults.push(format!("{file}: name the package `{want}`, after its directory"));
        }
        let own = SHARED.iter().filter(|key| !inherits(package.get(**key)));
        faults.extend(own.map(|key| format!("{file}: write `{key}.workspace = true`")));
        let lints = manifest.get("lints").filter(|lints| lints.as_table().unwrap().len() == 1);
        if !inherits(manifest.get("lints")) || lints.is_none() {
            faults.push(format!("{file}: write `workspace = true` under [lints]"));
        }
    }
    report(&faults);
}
