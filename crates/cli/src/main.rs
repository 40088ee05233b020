//! The binary `ipse`: the command line and the server.
//!
//! [`args`] lists the commands. A command and its arguments are in `commands/COMMAND.rs`, or in the
//! directory of that name. Modules outside `commands` are shared by several commands.
//!
//! **Invariants**
//! - Results go to standard output, messages to standard error.
//! - Exit 0: fine. 1: findings, or nothing found. 2: could not run.
//! - Only `init` creates a store. A command that only reads never writes.
#![forbid(unsafe_code)]

mod acts;
mod args;
mod commands;
mod confirm;
mod context;
mod cpu_time;
mod erasure;
#[cfg(feature = "experiments")]
mod experiments;
mod forgetting;
mod gate_files;
mod help;
mod hints;
mod input;
mod manifest_file;
mod notify;
mod output;
mod pager;
mod pass_report;
mod passphrase;
mod position;
mod process;
mod retention;
mod scratch;
mod sources;
mod terminal;
mod tree_heads;
mod usage;
mod vocabulary;
mod wiring;

use args::Args;
use clap::FromArgMatches;
use context::Context;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;
use terminal::{Colour, Terminal, Unread};

/// The exit of a command, or the reason why it could not run.
pub(crate) type CommandResult = anyhow::Result<Exit>;

/// The exit of a command that could run.
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

fn main() -> ExitCode {
    let matches = help::command().try_get_matches().unwrap_or_else(|error| usage::exit(&error));
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // On a terminal results are not buffered, so that they stay in order with messages.
    let stdout = io::stdout().lock();
    let stdout: Box<dyn Write> =
        if stdout.is_terminal() { Box::new(stdout) } else { Box::new(BufWriter::new(stdout)) };
    let mut out = Unread::results(stdout);
    let mut messages: Box<dyn Write> =
        if args.quiet { Box::new(io::sink()) } else { Box::new(Unread::words(io::stderr())) };
    let mut asks = Unread::words(io::stderr());
    let unread = out.closed();
    let mut terminal = Terminal::new(&mut out, &mut messages, &mut asks, unread);
    (terminal.quiet, terminal.verbose) = (args.quiet, args.verbose);
    terminal.colour = Colour::of(&io::stdout());
    let context = Context::new(&args, matches);
    let ran = commands::run(&args.command, &context, &mut terminal)
        .and_then(|exit| terminal.out.flush().map(|()| exit).map_err(Into::into));
    match ran {
        Ok(Exit::Fine) => ExitCode::SUCCESS,
        Ok(Exit::Found) => ExitCode::from(1),
        Err(error) => {
            let colour = Colour::of(&io::stderr());
            let _ = writeln!(terminal.asks(), "{} {error:#}", colour.alarm("error:"));
            if let Some(hint) = hints::of(&error, &context.location) {
                let _ = writeln!(terminal.asks(), "{} {hint}", colour.strong("hint:"));
            }
            ExitCode::from(2)
        }
    }
}
