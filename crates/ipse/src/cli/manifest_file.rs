//! Manifest files: TOML or JSON, hashes given or taken from named files.
//!
//! **Invariants:** every error names file and field; a hash and a file for it together are an
//! error, so that there is never a doubt which of them is hashed.

use anyhow::{Context as _, anyhow, bail};
use ipse::{Manifest, Refusal};
use ipse_core::json::{Members, Value};
use ipse_core::{Time, hex, json_parse, sha256};
use std::collections::BTreeMap;
use std::io::Read;
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

/// A manifest to start from, for people or for programs. It can be registered as it stands.
pub(crate) fn template_for(now: Time, json: bool) -> String {
    if json { json_template(now) + "\n" } else { template(now) }
}

fn template(now: Time) -> String {
    let empty = hex::encode(&sha256(&[]));
    format!(
        r#"# Who this agent is. The SHA-256 of these seven fields is its identity: change one
# and it is another agent, with a log of its own. What the agent learns is not here.

# What you call it.
agent_id = "my-agent-01"

# Who answers for it.
operator = "my-organisation"

# The body or runtime it acts through.
embodiment = "my-robot/rev-a"

# Three files that bind it: what it must never do, what it can do, how bold it is.
# Begin with examples, make them yours, and check them:
#   ipse gates new policy > policy.toml
#   ipse gates new registry > ecm-registry.toml
#   ipse gates new temperament > temperament.toml
#   ipse gates check ecm-registry.toml policy.toml temperament.toml
# Name the file and its bytes are hashed:
#   policy = "policy.toml"
#   ecm_registry = "ecm-registry.toml"
#   temperament = "temperament.toml"
# or give the SHA-256 yourself. This one is the hash of nothing: none of them yet.
policy_hash = "{empty}"
ecm_registry_hash = "{empty}"
temperament_hash = "{empty}"

# When it went into service: quoted, RFC 3339, kept letter by letter.
commissioned_at = "{now}"
"#
    )
}

/// The same as JSON, for programs: no comments.
fn json_template(now: Time) -> String {
    let empty = hex::encode(&sha256(&[]));
    let fields = ipse_manifest::FIELDS.into_iter().map(|field| match field {
        "agent_id" => (field, "my-agent-01".to_string()),
        "operator" => (field, "my-organisation".to_string()),
        "embodiment" => (field, "my-robot/rev-a".to_string()),
        "commissioned_at" => (field, now.to_string()),
        _ => (field, empty.clone()),
    });
    let add = |members: Members, (field, value): (&str, String)| members.text(field, &value);
    fields.fold(Members::new(), add).finish()
}

/// Reads a manifest from a file.
pub(crate) fn read(path: &Path) -> anyhow::Result<Manifest> {
    let name = path.display();
    let bytes = read_file(path, MAX_MANIFEST_BYTES).with_context(|| {
        format!("could not read {name} (`ipse manifest new` prints a template)")
    })?;
    let base = path.parent().unwrap_or(Path::new(""));
    parse(&bytes, base).with_context(|| format!("{name} is not a manifest"))
}

/// All bytes of an ordinary file, if there are not too many.
pub(crate) fn read_file(path: &Path, limit: u64) -> anyhow::Result<Vec<u8>> {
    // Asked before it is opened: opening a pipe would wait for whoever writes to it.
    if !std::fs::metadata(path)?.is_file() {
        bail!("it is not an ordinary file");
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        bail!("it is larger than {limit} bytes");
    }
    Ok(bytes)
}

/// A name out of a file, safe and short enough to print.
fn shown(name: &str) -> String {
    ipse_door::printable(name)
}

fn parse(bytes: &[u8], base: &Path) -> anyhow::Result<Manifest> {
    let text = std::str::from_utf8(bytes).context("it is not UTF-8 text")?;
    let mut fields =
        if text.trim_start().starts_with('{') { json_fields(text)? } else { toml_fields(text)? };
    hash_named_files(&mut fields, base)?;
    if let Some(field) = fields.keys().find(|field| !ipse_manifest::FIELDS.contains(&&***field)) {
        return Err(ipse::ManifestError::Unknown(shown(field)).into());
    }
    Ok(Manifest::new(|field| fields.get(field).cloned())?)
}

fn json_fields(text: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let value = json_parse::parse(text.as_bytes(), 2)
        .map_err(|error| anyhow!("it cannot be read as JSON: {}", Refusal::json(&error)))?;
    let Value::Object(object) = &value else { bail!("it must be a JSON object") };
    object
        .iter()
        .map(|(name, value)| Ok((name.to_string(), quoted(name, value.as_text())?)))
        .collect()
}

fn toml_fields(text: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let table: toml::Table = text.parse().context("it is not valid TOML")?;
    table.iter().map(|(name, value)| Ok((name.clone(), quoted(name, value.as_str())?))).collect()
}

fn quoted(name: &str, text: Option<&str>) -> anyhow::Result<String> {
    text.map(str::to_string)
        .with_context(|| format!("field `{}` must be a quoted string (dates too)", shown(name)))
}

/// Takes the hash of each named file's bytes.
fn hash_named_files(fields: &mut BTreeMap<String, String>, base: &Path) -> anyhow::Result<()> {
    for (name, field) in FILES {
        let Some(file) = fields.remove(name) else { continue };
        if fields.contains_key(field) {
            bail!("fields `{name}` and `{field}` say the same thing twice: give one of them");
        }
        if file.is_empty() {
            bail!("field `{name}` is empty");
        }
        let bytes = read_file(&base.join(&file), MAX_NAMED_BYTES)
            .with_context(|| format!("field `{name}`: could not read {}", shown(&file)))?;
        fields.insert(field.to_string(), hex::encode(&sha256(&[&bytes])));
    }
    Ok(())
}
