//! Writing a bundle, member by member, in one pass.
//!
//! **Invariant:** the output is canonical, or the writer fails. The caller cannot choose other
//! names, order, sizes, list of hashes or end.

use crate::Error;
use crate::archive::{MAX_MEMBER_BYTES, MAX_MEMBERS};
use crate::header::{BLOCK, header};
use crate::name::Name;
use ipse_core::{Digest, Hashing, hex, sha256};
use std::io::{self, Write};

/// A bundle under construction. It is complete only after [`Writer::finish`].
///
/// ```
/// # use ipse_bundle::Writer;
/// let mut writer = Writer::new(Vec::new());
/// writer.bytes("manifest.json", b"{}").unwrap();
/// assert!(writer.bytes("manifest.json", b"{}").is_err(), "a duplicate");
/// assert!(writer.bytes("../manifest.json", b"{}").is_err(), "no member has that name");
/// ```
#[must_use]
pub struct Writer<W: Write> {
    out: W,
    /// The list of hashes so far.
    sums: String,
    written: Vec<Name>,
}

impl<W: Write> Writer<W> {
    /// Starts an empty bundle.
    pub fn new(out: W) -> Self {
        Writer { out, sums: String::new(), written: Vec::new() }
    }

    /// Writes a member of `size` bytes; `write` must write exactly this many.
    pub fn member(
        &mut self,
        name: &str,
        size: u64,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        let no_place = || Error::Order(name.to_string());
        let known = Name::parse(name).filter(|known| *known < Name::Sums).ok_or_else(no_place)?;
        let digest = self.put(known, size, write)?;
        self.sums.push_str(&sum_line(&digest, known));
        Ok(())
    }

    /// Writes a member from bytes in memory.
    pub fn bytes(&mut self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.member(name, bytes.len() as u64, |out| out.write_all(bytes))
    }

    /// Writes the list of hashes and its signature by `sign`, and ends the archive.
    pub fn finish(mut self, sign: impl FnOnce(Digest) -> String) -> Result<W, Error> {
        let sums = std::mem::take(&mut self.sums);
        self.whole(Name::Sums, sums.as_bytes())?;
        let envelope = sign(Digest(sha256(&[sums.as_bytes()])));
        self.whole(Name::SumsSignature, envelope.as_bytes())?;
        let missing = Name::REQUIRED.into_iter().find(|name| !self.written.contains(name));
        if let Some(name) = missing {
            return Err(Error::Missing(name.to_string()));
        }
        self.out.write_all(&[0; 2 * BLOCK])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn whole(&mut self, name: Name, bytes: &[u8]) -> Result<(), Error> {
        self.put(name, bytes.len() as u64, |out| out.write_all(bytes)).map(drop)
    }

    fn put(
        &mut self,
        name: Name,
        size: u64,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<Digest, Error> {
        let text = name.to_string();
        if !name.follows(self.written.last().copied()) {
            return Err(Error::Order(text));
        }
        if size > MAX_MEMBER_BYTES {
            return Err(Error::TooLong(text));
        }
        if self.written.len() as u64 == MAX_MEMBERS {
            return Err(Error::TooMany);
        }
        self.out.write_all(&header(&text, size))?;
        let mut body = Body { out: &mut self.out, hash: Hashing::default(), size, written: 0 };
        let wrote = write(&mut body);
        let (hash, written) = (body.hash, body.written);
        if written > size || (wrote.is_ok() && written < size) {
            return Err(Error::Length { name: text, promised: size, written });
        }
        wrote?;
        let padding = size.next_multiple_of(BLOCK as u64) - size;
        self.out.write_all(&[0; BLOCK][..usize::try_from(padding).unwrap_or_default()])?;
        self.written.push(name);
        Ok(Digest(hash.finish()))
    }
}

/// A line of the list of hashes, as `sha256sum` writes it.
pub(crate) fn sum_line(digest: &Digest, name: Name) -> String {
    format!("{digest}  {name}\n")
}

/// Whether a line of the list has the form of a sum and names this member.
pub(crate) fn is_sum_of(line: &[u8], name: Name) -> bool {
    let parts = std::str::from_utf8(line).ok().and_then(|line| line.split_once("  "));
    parts.is_some_and(|(sum, of)| hex::decode::<32>(sum).is_some() && of == name.to_string())
}

/// A writer for the contents of one member, which hashes them.
struct Body<'w, W> {
    out: &'w mut W,
    hash: Hashing,
    size: u64,
    written: u64,
}

impl<W: Write> Write for Body<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.size.saturating_sub(self.written) {
            // Bytes beyond the declared size would overwrite the place of the next header.
            self.written = self.written.saturating_add(bytes.len() as u64);
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let n = self.out.write(bytes)?;
        self.hash.update(&bytes[..n]);
        self.written += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
