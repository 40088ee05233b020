//! Files that commands read: events as a stream, small files completely.
//!
//! **Invariants:** a file that is read completely is an ordinary file and has a size limit. No pipe
//! is opened in its place, because that would wait for a writer.

use crate::hints::shell_word;
use crate::terminal::shown;
use anyhow::{Context as _, anyhow, bail};
use ipse_core::FileKind;
use ipse_exchange::{Error, InputKind, check_lines};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Files of a directory that a message names.
const MAX_NAMED: usize = 5;

/// Checks that a file of events exists and is JSON Lines. Returns its size. An input that is not an
/// ordinary file, such as a pipe, is checked when it is read.
pub(crate) fn check_events(file: &Path, command: &str) -> anyhow::Result<u64> {
    if file == Path::new("-") {
        return Ok(0);
    }
    let failed = || format!("could not open {}", shown(file));
    let metadata = std::fs::metadata(file).with_context(failed)?;
    if metadata.is_dir() {
        bail!("{} is a directory; {}", shown(file), files_in(file));
    }
    if !metadata.is_file() {
        return Ok(0);
    }
    let opened = File::open(file).with_context(failed)?;
    check_lines(opened).map_err(|error| not_events(error, file, command))?;
    Ok(metadata.len())
}

/// Opens a file of events that was checked.
pub(crate) fn open_events(file: &Path) -> anyhow::Result<Box<dyn Read + Send>> {
    if file == Path::new("-") {
        return Ok(Box::new(std::io::stdin()));
    }
    let opened = File::open(file).with_context(|| format!("could not open {}", shown(file)))?;
    Ok(Box::new(opened))
}

/// The files of a directory, to name in its place.
fn files_in(directory: &Path) -> String {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path()).filter(|path| path.is_file());
    let mut files: Vec<String> = files.map(|path| shown(&path)).collect();
    files.sort();
    let total = files.len();
    files.truncate(MAX_NAMED);
    let more =
        if total > MAX_NAMED { format!(" and {} more", total - MAX_NAMED) } else { "".into() };
    match total {
        0 => "it holds no file to import".to_owned(),
        _ => format!("name files in it: {}{more}", files.join(" ")),
    }
}

/// All bytes of an ordinary file, if there are not too many.
pub(crate) fn read_file(path: &Path, limit: u64) -> anyhow::Result<Vec<u8>> {
    // Checked before it is opened: opening a pipe waits for its writer.
    if !std::fs::metadata(path)?.is_file() {
        bail!("it is not an ordinary file");
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        bail!("it is larger than {limit} bytes");
    }
    Ok(bytes)
}

/// The error of reading events. An input that is not JSON Lines gets the command that converts it.
pub(crate) fn not_events(error: Error, file: &Path, command: &str) -> anyhow::Error {
    let Error::NotLines(kind) = error else { return error.into() };
    let (name, file) = match file == Path::new("-") {
        true => ("standard input".to_string(), "FILE".to_string()),
        false => (shown(file), shell_word(&file.to_string_lossy())),
    };
    let advice = advice(kind, &file, command);
    anyhow!("{name} is {kind}, not JSON Lines; nothing was stored. {advice}")
}

/// The command that makes events of an input that is not JSON Lines.
fn advice(kind: InputKind, file: &str, command: &str) -> String {
    let piped = |convert: String| format!("Run: {convert} | ipse {command} -");
    let rows = "an event is one JSON object per line (ipse import --help shows one)";
    match kind {
        InputKind::Bundle => {
            format!("Run: ipse import-bundle {file} --trust log.vkey operator.pub")
        }
        InputKind::Array => piped(format!("jq -c '.[]' {file}")),
        InputKind::SpreadJson => piped(format!("jq -c . {file}")),
        InputKind::File(FileKind::Utf16) => piped(format!("iconv -f UTF-16 -t UTF-8 {file}")),
        InputKind::File(FileKind::Xz) => piped(format!("xz -dc {file}")),
        InputKind::File(FileKind::Zstd) => piped(format!("zstd -dc {file}")),
        InputKind::File(FileKind::Bzip2) => piped(format!("bzip2 -dc {file}")),
        InputKind::File(FileKind::Zip) => piped(format!("unzip -p {file}")),
        InputKind::File(FileKind::Sqlite) => format!(
            "If it is an ipse store, run: ipse --store {file} export -o agent.ipse. If it is a \
             robot bag, convert its messages: {rows}"
        ),
        InputKind::File(FileKind::Mcap | FileKind::RosBag) => {
            format!("Convert its messages: {rows}")
        }
        InputKind::Toml => {
            "A manifest goes to `ipse init --manifest`, a gate file to `ipse gates check`".into()
        }
        _ => format!("Convert its rows: {rows}"),
    }
}
