//! `version`: prints the same line as `--version`.

use crate::context::Context;
use crate::help;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};

/// Print the version
#[derive(clap::Args, Debug)]
#[command(hide = true)]
pub(crate) struct Args;

pub(crate) fn run(_: &Context, terminal: &mut Terminal<'_>, _: &Args) -> CommandResult {
    write!(terminal.out, "{}", help::command().render_version())?;
    Ok(Exit::Fine)
}
