//! The result of an import of several files: totals, and the counts of each file.
//!
//! **Invariant:** a total is the sum over the files; a place names its file if there are several.

use crate::import::{Imported, MAX_LISTED, refusal_members, unused_members};
use ipse_core::json::{Members, list};
use ipse_door::{Places, Refusal, Unused};
use ipse_engine::PassReport;
use std::collections::BTreeMap;

/// The results of one import, by file in the order of the arguments.
#[derive(Debug, Default)]
pub struct ImportedFiles {
    /// The name and the result of each file.
    pub files: Vec<(String, Imported)>,
    /// Whether nothing was stored, because the import was only computed.
    pub dry_run: bool,
    /// The pass at the end, if it found new events.
    pub pass: Option<PassReport>,
}

/// The events of all files that have an unused member.
#[derive(Debug)]
pub struct FileUse<'f> {
    /// The number of events in all files.
    pub count: u64,
    /// The first file that has such an event.
    pub file: &'f str,
    /// The events in that file.
    pub places: &'f Places,
}

impl ImportedFiles {
    /// The sum of a count over all files.
    pub fn total(&self, count: impl Fn(&Imported) -> u64) -> u64 {
        self.files.iter().map(|(_, done)| count(done)).sum()
    }

    /// Whether every line became an event or was a duplicate.
    pub fn is_clean(&self) -> bool {
        self.files.iter().all(|(_, done)| done.is_clean())
    }

    /// Members that feed no fact, over all files.
    pub fn unused(&self) -> BTreeMap<&Unused, FileUse<'_>> {
        let mut all: BTreeMap<&Unused, FileUse<'_>> = BTreeMap::new();
        for (file, done) in &self.files {
            for (unused, places) in done.unused.iter() {
                let first = || FileUse { count: 0, file, places };
                all.entry(unused).or_insert_with(first).count += places.count;
            }
        }
        all
    }

    /// The listed refusals with the file of each, up to [`MAX_LISTED`].
    pub fn listed(&self) -> impl Iterator<Item = (&str, u64, &Refusal)> {
        self.files
            .iter()
            .flat_map(|(file, done)| {
                done.listed.iter().map(move |(line, refusal)| (file.as_str(), *line, refusal))
            })
            .take(MAX_LISTED)
    }

    /// The result as canonical JSON. Places have the member `file` if there are several files.
    pub fn json(&self) -> String {
        let several = self.files.len() > 1;
        let named = |members: Members, file: &str| match several {
            true => members.text("file", file).finish(),
            false => members.finish(),
        };
        let unused = self.unused();
        let unused = unused.iter().map(|(unused, it)| {
            let members = unused_members(unused, it.places, it.count);
            named(members, it.file)
        });
        let refusals: Vec<String> = self
            .listed()
            .map(|(file, line, refusal)| named(refusal_members(line, refusal), file))
            .collect();
        let refusals_total = self.total(|done| done.listed.len() as u64 + done.omitted);
        let omitted = refusals_total - refusals.len() as u64;
        counts(Members::new(), |count| self.total(count))
            .raw("signed", self.total(|done| done.signed))
            .raw("misnamed", self.total(|done| done.misnamed))
            .raw("unused", list(unused))
            .raw("passes", u64::from(self.pass.is_some()))
            .raw("refusals", list(refusals))
            .raw("refusals_omitted", omitted)
            .raw("dry_run", self.dry_run)
            .raw("files", list(self.files.iter().map(file_json)))
            .finish()
    }
}

fn file_json((file, done): &(String, Imported)) -> String {
    counts(Members::new().text("file", file), |count| count(done)).finish()
}

/// Adds the four counts of lines.
fn counts(members: Members, total: impl Fn(fn(&Imported) -> u64) -> u64) -> Members {
    members
        .raw("appended", total(|done| done.appended))
        .raw("duplicates", total(|done| done.duplicates))
        .raw("conflicts", total(|done| done.conflicts))
        .raw("refused", total(|done| done.refused))
}
