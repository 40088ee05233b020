//! A store in a temporary directory, and the binary run on it.

use assert_cmd::Command;
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub(crate) struct Store {
    pub(crate) directory: TempDir,
    pub(crate) path: PathBuf,
}

pub(crate) struct CommandResult {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl CommandResult {
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.out.matches('\n').count(), 1, "one object on one line: {}", self.out);
        serde_json::from_str(&self.out).unwrap()
    }

    /// Member names of the JSON output, sorted: the shape is part of the interface.
    pub(crate) fn members(&self) -> Vec<String> {
        self.json().as_object().unwrap().keys().cloned().collect()
    }

    #[track_caller]
    pub(crate) fn fine(self) -> Self {
        assert_eq!(self.code, 0, "{}", self.err);
        self
    }

    /// Checks the exit code and words on standard error; never a panic.
    #[track_caller]
    pub(crate) fn ended(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        for word in words {
            assert!(self.err.contains(word), "`{word}` is not in: {}", self.err);
        }
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn vector(name: &str) -> PathBuf {
    root().join("vectors").join(name)
}

pub(crate) fn ran(command: &mut Command) -> CommandResult {
    let output = command.output().unwrap();
    CommandResult {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ipse"));
    for name in ["IPSE_STORE", "IPSE_KEYS", "IPSE_PASSPHRASE", "IPSE_PASSPHRASE_FILE"] {
        command.env_remove(name);
    }
    command
}

impl Store {
    /// A directory without a store.
    pub(crate) fn nothing() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ipse.db");
        Store { directory, path }
    }

    /// A store with the golden identity.
    pub(crate) fn new() -> Self {
        let store = Self::nothing();
        let manifest = vector("manifest/golden.toml");
        store.run(&["init", "--manifest", manifest.to_str().unwrap()]).fine();
        store
    }

    /// A store with an imported vector.
    pub(crate) fn with(name: &str) -> Self {
        let store = Self::new();
        store.run(&["import", vector(name).to_str().unwrap()]);
        store
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = binary();
        command.arg("--store").arg(&self.path);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> CommandResult {
        ran(self.command().args(args))
    }

    pub(crate) fn fed(&self, args: &[&str], input: impl Into<Vec<u8>>) -> CommandResult {
        ran(self.command().args(args).write_stdin(input))
    }

    pub(crate) fn import(&self, input: impl Into<Vec<u8>>) -> CommandResult {
        self.fed(&["import", "-", "--json"], input)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_string()
    }

    pub(crate) fn snapshot(&self) -> String {
        self.run(&["snapshot"]).fine().out
    }
}

/// A valid event, as text.
pub(crate) fn attempt(id: &str, success: bool) -> String {
    format!(
        "{{\"id\":\"{id}\",\"source\":\"arm\",\"type\":\"execution_result\",\
         \"time\":\"2026-05-06T10:00:00Z\",\"data\":{{\"skill_id\":\"grasp\",\
         \"target_class\":\"cup\",\"environment\":\"ward\",\"success\":{success}}}}}\n"
    )
}
