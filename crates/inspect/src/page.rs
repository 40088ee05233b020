//! The text form of an answer: lines, sentences and tables.
//!
//! **Invariant:** a page does not depend on a terminal. The caller that prints it sets the width.
//! As a string ([`fmt::Display`]) no line is wrapped.

use std::fmt;

/// A part of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Block {
    /// A line that is printed unchanged.
    Line(String),
    /// A sentence that may be wrapped, with its indentation.
    Prose(usize, String),
    /// A table.
    Table {
        /// The names of the columns.
        header: Vec<&'static str>,
        /// The cells, row by row.
        rows: Vec<Vec<String>>,
    },
    /// A message about the answer. A terminal shows it separately.
    Note(String),
}

/// The text form of an answer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page(pub Vec<Block>);

impl Page {
    /// An empty page.
    pub fn new() -> Self {
        Page::default()
    }

    /// Adds a line.
    pub fn line(&mut self, line: impl Into<String>) {
        self.0.push(Block::Line(line.into()));
    }

    /// Adds a sentence.
    pub fn prose(&mut self, indent: usize, sentence: impl Into<String>) {
        self.0.push(Block::Prose(indent, sentence.into()));
    }

    /// Adds a message about the answer.
    pub fn note(&mut self, note: impl Into<String>) {
        self.0.push(Block::Note(note.into()));
    }

    /// Adds a table, unless it has no rows.
    pub fn table(&mut self, header: &[&'static str], rows: Vec<Vec<String>>) {
        if !rows.is_empty() {
            self.0.push(Block::Table { header: header.to_vec(), rows });
        }
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for block in &self.0 {
            match block {
                Block::Line(line) | Block::Note(line) => writeln!(f, "{line}")?,
                Block::Prose(indent, line) => writeln!(f, "{:indent$}{line}", "")?,
                Block::Table { header, rows } => write_table(f, header, rows)?,
            }
        }
        Ok(())
    }
}

/// Writes a table with columns as wide as their widest cell.
fn write_table(
    f: &mut fmt::Formatter<'_>,
    header: &[&'static str],
    rows: &[Vec<String>],
) -> fmt::Result {
    let width = |cell: &str| cell.chars().count();
    let mut widths: Vec<usize> = header.iter().map(|name| width(name)).collect();
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(cell));
        }
    }
    let mut write_row = |cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let line = padded.collect::<Vec<_>>().join("  ");
        writeln!(f, "{}", line.trim_end())
    };
    write_row(&mut header.iter().copied())?;
    rows.iter().try_for_each(|row| write_row(&mut row.iter().map(String::as_str)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut page = Page::new();
        page.line("one");
        page.table(&["A", "LONG", "C"], vec![vec!["äöü".into(), "x".into(), String::new()]]);
        page.table(&["NOTHING"], Vec::new());
        page.prose(2, "a sentence");
        assert_eq!(page.to_string(), "one\nA    LONG  C\näöü  x\n  a sentence\n");
    }
}
