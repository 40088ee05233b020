//! Passphrases: from the environment, from a file, or typed without echo.
//!
//! **Invariants:** a passphrase is never an argument, which other users could list. The program
//! prompts only if standard input and standard error are terminals.

use crate::terminal::Terminal;
use anyhow::{Context as _, bail};
use ipse::keys::KeyError;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::{BufRead, IsTerminal, Read};
use std::path::PathBuf;
use zeroize::Zeroizing;

const TEXT: &str = "IPSE_PASSPHRASE";
const FILE: &str = "IPSE_PASSPHRASE_FILE";
/// The longest passphrase: more bytes do not make the key stronger.
const MAX_BYTES: usize = 1024;

/// The file that the environment names, whether it is used or not.
pub(crate) fn file() -> Option<PathBuf> {
    std::env::var_os(FILE).map(PathBuf::from)
}

/// Reads the passphrase that the environment gives or names.
pub(crate) fn given() -> anyhow::Result<Option<Zeroizing<String>>> {
    if let Some(text) = std::env::var_os(TEXT) {
        let text = text.into_string().ok().with_context(|| format!("{TEXT} is not UTF-8"))?;
        return checked(Zeroizing::new(text)).map(Some);
    }
    let Some(path) = file() else { return Ok(None) };
    let attempt = || format!("could not read {} ({FILE})", path.display());
    let file = std::fs::File::open(&path).with_context(attempt)?;
    let mut text = Zeroizing::new(String::with_capacity(MAX_BYTES + 2));
    file.take(MAX_BYTES as u64 + 2).read_to_string(&mut text).with_context(attempt)?;
    let line = text.lines().next().unwrap_or_default();
    checked(Zeroizing::new(line.to_string())).map(Some)
}

fn checked(text: Zeroizing<String>) -> anyhow::Result<Zeroizing<String>> {
    if !(1..=MAX_BYTES).contains(&text.len()) {
        bail!("a passphrase has 1 to {MAX_BYTES} bytes");
    }
    Ok(text)
}

/// Returns the passphrase for a new key; on a terminal the user types it twice.
pub(crate) fn chosen(terminal: &mut Terminal<'_>) -> anyhow::Result<Zeroizing<String>> {
    if let Some(given) = given()? {
        return Ok(given);
    }
    if !can_ask(terminal) {
        bail!("no terminal to ask for a passphrase; set {FILE} or {TEXT}");
    }
    let first = checked(typed(terminal, "passphrase for the new key: ")?)?;
    if typed(terminal, "repeat the passphrase: ")? != first {
        bail!("the passphrases differ; no key was made");
    }
    Ok(first)
}

/// Returns a passphrase if one is wanted.
pub(crate) fn chosen_if(
    wanted: bool,
    terminal: &mut Terminal<'_>,
) -> anyhow::Result<Option<Zeroizing<String>>> {
    wanted.then(|| chosen(terminal)).transpose()
}

/// Uses a key, with a passphrase if it needs one.
pub(crate) fn open<T>(
    terminal: &mut Terminal<'_>,
    mut key: impl FnMut(Option<&str>) -> Result<T, KeyError>,
) -> anyhow::Result<T> {
    let path = match key(None) {
        Err(KeyError::NoPassphrase(path)) => path,
        done => return Ok(done?),
    };
    let passphrase = match given()? {
        Some(given) => given,
        None if can_ask(terminal) => {
            typed(terminal, &format!("passphrase for {}: ", path.display()))?
        }
        None => return Err(KeyError::NoPassphrase(path).into()),
    };
    Ok(key(Some(&passphrase))?)
}

fn can_ask(terminal: &Terminal<'_>) -> bool {
    terminal.watched && std::io::stdin().is_terminal()
}

/// Reads a line from the terminal without echo.
fn typed(terminal: &mut Terminal<'_>, question: &str) -> anyhow::Result<Zeroizing<String>> {
    write!(terminal.asks(), "{question}")?;
    terminal.asks().flush()?;
    let mut line = Zeroizing::new(String::with_capacity(MAX_BYTES + 2));
    let quiet = Quiet::begin().context("could not turn off the echo of the terminal")?;
    let read = std::io::stdin().lock().take(MAX_BYTES as u64 + 2).read_line(&mut line);
    drop(quiet);
    writeln!(terminal.asks())?;
    read.context("could not read the passphrase")?;
    Ok(Zeroizing::new(line.trim_end_matches(['\r', '\n']).to_string()))
}

/// Turns off the echo of the terminal until it is dropped.
struct Quiet(Termios);

impl Quiet {
    fn begin() -> rustix::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(std::io::stdin(), OptionalActions::Now, &quiet)?;
        Ok(Quiet(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}
