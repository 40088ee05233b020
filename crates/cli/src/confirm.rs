//! Confirmation prompts.
//!
//! **Invariants:** a prompt is printed only where a person sees it. A person at the keyboard is
//! asked even if the messages go elsewhere, as in `ipse prune --keep 10 2> log`.

use crate::terminal::Terminal;
use anyhow::Context as _;
use rustix::fs::{Mode, OFlags, open};
use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};

/// The terminal that controls this process, whatever its standard streams are.
const TTY: &str = "/dev/tty";

/// Whether a person is there to ask: standard input or standard error is a terminal.
pub(crate) fn is_possible() -> bool {
    std::io::stdin().is_terminal() || std::io::stderr().is_terminal()
}

/// Prints the planned action and asks for confirmation; only `y` or `yes` confirms.
pub(crate) fn agrees(terminal: &mut Terminal<'_>, what: &str) -> anyhow::Result<bool> {
    let mut tty = match std::io::stderr().is_terminal() {
        true => None,
        false => Some(File::from(open(TTY, OFlags::WRONLY, Mode::empty()).context(NO_TERMINAL)?)),
    };
    let asks: &mut dyn Write = match &mut tty {
        Some(tty) => tty,
        None => terminal.asks(),
    };
    write!(asks, "{what} Continue? [y/N] ")?;
    asks.flush()?;
    let mut answer = Vec::new();
    answers()?.read_until(b'\n', &mut answer)?;
    if !answer.ends_with(b"\n") {
        writeln!(asks)?;
    }
    Ok(matches!(answer.trim_ascii(), b"y" | b"Y" | b"yes"))
}

const NO_TERMINAL: &str = "no terminal to ask; give --yes";

/// Opens the source of answers: the terminal, because standard input may be a pipe.
fn answers() -> anyhow::Result<Box<dyn BufRead>> {
    if std::io::stdin().is_terminal() {
        return Ok(Box::new(std::io::stdin().lock()));
    }
    Ok(Box::new(BufReader::new(File::open(TTY).context(NO_TERMINAL)?)))
}
