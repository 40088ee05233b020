//! `gates`: checks the gate files before they are hashed, and prints examples.
//!
//! **Invariants:** nothing is changed and no store is opened; every finding names file, line and
//! field.

use crate::context::Context;
use crate::gate_files::text;
use crate::terminal::{Terminal, counted, shown};
use crate::vocabulary::{Nested, words};
use crate::{CommandResult, Exit};
use anyhow::bail;
use ipse_core::json::{Members, list, quoted};
use ipse_core::{hex, sha256};
use ipse_gates::{FileError, GateFile, Policy, Registry, Temperament};
use std::path::{Path, PathBuf};

pub(crate) type Args = Nested<Action>;

#[derive(clap::Subcommand, Debug)]
pub(crate) enum Action {
    /// Check each gate file, and compare the given files with each other
    ///
    /// Give one, two or all three, in any order: `format` says which file it is. Every mistake in a
    /// rule is an error: unknown members, names that the registry lacks, bounds that contradict
    /// each other, and rules for one target or environment that an intent could avoid by not naming
    /// any.
    ///
    /// Prints the SHA-256 of each file, which belongs in the manifest. Exit 1 if a file has errors;
    /// each is printed with file, line and field on standard error.
    ///
    /// Example: ipse gates check ecm-registry.toml policy.toml temperament.toml
    Check {
        /// Check these files
        #[arg(value_name = "FILE", required = true, num_args = 1..=3)]
        files: Vec<PathBuf>,
    },

    /// Print a commented example file
    ///
    /// The three examples describe a robot that grasps glass cups, and pass the check together.
    /// Adapt them before `ipse init`: their hashes are part of the identity.
    ///
    /// Example: ipse gates new registry > ecm-registry.toml
    New {
        /// Print the example of this kind
        #[arg(value_parser = words(GateFile::ALL.map(GateFile::name), GateFile::parse))]
        kind: GateFile,
    },
}

/// A gate file with its kind, its content and its errors.
struct File<'p> {
    path: &'p Path,
    sha256: String,
    which: Option<GateFile>,
    read: Option<GateFileContent>,
    errors: Vec<FileError>,
}

enum GateFileContent {
    Registry(Registry),
    Policy(Policy),
    Temperament(Temperament),
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    match &args.action {
        Action::Check { files } => check(terminal, context.json, files),
        Action::New { kind } => {
            terminal.out.write_all(kind.example().as_bytes())?;
            Ok(Exit::Fine)
        }
    }
}

fn check(terminal: &mut Terminal<'_>, json: bool, paths: &[PathBuf]) -> CommandResult {
    let files = paths.iter().map(|path| File::read(path)).collect::<anyhow::Result<Vec<_>>>()?;
    refuse_twins(&files)?;
    let files = fitted(files);
    match json {
        true => {
            let files = list(files.iter().map(File::json));
            terminal.json(&Members::new().raw("files", files).finish())?;
        }
        false => {
            let rows: Vec<Vec<String>> = files.iter().map(File::row).collect();
            terminal.table(&["KIND", "FILE", "SHA256", "HOLDS"], &rows)?;
        }
    }
    for file in &files {
        let name = shown(file.path);
        for error in &file.errors {
            writeln!(terminal.err, "{name}: {error}")?;
        }
    }
    let fine = files.iter().all(|file| file.errors.is_empty());
    if fine {
        say_what_is_next(terminal, &files)?;
    }
    Ok(Exit::fine_if(fine))
}

impl<'p> File<'p> {
    fn read(path: &'p Path) -> anyhow::Result<Self> {
        let text = text(path)?;
        let which = GateFile::of(&text);
        let read = match which {
            Some(GateFile::Registry) => Registry::parse(&text).map(GateFileContent::Registry),
            Some(GateFile::Policy) => Policy::parse(&text).map(GateFileContent::Policy),
            Some(GateFile::Temperament) => {
                Temperament::parse(&text).map(GateFileContent::Temperament)
            }
            None => Err(why_unknown(&text)),
        };
        let sha256 = hex::encode(&sha256(&[text.as_bytes()]));
        let (read, errors) = read.map_or_else(|errors| (None, errors), |it| (Some(it), Vec::new()));
        Ok(File { path, sha256, which, read, errors })
    }

    fn kind(&self) -> &'static str {
        self.which.map_or("unknown", GateFile::name)
    }

    fn holds(&self) -> Option<String> {
        self.read.as_ref().map(|read| match read {
            GateFileContent::Registry(registry) => registry.holds(),
            GateFileContent::Policy(policy) => policy.holds(),
            GateFileContent::Temperament(temperament) => temperament.holds(),
        })
    }

    fn row(&self) -> Vec<String> {
        let found = self.errors.len() as u64;
        let wrong = (found > 0).then(|| counted(found, "error"));
        let holds = wrong.or_else(|| self.holds()).unwrap_or_default();
        vec![self.kind().into(), shown(self.path), self.sha256.clone(), holds]
    }

    fn json(&self) -> String {
        Members::new()
            .optional("kind", self.which.map(|which| quoted(which.name())))
            .text("file", &self.path.to_string_lossy())
            .text("sha256", &self.sha256)
            .optional("holds", self.holds().map(|holds| quoted(&holds)))
            .raw("errors", list(self.errors.iter().map(error_json)))
            .finish()
    }
}

fn error_json(error: &FileError) -> String {
    let FileError { file: _, line, field, message } = error;
    Members::new().raw("line", line).text("field", field).text("message", message).finish()
}

/// The errors of a file of unknown kind: it is not TOML, or its `format` is wrong.
fn why_unknown(text: &str) -> Vec<FileError> {
    // A TOML error is the same for all kinds. Of the other errors only `format` applies.
    let mut errors = Registry::parse(text).err().unwrap_or_default();
    let formats = GateFile::ALL.iter().flat_map(|which| which.formats());
    let formats: Vec<String> = formats.map(|format| format!("\"{format}\"")).collect();
    for error in errors.iter_mut().filter(|error| error.field == "format") {
        error.message = format!("must be one of {}", formats.join(", "));
    }
    errors
}

fn refuse_twins(files: &[File<'_>]) -> anyhow::Result<()> {
    for which in GateFile::ALL {
        let of_kind: Vec<_> = files.iter().filter(|file| file.which == Some(which)).collect();
        if let [one, other, ..] = &*of_kind {
            let (one, other) = (shown(one.path), shown(other.path));
            bail!("{one} and {other} are both a {}: give one of each kind", which.name());
        }
    }
    Ok(())
}

/// Adds the errors of policy and temperament that result from the registry.
fn fitted(mut files: Vec<File<'_>>) -> Vec<File<'_>> {
    let registry = files.iter().find_map(|file| match &file.read {
        Some(GateFileContent::Registry(registry)) => Some(registry.clone()),
        _ => None,
    });
    let Some(registry) = registry else { return files };
    for file in &mut files {
        file.errors.extend(match &file.read {
            Some(GateFileContent::Policy(policy)) => policy.unfit_for(&registry),
            Some(GateFileContent::Temperament(temperament)) => temperament.unfit_for(&registry),
            _ => Vec::new(),
        });
    }
    files
}

/// Prints how to name the files in a manifest, and what was not checked.
fn say_what_is_next(terminal: &mut Terminal<'_>, files: &[File<'_>]) -> anyhow::Result<()> {
    let has = |which| files.iter().any(|file| file.which == Some(which));
    if !has(GateFile::Registry) {
        let note = "note: checked without the registry, so names and bounds were not compared";
        writeln!(terminal.err, "{note}")?;
    }
    let names: Vec<String> = files
        .iter()
        .filter_map(|file| {
            let path = quoted(&file.path.to_string_lossy());
            Some(format!("{} = {path}", file.which?.manifest_name()))
        })
        .collect();
    let names = names.join(", ");
    writeln!(terminal.err, "hint: the manifest may name the files instead of hashes: {names}")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipse_gates::Gates;

    #[test]
    fn the_examples_pass_together() {
        let [registry, policy, temperament] = GateFile::ALL.map(GateFile::example);
        assert!(Gates::new(registry, policy, temperament).is_ok());
    }
}
