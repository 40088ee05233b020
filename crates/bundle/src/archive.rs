//! The archive: its members and their positions.
//!
//! **Invariant:** every byte outside of the members' contents is canonical: headers, padding, order
//! and the two blocks at the end. No byte follows them.

use crate::header::{self, BLOCK, Block};
use crate::name::Name;
use crate::source::{Part, Source, fill};
use std::io;

/// The longest member: the largest size that eleven octal digits can express.
pub const MAX_MEMBER_BYTES: u64 = (1 << 33) - 1;
/// The maximum number of members. A list of this many fits in memory.
pub const MAX_MEMBERS: u64 = 1_000_000;

/// An archive whose headers were read.
pub(crate) struct Archive<'s> {
    source: &'s dyn Source,
    members: Vec<Member>,
}

struct Member {
    name: Name,
    at: u64,
    size: u64,
}

/// The reason why a source is not an archive, with the byte offset.
pub(crate) struct Fault {
    pub(crate) at: u64,
    pub(crate) message: String,
}

fn fault(at: u64, message: impl Into<String>) -> Fault {
    Fault { at, message: message.into() }
}

impl<'s> Archive<'s> {
    /// Reads all headers.
    pub(crate) fn read(source: &'s dyn Source) -> io::Result<Result<Self, Fault>> {
        let total = source.size()?;
        let mut archive = Archive { source, members: Vec::new() };
        let mut at = 0;
        loop {
            match archive.member_at(at, total)? {
                Err(fault) => return Ok(Err(fault)),
                Ok(None) => return Ok(archive.complete(at).map(|()| archive)),
                Ok(Some(next)) => at = next,
            }
        }
    }

    /// Reads the header at an offset and returns the offset of the next one. Returns `None` at the
    /// end of the archive.
    fn member_at(&mut self, at: u64, total: u64) -> io::Result<Result<Option<u64>, Fault>> {
        if total - at < BLOCK as u64 {
            return Ok(Err(fault(at, "the file ends without the two blocks that end an archive")));
        }
        let mut block: Block = [0; BLOCK];
        fill(self.source, at, &mut block)?;
        if block == [0; BLOCK] {
            return Ok(self.end_at(at, total)?.map(|()| None));
        }
        let (name, size) = match header::read(&block) {
            Ok(read) => read,
            Err((byte, message)) => return Ok(Err(fault(at + byte as u64, message))),
        };
        if let Err(message) = self.place(name) {
            return Ok(Err(fault(at, message)));
        }
        let begin = at + BLOCK as u64;
        let padding = size.next_multiple_of(BLOCK as u64) - size;
        if size + padding > total - begin {
            let message = format!("`{name}` declares {size} bytes, but the file ends earlier");
            return Ok(Err(fault(at, message)));
        }
        let mut zeros = vec![0; usize::try_from(padding).unwrap_or_default()];
        fill(self.source, begin + size, &mut zeros)?;
        if let Some(place) = zeros.iter().position(|byte| *byte != 0) {
            let message = format!("the padding of `{name}` is not zero");
            return Ok(Err(fault(begin + size + place as u64, message)));
        }
        self.members.push(Member { name, at: begin, size });
        Ok(Ok(Some(begin + size + padding)))
    }

    /// Checks that a member may come next.
    fn place(&self, name: Name) -> Result<(), String> {
        let last = self.members.last().map(|member| member.name);
        if self.members.len() as u64 == MAX_MEMBERS {
            return Err(format!("there are more than {MAX_MEMBERS} members"));
        }
        match last {
            last if name.follows(last) => Ok(()),
            Some(last) if last == name => Err(format!("`{name}` is a duplicate")),
            Some(last) if name > last => Err(format!("`{name}` follows `{last}`: one is missing")),
            Some(last) => {
                Err(format!("`{name}` must not follow `{last}`: out of order or duplicate"))
            }
            None => Err(format!("`{name}` cannot be the first member")),
        }
    }

    fn end_at(&self, at: u64, total: u64) -> io::Result<Result<(), Fault>> {
        let second = at + BLOCK as u64;
        if total - second < BLOCK as u64 {
            return Ok(Err(fault(second, "the second block that ends an archive is missing")));
        }
        let mut block: Block = [0; BLOCK];
        fill(self.source, second, &mut block)?;
        let end = second + BLOCK as u64;
        Ok(if let Some(place) = block.iter().position(|byte| *byte != 0) {
            Err(fault(second + place as u64, "the block that ends the archive is not zero"))
        } else if total > end {
            Err(fault(end, format!("{} bytes follow the end of the archive", total - end)))
        } else {
            Ok(())
        })
    }

    fn complete(&self, at: u64) -> Result<(), Fault> {
        match Name::REQUIRED.into_iter().find(|name| self.find(*name).is_none()) {
            Some(name) => Err(fault(at, format!("`{name}` is missing from the archive"))),
            None => Ok(()),
        }
    }

    fn find(&self, name: Name) -> Option<&Member> {
        let place = self.members.binary_search_by_key(&name, |member| member.name).ok()?;
        self.members.get(place)
    }

    /// The contents of a member.
    pub(crate) fn part(&self, name: Name) -> Option<Part<'s>> {
        self.find(name).map(|member| self.contents(member))
    }

    fn contents(&self, member: &Member) -> Part<'s> {
        Part { source: self.source, at: member.at, size: member.size }
    }

    /// All members in order.
    pub(crate) fn members(&self) -> impl Iterator<Item = (Name, Part<'s>)> {
        self.members.iter().map(|member| (member.name, self.contents(member)))
    }

    /// The producers' statements in order.
    pub(crate) fn signatures(&self) -> impl Iterator<Item = (Name, Part<'s>)> {
        self.members().filter(|(name, _)| matches!(name, Name::Signature(_)))
    }
}
