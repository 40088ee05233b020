//! Checks the list of hashes against the members.

use super::Check;
use crate::log::foreign_event;
use crate::name::Name;
use crate::write::{is_sum_of, sum_line};
use ipse_core::Digest;
use std::io;

/// The longest line of the list: a hash and a name.
const MAX_LINE: usize = 256;

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
        let holds = self.report.holds_since(began, Name::Sums, message);
        Ok(if holds { Some(Digest(sums.hash()?)) } else { None })
    }

    /// Reports a member that does not match its hash. For events, reports the changed line.
    fn changed(&mut self, name: Name) -> io::Result<()> {
        let message = "does not match its SHA-256 in SHA256SUMS: one of the two was changed";
        let line = if name == Name::Events { foreign_event(&self.archive)? } else { None };
        let (place, detail) = match line {
            Some(number) => (format!("{name}, line {number}"), "; this line has no entry"),
            None => (name.to_string(), ""),
        };
        self.report.fail(place, format!("{message}{detail}"));
        Ok(())
    }
}
