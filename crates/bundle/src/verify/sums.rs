//! Checks the list of hashes against the members.

use super::Check;
use crate::archive::Archive;
use crate::name::Name;
use crate::write::sum_line;
use ipse_core::{Digest, hex, sha256};
use ipse_ledger::Entry;
use std::collections::BTreeSet;
use std::io;

/// The longest line of the list: a hash and a name.
const MAX_LINE: usize = 256;
/// The longest event or entry in the search for a changed one.
const MAX_EVENT_LINE: usize = 1 << 16;

impl Check<'_, '_> {
    /// Hashes every member and compares. Returns the hash of the list, or `None` if the list does
    /// not match the members.
    pub(super) fn sums(&mut self) -> io::Result<Option<Digest>> {
        let Some(sums) = self.archive.part(Name::Sums) else { return Ok(None) };
        let (began, mut lines) = (self.report.fails(), sums.lines(MAX_LINE));
        let members = self.archive.members().filter(|(name, _)| *name < Name::Sums);
        let members: Vec<_> = members.collect();
        for (name, part) in &members {
            let expected = sum_line(&Digest(part.hash()?), *name);
            self.looked_at(part.size);
            let fault = match lines.next()? {
                Some(Ok(line)) if line == expected.trim_end().as_bytes() => continue,
                Some(Ok(line)) if is_sum_of(line, *name) => {
                    self.changed(*name)?;
                    continue;
                }
                Some(Ok(_)) => format!("must be the hash of `{name}`, in lower-case hex"),
                Some(Err(broken)) => broken.message().to_string(),
                None => {
                    self.report.fail(Name::Sums, format!("ends before the line of `{name}`"));
                    return Ok(None);
                }
            };
            self.report.fail(format!("SHA256SUMS, line {}", lines.number()), fault);
            return Ok(None);
        }
        if lines.next()?.is_some() {
            let place = format!("SHA256SUMS, line {}", lines.number());
            self.report.fail(place, "lists a member that is not in the bundle");
        }
        let message = format!("the SHA-256 of all {} members before it", members.len());
        let holds = self.holds_since(began, Name::Sums, message);
        Ok(if holds { Some(Digest(sums.hash()?)) } else { None })
    }

    /// Reports a member that does not match its hash. For events, reports the changed line.
    fn changed(&mut self, name: Name) -> io::Result<()> {
        let message = "does not match its SHA-256 in SHA256SUMS: one of the two was changed";
        let line = if name == Name::Events { changed_event(&self.archive)? } else { None };
        match line {
            Some(number) => {
                let message = format!("{message}; this line has no entry");
                self.report.fail(format!("{name}, line {number}"), message);
            }
            None => self.report.fail(name, message),
        }
        Ok(())
    }
}

/// Whether a line has the form of a sum and names this member.
fn is_sum_of(line: &[u8], name: Name) -> bool {
    let parts = std::str::from_utf8(line).ok().and_then(|line| line.split_once("  "));
    parts.is_some_and(|(sum, of)| hex::decode::<32>(sum).is_some() && of == name.to_string())
}

/// The line number of the first event whose digest is in no entry.
fn changed_event(archive: &Archive<'_>) -> io::Result<Option<u64>> {
    let [events, entries] = [Name::Events, Name::Entries].map(|name| archive.part(name));
    let (Some(events), Some(entries)) = (events, entries) else { return Ok(None) };
    let (mut digests, mut lines) = (BTreeSet::new(), entries.lines(MAX_EVENT_LINE));
    while let Some(Ok(entry)) = lines.next()? {
        digests.extend(Entry::parse(entry).map(|entry| entry.digest.0));
    }
    let mut lines = events.lines(MAX_EVENT_LINE);
    while let Some(line) = lines.next()? {
        if !line.is_ok_and(|event| digests.contains(&sha256(&[event]))) {
            return Ok(Some(lines.number()));
        }
    }
    Ok(None)
}
