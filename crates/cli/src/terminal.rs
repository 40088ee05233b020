//! Standard output and standard error, and the layout of text for them.

use comfy_table::{ContentArrangement, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
pub(crate) use ipse_inspect::answer::counted;
pub(crate) use ipse_inspect::to_seconds;
use ipse_inspect::{Block, Page};
use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// Columns of a sentence.
const PROSE: usize = 78;
/// The time between two pictures of a spinner.
const SPIN_EVERY: Duration = Duration::from_millis(120);
/// The narrowest table. On a narrower terminal each row is a block of lines.
const MIN_WIDTH: u16 = 60;

/// Output that may be closed by its reader: further output is dropped, and the command continues.
pub(crate) struct Unread<W> {
    inner: W,
    /// If set, any failure counts as closed; otherwise only a closed pipe does.
    forgiving: bool,
    closed: Rc<Cell<bool>>,
}

impl<W: Write> Unread<W> {
    /// Results: a closed pipe is dropped, a full disk is an error.
    pub(crate) fn results(inner: W) -> Self {
        Unread { inner, forgiving: false, closed: Rc::default() }
    }

    /// Messages: a failure to write them never stops the command.
    pub(crate) fn words(inner: W) -> Self {
        Unread { inner, forgiving: true, closed: Rc::default() }
    }

    /// A flag that is set when the reader closes the output.
    pub(crate) fn closed(&self) -> Rc<Cell<bool>> {
        self.closed.clone()
    }

    fn tolerate<T>(&mut self, result: io::Result<T>, instead: T) -> io::Result<T> {
        match result {
            Err(error) if self.forgiving || error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed.set(true);
                Ok(instead)
            }
            Err(error) => {
                Err(io::Error::new(error.kind(), format!("could not write the output: {error}")))
            }
            Ok(value) => Ok(value),
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

/// The output of a command: standard output and standard error, passed as arguments.
pub(crate) struct Terminal<'t> {
    pub(crate) out: &'t mut dyn Write,
    /// Messages; `--quiet` drops them.
    pub(crate) err: &'t mut dyn Write,
    /// Errors and prompts, which are never dropped; if absent, they go to `err`.
    asks: Option<&'t mut dyn Write>,
    width: Option<u16>,
    /// Whether messages and progress bars are dropped.
    pub(crate) quiet: bool,
    /// Whether each step of long work is reported.
    pub(crate) verbose: bool,
    pub(crate) colour: Colour,
    /// Whether standard error is a terminal.
    pub(crate) watched: bool,
    /// Set when the reader of the results is gone: long listings may stop.
    pub(crate) unread: Rc<Cell<bool>>,
}

impl<'t> Terminal<'t> {
    pub(crate) fn new(
        out: &'t mut dyn Write,
        err: &'t mut dyn Write,
        asks: &'t mut dyn Write,
        unread: Rc<Cell<bool>>,
    ) -> Self {
        let asks = Some(asks);
        let width = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0);
        let watched = std::io::stderr().is_terminal();
        let colour = Colour::default();
        Terminal { out, err, asks, width, quiet: false, verbose: false, colour, watched, unread }
    }

    /// Output to writers that are not terminals.
    pub(crate) fn plain(out: &'t mut dyn Write, err: &'t mut dyn Write) -> Self {
        Terminal {
            out,
            err,
            asks: None,
            width: None,
            quiet: false,
            verbose: false,
            colour: Colour::default(),
            watched: false,
            unread: Rc::default(),
        }
    }

    /// The width of the terminal that shows the results; `None` if none does.
    pub(crate) fn width(&self) -> Option<u16> {
        self.width
    }

    /// The same output with another writer for the results.
    pub(crate) fn with_results<'r>(
        &'r mut self,
        out: &'r mut dyn Write,
        unread: Rc<Cell<bool>>,
    ) -> Terminal<'r> {
        let Terminal { width, quiet, verbose, colour, watched, .. } = *self;
        let (err, asks) = (&mut *self.err, None);
        Terminal { out, err, asks, width, quiet, verbose, colour, watched, unread }
    }

    /// The writer of errors and prompts.
    pub(crate) fn asks(&mut self) -> &mut dyn Write {
        match &mut self.asks {
            Some(asks) => *asks,
            None => &mut *self.err,
        }
    }

    /// Whether a progress bar is shown.
    pub(crate) fn shows_bars(&self) -> bool {
        self.watched && !self.quiet
    }

    /// A progress bar; hidden unless a person sees it.
    pub(crate) fn bar(&self, what: &str) -> ProgressBar {
        if !self.shows_bars() {
            return ProgressBar::hidden();
        }
        let template = format!("{{bar:40}} {{pos}} of {{len}} {what}, {{eta}} to go");
        let style = ProgressStyle::with_template(&template);
        ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }

    /// A sign of work of unknown length.
    pub(crate) fn spinner(&self, what: &'static str) -> ProgressBar {
        if !self.shows_bars() {
            return ProgressBar::hidden();
        }
        let spinner = ProgressBar::new_spinner().with_message(what);
        spinner.enable_steady_tick(SPIN_EVERY);
        spinner
    }

    /// Prints one line of JSON.
    pub(crate) fn json(&mut self, json: &str) -> std::io::Result<()> {
        writeln!(self.out, "{json}")
    }

    /// Prints a sentence, indented and wrapped at eighty columns.
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

    /// Prints a table. On a terminal it wraps to fit; otherwise every row is one line.
    pub(crate) fn table(&mut self, header: &[&str], rows: &[Vec<String>]) -> std::io::Result<()> {
        if self.width.is_some_and(|width| width < MIN_WIDTH) {
            return self.blocks(header, rows);
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(header.iter().copied());
        match self.width {
            Some(width) => {
                table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width)
            }
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        table.add_rows(rows);
        let columns: Vec<_> = table.column_iter_mut().collect();
        for (index, column) in columns.into_iter().enumerate() {
            column.set_padding((if index == 0 { 0 } else { 1 }, 1));
        }
        for (number, line) in table.to_string().lines().enumerate() {
            let line = line.trim_end();
            match number {
                0 => writeln!(self.out, "{}", self.colour.strong(line))?,
                _ => writeln!(self.out, "{}", self.colour.severity(line))?,
            }
        }
        Ok(())
    }

    /// Prints each row of a table as a block of lines, for a narrow terminal.
    fn blocks(&mut self, header: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
        for (number, row) in rows.iter().enumerate() {
            if number > 0 {
                writeln!(self.out)?;
            }
            for (name, cell) in header.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
                writeln!(self.out, "{} {cell}", self.colour.strong(&format!("{name}:")))?;
            }
        }
        Ok(())
    }
}

/// Colours: on a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Colour(bool);

impl Colour {
    /// Whether a stream shows colours.
    pub(crate) fn of(stream: &impl IsTerminal) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Colour(stream.is_terminal() && !set("NO_COLOR") && !dumb)
    }

    /// Bold text.
    pub(crate) fn strong(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Bold red text.
    pub(crate) fn alarm(self, text: &str) -> String {
        self.paint("1;31", text)
    }

    /// A line of a table, whose first word may be a severity.
    fn severity(self, line: &str) -> String {
        let word = line.split(' ').next().unwrap_or_default();
        let code = match word {
            "FAIL" | "DIFFERS" | "finding" => "31",
            "PASS" => "32",
            "LIMIT" | "note" => "33",
            _ => return line.to_owned(),
        };
        format!("{}{}", self.paint(code, word), &line[word.len()..])
    }

    fn paint(self, code: &str, text: &str) -> String {
        match self.0 {
            true => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}

/// A path for messages, without control characters.
pub(crate) fn shown(path: &Path) -> String {
    ipse_door::printable(&path.to_string_lossy())
}
