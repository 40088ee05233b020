//! Where output goes, and tables that fit it.

use comfy_table::{ContentArrangement, Table, presets};
use std::io::{IsTerminal, Write};

/// The narrowest table: below this, wrapping helps nobody.
const MIN_WIDTH: u16 = 60;

/// Standard output and standard error, as arguments.
pub(crate) struct Terminal<'t> {
    pub(crate) out: &'t mut dyn Write,
    pub(crate) err: &'t mut dyn Write,
    width: Option<u16>,
    /// Whether a person watches standard error.
    pub(crate) watched: bool,
}

impl<'t> Terminal<'t> {
    pub(crate) fn new(out: &'t mut dyn Write, err: &'t mut dyn Write) -> Self {
        let width = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0);
        let watched = std::io::stderr().is_terminal();
        Terminal { out, err, width, watched }
    }

    /// Output that nobody watches.
    pub(crate) fn plain(out: &'t mut dyn Write, err: &'t mut dyn Write) -> Self {
        Terminal { out, err, width: None, watched: false }
    }

    /// Prints one line of JSON.
    pub(crate) fn json(&mut self, json: &str) -> std::io::Result<()> {
        writeln!(self.out, "{json}")
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

/// `1 event`, `2 events`.
pub(crate) fn counted(n: u64, noun: &str) -> String {
    match n {
        1 => format!("1 {noun}"),
        _ if noun.ends_with("ss") => format!("{n} {noun}es"),
        _ => format!("{n} {noun}s"),
    }
}
