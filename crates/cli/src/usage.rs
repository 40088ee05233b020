//! Mistakes on the command line: the error of clap, and a hint where its text is not enough.

use crate::help;
use crate::terminal::Colour;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use std::io::{self, Write};
use std::process;

/// Prints an error of the command line with its hint, and ends the process.
pub(crate) fn exit(error: &clap::Error) -> ! {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    if !error.use_stderr() {
        error.exit();
    }
    let _ = error.print();
    if let Some(hint) = hint(error, &words) {
        let label = Colour::of(&io::stderr()).strong("hint:");
        let _ = writeln!(io::stderr(), "\n{label} {hint}");
    }
    process::exit(error.exit_code())
}

/// The hint for a mistake, given the words after the name of the program.
fn hint(error: &clap::Error, words: &[String]) -> Option<String> {
    let mut root = help::command();
    // Arguments can be printed only after the command line is complete.
    root.build();
    let command = words.iter().find_map(|word| root.find_subcommand(word))?;
    match (command.get_name(), error.kind()) {
        ("init", ErrorKind::MissingRequiredArgument) => {
            Some("`ipse manifest new > agent.toml` writes a manifest to fill in".into())
        }
        ("diff", ErrorKind::MissingRequiredArgument) => {
            Some("give two positions, as in `ipse diff 0 15`; `ipse log` lists positions".into())
        }
        ("explain", ErrorKind::UnknownArgument) if words.iter().any(|word| word == "+") => {
            Some("quote the key, as in: ipse explain 'grasp + cup + ward3'".into())
        }
        ("record", ErrorKind::UnknownArgument) => {
            Some("a parameter is written as --param NAME=VALUE, as in --param force_n=25".into())
        }
        (_, ErrorKind::MissingRequiredArgument) => possible_values(error, command),
        _ => None,
    }
}

/// The values of a missing argument that has a closed vocabulary.
fn possible_values(error: &clap::Error, command: &Command) -> Option<String> {
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let is_missing = |arg: &&Arg| missing.iter().any(|name| *name == arg.to_string());
    let arg = command.get_arguments().find(is_missing)?;
    let values = arg.get_possible_values();
    let names: Vec<_> = values.iter().map(|value| value.get_name()).collect();
    (!names.is_empty()).then(|| format!("{arg} is one of: {}", names.join(", ")))
}
