//! The gate files: examples that pass, findings with their place, and exit codes.

use super::store::{CommandResult, Store, binary, ran};
use serde_json::json;

const NAMES: [(&str, &str); 3] = [
    ("registry", "ecm-registry.toml"),
    ("policy", "policy.toml"),
    ("temperament", "temperament.toml"),
];

fn example(kind: &str) -> String {
    let ran = ran(binary().args(["gates", "new", kind])).fine();
    assert!(ran.err.is_empty());
    ran.out
}

/// A directory with the three examples.
fn examples() -> Store {
    let store = Store::nothing();
    for (kind, name) in NAMES {
        store.write(name, example(kind));
    }
    store
}

/// Runs the check in the directory of the files.
fn check(store: &Store, args: &[&str]) -> CommandResult {
    let mut command = binary();
    command.current_dir(store.directory.path()).args(["gates", "check"]).args(args);
    ran(&mut command)
}

/// An example with one change.
fn changed(kind: &str, old: &str, new: &str) -> String {
    let text = example(kind);
    assert!(text.contains(old), "{old}");
    text.replacen(old, new, 1)
}

fn sha256(text: &str) -> String {
    ipse_core::hex::encode(&ipse_core::sha256(&[text.as_bytes()]))
}

#[test]
fn the_examples_pass_in_any_order_and_company() {
    let store = examples();
    let ran = check(&store, &["temperament.toml", "ecm-registry.toml", "policy.toml"]);
    let hint = "temperament = \"temperament.toml\", ecm_registry = \"ecm-registry.toml\", \
                policy = \"policy.toml\"";
    let ran = ran.ended(0, &["hint:", "manifest", hint]);
    assert!(!ran.err.contains("note:"), "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines.len(), 4, "{}", ran.out);
    for (line, words) in lines.iter().zip([
        ["KIND", "FILE", "SHA256", "HOLDS"],
        ["temperament ", " temperament.toml", &sha256(&example("temperament")), "3 human checks"],
        [
            "registry ",
            " ecm-registry.toml",
            &sha256(&example("registry")),
            "4 skills, 7 parameters",
        ],
        ["policy ", " policy.toml", &sha256(&example("policy")), "3 clamps, 3 prohibitions"],
    ]) {
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
    }
    let columns = |line: &&str| line.find("  ").is_some();
    assert!(lines[1..3].iter().all(columns), "it is aligned: {}", ran.out);
    for (kind, name) in NAMES {
        let ran = check(&store, &[name]).fine();
        assert_eq!(ran.err.contains("note:"), kind != "registry", "{}", ran.err);
    }
    check(&store, &["policy.toml", "temperament.toml"]).ended(0, &["without the registry"]);
    let files: Vec<String> = std::fs::read_dir(store.directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(files.len(), 3, "nothing was written: {files:?}");
}

#[test]
fn programs_get_the_same_as_json() {
    let store = examples();
    let ran = check(&store, &["--json", "ecm-registry.toml", "policy.toml"]).fine();
    assert_eq!(ran.members(), ["files"]);
    let files = &ran.json()["files"];
    assert_eq!(
        files[0],
        json!({"kind": "registry", "file": "ecm-registry.toml", "errors": [],
            "sha256": sha256(&example("registry")), "holds": "4 skills, 7 parameters"})
    );
    assert_eq!(files[1]["kind"], "policy");
    store.write("policy.toml", changed("policy", "max = 40", "max = \"much\""));
    let ran = check(&store, &["policy.toml", "--json"]).ended(1, &["policy.toml: line 19, "]);
    let field = "skills.\"manipulation.grasp\".clamp[0].max";
    let error = json!({"line": 19, "field": field, "message": "must be a number"});
    assert_eq!(ran.json()["files"][0]["errors"], json!([error]));
    assert!(ran.json()["files"][0].get("holds").is_none());
    store.write("policy.toml", "x = 1");
    let file =
        &check(&store, &["policy.toml", "--json"]).ended(1, &["ipse-policy/1"]).json()["files"][0];
    assert!(file.get("kind").is_none() && file["sha256"] == sha256("x = 1"), "{file}");
    let formats = "\"ipse-ecm-registry/1\", \"ipse-ecm-registry/2\", \"ipse-policy/1\", \
                   \"ipse-temperament/1\"";
    let message = format!("must be one of {formats}");
    assert_eq!(file["errors"], json!([{"line": 1, "field": "format", "message": message}]));
    store.write("policy.toml", "# no TOML\nformat = ipse-policy/1");
    let file =
        &check(&store, &["policy.toml", "--json"]).ended(1, &["line 2: "]).json()["files"][0];
    assert!(file.get("kind").is_none(), "{file}");
    let error = &file["errors"][0];
    assert!(error["line"] == 2 && error["field"] == "", "{file}");
    assert!(error["message"].as_str().unwrap().starts_with("not valid TOML: "), "{file}");
}

#[test]
fn findings_name_file_line_and_field() {
    let store = examples();
    let bad = changed("registry", "risk = 0.3", "risk = 3")
        .replace("ethics = 0.95", "ethics = 0.95\ncolour = \"red\"");
    store.write("bad.toml", bad);
    let ran = check(&store, &["bad.toml", "policy.toml", "temperament.toml"]);
    let ran = ran.ended(
        1,
        &[
            "bad.toml: line 11, skills.\"manipulation.grasp\".risk: must be from 0 to 1\n",
            "bad.toml: line 44, skills.\"manipulation.place\".colour: no such member; there are ",
        ],
    );
    assert!(ran.out.contains("2 errors") && ran.out.contains("3 clamps"), "{}", ran.out);
    assert!(!ran.err.contains("hint"), "{}", ran.err);

    // Valid alone, but not with the registry.
    store.write("bold.toml", changed("temperament", "param = \"force_n\"", "param = \"force\""));
    check(&store, &["bold.toml"]).fine();
    let words = "bold.toml: line 17, human_check[0].param: the registry has no such parameter";
    check(&store, &["bold.toml", "ecm-registry.toml"]).ended(1, &[words]);

    // A rule that never matches: the newtons were millinewtons.
    store.write("dead.toml", changed("policy", "from = 60\nto = 140", "from = 60000"));
    let words = "dead.toml: line 30, skills.\"manipulation.grasp\".forbid[0].from: never holds: ";
    check(&store, &["dead.toml", "ecm-registry.toml"]).ended(1, &[words, "from 0 to 140 N"]);
}

#[test]
fn a_file_of_no_kind_says_why() {
    let store = Store::nothing();
    for (text, words) in [
        ("", "line 1, format: must be one of"),
        ("skills = 1", "line 1, format: must be one of"),
        ("\nformat = \"ipse-policy/2\"", "line 2, format: must be one of"),
        ("\u{1b}[31m", "line 1: not valid TOML: "),
        ("# a slip\nformat = ipse-policy/1", "line 2: not valid TOML: "),
        ("x = 1\n\n[skills", "line 3: not valid TOML: "),
    ] {
        store.write("odd.toml", text);
        let ran = check(&store, &["odd.toml"]).ended(1, &[&format!("odd.toml: {words}")]);
        assert!(ran.out.contains("unknown") && ran.out.contains(" error"), "{}", ran.out);
        let is_control = |c: char| c.is_control() && c != '\n';
        assert!(!ran.err.contains(is_control), "{:?}", ran.err);
        let is_toml = words.contains("format");
        assert_eq!(ran.err.contains("must be one of"), is_toml, "{}", ran.err);
    }
    store.write("odd.toml", "format = \"ipse-policy/1\"\nunlisted_skills = \"deny\"\nx = [1,");
    check(&store, &["odd.toml"]).ended(1, &["odd.toml: line 3: not valid TOML: "]);
}

#[test]
fn what_cannot_be_read_is_no_finding() {
    let store = examples();
    let ends = |args: &[&str], words: &[&str]| {
        assert!(check(&store, args).ended(2, words).out.is_empty());
    };
    ends(&["absent.toml"], &["could not read absent.toml", "ipse gates new"]);
    ends(&["."], &["could not read", "not an ordinary file"]);
    ends(&["/dev/null"], &["not an ordinary file"]);
    store.write("latin1.toml", b"format = \"\xe9\"");
    ends(&["latin1.toml"], &["latin1.toml is not UTF-8 text"]);
    store.write("large.toml", example("policy") + &"#".repeat(1 << 20));
    ends(&["large.toml"], &["larger than 1048576 bytes"]);
    store.write("other.toml", example("policy"));
    let words = ["policy.toml and other.toml are both a policy", "one of each kind"];
    ends(&["policy.toml", "other.toml"], &words);
    ends(&["policy.toml", "policy.toml"], &["both a policy"]);
    ends(&[], &["FILE"]);
    ends(&["a", "b", "c", "d"], &["unexpected"]);
}

#[test]
fn only_the_three_kinds_can_be_begun() {
    for kind in ["", "Policy", "ecm-registry", "gates"] {
        let ran = ran(binary().args(["gates", "new", kind]));
        ran.ended(2, &["registry, policy, temperament"]);
    }
}

/// Follows the instructions in the manifest's template.
#[test]
fn a_manifest_takes_the_hashes_of_the_examples() {
    let template = ran(binary().args(["manifest", "new"])).fine().out;
    let store = examples();
    for (kind, name) in NAMES {
        assert!(template.contains(&format!("ipse gates new {kind} > {name}")), "{template}");
        assert!(template.contains(&format!("= \"{name}\"")), "{template}");
    }
    let check = "ipse gates check ecm-registry.toml policy.toml temperament.toml";
    assert!(template.contains(check));
    let named: String = template
        .lines()
        .map(|line| line.strip_prefix("#   ").filter(|line| line.contains(" = \"")).unwrap_or(line))
        .filter(|line| !line.contains("_hash = "))
        .map(|line| format!("{line}\n"))
        .collect();
    let manifest = store.write("agent.toml", named);
    store.run(&["init", "--manifest", &manifest]).fine();
    let canonical = store.run(&["identity", "--canonical"]).fine().out;
    for (kind, _) in NAMES {
        assert!(canonical.contains(&sha256(&example(kind))), "{kind}: {canonical}");
    }
}
