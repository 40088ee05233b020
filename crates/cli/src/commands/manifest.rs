//! `manifest`: prints a template of a manifest, as TOML or as JSON.
//!
//! **Invariant:** the template can be registered without a change.

use crate::context::Context;
use crate::terminal::{Terminal, shown};
use crate::vocabulary::Nested;
use crate::{CommandResult, Exit};
use anyhow::anyhow;
use ipse::keys::{self, KeyError};
use ipse_core::json::Members;
use ipse_core::{Time, hex, sha256};
use std::path::PathBuf;

/// The name of the operator in a template.
const ORGANISATION: &str = "my-organisation";

pub(crate) type Args = Nested<Action>;

#[derive(clap::Subcommand, Debug)]
pub(crate) enum Action {
    /// Print a commented template
    ///
    /// Example: ipse manifest new > agent.toml
    New {
        /// Name this key of the operator, a public key in PEM: a bundle of this agent then counts
        /// only with its signature
        #[arg(long, value_name = "FILE")]
        operator_key: Option<PathBuf>,
    },
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let Action::New { operator_key } = &args.action;
    let operator = match operator_key {
        Some(file) => {
            let key = keys::read_verifier(file, keys::OPERATOR).map_err(without_hint)?;
            ipse_manifest::operator_with_key(ORGANISATION, &keys::key_sha256(key.key()))
        }
        None => ORGANISATION.to_string(),
    };
    let template = match context.json {
        true => json_template(context.now(), &operator) + "\n",
        false => template(context.now(), &operator),
    };
    terminal.out.write_all(template.as_bytes())?;
    Ok(Exit::Fine)
}

/// The text of an error about a key file. Hints for key errors apply to keys of the store.
fn without_hint(error: KeyError) -> anyhow::Error {
    match error {
        KeyError::Io { what, path, source } => {
            anyhow::Error::new(source).context(format!("could not {what} {}", shown(&path)))
        }
        error => anyhow!("{error}"),
    }
}

fn template(now: Time, operator: &str) -> String {
    let empty = hex::encode(&sha256(&[]));
    format!(
        r#"# The SHA-256 of these seven fields is the identity of the agent: change one and it is
# another agent, with a log of its own. Nothing that the agent learns is here.

# The name of the agent.
agent_id = "my-agent-01"

# The organisation that answers for it. Its key can be named, as --operator-key does:
# "NAME <sha256:HEX>". Then only that key signs for this agent.
operator = "{operator}"

# The body or runtime it acts through.
embodiment = "my-robot/rev-a"

# Three files that bind it: policy (limits), registry (skills), temperament (risk).
# Print examples, adapt them, and check them:
#   ipse gates new policy > policy.toml
#   ipse gates new registry > ecm-registry.toml
#   ipse gates new temperament > temperament.toml
#   ipse gates check ecm-registry.toml policy.toml temperament.toml
# Give the name of a file in place of the hash below, and its bytes are hashed:
#   policy = "policy.toml"
#   ecm_registry = "ecm-registry.toml"
#   temperament = "temperament.toml"
# or give its SHA-256. This is the SHA-256 of an empty file: none of them yet.
policy_hash = "{empty}"
ecm_registry_hash = "{empty}"
temperament_hash = "{empty}"

# The time it went into service: RFC 3339 in quotes, stored exactly as written.
commissioned_at = "{now}"
"#
    )
}

/// The template as JSON, without comments.
fn json_template(now: Time, operator: &str) -> String {
    let empty = hex::encode(&sha256(&[]));
    let fields = ipse_manifest::FIELDS.into_iter().map(|field| match field {
        "agent_id" => (field, "my-agent-01".to_string()),
        "operator" => (field, operator.to_string()),
        "embodiment" => (field, "my-robot/rev-a".to_string()),
        "commissioned_at" => (field, now.to_string()),
        _ => (field, empty.clone()),
    });
    let add = |members: Members, (field, value): (&str, String)| members.text(field, &value);
    fields.fold(Members::new(), add).finish()
}
