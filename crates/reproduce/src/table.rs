//! Tables: what a reader compares, the same on a terminal, in CSV and on the page.
//!
//! **Invariant:** a table of the paper's shows *paper*, *ours* and a verdict in every row; what the
//! paper contradicts itself in is an erratum and never counts as agreement.

use std::collections::BTreeSet;
use std::fmt;

/// How a figure of ours stands beside the paper's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Equal at the precision that is printed.
    Equal,
    /// They differ.
    Differs,
    /// The paper contradicts its own protocol or text here; the number says which of [`ERRATA`].
    ///
    /// [`ERRATA`]: crate::errata::ERRATA
    Erratum(u8),
    /// A measurement, which another machine makes otherwise.
    Measured,
    /// The paper has no such figure.
    Ours,
}

impl Verdict {
    /// Equal or different, by the texts.
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

/// One figure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// What it is.
    pub what: String,
    /// What the paper prints; empty if it prints nothing.
    pub paper: String,
    /// What came out here.
    pub ours: String,
    /// How the two compare.
    pub verdict: Verdict,
    /// How many printed figures the row holds: a reduction with its interval holds three.
    pub figures: usize,
}

impl Row {
    /// A figure that must be equal as printed.
    pub fn compared(what: impl Into<String>, paper: &str, ours: impl Into<String>) -> Self {
        let ours = ours.into();
        let verdict = Verdict::of(paper, &ours);
        Row { what: what.into(), paper: paper.to_owned(), ours, verdict, figures: 1 }
    }

    /// A figure with a verdict of its own.
    pub fn with(
        verdict: Verdict,
        what: impl Into<String>,
        paper: &str,
        ours: impl Into<String>,
    ) -> Self {
        Row { what: what.into(), paper: paper.to_owned(), ours: ours.into(), verdict, figures: 1 }
    }
}

/// A table of the paper's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    /// The name of its file, without `.csv`.
    pub name: &'static str,
    /// What it is about.
    pub title: String,
    /// Its figures.
    pub rows: Vec<Row>,
    /// What a reader must know about it; empty if nothing.
    pub note: String,
    /// Errata about it as a whole, beside those of its rows.
    pub errata: &'static [u8],
    /// Whether a clock measured figures in it, so that two runs differ.
    pub timed: bool,
}

impl Table {
    /// The numbers of all errata about it.
    pub fn errata(&self) -> BTreeSet<u8> {
        let of_rows = self.rows.iter().filter_map(|row| match row.verdict {
            Verdict::Erratum(number) => Some(number),
            _ => None,
        });
        of_rows.chain(self.errata.iter().copied()).collect()
    }

    /// The table as texts.
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

/// A table as texts: what a terminal, a CSV file and the page show alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sheet {
    /// The name of its file, without `.csv`.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// The heads of its columns.
    pub head: Vec<&'static str>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
    /// The same for programs, where it is not: heads and bare figures.
    pub data: Option<(Vec<&'static str>, Vec<Vec<String>>)>,
    /// What a reader must know about it; empty if nothing.
    pub note: String,
    /// Whether a clock measured figures in it, so that two runs differ.
    pub timed: bool,
}
