//! Inputs that are not JSON Lines, recognised by their first line.
//!
//! **Invariants:** the decision needs one line at most, so a pipe that pauses after its first event
//! is not waited for. Lines after the first never decide: each is accepted or refused alone.

use ipse_bundle::{BLOCK, is_bundle};
use ipse_core::FileKind;
use std::fmt;

/// The byte order mark of UTF-8. It is skipped.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An input that cannot be read as JSON Lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum InputKind {
    /// A bundle. It is imported as a whole, after it verified.
    Bundle,
    /// A file of another program.
    File(FileKind),
    /// One JSON array.
    Array,
    /// JSON objects that are spread over several lines.
    SpreadJson,
    /// Rows with separators, such as CSV.
    Table,
}

impl fmt::Display for InputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InputKind::Bundle => "a bundle",
            InputKind::File(kind) => kind.name(),
            InputKind::Array => "one JSON array",
            InputKind::SpreadJson => "JSON with objects over several lines",
            InputKind::Table => "a table such as CSV",
        })
    }
}

/// The decision about the beginning of an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Beginning {
    Lines,
    Other(InputKind),
    /// More bytes are needed.
    Open,
}

/// Decides by the first bytes of an input. `ended` says that no more bytes follow.
pub(crate) fn beginning(bytes: &[u8], ended: bool) -> Beginning {
    let ended = ended || bytes.len() >= BLOCK;
    if let Some(kind) = FileKind::of(bytes) {
        return Beginning::Other(InputKind::File(kind));
    }
    match is_bundle(bytes) {
        Some(true) => return Beginning::Other(InputKind::Bundle),
        None if !ended => return Beginning::Open,
        _ => {}
    }
    let may_be_mark = BYTE_ORDER_MARK.starts_with(bytes);
    if !ended && (may_be_mark || FileKind::is_possible(bytes)) {
        return Beginning::Open;
    }
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    match first_line(text.trim_ascii_start(), ended) {
        Some(Some(kind)) => Beginning::Other(kind),
        Some(None) => Beginning::Lines,
        None => Beginning::Open,
    }
}

/// The kind that the first line has; `None` if more bytes must show it.
fn first_line(text: &[u8], ended: bool) -> Option<Option<InputKind>> {
    let end = text.iter().position(|byte| *byte == b'\n');
    let line = &text[..end.unwrap_or(text.len())];
    let complete = ended || end.is_some();
    match line {
        [b'[', ..] => Some(Some(InputKind::Array)),
        [b'{', rest @ ..] if rest.trim_ascii().is_empty() => {
            complete.then(|| end.map(|_| InputKind::SpreadJson))
        }
        [first, ..] if first.is_ascii_alphanumeric() || *first == b'"' => {
            let is_table = line.iter().any(|byte| b",;\t".contains(byte)) && !line.contains(&b'{');
            complete.then(|| is_table.then_some(InputKind::Table))
        }
        [] => ended.then_some(None),
        _ => Some(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_decides() {
        let other = Beginning::Other;
        for (input, want) in [
            (&b"{\"id\":\"1\"}\n"[..], Beginning::Lines),
            (b"\xef\xbb\xbf{\"id\"", Beginning::Lines),
            (b"\n\n{\"id\"", Beginning::Lines),
            (b"hello\n", Beginning::Lines),
            (b"", Beginning::Lines),
            (b"{", Beginning::Lines),
            (b"\xff\xfe{\0", other(InputKind::File(FileKind::Utf16))),
            (b"SQLite format 3\0x", other(InputKind::File(FileKind::Sqlite))),
            (b" [ {", other(InputKind::Array)),
            (b"{\r\n  \"id\"", other(InputKind::SpreadJson)),
            (b"id,time,skill\n", other(InputKind::Table)),
            (b"\"id\";\"time\"\n", other(InputKind::Table)),
            (b"id\ttime", other(InputKind::Table)),
        ] {
            assert_eq!(beginning(input, true), want, "{}", String::from_utf8_lossy(input));
        }
    }

    #[test]
    fn a_pause_after_the_first_event_is_not_waited_for() {
        assert_eq!(beginning(b"{\"", false), Beginning::Lines);
        for open in [&b""[..], b"{", b"{ ", b"\xef\xbb", b"id,ti", b"\x89MC", b"  "] {
            assert_eq!(beginning(open, false), Beginning::Open, "{open:?}");
        }
    }
}
