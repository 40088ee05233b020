//! The list of hashes against the members.

use super::Meter;
use crate::archive::Archive;
use crate::name::Name;
use crate::report::Report;
use crate::source::Part;
use crate::write::sum_line;
use ipse_core::{Digest, hex, sha256};
use std::collections::BTreeSet;
use std::io;

/// The longest line of the list: a hash and a name.
const MAX_LINE: usize = 256;
/// The longest event or entry that is looked at to find a changed one.
const MAX_EVENT_LINE: usize = 1 << 16;

/// Hashes every member and compares; gives the hash of the list, nothing if it is not that of the
/// members.
pub(super) fn check(
    archive: &Archive<'_>,
    meter: &mut Meter<'_>,
    report: &mut Report,
) -> io::Result<Option<Digest>> {
    let mut digests = Vec::new();
    for (name, part) in archive.members().filter(|(name, _)| *name < Name::Sums) {
        digests.push((name, Digest(part.hash()?)));
        meter.add(part.size);
    }
    let Some(sums) = archive.part(Name::Sums) else { return Ok(None) };
    let before = report.fails();
    compare(archive, sums, &digests, report)?;
    if report.fails() > before {
        return Ok(None);
    }
    report.pass(
        Name::Sums.to_string(),
        format!("the SHA-256 of all {} members before it", digests.len()),
    );
    Ok(Some(Digest(sums.hash()?)))
}

fn compare(
    archive: &Archive<'_>,
    sums: Part<'_>,
    digests: &[(Name, Digest)],
    report: &mut Report,
) -> io::Result<()> {
    let mut lines = sums.lines(MAX_LINE);
    for (name, digest) in digests {
        let expected = sum_line(digest, *name);
        let place = |number: u64| format!("SHA256SUMS, line {number}");
        match lines.next()? {
            Some(Ok(line)) if line == expected.trim_end().as_bytes() => {}
            Some(Ok(line)) if is_sum_of(line, *name) => changed(archive, *name, report)?,
            Some(Ok(_)) => {
                let number = lines.number();
                report.fail(
                    place(number),
                    format!("must be the hash of `{name}`, in lower-case hex"),
                );
                return Ok(());
            }
            Some(Err(broken)) => {
                report.fail(place(lines.number()), broken.message());
                return Ok(());
            }
            None => {
                report.fail("SHA256SUMS", format!("ends before it comes to `{name}`"));
                return Ok(());
            }
        }
    }
    if lines.next()?.is_some() {
        let number = lines.number();
        report.fail(format!("SHA256SUMS, line {number}"), "lists what is not in the bundle");
    }
    Ok(())
}

/// Whether a line has the form of a sum, and is that member's.
fn is_sum_of(line: &[u8], name: Name) -> bool {
    let line = std::str::from_utf8(line).unwrap_or_default();
    let parts = line.split_once("  ");
    parts.is_some_and(|(sum, of)| hex::decode::<32>(sum).is_some() && of == name.to_string())
}

/// A member is not what was listed; of events it can be told which.
fn changed(archive: &Archive<'_>, name: Name, report: &mut Report) -> io::Result<()> {
    let message = "its SHA-256 is not the one in SHA256SUMS: one of the two was changed";
    let line = if name == Name::Events { changed_event(archive)? } else { None };
    match line {
        Some(number) => {
            let message = format!("{message}; this line is in no entry");
            report.fail(format!("{name}, line {number}"), message);
        }
        None => report.fail(name.to_string(), message),
    }
    Ok(())
}

/// The number of the first event whose digest stands in no entry.
fn changed_event(archive: &Archive<'_>) -> io::Result<Option<u64>> {
    let (events, entries) = (archive.part(Name::Events), archive.part(Name::Entries));
    let (Some(events), Some(entries)) = (events, entries) else { return Ok(None) };
    let mut digests = BTreeSet::new();
    let mut lines = entries.lines(MAX_EVENT_LINE);
    while let Some(Ok(entry)) = lines.next()? {
        // Every entry begins with it.
        let digest = entry.strip_prefix(b"{\"digest\":\"").and_then(|rest| rest.get(..64));
        let digest = digest.and_then(|digest| std::str::from_utf8(digest).ok());
        digests.extend(digest.and_then(hex::decode::<32>));
    }
    let mut lines = events.lines(MAX_EVENT_LINE);
    while let Some(line) = lines.next()? {
        if !line.is_ok_and(|event| digests.contains(&sha256(&[event]))) {
            return Ok(Some(lines.number()));
        }
    }
    Ok(None)
}
