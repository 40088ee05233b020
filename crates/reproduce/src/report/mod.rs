//! The files of a report: page, tables, figures, JSON, and checksums of the reproducible ones.
//!
//! **Invariants:** files are returned in memory. `SHA256SUMS` lists exactly the files that are
//! byte-equal in every run of the same plan, ordered by name.

mod html;
mod run_files;

use crate::Error;
use crate::figures::{self, Figure};
use crate::results::Results;
use crate::table::Sheet;
use crate::v2;
use ipse_core::{hex, sha256};

/// One file of a report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// The name in the report's directory.
    pub name: String,
    /// The content of the file.
    pub bytes: Vec<u8>,
    /// Whether every run produces the same bytes.
    pub stable: bool,
}

impl File {
    fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>, stable: bool) -> Self {
        File { name: name.into(), bytes: bytes.into(), stable }
    }
}

/// The page that a reader opens first.
pub const PAGE: &str = "report.html";
/// The checksums of the stable files.
pub const SUMS: &str = "SHA256SUMS";

/// Whether a file of this name may be part of a report.
pub fn belongs(name: &str) -> bool {
    const FIGURES: [&str; 6] = [
        "two-stances",
        "worked-example",
        "hash-inputs",
        "consolidation-pipeline",
        "v3-forest",
        "runtime-scaling",
    ];
    const TABLES: [&str; 5] = ["v1", "v2", "v3", "v3-gates", "worked-example"];
    // Earlier versions named the tables of real logs `real-`.
    const PREFIXES: [&str; 4] = ["d-", "g-", "evaluate-", "real-"];
    match name.rsplit_once('.') {
        _ if [PAGE, SUMS, "results.json", "timings.json"].contains(&name) => true,
        Some((stem, "json")) => stem.starts_with(run_files::PREFIX),
        Some((stem, "svg" | "png")) => FIGURES.contains(&stem),
        Some((stem, "csv")) => {
            TABLES.contains(&stem) || PREFIXES.iter().any(|prefix| stem.starts_with(prefix))
        }
        _ => false,
    }
}

/// All files of a report.
pub fn files(results: &Results) -> Result<Vec<File>, Error> {
    let figures = figures_of(results)?;
    let sheets = results.sheets();
    let timed = sheets.iter().any(|sheet| sheet.timed);
    let mut files = vec![
        File::new(PAGE, html::page(results, &figures), !timed),
        File::new("results.json", results.json() + "\n", true),
    ];
    files.extend(results.timings().map(|json| File::new("timings.json", json + "\n", false)));
    let runs = run_files::files(results).into_iter();
    files.extend(runs.map(|(name, json)| File::new(name, json, true)));
    for sheet in &sheets {
        files.push(File::new(format!("{}.csv", sheet.name), csv(sheet), !sheet.timed));
    }
    for Figure { name, svg, png, stable, .. } in figures {
        files.push(File::new(format!("{name}.svg"), svg, stable));
        files.push(File::new(format!("{name}.png"), png, stable));
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    let line = |file: &File| format!("{}  {}\n", hex::encode(&sha256(&[&file.bytes])), file.name);
    let sums: String = files.iter().filter(|file| file.stable).map(line).collect();
    files.push(File::new(SUMS, sums, true));
    Ok(files)
}

/// The figures for which the results have data.
fn figures_of(results: &Results) -> Result<Vec<Figure>, Error> {
    let mut all = Vec::new();
    if let Some(v2) = &results.v2 {
        all.push(figures::two_stances(&v2.identities[0])?);
        all.push(figures::hash_inputs(&v2::manifest()?)?);
    }
    if let Some([_, drawn]) = &results.example {
        all.push(figures::worked_example(drawn)?);
    }
    if results.v1.is_some() {
        all.push(figures::pipeline()?);
    }
    if let Some(v3) = &results.v3 {
        all.push(figures::forest(&v3.controls)?);
    }
    if let Some(runtime) = &results.runtime {
        all.push(figures::runtime_scaling(runtime)?);
    }
    Ok(all)
}

/// A table as CSV (RFC 4180).
fn csv(sheet: &Sheet) -> String {
    let cell = |text: &str| match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    };
    let line = |cells: Vec<String>| cells.join(",") + "\r\n";
    let (head, rows) = match &sheet.data {
        Some((head, rows)) => (head, rows),
        None => (&sheet.head, &sheet.rows),
    };
    let head = line(head.iter().map(|head| cell(head)).collect());
    let rows = rows.iter().map(|row| line(row.iter().map(|text| cell(text)).collect()));
    head + &rows.collect::<String>()
}
