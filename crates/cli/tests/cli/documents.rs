//! Documents that must be true: the transcripts, and the reference of the command line.

#[cfg(feature = "experiments")]
use super::store::binary;
use super::store::{ran, root};
use std::fs;

#[test]
fn the_transcript_in_the_readme_is_real() {
    assert!(transcript("README.md") >= 5, "the transcript is there");
}

#[test]
fn the_transcript_of_forgetting_is_real() {
    assert!(transcript("docs/guide/forgetting.md") >= 5, "the transcript is there");
}

#[test]
fn the_transcript_of_signing_is_real() {
    assert!(transcript("docs/guide/signing.md") >= 8, "the transcript is there");
}

#[test]
fn the_transcript_of_one_day_is_real() {
    assert!(transcript("docs/guide/by-time.md") >= 8, "the transcript is there");
}

#[test]
fn the_transcript_of_a_language_model_agent_is_real() {
    assert!(transcript("docs/guide/llm-agents.md") >= 3, "the transcript is there");
}

#[test]
fn the_transcript_of_planning_is_real() {
    assert!(transcript("docs/guide/planning.md") >= 5, "the transcript is there");
}

/// Runs every `$ ` line of a page's console blocks and compares the output; returns their number.
fn transcript(page: &str) -> usize {
    let readme = fs::read_to_string(root().join(page)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    for name in ["vectors", "examples"] {
        std::os::unix::fs::symlink(root().join(name), directory.path().join(name)).unwrap();
    }
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_ipse")).parent().unwrap().to_owned();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut commands = 0;
    for block in readme.split("```console\n").skip(1) {
        let block = block.split("```").next().unwrap();
        for step in block.split("$ ").skip(1) {
            let (command, want) = step.split_once('\n').unwrap();
            let mut shell = assert_cmd::Command::new("sh");
            shell.args(["-c", &format!("{{ {command}\n}} 2>&1")]).current_dir(directory.path());
            shell.env("PATH", &path).env_remove("IPSE_STORE").env_remove("IPSE_KEYS");
            assert_eq!(ran(&mut shell).out, want, "$ {command}");
            commands += 1;
        }
    }
    commands
}

/// `docs/reference/cli.md` is exactly the help of a build with all commands.
#[cfg(feature = "experiments")]
#[test]
fn the_reference_is_the_help() {
    let want = fs::read_to_string(root().join("docs/reference/cli.md")).unwrap();
    let got = ran(binary().arg("reference")).fine().out;
    assert_eq!(got, want, "run: cargo run -- reference > docs/reference/cli.md");
}
