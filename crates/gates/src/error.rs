//! Which gate file is wrong, in which line and field, and how.

use alloc::string::String;
use core::fmt;

/// One of the three files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum GateFile {
    /// What the agent can do.
    Registry,
    /// What it must never do.
    Policy,
    /// How bold it is.
    Temperament,
}

impl GateFile {
    /// All three, in the order of the gates.
    pub const ALL: [GateFile; 3] = [GateFile::Registry, GateFile::Policy, GateFile::Temperament];

    /// The word for people and command lines.
    pub fn name(self) -> &'static str {
        match self {
            GateFile::Registry => "registry",
            GateFile::Policy => "policy",
            GateFile::Temperament => "temperament",
        }
    }

    /// The kind that a word names.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|which| which.name() == name)
    }

    /// What stands in its member `format`.
    pub fn format(self) -> &'static str {
        match self {
            GateFile::Registry => "ipse-ecm-registry/1",
            GateFile::Policy => "ipse-policy/1",
            GateFile::Temperament => "ipse-temperament/1",
        }
    }

    /// A file of this kind that can be used as it stands. The three belong together.
    pub fn example(self) -> &'static str {
        match self {
            GateFile::Registry => include_str!("example/ecm-registry.toml"),
            GateFile::Policy => include_str!("example/policy.toml"),
            GateFile::Temperament => include_str!("example/temperament.toml"),
        }
    }

    /// The member under which a manifest file names such a file.
    pub fn manifest_name(self) -> &'static str {
        match self {
            GateFile::Registry => "ecm_registry",
            GateFile::Policy => "policy",
            GateFile::Temperament => "temperament",
        }
    }

    /// Which of the three a text says it is, by its member `format`; `None` if it does not say.
    pub fn of(text: &str) -> Option<Self> {
        crate::toml_file::format_of(text)
    }
}

/// What is wrong with a file, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileError {
    /// The file.
    pub file: GateFile,
    /// The line, from 1.
    pub line: usize,
    /// The path of the field, as in `skills."manipulation.grasp".risk`, shortened and without
    /// control characters; empty for the file as a whole.
    pub field: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FileError { file: _, line, field, message } = self;
        match field.is_empty() {
            true => write!(f, "line {line}: {message}"),
            false => write!(f, "line {line}, {field}: {message}"),
        }
    }
}

impl core::error::Error for FileError {}
