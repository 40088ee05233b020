//! `man`: prints manual pages, generated from the same definitions as the help.

use crate::context::Context;
use crate::help;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use anyhow::bail;
use clap_mangen::Man;

/// Print a manual page
///
/// Without a command it prints ipse(1), otherwise the page of that command.
///
/// Examples: ipse man | man -l -; ipse man import > ipse-import.1; ipse man token create
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print the page of this command, such as `import` or `token create`
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

pub(crate) fn run(_: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let mut command = help::command();
    command.build();
    let mut name = String::from("ipse");
    for word in &args.command {
        let Some(inner) = command.find_subcommand(word).filter(|inner| !inner.is_hide_set()) else {
            bail!("`{name}` has no command `{}`; `{name} --help` lists them", word.escape_debug());
        };
        name = format!("{name} {word}");
        command = inner.clone();
    }
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    terminal.out.write_all(&page)?;
    Ok(Exit::Fine)
}
