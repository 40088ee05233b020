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
    /// Settings, such as a manifest or a gate file.
    Toml,
}

impl fmt::Display for InputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InputKind::Bundle => "a bundle",
            InputKind::File(kind) => kind.name(),
            InputKind::Array => "one JSON array",
            InputKind::SpreadJson => "JSON with objects over several lines",
            InputKind::Table => "a table such as CSV",
            InputKind::Toml => "TOML",
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
        [b'[', ..] if is_heading(line) => complete.then_some(Some(InputKind::Toml)),
        [b'[', ..] => Some(Some(InputKind::Array)),
        [b'{', ..] if is_open(line) => complete.then(|| end.map(|_| InputKind::SpreadJson)),
        [b'#', ..] => Some(Some(InputKind::Toml)),
        [first, ..] if first.is_ascii_alphanumeric() || *first == b'"' => {
            let is_table = line.iter().any(|byte| b",;\t".contains(byte)) && !line.contains(&b'{');
            let kind = match is_setting(line) {
                true => Some(InputKind::Toml),
                false => is_table.then_some(InputKind::Table),
            };
            complete.then_some(kind)
        }
        [] => ended.then_some(None),
        _ => Some(None),
    }
}

/// Whether braces or brackets of a line stay open at its end, outside of texts.
fn is_open(line: &[u8]) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_i64, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => depth += 1,
            b'}' | b']' if !in_text => depth -= 1,
            _ => {}
        }
    }
    depth > 0
}

/// Whether a line is the heading of a TOML table.
fn is_heading(line: &[u8]) -> bool {
    let inner = line.trim_ascii_end().strip_prefix(b"[").and_then(|it| it.strip_suffix(b"]"));
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-\"[]".contains(byte);
    inner.is_some_and(|it| it.first().is_some_and(u8::is_ascii_alphabetic) && it.iter().all(plain))
}

/// Whether a line gives a value to a name, as TOML does.
fn is_setting(line: &[u8]) -> bool {
    let Some(at) = line.iter().position(|byte| *byte == b'=') else { return false };
    let name = line[..at].trim_ascii();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-\"".contains(byte);
    !name.is_empty() && name.iter().all(plain)
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
            (b"{\"a\":\"{\"}\n", Beginning::Lines),
            (b"{\"id\":\"1\",\n\"x\":1}\n", other(InputKind::SpreadJson)),
            (b"# a manifest\nagent_id = \"a\"\n", other(InputKind::Toml)),
            (b"agent_id = \"a\"\n", other(InputKind::Toml)),
            (b"[skills.\"grasp\"]\n", other(InputKind::Toml)),
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
        assert_eq!(beginning(b"{\"a\":1}\n", false), Beginning::Lines);
        for open in [&b""[..], b"{", b"{ ", b"\xef\xbb", b"id,ti", b"\x89MC", b"  ", b"{\"a\":"] {
            assert_eq!(beginning(open, false), Beginning::Open, "{open:?}");
        }
    }
}
