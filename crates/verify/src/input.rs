//! The inputs of the program: the bundle, keys, and earlier tree heads.
//!
//! **Invariant:** an input that cannot be read ends the program with a hint, before any check.

use anyhow::Context;
use ipse_bundle::{FileKind, GATE_FILES, Trust};
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The largest file of keys or tree heads, far above any real one.
const MAX_TEXT_BYTES: u64 = 16 << 20;

pub(crate) const READ_HINT: &str = "copy the file to a healthy disk and try again";

pub(crate) const RANGE_HINT: &str =
    "ask the operator for the whole log: `ipse export` without --from and --to";

const TRUST_HINT: &str = "ask the operator for <store>.keys/log.vkey and \
    <store>.keys/operator.pub, over another channel than the bundle, and compare their \
    sha256sum by voice; then add --trust log.vkey operator.pub. The keys inside the bundle are \
    never trusted: a forged bundle contains forged keys";

const KEY_HINT: &str = "a verifier key is one line, name+id+key, as in <store>.keys/log.vkey; a \
    PEM public key begins with -----BEGIN PUBLIC KEY-----; do not give private halves (.key)";

const WITNESS_HINT: &str = "the verifier key of a witness is one line, name+id+key, as the witness \
    publishes it; its type is 4, so the key of a log is not one";

const ANCHOR_HINT: &str =
    "a tree head is the file tree-head.note of an earlier bundle; several may follow each other";

const GATES_HINT: &str = "--gates takes a directory with ecm-registry.toml, policy.toml and \
    temperament.toml, the files that the manifest names by their SHA-256";

pub(crate) const FILE_HINT: &str =
    "FILE.ipse comes first, before --trust; `ipse export -o FILE.ipse` writes it";

/// An error with a hint.
#[derive(Debug)]
pub(crate) struct HintedError {
    error: anyhow::Error,
    pub(crate) hint: &'static str,
}

impl HintedError {
    pub(crate) fn error(error: anyhow::Error, hint: &'static str) -> anyhow::Error {
        anyhow::Error::new(HintedError { error, hint })
    }
}

impl fmt::Display for HintedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for HintedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// Reads the trusted keys.
pub(crate) fn trust(values: &[String]) -> anyhow::Result<Trust> {
    let mut trust = Trust::default();
    for value in values {
        let read = match Path::new(value).exists() {
            true => text(Path::new(value)).and_then(|text| {
                trust.add(&text).with_context(|| format!("cannot read keys from {value}"))
            }),
            false if value.contains('+') => trust.add(value).context("cannot read this key"),
            false => Err(anyhow::anyhow!("{value} is neither a file nor a key")),
        };
        read.map_err(|error| HintedError::error(error, KEY_HINT))?;
    }
    if trust.keys().is_empty() {
        let error = anyhow::anyhow!("no key is trusted, so nothing can be verified");
        return Err(HintedError::error(error, TRUST_HINT));
    }
    Ok(trust)
}

/// Reads the keys of required witnesses.
pub(crate) fn witnesses(trust: &mut Trust, values: &[String]) -> anyhow::Result<()> {
    for value in values {
        let path = Path::new(value);
        // A value that is not a file is not shown: it may be a private key, given by mistake.
        let (keys, place) = match path.exists() {
            true => (text(path), value.as_str()),
            false => (Ok(value.clone()), "--witness"),
        };
        let read = keys.and_then(|keys| {
            let read = trust.require_witnesses(&keys);
            read.with_context(|| format!("cannot read the key of a witness from {place}"))
        });
        read.map_err(|error| HintedError::error(error, WITNESS_HINT))?;
    }
    Ok(())
}

/// Reads the earlier tree heads.
pub(crate) fn anchors(path: Option<&Path>) -> anyhow::Result<Vec<String>> {
    let Some(path) = path else { return Ok(Vec::new()) };
    let read = text(path).and_then(|text| {
        let anchors = ipse_bundle::anchors(&text);
        anchors.with_context(|| format!("cannot read tree heads from {}", path.display()))
    });
    read.map_err(|error| HintedError::error(error, ANCHOR_HINT))
}

/// Reads the gate files of a directory: those that are there, under their usual names.
pub(crate) fn gates(directory: Option<&Path>) -> anyhow::Result<[Option<Vec<u8>>; 3]> {
    let mut files: [Option<Vec<u8>>; 3] = Default::default();
    let Some(directory) = directory else { return Ok(files) };
    for (file, name) in files.iter_mut().zip(GATE_FILES) {
        let path = directory.join(name);
        *file = match path.try_exists() {
            Ok(false) => None,
            _ => Some(text(&path).map_err(|error| HintedError::error(error, GATES_HINT))?),
        }
        .map(String::into_bytes);
    }
    if files.iter().all(Option::is_none) {
        let error = anyhow::anyhow!("there is no gate file in {}", directory.display());
        return Err(HintedError::error(error, GATES_HINT));
    }
    Ok(files)
}

fn text(path: &Path) -> anyhow::Result<String> {
    let say = || format!("cannot read {}", path.display());
    let mut text = String::new();
    let file = File::open(path).with_context(say)?;
    file.take(MAX_TEXT_BYTES + 1).read_to_string(&mut text).with_context(say)?;
    if text.len() as u64 > MAX_TEXT_BYTES {
        anyhow::bail!("{} is larger than {MAX_TEXT_BYTES} bytes", path.display());
    }
    Ok(text)
}

/// Opens the bundle.
pub(crate) fn bundle(path: &Path) -> anyhow::Result<File> {
    let open = || {
        // Checked before it is opened: opening a pipe would wait for its writer.
        match std::fs::metadata(path)?.is_file() {
            true => File::open(path),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not an ordinary file")),
        }
    };
    let opened = open().with_context(|| format!("cannot open {}", path.display()));
    let opened = opened.and_then(|file| match kind(&file)? {
        Some(kind) => anyhow::bail!("{} is {}, not a bundle", path.display(), kind.name()),
        None => Ok(file),
    });
    opened.map_err(|error| HintedError::error(error, FILE_HINT))
}

/// The kind of a file that another program made.
fn kind(file: &File) -> io::Result<Option<FileKind>> {
    let mut first = [0; 16];
    let length = file.read_at(&mut first, 0)?;
    Ok(FileKind::of(&first[..length]))
}
