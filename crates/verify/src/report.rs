//! The report as text, and a progress bar.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ipse_bundle::Report;
use std::io::{self, Write};
use std::time::Duration;

/// The widest column of places; longer ones push their message to the right.
const MAX_PLACE: usize = 36;
/// The time after which a progress bar is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// Writes one line for each check, and the verdict.
pub(crate) fn lines(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let widths = report.lines.iter().map(|line| line.place.chars().count());
    let width = widths.filter(|width| *width <= MAX_PLACE).max().unwrap_or(0);
    for line in &report.lines {
        let verdict = line.verdict.name();
        writeln!(out, "{verdict:5}  {:width$}  {}", line.place, line.message)?;
    }
    match (report.passed(), report.identity, report.size) {
        (true, Some(identity), Some(size)) => {
            writeln!(out, "\nverified: {identity}, {size} entries")
        }
        _ if report.fails() == 1 => writeln!(out, "\nNOT VERIFIED: 1 check failed"),
        _ => writeln!(out, "\nNOT VERIFIED: {} checks failed", report.fails()),
    }
}

/// Replaces control characters in a text, except line feeds.
pub(crate) fn printable(text: &str) -> String {
    let clean = |c: char| match c.is_control() && c != '\n' {
        true => char::REPLACEMENT_CHARACTER,
        false => c,
    };
    text.chars().map(clean).collect()
}

/// A progress bar that appears if the check takes long and standard error is a terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    watched: bool,
}

impl Progress {
    pub(crate) fn new(watched: bool) -> Self {
        let style = ProgressStyle::with_template("verifying {wide_bar} {percent}%");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Progress {
            bar: bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())),
            watched,
        }
    }

    pub(crate) fn at(&mut self, done: u64, of: u64) {
        if self.watched && self.bar.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.watched = false;
        }
        self.bar.set_length(of);
        self.bar.set_position(done);
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
