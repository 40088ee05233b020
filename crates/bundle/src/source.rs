//! Reading a bundle: by position, in pieces, line by line.
//!
//! **Invariant:** a buffer grows with the bytes that were read, up to the limit of its reader. It
//! never grows by a declared size.

use ipse_core::Hashing;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Bytes that are read by position.
pub trait Source {
    /// The number of bytes.
    fn size(&self) -> io::Result<u64>;

    /// Reads bytes from an offset and returns their number. Returns 0 only at the end.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl Source for [u8] {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        let rest = rest.unwrap_or_default();
        let length = rest.len().min(buffer.len());
        buffer[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }
}

impl Source for Vec<u8> {
    fn size(&self) -> io::Result<u64> {
        self.as_slice().size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.as_slice().read_at(offset, buffer)
    }
}

/// A file that the caller opened.
impl Source for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match FileExt::read_at(self, buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }
}

impl<S: Source + ?Sized> Source for &S {
    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, buffer)
    }
}

/// Fills a buffer. A source that was truncated in the meantime is a read error.
pub(crate) fn fill(source: &dyn Source, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read_at(offset + filled as u64, &mut buffer[filled..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => filled += n,
        }
    }
    Ok(())
}

/// A part of a source.
#[derive(Clone, Copy)]
pub(crate) struct Part<'s> {
    pub(crate) source: &'s dyn Source,
    /// The offset of its first byte.
    pub(crate) at: u64,
    /// Its length. The part was checked to lie within the source.
    pub(crate) size: u64,
}

/// The number of bytes per read.
const PIECE: usize = 64 * 1024;

impl<'s> Part<'s> {
    /// Passes all bytes to `each`, piece by piece.
    pub(crate) fn pieces(self, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        let mut buffer = vec![0; PIECE.min(usize::try_from(self.size).unwrap_or(PIECE))];
        let mut done = 0;
        while done < self.size {
            let left = usize::try_from(self.size - done).unwrap_or(PIECE);
            let piece = &mut buffer[..left.min(PIECE)];
            fill(self.source, self.at + done, piece)?;
            each(piece);
            done += piece.len() as u64;
        }
        Ok(())
    }

    /// The SHA-256 of its bytes.
    pub(crate) fn hash(self) -> io::Result<[u8; 32]> {
        let mut hash = Hashing::default();
        self.pieces(|piece| hash.update(piece))?;
        Ok(hash.finish())
    }

    /// All bytes. `None` if there are more than `limit`.
    pub(crate) fn whole(self, limit: usize) -> io::Result<Option<Vec<u8>>> {
        let Some(size) = usize::try_from(self.size).ok().filter(|size| *size <= limit) else {
            return Ok(None);
        };
        let mut bytes = vec![0; size];
        fill(self.source, self.at, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// The part that begins at `begins`, at most `length` bytes. `None` beyond the end.
    pub(crate) fn piece(self, begins: u64, length: u64) -> Option<Self> {
        let rest = self.size.checked_sub(begins)?;
        Some(Part { source: self.source, at: self.at + begins, size: rest.min(length) })
    }

    /// Its lines. A line longer than `limit` is an error.
    pub(crate) fn lines(self, limit: usize) -> Lines<'s> {
        let (at, end) = (self.at, self.at + self.size);
        Lines { source: self.source, at, end, buffer: Vec::new(), start: 0, number: 0, limit }
    }
}

/// The reason why bytes are not a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Broken {
    /// Longer than the limit.
    TooLong,
    /// The last line has no line end.
    Unterminated,
}

impl Broken {
    pub(crate) fn message(self) -> &'static str {
        match self {
            Broken::TooLong => "the line is longer than the limit",
            Broken::Unterminated => "the last line does not end with a line feed",
        }
    }
}

/// Lines of a part, one at a time.
pub(crate) struct Lines<'s> {
    source: &'s dyn Source,
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    start: usize,
    number: u64,
    limit: usize,
}

impl Lines<'_> {
    /// The number of the line that was read last, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The next line without its line feed. After an error, no more lines are returned.
    pub(crate) fn next(&mut self) -> io::Result<Option<Result<&[u8], Broken>>> {
        let mut looked = self.start;
        let end = loop {
            let found = self.buffer[looked..].iter().position(|byte| *byte == b'\n');
            if let Some(found) = found.map(|found| looked + found) {
                if found - self.start > self.limit {
                    return Ok(Some(Err(self.broken(Broken::TooLong))));
                }
                break found;
            }
            let held = self.buffer.len() - self.start;
            if held > self.limit {
                return Ok(Some(Err(self.broken(Broken::TooLong))));
            }
            if self.at == self.end {
                return Ok((held > 0).then(|| Err(self.broken(Broken::Unterminated))));
            }
            self.more()?;
            looked = held;
        };
        self.number += 1;
        let line = self.start..end;
        self.start = end + 1;
        Ok(Some(Ok(&self.buffer[line])))
    }

    fn broken(&mut self, broken: Broken) -> Broken {
        self.number += 1;
        self.at = self.end;
        self.buffer.clear();
        self.start = 0;
        broken
    }

    /// Drops the lines that were returned, and reads the next piece.
    fn more(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let left = usize::try_from(self.end - self.at).unwrap_or(PIECE).min(PIECE);
        let held = self.buffer.len();
        self.buffer.resize(held + left, 0);
        fill(self.source, self.at, &mut self.buffer[held..])?;
        self.at += left as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8], limit: usize) -> Vec<Result<Vec<u8>, Broken>> {
        let mut lines = Part { source: &bytes, at: 0, size: bytes.len() as u64 }.lines(limit);
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(line.map(<[u8]>::to_vec));
        }
        all
    }

    #[test]
    fn lines_are_cut_at_line_feeds() {
        assert_eq!(lines(b"", 9), []);
        assert_eq!(lines(b"a\n\nbc\n", 9), [Ok(b"a".to_vec()), Ok(vec![]), Ok(b"bc".to_vec())]);
        assert_eq!(lines(b"a\nb", 9), [Ok(b"a".to_vec()), Err(Broken::Unterminated)]);
        assert_eq!(lines(b"abc\nd\n", 2), [Err(Broken::TooLong)]);
    }

    #[test]
    fn lines_may_lie_across_pieces() {
        let long =
            [vec![b'x'; PIECE + 7], vec![b'\n'], vec![b'y'; 2 * PIECE], vec![b'\n']].concat();
        let read: Vec<usize> =
            lines(&long, 3 * PIECE).into_iter().map(|line| line.unwrap().len()).collect();
        assert_eq!(read, [PIECE + 7, 2 * PIECE]);
    }
}
