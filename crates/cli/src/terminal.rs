//! Where output goes, and text that fits it.

use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
pub(crate) use ipse_inspect::answer::counted;
pub(crate) use ipse_inspect::to_seconds;
use ipse_inspect::{Block, Page};
use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::rc::Rc;

/// Columns of a sentence.
const PROSE: usize = 78;
/// The narrowest table: below this, wrapping helps nobody.
const MIN_WIDTH: u16 = 60;

/// Output whose reader may go away: what nobody reads is dropped, and work goes on.
pub(crate) struct Unread<W> {
    inner: W,
    /// Any failure counts as nobody reading; else only a closed pipe does.
    forgiving: bool,
    closed: Rc<Cell<bool>>,
}

impl<W: Write> Unread<W> {
    /// Results: a closed pipe is dropped, a full disk is an error.
    pub(crate) fn results(inner: W) -> Self {
        Unread { inner, forgiving: false, closed: Rc::default() }
    }

    /// Words for people: nothing that happens to them stops the work.
    pub(crate) fn words(inner: W) -> Self {
        Unread { inner, forgiving: true, closed: Rc::default() }
    }

    /// Turns true once nobody reads any more.
    pub(crate) fn closed(&self) -> Rc<Cell<bool>> {
        self.closed.clone()
    }

    fn tolerate<T>(&mut self, result: io::Result<T>, instead: T) -> io::Result<T> {
        match result {
            Err(error) if self.forgiving || error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed.set(true);
                Ok(instead)
            }
            result => result,
        }
    }
}

impl<W: Write> Write for Unread<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.closed.get() {
            return Ok(bytes.len());
        }
        let result = self.inner.write(bytes);
        self.tolerate(result, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed.get() {
            return Ok(());
        }
        let result = self.inner.flush();
        self.tolerate(result, ())
    }
}

/// Standard output and standard error, as arguments.
pub(crate) struct Terminal<'t> {
    pub(crate) out: &'t mut dyn Write,
    pub(crate) err: &'t mut dyn Write,
    width: Option<u16>,
    /// Whether a person watches standard error.
    pub(crate) watched: bool,
    /// Nobody reads the results any more: long listings may stop.
    pub(crate) unread: Rc<Cell<bool>>,
}

impl<'t> Terminal<'t> {
    pub(crate) fn new(
        out: &'t mut dyn Write,
        err: &'t mut dyn Write,
        unread: Rc<Cell<bool>>,
    ) -> Self {
        let width = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0);
        let watched = std::io::stderr().is_terminal();
        Terminal { out, err, width, watched, unread }
    }

    /// Output that nobody watches.
    pub(crate) fn plain(out: &'t mut dyn Write, err: &'t mut dyn Write) -> Self {
        Terminal { out, err, width: None, watched: false, unread: Rc::default() }
    }

    /// A bar for long work, which only a person sees.
    pub(crate) fn bar(&self, what: &str) -> ProgressBar {
        if !self.watched {
            return ProgressBar::hidden();
        }
        let template = format!("{{bar:40}} {{pos}} of {{len}} {what}, {{eta}} to go");
        let style = ProgressStyle::with_template(&template);
        ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }

    /// Prints one line of JSON.
    pub(crate) fn json(&mut self, json: &str) -> std::io::Result<()> {
        writeln!(self.out, "{json}")
    }

    /// Prints a sentence at eighty columns, so far from the margin.
    pub(crate) fn prose(&mut self, indent: usize, sentence: &str) -> std::io::Result<()> {
        let mut line = String::new();
        for word in sentence.split(' ') {
            if !line.is_empty() && line.chars().count() + word.chars().count() > PROSE - indent {
                writeln!(self.out, "{:indent$}{line}", "")?;
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        writeln!(self.out, "{:indent$}{line}", "")
    }

    /// Prints the text form of an answer. Messages about it go to standard error.
    pub(crate) fn page(&mut self, page: &Page) -> std::io::Result<()> {
        for block in &page.0 {
            match block {
                Block::Line(line) => writeln!(self.out, "{line}")?,
                Block::Note(note) => writeln!(self.err, "{note}")?,
                Block::Prose(indent, sentence) => self.prose(*indent, sentence)?,
                Block::Table { header, rows } => self.table(header, rows)?,
            }
        }
        Ok(())
    }

    /// Prints a table; on a terminal it wraps to fit, elsewhere every row is one line.
    pub(crate) fn table(&mut self, header: &[&str], rows: &[Vec<String>]) -> std::io::Result<()> {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(header.iter().copied());
        match self.width {
            Some(width) => table
                .set_content_arrangement(ContentArrangement::Dynamic)
                .set_width(width.max(MIN_WIDTH)),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        table.add_rows(rows);
        let columns: Vec<_> = table.column_iter_mut().collect();
        for (index, column) in columns.into_iter().enumerate() {
            column.set_padding((if index == 0 { 0 } else { 1 }, 1));
        }
        for line in table.to_string().lines() {
            writeln!(self.out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// A path for people: no control characters.
pub(crate) fn shown(path: &Path) -> String {
    ipse_door::printable(&path.to_string_lossy())
}
