//! Questions to a person, who agrees or not.
//!
//! **Invariant:** a question is asked only where a person sees it.

use crate::terminal::Terminal;
use anyhow::Context as _;
use std::io::{BufRead, BufReader, IsTerminal};

/// Whether a person would see a question: standard error is a terminal.
pub(crate) fn is_seen() -> bool {
    std::io::stderr().is_terminal()
}

/// Says what will be done and asks; only a clear yes is one.
pub(crate) fn agrees(terminal: &mut Terminal<'_>, what: &str) -> anyhow::Result<bool> {
    write!(terminal.asks(), "{what} Go on? [y/N] ")?;
    terminal.asks().flush()?;
    let mut answer = Vec::new();
    answers()?.read_until(b'\n', &mut answer)?;
    if !answer.ends_with(b"\n") {
        writeln!(terminal.asks())?;
    }
    Ok(matches!(answer.trim_ascii(), b"y" | b"Y" | b"yes"))
}

/// Where a person answers: standard input may hold something else.
fn answers() -> anyhow::Result<Box<dyn BufRead>> {
    if std::io::stdin().is_terminal() {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    let terminal = std::fs::File::open("/dev/tty").context("there is nobody to ask; say --yes")?;
    Ok(Box::new(BufReader::new(terminal)))
}
