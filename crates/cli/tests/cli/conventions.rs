//! Conventions of a command line: grouped help, completions, manual pages, `-q` and `-v`, colours
//! on a terminal only, and tables that fit a narrow one.

use super::store::{Store, binary, ran};
use std::process::Command;

#[test]
fn the_help_lists_commands_in_groups() {
    for flag in ["--help", "-h", "help"] {
        let help = ran(binary().arg(flag)).fine().out;
        let groups = ["Start:", "Feed:", "Ask:", "Prove:", "Forget:", "Serve and operate:"];
        let places: Vec<_> = groups.iter().map(|group| help.find(group)).collect();
        assert!(places.is_sorted() && places[0].is_some(), "{flag}: {places:?}\n{help}");
        assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
        assert!(help.contains("\n  explain  ") && help.contains("--store"), "{help}");
    }
    let import = ran(binary().args(["help", "import"])).fine().out;
    assert_eq!(import, ran(binary().args(["import", "--help"])).fine().out);
    let version = ran(binary().arg("version")).fine().out;
    assert_eq!(version, ran(binary().arg("--version")).fine().out);
}

/// Each shell parses its script, if the shell is installed.
#[test]
fn completions_are_made_for_every_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = ran(binary().args(["completions", shell])).fine().out;
        assert!(script.contains("import-bundle") && script.contains("key-dir"), "{shell}");
    }
    let script = ran(binary().args(["completions", "bash"])).fine().out;
    let words = "COMP_WORDS=(ipse tree); COMP_CWORD=1; COMPREPLY=(); _ipse ipse tree ipse; \
                 echo \"${COMPREPLY[@]}\"";
    // The script is too long for an argument.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("completions.bash");
    std::fs::write(&file, format!("{script}\n{words}")).unwrap();
    let done = Command::new("bash").arg(&file).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout).trim(), "tree-head");
    ran(binary().args(["completions", "tcsh"])).ended(2, &["possible values: bash"]);
}

#[test]
fn a_manual_page_is_the_help() {
    let page = ran(binary().arg("man")).fine().out;
    assert!(page.contains(".TH ipse 1") && page.contains("ipse\\-import"), "{page}");
    let page = ran(binary().args(["man", "token", "create"])).fine().out;
    assert!(page.contains(".TH ipse-token-create 1") && page.contains("\\-\\-role"), "{page}");
    ran(binary().args(["man", "nonsense"])).ended(2, &["no command `nonsense`", "ipse --help"]);
}

#[test]
fn quiet_drops_messages_and_keeps_errors() {
    let store = Store::new();
    let line = super::store::attempt("1", true);
    let loud = store.fed(&["import", "-"], line.clone() + "no event\n").ended(1, &["line 2"]);
    let quiet = store.fed(&["import", "-q", "-"], line + "no event\n").ended(1, &["line 2"]);
    assert_eq!(quiet.err.lines().count(), 1, "what was refused, and nothing else: {}", quiet.err);
    let record = ["-q", "record", "--skill", "grasp", "--success"];
    assert_eq!(store.run(&record).fine().err, "");
    store.run(&[&record[..], &["--time", "never"]].concat()).ended(1, &["RFC 3339"]);
    assert!(loud.out.contains("1 appended") && quiet.out.contains("1 duplicate"), "{}", quiet.out);
    store.run(&["-q", "import", "missing.jsonl"]).ended(2, &["error:", "missing.jsonl"]);
    store.run(&["-q", "-v", "facts"]).ended(2, &["cannot be used with"]);
}

/// Runs a command on a pseudo-terminal of this many columns; returns its output.
pub(crate) fn on_terminal(store: &Store, columns: u16, env: &str, args: &str) -> String {
    let (ipse, path) = (env!("CARGO_BIN_EXE_ipse"), store.path.display());
    let inner = format!("stty rows 30 cols {columns}; {env} '{ipse}' --store '{path}' {args}");
    let mut script = Command::new("script");
    script.args(["-qec", &inner, "/dev/null"]).env_remove("NO_COLOR").env("TERM", "xterm");
    // A pager would wait for a key.
    script.env("PAGER", "cat").env_remove("IPSE_PAGER");
    String::from_utf8(script.output().unwrap().stdout).unwrap()
}

#[test]
fn colours_are_for_terminals_only() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    assert!(on_terminal(&store, 100, "", "facts").contains("\u{1b}[1mCONF"));
    assert!(on_terminal(&store, 100, "", "import nothing").contains("\u{1b}[1;31merror:"));
    for env in ["NO_COLOR=1", "TERM=dumb"] {
        assert!(!on_terminal(&store, 100, env, "facts").contains('\u{1b}'), "{env}");
    }
    assert!(!store.run(&["facts"]).fine().out.contains('\u{1b}'));
}

#[test]
fn a_narrow_terminal_gets_a_block_for_each_row() {
    let store = Store::with("facts/glass_cup.events.jsonl");
    let shown = on_terminal(&store, 40, "NO_COLOR=1", "facts");
    assert!(shown.contains("KIND: skill_success_rate\r\n"), "{shown}");
    assert!(shown.contains("KEY: manipulation.grasp + glass_cup + sim_relaxed\r\n"), "{shown}");
}
