//! The command line: the arguments that every command has, and the list of commands. The doc
//! comments are the help texts; those of a command stand above its `Args`, in `commands`.

#[cfg(feature = "experiments")]
use crate::commands::{bench, reproduce};
use crate::commands::{
    completions, config, consolidate, demo, diff, explain, export, facts, forget, gates, identity,
    import, import_bundle, init, key, log, man, manifest, migrate, passes, prune, rebuild, record,
    reference, serve, sign, skills, snapshot, token, tree_head, verify, version,
};
use clap::{Parser, Subcommand};
use std::path::PathBuf;

/// Memory for long-running agents that learn without becoming someone else
///
/// An agent's identity is the SHA-256 of a seven-field manifest. What it lives through goes into an
/// append-only log of events; what it knows is facts, a deterministic function of that log, outside
/// the hash. So it learns, and stays the very same one.
///
/// Start with `ipse demo`.
#[derive(Parser, Debug)]
#[command(
    name = "ipse",
    version,
    after_help = "Exit 0: fine. 1: findings, or nothing found. 2: could not run.\n\
                  Results go to standard output, words for people to standard error."
)]
pub(crate) struct Args {
    /// The store: a file that `ipse init` makes
    #[arg(
        long,
        global = true,
        env = "IPSE_STORE",
        default_value = "ipse.db",
        value_name = "PATH",
        help_heading = "Everywhere"
    )]
    pub(crate) store: PathBuf,

    /// The directory of keys; the store's path with .keys behind it if absent
    #[arg(
        long = "key-dir",
        global = true,
        env = "IPSE_KEYS",
        value_name = "PATH",
        help_heading = "Everywhere"
    )]
    pub(crate) key_dir: Option<PathBuf>,

    /// The identity, or the first digits of it; not needed while a store has one
    #[arg(long, global = true, value_name = "PREFIX", help_heading = "Everywhere")]
    pub(crate) identity: Option<String>,

    /// Answer in JSON, for programs
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub(crate) json: bool,

    /// Print no messages but errors
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = "Everywhere")]
    pub(crate) quiet: bool,

    /// Print a message for each step of long work
    #[arg(short, long, global = true, help_heading = "Everywhere")]
    pub(crate) verbose: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

// The commands, in the order of the help. A doc comment of the enum would become help text. A
// command has its help in its own file; a command of commands has it here.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Demo(demo::Args),
    /// Write a manifest template
    Manifest(manifest::Args),
    /// Check or begin the files that judge what the agent wants to do
    ///
    /// The registry says what the agent can do, the policy what it must never do, the temperament
    /// how bold it is. The manifest holds their hashes, so the same agent is always judged by the
    /// same files; facts inform a planner and never move a verdict.
    Gates(gates::Args),
    Init(init::Args),
    Identity(identity::Args),
    Record(record::Args),
    Import(import::Args),
    Consolidate(consolidate::Args),
    Facts(facts::Args),
    Skills(skills::Args),
    Explain(explain::Args),
    Snapshot(snapshot::Args),
    Diff(diff::Args),
    Log(log::Args),
    Passes(passes::Args),
    Forget(forget::Args),
    Prune(prune::Args),
    Config(config::Args),
    Migrate(migrate::Args),
    /// Make, list and revoke keys
    Key(key::Args),
    /// Create, list and revoke access tokens
    ///
    /// A token says who its bearer is and what it may do: one identity, one role. No command asks
    /// for one; they are for programs that will reach this store over HTTP.
    Token(token::Args),
    Sign(sign::Args),
    TreeHead(tree_head::Args),
    Export(export::Args),
    ImportBundle(import_bundle::Args),
    Verify(verify::Args),
    Rebuild(rebuild::Args),
    Serve(serve::Args),
    Completions(completions::Args),
    Man(man::Args),
    #[cfg(feature = "experiments")]
    Bench(bench::Args),
    #[cfg(feature = "experiments")]
    Reproduce(reproduce::Args),
    Reference(reference::Args),
    Version(version::Args),
}
