//! The commands: one module each, with its arguments in `Args` and its code in `run`.

#[cfg(feature = "experiments")]
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod consolidate;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod drift;
#[cfg(feature = "experiments")]
pub(crate) mod evaluate;
pub(crate) mod explain;
pub(crate) mod export;
pub(crate) mod facts;
pub(crate) mod forget;
pub(crate) mod gates;
pub(crate) mod identity;
pub(crate) mod import;
pub(crate) mod import_bundle;
pub(crate) mod init;
pub(crate) mod key;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod manifest;
pub(crate) mod may_attempt;
pub(crate) mod migrate;
pub(crate) mod passes;
pub(crate) mod proof;
pub(crate) mod prune;
pub(crate) mod rebuild;
pub(crate) mod record;
pub(crate) mod reference;
#[cfg(feature = "experiments")]
pub(crate) mod reproduce;
pub(crate) mod rules;
pub(crate) mod serve;
pub(crate) mod sign;
pub(crate) mod skills;
pub(crate) mod snapshot;
pub(crate) mod suggest;
pub(crate) mod token;
pub(crate) mod tree_head;
pub(crate) mod verify;
pub(crate) mod version;
pub(crate) mod witness;

use crate::CommandResult;
use crate::args::Command;
use crate::context::Context;
use crate::terminal::Terminal;

/// Runs a command.
pub(crate) fn run(
    command: &Command,
    context: &Context,
    terminal: &mut Terminal<'_>,
) -> CommandResult {
    if needs_store(command) {
        context.check_location()?;
    }
    match command {
        #[cfg(feature = "experiments")]
        Command::Bench(args) => bench::run(context, terminal, args),
        Command::Completions(args) => completions::run(context, terminal, args),
        Command::Config(args) => config::run(context, terminal, args),
        Command::Consolidate(args) => consolidate::run(context, terminal, args),
        Command::Demo(args) => demo::run(context, terminal, args),
        Command::Diff(args) => diff::run(context, terminal, args),
        Command::Drift(args) => drift::run(context, terminal, args),
        #[cfg(feature = "experiments")]
        Command::Evaluate(args) => evaluate::run(context, terminal, args),
        Command::Explain(args) => explain::run(context, terminal, args),
        Command::Export(args) => export::run(context, terminal, args),
        Command::Facts(args) => facts::run(context, terminal, args),
        Command::Forget(args) => forget::run(context, terminal, args),
        Command::Gates(args) => gates::run(context, terminal, args),
        Command::Identity(args) => identity::run(context, terminal, args),
        Command::Import(args) => import::run(context, terminal, args),
        Command::ImportBundle(args) => import_bundle::run(context, terminal, args),
        Command::Init(args) => init::run(context, terminal, args),
        Command::Key(args) => key::run(context, terminal, args),
        Command::Log(args) => log::run(context, terminal, args),
        Command::Man(args) => man::run(context, terminal, args),
        Command::Manifest(args) => manifest::run(context, terminal, args),
        Command::MayAttempt(args) => may_attempt::run(context, terminal, args),
        Command::Migrate(args) => migrate::run(context, terminal, args),
        Command::Passes(args) => passes::run(context, terminal, args),
        Command::Proof(args) => proof::run(context, terminal, args),
        Command::Prune(args) => prune::run(context, terminal, args),
        Command::Rebuild(args) => rebuild::run(context, terminal, args),
        Command::Record(args) => record::run(context, terminal, args),
        Command::Reference(args) => reference::run(context, terminal, args),
        #[cfg(feature = "experiments")]
        Command::Reproduce(args) => reproduce::run(context, terminal, args),
        Command::Rules(args) => rules::run(context, terminal, args),
        Command::Serve(args) => serve::run(context, terminal, args),
        Command::Sign(args) => sign::run(context, terminal, args),
        Command::Skills(args) => skills::run(context, terminal, args),
        Command::Snapshot(args) => snapshot::run(context, terminal, args),
        Command::Suggest(args) => suggest::run(context, terminal, args),
        Command::Token(args) => token::run(context, terminal, args),
        Command::TreeHead(args) => tree_head::run(context, terminal, args),
        Command::Verify(args) => verify::run(context, terminal, args),
        Command::Version(args) => version::run(context, terminal, args),
        Command::Witness(args) => witness::run(context, terminal, args),
    }
}

/// Whether a command uses the store of the command line.
fn needs_store(command: &Command) -> bool {
    #[cfg(feature = "experiments")]
    if matches!(command, Command::Reproduce(_) | Command::Evaluate(_)) {
        return false;
    }
    let without = matches!(
        command,
        Command::Completions(_)
            | Command::Demo(_)
            | Command::Gates(_)
            | Command::Man(_)
            | Command::Manifest(_)
            | Command::Reference(_)
            | Command::Sign(_)
            | Command::Version(_)
    );
    !without
}
