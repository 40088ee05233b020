//! `completions`: what a shell needs to complete commands and options.
//!
//! **Invariant:** the script is made from the definitions that parse the command line.

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
    /// The shell
    shell: clap_complete::Shell,
}

pub(crate) fn run(_: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut help::command(), "ipse", &mut script);
    terminal.out.write_all(&script)?;
    Ok(Exit::Fine)
}
