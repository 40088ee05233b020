//! The progress of an import: refused lines, durable batches, a bar, and what an interrupt says.

use super::{Input, MAX_PRINTED};
use crate::terminal::{Terminal, counted, shown};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ipse_exchange::Progress;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A bar appears on work that takes longer than this.
const BAR_AFTER: Duration = Duration::from_secs(1);

/// The last durable line: the name of its file if there are several, and its number.
type Durable = Arc<Mutex<(String, u64)>>;

/// Reports the progress of an import.
pub(super) struct ImportReporter<'t, 'o> {
    terminal: &'t mut Terminal<'o>,
    bar: Bar,
    /// The names of the files, if there are several.
    names: Vec<String>,
    /// The name of the current file, followed by a comma; empty for a single one.
    prefix: String,
    /// Refused lines so far.
    refused: u64,
    durable: Durable,
}

impl<'t, 'o> ImportReporter<'t, 'o> {
    /// A reporter of these files, which have this size together.
    pub(super) fn new(
        terminal: &'t mut Terminal<'o>,
        files: &[PathBuf],
        size: u64,
    ) -> anyhow::Result<Self> {
        let names = files.iter().map(|file| shown(file)).filter(|_| files.len() > 1).collect();
        let durable = Durable::default();
        watch_interrupts(durable.clone())?;
        let bar = Bar::new(size, terminal.shows_bars());
        Ok(ImportReporter { terminal, bar, names, prefix: String::new(), refused: 0, durable })
    }

    /// Begins a file.
    pub(super) fn begin(&mut self, place: usize, input: Input) -> Input {
        self.prefix = self.names.get(place).map(|name| format!("{name}, ")).unwrap_or_default();
        *self.last_durable() = (self.prefix.clone(), 0);
        Box::new(self.bar.bar.wrap_read(input))
    }

    /// Removes the bar. Returns the number of refused lines.
    pub(super) fn finish(self) -> u64 {
        self.bar.bar.finish_and_clear();
        self.refused
    }

    fn last_durable(&self) -> std::sync::MutexGuard<'_, (String, u64)> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message that cannot be written is dropped, and the import continues.
    pub(super) fn report(&mut self, progress: Progress<'_>) {
        let _ = match progress {
            Progress::Refused(line, refusal) => {
                self.refused += 1;
                match self.refused <= MAX_PRINTED {
                    true => {
                        writeln!(self.terminal.asks(), "{}line {line}: {refusal}", self.prefix)
                    }
                    false => Ok(()),
                }
            }
            Progress::Durable { line, so_far, had_events } => {
                self.last_durable().1 = line;
                self.bar.durable(line);
                if !had_events || !self.terminal.verbose {
                    return;
                }
                let duplicates = counted(so_far.duplicates, "duplicate");
                let (appended, prefix) = (so_far.appended, &self.prefix);
                let err = &mut self.terminal.err;
                writeln!(
                    err,
                    "{prefix}durable up to line {line}: {appended} appended, {duplicates}"
                )
            }
        };
    }
}

/// Ends the process at an interrupt, and prints how far the import came. Ending is safe at any
/// moment: a batch is stored completely or not at all.
fn watch_interrupts(durable: Durable) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let (file, line) = durable.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let _ = writeln!(
                std::io::stderr(),
                "\nstopped: {file}lines up to {line} are stored; run the same command again to \
                 continue"
            );
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// A progress bar that appears only on a terminal and only during long work.
struct Bar {
    bar: ProgressBar,
    watched: bool,
    started: Instant,
}

impl Bar {
    fn new(size: u64, watched: bool) -> Self {
        let bar = match size {
            0 => ProgressBar::no_length(),
            size => ProgressBar::new(size),
        };
        bar.set_draw_target(ProgressDrawTarget::hidden());
        let template = "{bar:20} {binary_bytes}/{binary_total_bytes} {eta} left, {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Bar { bar, watched, started: Instant::now() }
    }

    fn durable(&self, line: u64) {
        self.bar.set_message(format!("line {line} durable"));
        if self.watched && self.bar.is_hidden() && self.started.elapsed() > BAR_AFTER {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}
