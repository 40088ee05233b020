//! The command line.
//!
//! **Invariants**
//! - Results go to standard output, words for people to standard error.
//! - Exit 0: fine. 1: findings, or nothing found. 2: could not run.
//! - Only `init` creates a store. A command that only reads never writes.

mod args;
mod asking;
mod bench;
mod bench_args;
mod commands;
mod config;
mod context;
mod demo;
mod endpoint;
mod explain;
mod exporting;
mod forgetting;
mod gate_files;
mod gates;
mod gates_args;
mod heads;
mod import;
mod init;
mod instruments;
mod key_args;
mod keys;
mod lines;
mod looking;
mod manifest_file;
mod output;
mod passphrase;
mod proof;
mod reading;
mod record;
mod reproduce;
mod reproduce_args;
mod scratch;
mod serve;
mod serve_args;
mod settings;
mod signing;
mod taking_in;
mod terminal;
#[cfg(feature = "tls")]
mod tls;
mod token;
mod token_args;
mod wired;
mod writing;

use args::{Args, Command};
use clap::{CommandFactory, FromArgMatches};
use context::Context;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;
use terminal::{Terminal, Unread};

/// How a command that could run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    Fine,
    /// Findings, or nothing found.
    Found,
}

impl Exit {
    pub(crate) fn fine_if(fine: bool) -> Self {
        if fine { Exit::Fine } else { Exit::Found }
    }
}

pub(crate) fn main() -> ExitCode {
    let matches = Args::command().get_matches();
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // On a terminal lines appear as they are made, in step with the words between them.
    let stdout = io::stdout().lock();
    let stdout: Box<dyn Write> =
        if stdout.is_terminal() { Box::new(stdout) } else { Box::new(BufWriter::new(stdout)) };
    let mut out = Unread::results(stdout);
    let mut err = Unread::words(io::stderr());
    let unread = out.closed();
    let mut terminal = Terminal::new(&mut out, &mut err, unread);
    let context = Context::new(&args, matches);
    let ran = commands::run(args.command, &context, &mut terminal)
        .and_then(|exit| terminal.out.flush().map(|()| exit).map_err(Into::into));
    match ran {
        Ok(Exit::Fine) => ExitCode::SUCCESS,
        Ok(Exit::Found) => ExitCode::from(1),
        Err(error) => {
            let _ = writeln!(terminal.err, "error: {error:#}");
            if let Some(hint) = context.hint(&error) {
                let _ = writeln!(terminal.err, "hint: {hint}");
            }
            ExitCode::from(2)
        }
    }
}

/// The full help of every command, as it stands in `docs/reference/cli.md`.
pub(crate) fn reference() -> String {
    let mut root = Args::command().term_width(80);
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

/// A command, and those under it.
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

impl Command {
    /// Whether the command answers for people or programs about a store.
    pub(crate) fn needs_store(&self) -> bool {
        let without = matches!(self, Command::Demo | Command::Manifest { .. } | Command::Reference);
        let away = matches!(self, Command::Gates { .. } | Command::Sign(_) | Command::Reproduce(_));
        !without && !away
    }
}
