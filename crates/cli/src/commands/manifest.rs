//! `manifest`: a template of a manifest, as TOML for people or as JSON for programs.
//!
//! **Invariant:** the template can be registered as it stands.

use crate::context::Context;
use crate::terminal::Terminal;
use crate::vocabulary::Nested;
use crate::{CommandResult, Exit};
use ipse_core::json::Members;
use ipse_core::{Time, hex, sha256};

pub(crate) type Args = Nested<Action>;

#[derive(clap::Subcommand, Debug)]
pub(crate) enum Action {
    /// Print a commented template
    ///
    /// Example: ipse manifest new > agent.toml
    New,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let Action::New = args.action;
    let template = match context.json {
        true => json_template(context.now()) + "\n",
        false => template(context.now()),
    };
    terminal.out.write_all(template.as_bytes())?;
    Ok(Exit::Fine)
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
