//! Files that commands read: events as a stream, small files completely.
//!
//! **Invariants:** a file that is read completely is an ordinary file and has a size limit. No pipe
//! is opened in its place, because that would wait for a writer.

use crate::hints::shell_word;
use crate::terminal::shown;
use anyhow::{Context as _, anyhow, bail};
use ipse_core::FileKind;
use ipse_exchange::{Error, InputKind};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Opens a file of events. Also returns its size.
pub(crate) fn open_events(file: &Path) -> anyhow::Result<(Box<dyn Read + Send>, u64)> {
    if file == Path::new("-") {
        return Ok((Box::new(std::io::stdin()), 0));
    }
    let name = file.display();
    let opened = File::open(file).with_context(|| format!("could not open {name}"))?;
    let metadata = opened.metadata().with_context(|| format!("could not open {name}"))?;
    if metadata.is_dir() {
        bail!("{name} is a directory; name one JSON Lines file, or - for standard input");
    }
    Ok((Box::new(opened), metadata.len()))
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
