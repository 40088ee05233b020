//! Confirmation prompts.
//!
//! **Invariant:** a prompt is printed only where a person sees it.

use crate::terminal::Terminal;
use anyhow::Context as _;
use std::io::{BufRead, BufReader, IsTerminal};

/// Whether a person would see a prompt: standard error is a terminal.
pub(crate) fn is_seen() -> bool {
    std::io::stderr().is_terminal()
}

/// Prints the planned action and asks for confirmation; only `y` or `yes` confirms.
pub(crate) fn agrees(terminal: &mut Terminal<'_>, what: &str) -> anyhow::Result<bool> {
    write!(terminal.asks(), "{what} Continue? [y/N] ")?;
    terminal.asks().flush()?;
    let mut answer = Vec::new();
    answers()?.read_until(b'\n', &mut answer)?;
    if !answer.ends_with(b"\n") {
        writeln!(terminal.asks())?;
    }
    Ok(matches!(answer.trim_ascii(), b"y" | b"Y" | b"yes"))
}

/// Opens the source of answers: the terminal, because standard input may be a pipe.
fn answers() -> anyhow::Result<Box<dyn BufRead>> {
    if std::io::stdin().is_terminal() {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let terminal = std::fs::File::open("/dev/tty").context("no terminal to ask; give --yes")?;
    Ok(Box::new(BufReader::new(terminal)))
}
