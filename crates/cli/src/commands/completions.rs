//! `completions`: prints a script with which a shell completes commands and options.
//!
//! **Invariant:** the script is generated from the definitions that parse the command line.

use crate::context::Context;
use crate::help;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};

/// Print a completion script for a shell
///
/// Examples: ipse completions bash > /etc/bash_completion.d/ipse;
/// ipse completions zsh > "${fpath[1]}/_ipse";
/// ipse completions fish > ~/.config/fish/completions/ipse.fish
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print the script for this shell
    shell: clap_complete::Shell,
}

pub(crate) fn run(_: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut help::command(), "ipse", &mut script);
    terminal.out.write_all(&script)?;
    Ok(Exit::Fine)
}
