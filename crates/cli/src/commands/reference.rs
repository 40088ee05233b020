//! `reference`: prints the help of every command as one page, `docs/reference/cli.md`.
//!
//! **Invariant:** the page is generated from the same doc comments as `--help`, at a fixed width.

use crate::args::Args as CommandLine;
use crate::context::Context;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use clap::CommandFactory;

/// Print the reference of this command line
#[derive(clap::Args, Debug)]
#[command(hide = true)]
pub(crate) struct Args;

pub(crate) fn run(_: &Context, terminal: &mut Terminal<'_>, _: &Args) -> CommandResult {
    terminal.out.write_all(reference().as_bytes())?;
    Ok(Exit::Fine)
}

/// Renders the full help of every command.
fn reference() -> String {
    let mut root = CommandLine::command().term_width(80);
    root.build();
    let mut text = String::from(
        "# Command line\n\nMade by `ipse reference`; a test compares it with the program.\n",
    );
    let mut add = |name: &str, command: &mut clap::Command| {
        let help = command.render_long_help().to_string();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        text.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end()));
    };
    add_all("ipse", &mut root, &mut add);
    text
}

/// Adds a command and its subcommands.
fn add_all(
    name: &str,
    command: &mut clap::Command,
    add: &mut impl FnMut(&str, &mut clap::Command),
) {
    add(name, command);
    let shown = |inner: &&mut clap::Command| !inner.is_hide_set() && inner.get_name() != "help";
    for inner in command.get_subcommands_mut().filter(shown) {
        let inner_name = format!("{name} {}", inner.get_name());
        add_all(&inner_name, inner, add);
    }
}
