//! Lines of a file, plain or gzip, up to the size limit of an event or another limit.
//!
//! **Invariants:** memory is bounded: of a line that is too long only its length is kept. A broken
//! end of the input does not spoil the lines before it. No line is read from an input of another
//! kind.

use crate::error::Error;
use crate::input_kind::{BYTE_ORDER_MARK, Beginning, beginning};
#[cfg(feature = "gzip")]
use flate2::bufread::MultiGzDecoder;
use ipse_bundle::BLOCK;
use ipse_door::MAX_EVENT_BYTES;
use std::io::{self, BufRead, BufReader, Read};

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BUFFER: usize = 1 << 16;

/// Whether a file begins with the gzip magic bytes.
pub fn is_gzip(beginning: &[u8]) -> bool {
    beginning.starts_with(&GZIP_MAGIC)
}

#[cfg(feature = "gzip")]
fn unzipped<'r>(input: impl BufRead + 'r) -> io::Result<Box<dyn Read + 'r>> {
    Ok(Box::new(MultiGzDecoder::new(input)))
}

#[cfg(not(feature = "gzip"))]
fn unzipped<'r>(_: impl BufRead + 'r) -> io::Result<Box<dyn Read + 'r>> {
    Err(io::Error::other("this build reads no gzip: unpack the file, or use the feature `gzip`"))
}

/// Reads the beginning of an input. Returns an error if it is not JSON Lines, plain or gzip.
pub fn check_lines(input: impl Read) -> Result<(), Error> {
    Lines::new(input).map(drop)
}

/// One line, without its end.
pub enum Line {
    /// The complete line.
    Whole(Vec<u8>),
    /// A line beyond the limit; only its length is kept.
    TooLong(usize),
    /// The input failed inside this line, or before it.
    Broken(io::Error),
}

/// Reads lines; detects gzip by its first bytes.
pub struct Lines<'r> {
    input: BufReader<Box<dyn Read + 'r>>,
    limit: usize,
    ended: bool,
}

impl<'r> Lines<'r> {
    /// Reads lines up to the size limit of an event.
    pub fn new(input: impl Read + 'r) -> Result<Self, Error> {
        Self::of_at_most(MAX_EVENT_BYTES, input)
    }

    /// Reads lines of up to `limit` bytes.
    pub fn of_at_most(limit: usize, input: impl Read + 'r) -> Result<Self, Error> {
        let mut input = BufReader::with_capacity(BUFFER, input);
        let gzip = is_gzip(input.fill_buf().map_err(Error::Input)?);
        let mut input: Box<dyn Read + 'r> = match gzip {
            true => unzipped(input).map_err(Error::Input)?,
            false => Box::new(input),
        };
        let (mut beginning, kind, failure) = read_beginning(&mut *input);
        if let Beginning::Other(kind) = kind {
            return Err(Error::NotLines(kind));
        }
        if beginning.starts_with(BYTE_ORDER_MARK) {
            beginning.drain(..BYTE_ORDER_MARK.len());
        }
        let input = io::Cursor::new(beginning).chain(Failure(failure)).chain(input);
        let input = BufReader::with_capacity(BUFFER, Box::new(input) as Box<dyn Read + 'r>);
        Ok(Lines { input, limit, ended: false })
    }

    /// Whether another whole line is in memory, so that reading it does not wait for the input.
    pub fn ready(&self) -> bool {
        self.input.buffer().contains(&b'\n')
    }

    fn read_line(&mut self) -> io::Result<Option<Line>> {
        let mut line = Vec::new();
        let mut length = 0;
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let (part, used, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(end) => (&buffer[..end], end + 1, true),
                None => (buffer, buffer.len(), buffer.is_empty()),
            };
            length += part.len();
            // Keep one byte more than allowed: it may be the `\r` of the line end.
            let room = (self.limit + 1).saturating_sub(line.len());
            line.extend_from_slice(&part[..part.len().min(room)]);
            self.input.consume(used);
            if ended {
                let at_end = used == 0;
                return Ok((!at_end || length > 0).then(|| finish(line, length, self.limit)));
            }
        }
    }
}

/// Reads an input until its kind is known. Also returns the error that ended the reading.
fn read_beginning(input: &mut dyn Read) -> (Vec<u8>, Beginning, Option<io::Error>) {
    let (mut all, mut part) = (Vec::new(), [0; BLOCK]);
    loop {
        let kind = beginning(&all, false);
        if kind != Beginning::Open {
            return (all, kind, None);
        }
        match input.read(&mut part[..BLOCK - all.len()]) {
            Ok(0) => {
                let kind = beginning(&all, true);
                return (all, kind, None);
            }
            Ok(length) => all.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (all, Beginning::Lines, Some(error)),
        }
    }
}

/// Returns an error at the position where it occurred, once.
struct Failure(Option<io::Error>);

impl Read for Failure {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

fn finish(mut line: Vec<u8>, length: usize, limit: usize) -> Line {
    let carriage_return = length == line.len() && line.last() == Some(&b'\r');
    if carriage_return {
        line.pop();
    }
    let length = length - usize::from(carriage_return);
    if length > limit { Line::TooLong(length) } else { Line::Whole(line) }
}

impl Iterator for Lines<'_> {
    type Item = Line;

    fn next(&mut self) -> Option<Line> {
        if self.ended {
            return None;
        }
        let line = self.read_line().unwrap_or_else(|error| Some(Line::Broken(error)));
        self.ended = !matches!(line, Some(Line::Whole(_) | Line::TooLong(_)));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input_kind::InputKind;

    fn length(line: Line) -> isize {
        match line {
            Line::Whole(line) => line.len().cast_signed(),
            Line::TooLong(_) => -1,
            Line::Broken(_) => -2,
        }
    }

    fn lengths(input: &[u8]) -> Vec<isize> {
        Lines::new(input).unwrap().map(length).collect()
    }

    #[test]
    fn line_ends_and_limits() {
        assert!(lengths(b"").is_empty());
        assert_eq!(lengths(b"\n"), [0]);
        assert_eq!(lengths(b"a\r\n\nbc"), [1, 0, 2]);
        let full = MAX_EVENT_BYTES;
        for (length, end, want) in [
            (full, "\n", full.cast_signed()),
            (full, "\r\n", full.cast_signed()),
            (full + 1, "\n", -1),
            (full + 1, "\r\n", -1),
            (3 * full, "\n", -1),
        ] {
            let input = ["x".repeat(length).as_bytes(), end.as_bytes(), b"y"].concat();
            assert_eq!(lengths(&input), [want, 1], "{length} {end:?}");
        }
    }

    /// An input that arrives byte by byte, and then fails.
    struct Dribble<'b>(&'b [u8], bool);

    impl Read for Dribble<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.split_first() {
                Some((byte, rest)) => {
                    (buffer[0], self.0) = (*byte, rest);
                    Ok(1)
                }
                None if self.1 => Err(io::Error::other("cut")),
                None => Ok(0),
            }
        }
    }

    #[test]
    fn a_bundle_is_no_file_of_events_however_it_comes() {
        let mut header = [0; BLOCK];
        header[..13].copy_from_slice(b"manifest.json");
        header[257..262].copy_from_slice(b"ustar");
        let bundle = [&header[..], b"{}\n{}\n"].concat();
        assert!(matches!(Lines::new(&bundle[..]), Err(Error::NotLines(InputKind::Bundle))));
        assert!(matches!(
            Lines::new(Dribble(&bundle, false)),
            Err(Error::NotLines(InputKind::Bundle))
        ));
        // What only begins so is lines, and none of its bytes is lost.
        for (input, cut, lengths) in [
            (&b"manifest.json\nx\n"[..], false, &[13, 1][..]),
            (b"manif", false, &[5]),
            (b"manif", true, &[-2]),
            (b"m\nm", true, &[1, -2]),
            (&bundle[..300], false, &[300]),
        ] {
            let lines = Lines::new(Dribble(input, cut)).unwrap().map(length);
            assert_eq!(lines.collect::<Vec<_>>(), lengths, "{input:?}");
        }
    }

    #[cfg(feature = "gzip")]
    #[test]
    fn a_broken_gzip_tail_keeps_what_came_before() {
        use flate2::{Compression, write::GzEncoder};
        use std::io::Write;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::none());
        encoder.write_all(b"one\ntwo\nthree\n").unwrap();
        let whole = encoder.finish().unwrap();
        assert_eq!(lengths(&whole), [3, 3, 5]);
        let twice = [whole.clone(), whole.clone()].concat();
        assert_eq!(lengths(&twice).len(), 6, "members may follow each other");
        assert_eq!(lengths(&whole[..whole.len() - 12]).last(), Some(&-2));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(b"manifest.json\0").unwrap();
        encoder.write_all(&[0; 243]).unwrap();
        encoder.write_all(b"ustar").unwrap();
        encoder.write_all(&[0; 1000]).unwrap();
        let bundle = encoder.finish().unwrap();
        assert!(matches!(Lines::new(&bundle[..]), Err(Error::NotLines(InputKind::Bundle))));
    }
}
