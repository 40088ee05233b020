//! Errors in gate files: the file, the line, the field and a message.

use alloc::string::String;
use core::fmt;

/// The format of a registry whose skills may have contracts.
pub(crate) const REGISTRY_WITH_CONTRACTS: &str = "ipse-ecm-registry/2";

/// One of the three gate files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum GateFile {
    /// The skills of the agent.
    Registry,
    /// The limits on skills.
    Policy,
    /// The thresholds for risk and confirmation.
    Temperament,
}

impl GateFile {
    /// All three, in the order of the gates.
    pub const ALL: [GateFile; 3] = [GateFile::Registry, GateFile::Policy, GateFile::Temperament];

    /// The name in messages and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            GateFile::Registry => "registry",
            GateFile::Policy => "policy",
            GateFile::Temperament => "temperament",
        }
    }

    /// The kind of file with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|which| which.name() == name)
    }

    /// The values of the member `format`, the newest last.
    pub fn formats(self) -> &'static [&'static str] {
        match self {
            GateFile::Registry => &["ipse-ecm-registry/1", REGISTRY_WITH_CONTRACTS],
            GateFile::Policy => &["ipse-policy/1"],
            GateFile::Temperament => &["ipse-temperament/1"],
        }
    }

    /// A valid example file of this kind. The three examples fit each other.
    pub fn example(self) -> &'static str {
        match self {
            GateFile::Registry => include_str!("example/ecm-registry.toml"),
            GateFile::Policy => include_str!("example/policy.toml"),
            GateFile::Temperament => include_str!("example/temperament.toml"),
        }
    }

    /// The member of a manifest file that names such a file.
    pub fn manifest_name(self) -> &'static str {
        match self {
            GateFile::Registry => "ecm_registry",
            GateFile::Policy => "policy",
            GateFile::Temperament => "temperament",
        }
    }

    /// The kind of file according to its member `format`; `None` if that is missing or unknown.
    pub fn of(text: &str) -> Option<Self> {
        crate::toml_file::format_of(text)
    }
}

/// An error in a gate file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileError {
    /// The file with the error.
    pub file: GateFile,
    /// The line, from 1.
    pub line: usize,
    /// The path of the field, as in `skills."manipulation.grasp".risk`, shortened and without
    /// control characters; empty for the file as a whole.
    pub field: String,
    /// The error and the correct form.
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
