//! Arguments of `gates`. The doc comments are the help texts.

use super::args::words;
use clap::Subcommand;
use ipse_gates::Which;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum GatesAction {
    /// Check the files: each for itself, and those that are given against each other
    ///
    /// Give one, two or all three, in any order: each says in `format` which it is. A slip in a
    /// rule is an error, not a gap: unknown members, names that the registry lacks, bounds that
    /// contradict each other, and a scope that an intent could leave by not naming it.
    ///
    /// Prints the SHA-256 of each file, which is what the manifest holds. Exit 1 if something is
    /// wrong, with file, line and field on standard error.
    ///
    /// Example: ipse gates check ecm-registry.toml policy.toml temperament.toml
    Check {
        /// The files
        #[arg(value_name = "FILE", required = true, num_args = 1..=3)]
        files: Vec<PathBuf>,
    },

    /// Print a commented file to start from
    ///
    /// The three belong together, are about a robot that grasps glass cups, and pass the check as
    /// they stand. Make them yours before `ipse init`: their hashes are part of who the agent is.
    ///
    /// Example: ipse gates new registry > ecm-registry.toml
    New {
        /// Which of the three
        #[arg(value_parser = words(Which::ALL.map(Which::name), Which::parse))]
        kind: Which,
    },
}
