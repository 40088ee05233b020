//! Manifest files: TOML or JSON, hashes given or taken from named files.
//!
//! **Invariants:** every error names file and field; a hash and a file for it together are an
//! error, so that there is never a doubt which of them is hashed.

use crate::input::read_file;
use crate::vocabulary::nearest;
use anyhow::{Context as _, anyhow, bail};
use ipse::{Manifest, Refusal};
use ipse_core::json::Value;
use ipse_core::{FileKind, hex, json_parse, sha256};
use ipse_door::MAX_DEPTH;
use ipse_manifest::FIELDS;
use std::collections::BTreeMap;
use std::path::Path;

/// Files that may be named instead of a hash: the name, and the field that it fills.
const FILES: [(&str, &str); 3] = [
    ("policy", "policy_hash"),
    ("ecm_registry", "ecm_registry_hash"),
    ("temperament", "temperament_hash"),
];

/// The largest file that is named for its hash: far above any policy or registry.
const MAX_NAMED_BYTES: u64 = 64 << 20;
/// The largest manifest file: seven short fields and comments.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// Reads a manifest from a file.
pub(crate) fn read(path: &Path) -> anyhow::Result<Manifest> {
    read_with_gates(path).map(|(manifest, _)| manifest)
}

/// Reads a manifest from a file, and the files that it names.
pub(crate) fn read_with_gates(path: &Path) -> anyhow::Result<(Manifest, Vec<Vec<u8>>)> {
    let name = path.display();
    let bytes = read_file(path, MAX_MANIFEST_BYTES).with_context(|| {
        format!("could not read {name} (`ipse manifest new` prints a template)")
    })?;
    let base = path.parent().unwrap_or(Path::new(""));
    parse(&bytes, base).with_context(|| format!("{name} is not a manifest"))
}

/// A name out of a file, safe and short enough to print.
fn shown(name: &str) -> String {
    ipse_door::printable(name)
}

fn parse(bytes: &[u8], base: &Path) -> anyhow::Result<(Manifest, Vec<Vec<u8>>)> {
    if let Some(kind) = FileKind::of(bytes) {
        bail!("it is {}", kind.name());
    }
    if ipse_bundle::is_bundle(bytes) == Some(true) {
        bail!("it is a bundle: `tar -xOf FILE manifest.json` extracts its manifest");
    }
    let text = std::str::from_utf8(bytes).context("it is not UTF-8 text")?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut fields =
        if text.trim_start().starts_with('{') { json_fields(text)? } else { toml_fields(text)? };
    let named = hash_named_files(&mut fields, base)?;
    if let Some(field) = fields.keys().find(|field| !FIELDS.contains(&&***field)) {
        return Err(unknown(field));
    }
    let missing: Vec<_> = FIELDS.into_iter().filter(|field| !fields.contains_key(*field)).collect();
    if missing.len() > 1 {
        bail!("fields are missing: {} (`ipse manifest new` prints a template)", missing.join(", "));
    }
    Ok((Manifest::new(|field| fields.get(field).cloned())?, named))
}

/// The error of a field that no manifest has, with the field that was probably meant.
fn unknown(field: &str) -> anyhow::Error {
    let error = ipse::ManifestError::Unknown(shown(field));
    let names = FIELDS.into_iter().chain(FILES.map(|(name, _)| name));
    match nearest(field, names) {
        Some(name) => anyhow!("{error}; did you mean `{name}`?"),
        None => anyhow!("{error}; the fields are {}", FIELDS.join(", ")),
    }
}

fn json_fields(text: &str) -> anyhow::Result<BTreeMap<String, String>> {
    // An event is recognised by its first line: a file of events has one on each.
    let first_line = text.trim_start().lines().next().unwrap_or_default();
    if json_parse::parse(first_line.as_bytes(), MAX_DEPTH).is_ok_and(|value| is_event(&value)) {
        bail!("it holds events: `ipse import` stores them");
    }
    let value = json_parse::parse(text.as_bytes(), MAX_DEPTH)
        .map_err(|error| anyhow!("it cannot be read as JSON: {}", Refusal::json(&error)))?;
    if is_event(&value) {
        bail!("it is an event: `ipse import` stores events");
    }
    let Value::Object(object) = &value else { bail!("it must be a JSON object") };
    object
        .iter()
        .map(|(name, value)| Ok((name.to_string(), quoted(name, value.as_text())?)))
        .collect()
}

/// Whether a JSON value has the shape of an event.
fn is_event(value: &Value<'_>) -> bool {
    let Value::Object(object) = value else { return false };
    object.get("data").is_some() || object.get("time").is_some()
}

fn toml_fields(text: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let table: toml::Table = text.parse().context("it is not valid TOML")?;
    table.iter().map(|(name, value)| Ok((name.clone(), quoted(name, value.as_str())?))).collect()
}

fn quoted(name: &str, text: Option<&str>) -> anyhow::Result<String> {
    text.map(str::to_string)
        .with_context(|| format!("field `{}` must be a quoted string (dates too)", shown(name)))
}

/// Takes the hash of each named file's bytes. Returns the files.
fn hash_named_files(
    fields: &mut BTreeMap<String, String>,
    base: &Path,
) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut named = Vec::new();
    for (name, field) in FILES {
        let Some(file) = fields.remove(name) else { continue };
        if fields.contains_key(field) {
            bail!("fields `{name}` and `{field}` say the same thing twice: give one of them");
        }
        if file.is_empty() {
            bail!("field `{name}` is empty");
        }
        let bytes = read_file(&base.join(&file), MAX_NAMED_BYTES).with_context(|| {
            let path = base.join(&file);
            format!("field `{name}`: could not read {}", shown(&path.to_string_lossy()))
        })?;
        fields.insert(field.to_string(), hex::encode(&sha256(&[&bytes])));
        named.push(bytes);
    }
    Ok(named)
}
