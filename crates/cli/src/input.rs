//! Files that commands read: events as a stream, small files whole.
//!
//! **Invariants:** a file that is read whole is an ordinary one, and has a limit. No pipe is opened
//! in its place, which would wait for a writer.

use anyhow::{Context as _, bail};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Opens a file of events, and says how large it is.
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
