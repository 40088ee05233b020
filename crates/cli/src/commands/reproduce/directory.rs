//! The directory of a report: checked before an experiment runs, and written at the end.
//!
//! **Invariant:** a directory that holds anything except an earlier report is not changed.

use crate::context::Context;
use crate::output::{self, Output, OverwriteRule};
use crate::terminal::shown;
use anyhow::{Context as _, bail};
use ipse::files;
use ipse_reproduce::report;
use ipse_reproduce::results::Results;
use std::io::Write;
use std::path::Path;

/// Creates the directory, and checks that a report can be written to it.
pub(super) fn prepare(context: &Context, out: &Path, inputs: &[&Path]) -> anyhow::Result<()> {
    if out.exists() && !out.is_dir() {
        bail!("could not write {}: it is not a directory", shown(out));
    }
    std::fs::create_dir_all(out).with_context(|| format!("could not make {}", shown(out)))?;
    let there = names(out)?;
    if let Some(other) = there.iter().find(|name| !is_ours(name)) {
        let (out, other) = (shown(out), shown(Path::new(other)));
        bail!("{out} holds {other}, which is not part of a report: give another directory");
    }
    // Removing an earlier report and writing this one must not hit a protected file.
    for name in there.iter().map(String::as_str).chain([report::PAGE]) {
        output::check_free(context, &out.join(name), inputs)?;
    }
    // Write a temporary file now, so that results are not lost after a long run.
    let probe = tempfile::tempfile_in(out);
    probe.map(drop).with_context(|| format!("could not write to {}", shown(out)))
}

/// Whether a file belongs to an earlier report, or was left by a process that was killed.
fn is_ours(name: &str) -> bool {
    report::belongs(name) || name.starts_with(files::UNFINISHED)
}

/// The names of the files in a directory.
fn names(directory: &Path) -> anyhow::Result<Vec<String>> {
    let attempt = || format!("could not list {}", shown(directory));
    let entries = std::fs::read_dir(directory).with_context(attempt)?;
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.map(|entry| entry.map(name).with_context(attempt)).collect()
}

/// Writes a report and replaces an earlier one.
pub(super) fn write(
    context: &Context,
    results: &Results,
    out: &Path,
    inputs: &[&Path],
) -> anyhow::Result<()> {
    let files = report::files(results)?;
    // Remove an earlier report, so that all files belong to one report.
    for name in names(out)?.iter().filter(|name| is_ours(name)) {
        let old = out.join(name);
        std::fs::remove_file(&old).with_context(|| format!("could not remove {}", shown(&old)))?;
    }
    for file in files {
        let path = out.join(&file.name);
        let mut output = Output::create(context, &path, inputs, OverwriteRule::Anything)?;
        output.write_all(&file.bytes).with_context(|| format!("could not write {}", file.name))?;
        output.finish()?;
    }
    Ok(())
}
