//! Tables for the terminal, for CSV and for the HTML page.
//!
//! **Invariant:** every row of a paper's table shows *paper*, *ours* and a verdict. A value in
//! which the paper contradicts itself is an erratum and never counts as equal.

use std::collections::BTreeSet;
use std::fmt;

/// The comparison of our figure with the paper's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Equal at printed precision.
    Equal,
    /// Different at printed precision.
    Differs,
    /// The paper contradicts its own protocol or text here; the number is that in [`ERRATA`].
    ///
    /// [`ERRATA`]: crate::errata::ERRATA
    Erratum(u8),
    /// A measurement, which differs between machines.
    Measured,
    /// The paper does not have this figure.
    Ours,
}

impl Verdict {
    /// Compares two texts.
    pub fn of(paper: &str, ours: &str) -> Self {
        if paper == ours { Verdict::Equal } else { Verdict::Differs }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Equal => f.pad("equal"),
            Verdict::Differs => f.pad("DIFFERS"),
            Verdict::Erratum(number) => f.pad(&format!("erratum {number}")),
            Verdict::Measured => f.pad("measured"),
            Verdict::Ours => f.pad("ours only"),
        }
    }
}

/// One figure with its comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The label of the figure.
    pub what: String,
    /// The paper's value as printed; empty if it has none.
    pub paper: String,
    /// Our value in the same form.
    pub ours: String,
    /// The result of the comparison.
    pub verdict: Verdict,
    /// The number of printed figures in the row: a reduction with its interval has three.
    pub figures: usize,
}

impl Row {
    /// A figure that must be equal as printed.
    pub fn compared(what: impl Into<String>, paper: &str, ours: impl Into<String>) -> Self {
        let ours = ours.into();
        let verdict = Verdict::of(paper, &ours);
        Row { what: what.into(), paper: paper.to_owned(), ours, verdict, figures: 1 }
    }

    /// A figure with a given verdict.
    pub fn with(
        verdict: Verdict,
        what: impl Into<String>,
        paper: &str,
        ours: impl Into<String>,
    ) -> Self {
        Row { what: what.into(), paper: paper.to_owned(), ours: ours.into(), verdict, figures: 1 }
    }
}

/// A table that the paper has, or one in the same form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// The name of its file, without `.csv`.
    pub name: &'static str,
    /// The title above the table.
    pub title: String,
    /// The figures of the table.
    pub rows: Vec<Row>,
    /// A note for readers; empty if none.
    pub note: String,
    /// Errata about the whole table, in addition to those of its rows.
    pub errata: &'static [u8],
    /// Whether a clock measured some of its figures, so that two runs differ.
    pub timed: bool,
}

impl Table {
    /// The numbers of all errata about the table.
    pub fn errata(&self) -> BTreeSet<u8> {
        let of_rows = self.rows.iter().filter_map(|row| match row.verdict {
            Verdict::Erratum(number) => Some(number),
            _ => None,
        });
        of_rows.chain(self.errata.iter().copied()).collect()
    }

    /// The table as text.
    pub fn sheet(&self) -> Sheet {
        let cells = |row: &Row| {
            vec![row.what.clone(), row.paper.clone(), row.ours.clone(), row.verdict.to_string()]
        };
        Sheet {
            name: self.name.to_owned(),
            title: self.title.clone(),
            head: vec!["figure", "paper", "ours", "verdict"],
            rows: self.rows.iter().map(cells).collect(),
            data: None,
            note: self.note.clone(),
            timed: self.timed,
        }
    }
}

/// A table as text, the same on a terminal, in CSV and on the page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sheet {
    /// The name of its file, without `.csv`.
    pub name: String,
    /// The title above the table.
    pub title: String,
    /// The column headings.
    pub head: Vec<&'static str>,
    /// The cells of each row.
    pub rows: Vec<Vec<String>>,
    /// Headings and bare figures for CSV, if they differ from the table.
    pub data: Option<(Vec<&'static str>, Vec<Vec<String>>)>,
    /// A note for readers; empty if none.
    pub note: String,
    /// Whether a clock measured some of its figures, so that two runs differ.
    pub timed: bool,
}
