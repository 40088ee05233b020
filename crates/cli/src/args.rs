//! The command line: the arguments that every command has, and the list of commands. The doc
//! comments are the help texts; those of a command are on its `Args`, in `commands`.

#[cfg(feature = "experiments")]
use crate::commands::{bench, evaluate, reproduce};
use crate::commands::{
    completions, config, consolidate, demo, diff, drift, explain, export, facts, forget, gates,
    identity, import, import_bundle, init, key, log, man, manifest, may_attempt, migrate, passes,
    proof, prune, rebuild, record, reference, rules, serve, sign, skills, snapshot, suggest, token,
    tree_head, verify, version, witness,
};
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Memory for long-running agents that learn without becoming someone else
///
/// An agent's identity is the SHA-256 of a seven-field manifest. Its experience is an append-only
/// log of events. Its knowledge is facts, a deterministic function of that log. Neither is part of
/// the hash, so the agent learns and keeps its identity.
///
/// Start with `ipse demo`.
#[derive(Parser, Debug)]
#[command(
    name = "ipse",
    version,
    after_help = "Exit 0: fine. 1: findings, or nothing found. 2: could not run.\n\
                  Results go to standard output, messages to standard error."
)]
pub(crate) struct Args {
    /// Use this store, a file that `ipse init` creates
    #[arg(
        long,
        global = true,
        env = "IPSE_STORE",
        default_value = "ipse.db",
        value_name = "PATH",
        help_heading = "Everywhere"
    )]
    pub(crate) store: PathBuf,

    /// Use the keys in this directory [default: the path of the store with .keys appended]
    #[arg(
        long = "key-dir",
        global = true,
        env = "IPSE_KEYS",
        value_name = "PATH",
        help_heading = "Everywhere"
    )]
    pub(crate) key_dir: Option<PathBuf>,

    /// Select an identity by its first digits, at least 4; not needed if the store has only one
    #[arg(long, global = true, value_name = "PREFIX", help_heading = "Everywhere")]
    pub(crate) identity: Option<String>,

    /// Print results as JSON
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub(crate) json: bool,

    /// Print no messages except errors
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Everywhere")]
    pub(crate) quiet: bool,

    /// Print a message for each step of long work
    #[arg(short, long, global = true, help_heading = "Everywhere")]
    pub(crate) verbose: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

// The commands, in the order of the help. A doc comment of the enum would become help text. The
// help of a command is in its own file; a command with subcommands has it here.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Demo(demo::Args),
    /// Write a manifest template
    Manifest(manifest::Args),
    /// Check the gate files, or print examples of them
    ///
    /// The registry lists the skills of the agent, the policy limits them, and the temperament sets
    /// which risk the agent may take. The manifest holds the hashes of these files, so an agent is
    /// always judged by the same files. Facts inform a planner and never change a verdict.
    Gates(gates::Args),
    Init(init::Args),
    Identity(identity::Args),
    Record(record::Args),
    Import(import::Args),
    Consolidate(consolidate::Args),
    Facts(facts::Args),
    Skills(skills::Args),
    MayAttempt(may_attempt::Args),
    Suggest(suggest::Args),
    Explain(explain::Args),
    Snapshot(snapshot::Args),
    Diff(diff::Args),
    Drift(drift::Args),
    Log(log::Args),
    Passes(passes::Args),
    /// Show the rules of a log, and change them under the operator's approval
    ///
    /// The log decides which rules its facts follow. A change has four steps: `propose` records it,
    /// `report` shows which facts would differ, `approve` signs that report with the operator's
    /// key, `activate` puts the rules in force. `back` undoes it. See docs/guide/rules.md.
    Rules(rules::Args),
    Forget(forget::Args),
    Prune(prune::Args),
    Config(config::Args),
    Migrate(migrate::Args),
    /// Create, list and revoke keys
    Key(key::Args),
    /// Create, list and revoke access tokens
    ///
    /// A token gives a program access to one identity with one role, over HTTP. The commands of
    /// this program need no token.
    Token(token::Args),
    Sign(sign::Args),
    TreeHead(tree_head::Args),
    /// Prove what an earlier tree head says about the log
    Proof(proof::Args),
    /// Have the tree head cosigned by witnesses, so that no second history can be shown
    ///
    /// A witness cosigns a tree head only if it continues everything that the witness has seen of
    /// this log. `request` writes the request, curl posts it, `add` stores the answer, `export`
    /// puts it into the bundle. See docs/guide/audit.md.
    Witness(witness::Args),
    Export(export::Args),
    ImportBundle(import_bundle::Args),
    Verify(verify::Args),
    Rebuild(rebuild::Args),
    Serve(serve::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[cfg(feature = "experiments")]
    Evaluate(evaluate::Args),
    #[cfg(feature = "experiments")]
    Bench(bench::Args),
    #[cfg(feature = "experiments")]
    Reproduce(reproduce::Args),
    Reference(reference::Args),
    Version(version::Args),
}
