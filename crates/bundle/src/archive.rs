//! The archive: which members there are, and where.
//!
//! **Invariant:** an archive that is read here is canonical to the last byte outside of members'
//! contents: headers, padding, order, the two blocks at the end, and nothing behind them.

use crate::header::{self, BLOCK, Block};
use crate::name::Name;
use crate::source::{Part, Source, fill};
use std::io;

/// The longest member: eleven octal digits say no more.
pub const MAX_MEMBER_BYTES: u64 = (1 << 33) - 1;
/// The most members: a list of them fits any memory.
pub const MAX_MEMBERS: u64 = 1_000_000;

/// An archive that was read.
pub(crate) struct Archive<'s> {
    source: &'s dyn Source,
    members: Vec<Member>,
}

struct Member {
    name: Name,
    at: u64,
    size: u64,
}

/// Why something is no archive: at which byte, and what is wrong.
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

    /// Reads the header at a byte, and says where the next one is; none if the archive ends there.
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
            let message = format!("`{name}` declares {size} bytes, and the file ends before");
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

    /// Whether a member may stand here.
    fn place(&self, name: Name) -> Result<(), String> {
        let last = self.members.last().map(|member| member.name);
        if self.members.len() as u64 == MAX_MEMBERS {
            return Err(format!("there are more than {MAX_MEMBERS} members"));
        }
        match last {
            last if name.follows(last) => Ok(()),
            Some(last) if last == name => Err(format!("`{name}` stands there twice")),
            Some(last) if name > last => Err(format!("`{name}` follows `{last}`: one is missing")),
            Some(last) => Err(format!("`{name}` must not follow `{last}`: out of order or twice")),
            None => Err(format!("`{name}` cannot be the first")),
        }
    }

    fn end_at(&self, at: u64, total: u64) -> io::Result<Result<(), Fault>> {
        let second = at + BLOCK as u64;
        if total - second < BLOCK as u64 {
            return Ok(Err(fault(
                second,
                "only one of the two blocks that end an archive is there",
            )));
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
