//! The pager for long results, as in git: `IPSE_PAGER`, else `PAGER`, else `less`.
//!
//! **Invariants**
//! - A pager runs only if standard output is a terminal. A pipe or a file gets the plain bytes.
//! - If the pager cannot be started, the results are printed as if there were none.
//! - A reader that quits the pager early ends a long listing, and is not an error.

use crate::terminal::{Terminal, Unread};
use signal_hook::consts::SIGINT;
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What `less` does unless `LESS` is set: it quits if all fits on one screen, shows colours, and
/// leaves the text on the screen.
const LESS: &str = "FRX";

/// Runs `show` with its results in a pager, if a person reads them on a terminal.
pub(crate) fn paged<T>(
    terminal: &mut Terminal<'_>,
    show: impl FnOnce(&mut Terminal<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let command = if terminal.width().is_some() { chosen(&variable) } else { None };
    through(command, terminal, show)
}

fn through<T>(
    command: Option<Command>,
    terminal: &mut Terminal<'_>,
    show: impl FnOnce(&mut Terminal<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let child = command.and_then(|mut command| command.stdin(Stdio::piped()).spawn().ok());
    let Some(mut child) = child else { return show(terminal) };
    // ^C is for the pager. If it ended this process, the shell and the pager would read the same
    // terminal.
    let interrupted = Arc::new(AtomicBool::new(false));
    let registered = signal_hook::flag::register(SIGINT, interrupted);
    let shown = fed(&mut child, terminal, show);
    let ended = child.wait();
    if let Ok(id) = registered {
        signal_hook::low_level::unregister(id);
    }
    ended?;
    shown
}

/// Writes the results to the pager and closes its input.
fn fed<T>(
    child: &mut Child,
    terminal: &mut Terminal<'_>,
    show: impl FnOnce(&mut Terminal<'_>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let input = child.stdin.take().expect("BUG: the pager has no input");
    let mut out = Unread::results(std::io::BufWriter::new(input));
    let unread = out.closed();
    let shown = show(&mut terminal.with_results(&mut out, unread))?;
    out.flush()?;
    Ok(shown)
}

/// The pager that the environment asks for; `None` if it asks for none.
fn chosen(variable: &dyn Fn(&str) -> Option<String>) -> Option<Command> {
    if variable("TERM").is_some_and(|term| term == "dumb") {
        return None;
    }
    match variable("IPSE_PAGER").or_else(|| variable("PAGER")) {
        Some(line) if line.trim().is_empty() || line.trim() == "cat" => None,
        Some(line) => {
            let mut command = Command::new("sh");
            command.arg("-c").arg(line);
            Some(with_options(command, variable))
        }
        None => Some(with_options(Command::new("less"), variable)),
    }
}

fn with_options(mut command: Command, variable: &dyn Fn(&str) -> Option<String>) -> Command {
    if variable("LESS").is_none() {
        command.env("LESS", LESS);
    }
    command
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Option<Command> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(line);
        Some(command)
    }

    /// What a person and a pager would read of `text`.
    fn printed(command: Option<Command>, text: &str) -> (String, bool) {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut terminal = Terminal::plain(&mut out, &mut err);
        let unread = through(command, &mut terminal, |terminal| {
            for _ in 0..100_000 {
                terminal.out.write_all(text.as_bytes())?;
                if terminal.unread.get() {
                    break;
                }
            }
            Ok(terminal.unread.get())
        });
        (String::from_utf8(out).unwrap(), unread.unwrap())
    }

    #[test]
    fn results_go_to_the_pager_or_to_the_terminal_and_never_to_both() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("read");
        let line = format!("cat > '{}'", file.display());
        assert_eq!(printed(shell(&line), "line\n"), (String::new(), false));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "line\n".repeat(100_000));
        let missing = Some(Command::new(directory.path().join("no such pager")));
        for none in [missing, None] {
            assert_eq!(printed(none, "line\n"), ("line\n".repeat(100_000), false));
        }
        assert_eq!(printed(shell("head -n 1 > /dev/null"), "line\n"), (String::new(), true));
    }

    #[test]
    fn the_environment_chooses_the_pager() {
        type Environment = &'static [(&'static str, &'static str)];
        type Row<'r> = (Environment, Option<&'r [&'r str]>, Option<&'r str>);
        let rows: [Row<'_>; 8] = [
            (&[], Some(&["less"]), Some("FRX")),
            (&[("LESS", "S")], Some(&["less"]), None),
            (&[("PAGER", "more -d")], Some(&["sh", "-c", "more -d"]), Some("FRX")),
            (
                &[("PAGER", "more"), ("IPSE_PAGER", "most")],
                Some(&["sh", "-c", "most"]),
                Some("FRX"),
            ),
            (&[("PAGER", "more"), ("IPSE_PAGER", "")], None, None),
            (&[("PAGER", "cat")], None, None),
            (&[("PAGER", " ")], None, None),
            (&[("TERM", "dumb")], None, None),
        ];
        for (environment, wanted, less) in rows {
            let variable = |name: &str| {
                let found = environment.iter().find(|(other, _)| *other == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            let command = chosen(&variable);
            let words = command.as_ref().map(|command| {
                let words = std::iter::once(command.get_program()).chain(command.get_args());
                words.map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>()
            });
            let wanted = wanted.map(|words| words.iter().map(ToString::to_string).collect());
            assert_eq!(words, wanted, "{environment:?}");
            let set = command.and_then(|command| {
                let mut set = command.get_envs().filter(|(name, _)| *name == "LESS");
                set.next().and_then(|(_, value)| Some(value?.to_str()?.to_owned()))
            });
            assert_eq!(set.as_deref(), less, "{environment:?}");
        }
    }
}
