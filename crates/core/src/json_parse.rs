//! A strict JSON reader: it rejects everything that two readers could understand differently.
//!
//! Written by hand because no suitable crate reports *which* rule a document breaks and *where*,
//! and because the common ones keep the last of two duplicate names and round integers silently.
//!
//! **Invariants:** the input is a slice, so memory and time are bounded by its length; recursion is
//! bounded by the depth the caller allows; nothing here panics on any bytes.

use crate::json::{Object, Value};
use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The greatest integer that every JSON reader reads exactly, 2⁵³ − 1.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;
/// From here on, canonical text has an exponent and no longer looks like an integer.
const EXPONENT_FROM: f64 = 1e21;
/// Integers of up to this many digits are exact in a double.
const EXACT_DIGITS: usize = 15;

/// The rule that a document breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Not JSON.
    Syntax,
    /// Not UTF-8.
    Utf8,
    /// Data after the value.
    Trailing,
    /// A duplicate name in one object.
    DuplicateKey,
    /// Half of a surrogate pair.
    LoneSurrogate,
    /// U+0000.
    Nul,
    /// An integer beyond ±(2⁵³ − 1), as written or in canonical text.
    UnsafeInteger,
    /// A number too large for a double.
    Overflow,
    /// Nested more deeply than allowed.
    Depth,
}

/// The rule that a document breaks, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// The broken rule.
    pub rule: Rule,
    /// Offset of the offending byte.
    pub at: usize,
    /// The member it is in, as in `data.params.force_n`; empty for the document itself.
    pub path: String,
}

impl ParseError {
    fn inside(mut self, name: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{name}{dot}{}", self.path);
        self
    }
}

/// Reads one JSON value that is nested at most `depth` deep and fills the whole input.
pub fn parse(bytes: &[u8], depth: usize) -> Result<Value<'_>, ParseError> {
    let error = |rule, at| ParseError { rule, at, path: String::new() };
    let text = core::str::from_utf8(bytes).map_err(|e| error(Rule::Utf8, e.valid_up_to()))?;
    let mut reader = Reader { text, bytes, at: 0 };
    reader.skip_space();
    let value = reader.value(depth)?;
    reader.skip_space();
    if reader.at < bytes.len() { Err(reader.error(Rule::Trailing)) } else { Ok(value) }
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn error(&self, rule: Rule) -> ParseError {
        ParseError { rule, at: self.at, path: String::new() }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), ParseError> {
        if self.peek() != Some(byte) {
            return Err(self.error(Rule::Syntax));
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Value<'a>, ParseError> {
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'n') => self.word("null", Value::Null),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            _ => Err(self.error(Rule::Syntax)),
        }
    }

    fn word(&mut self, word: &str, value: Value<'a>) -> Result<Value<'a>, ParseError> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(self.error(Rule::Syntax));
        }
        self.at += word.len();
        Ok(value)
    }

    /// Steps over `open` and continues; true if `close` follows at once.
    fn enter(&mut self, depth: usize, close: u8) -> Result<bool, ParseError> {
        if depth == 0 {
            return Err(self.error(Rule::Depth));
        }
        self.at += 1;
        self.skip_space();
        let empty = self.peek() == Some(close);
        self.at += usize::from(empty);
        Ok(empty)
    }

    /// After an element: true if another follows a comma, false if `close` ended the list.
    fn more(&mut self, close: u8) -> Result<bool, ParseError> {
        self.skip_space();
        let more = self.peek() == Some(b',');
        if !more && self.peek() != Some(close) {
            return Err(self.error(Rule::Syntax));
        }
        self.at += 1;
        self.skip_space();
        Ok(more)
    }

    fn object(&mut self, depth: usize) -> Result<Value<'a>, ParseError> {
        let start = self.at;
        let mut members = Vec::new();
        if self.enter(depth, b'}')? {
            return Ok(Value::Object(Object::default()));
        }
        loop {
            members.push(self.member(depth - 1)?);
            if !self.more(b'}')? {
                break;
            }
        }
        let duplicate = |name: String| {
            ParseError { rule: Rule::DuplicateKey, at: start, path: String::new() }.inside(&name)
        };
        Object::from_members(members).map(Value::Object).map_err(duplicate)
    }

    fn member(&mut self, depth: usize) -> Result<(Cow<'a, str>, Value<'a>), ParseError> {
        let name = self.string()?;
        self.skip_space();
        self.expect(b':')?;
        self.skip_space();
        let value = self.value(depth).map_err(|error| error.inside(&name))?;
        Ok((name, value))
    }

    fn array(&mut self, depth: usize) -> Result<Value<'a>, ParseError> {
        let mut items = Vec::new();
        if self.enter(depth, b']')? {
            return Ok(Value::Array(items));
        }
        loop {
            let place = items.len();
            let item = self.value(depth - 1).map_err(|e| e.inside(&format!("[{place}]")))?;
            items.push(item);
            if !self.more(b']')? {
                return Ok(Value::Array(items));
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, ParseError> {
        self.expect(b'"')?;
        let start = self.at;
        self.skip_plain()?;
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(&self.text[start..self.at - 1]));
        }
        let mut text = String::from(&self.text[start..self.at]);
        loop {
            if self.peek() == Some(b'"') {
                self.at += 1;
                return Ok(Cow::Owned(text));
            }
            text.push(self.escape()?);
            let plain = self.at;
            self.skip_plain()?;
            text.push_str(&self.text[plain..self.at]);
        }
    }

    /// Stops at a quote or a backslash.
    fn skip_plain(&mut self) -> Result<(), ParseError> {
        loop {
            match self.peek() {
                Some(b'"' | b'\\') => return Ok(()),
                Some(0) => return Err(self.error(Rule::Nul)),
                None | Some(0..=0x1f) => return Err(self.error(Rule::Syntax)),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<char, ParseError> {
        self.expect(b'\\')?;
        let plain = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.error(Rule::Syntax)),
        };
        self.at += 1;
        Ok(plain)
    }

    fn unicode_escape(&mut self) -> Result<char, ParseError> {
        let start = self.at;
        let first = self.four_hex()?;
        let unpaired = ParseError { rule: Rule::LoneSurrogate, at: start, path: String::new() };
        let code = match first {
            0 => return Err(ParseError { rule: Rule::Nul, ..unpaired }),
            0xd800..=0xdbff => {
                if !self.bytes[self.at..].starts_with(b"\\u") {
                    return Err(unpaired);
                }
                self.at += 1;
                let second = self.four_hex()?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(unpaired);
                }
                0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            _ => first,
        };
        char::from_u32(code).ok_or(unpaired)
    }

    /// Reads `u` and four digits.
    fn four_hex(&mut self) -> Result<u32, ParseError> {
        self.expect(b'u')?;
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.error(Rule::Syntax))?;
            self.at += 1;
        }
        Ok(code)
    }

    fn number(&mut self) -> Result<Value<'a>, ParseError> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let whole = self.at;
        let leading_zero = self.peek() == Some(b'0');
        let digits = self.digits()?;
        if leading_zero && digits > 1 {
            self.at = whole + 1;
            return Err(self.error(Rule::Syntax));
        }
        let mut integer = true;
        if self.peek() == Some(b'.') {
            integer = false;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            integer = false;
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        let number = read_number(&self.text[start..self.at], integer && digits <= EXACT_DIGITS);
        check_number(number, integer)
            .map_err(|rule| ParseError { rule, at: start, path: String::new() })
            .map(Value::Number)
    }

    fn digits(&mut self) -> Result<usize, ParseError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(self.error(Rule::Syntax)) } else { Ok(self.at - start) }
    }
}

/// The double that a JSON number denotes, with a fast path for small integers.
fn read_number(text: &str, small_integer: bool) -> f64 {
    if small_integer && !text.starts_with('-') {
        let integer = text.bytes().fold(0, |sum: u64, digit| sum * 10 + u64::from(digit - b'0'));
        return integer as f64;
    }
    // The grammar was checked, so this parses; out of range it gives an infinity.
    text.parse().unwrap_or(f64::INFINITY)
}

/// Rejects a number that other readers round or cannot hold. `integer` is true for a number that is
/// written as an integer: a double rounds such a literal, however long it is.
fn check_number(number: f64, integer: bool) -> Result<f64, Rule> {
    let magnitude = number.abs();
    if magnitude.is_infinite() {
        Err(Rule::Overflow)
    } else if magnitude > MAX_SAFE_INTEGER && (integer || magnitude < EXPONENT_FROM) {
        Err(Rule::UnsafeInteger)
    } else {
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn breaks(text: &str) -> (Rule, &str, usize) {
        let error = parse(text.as_bytes(), 4).unwrap_err();
        (error.rule, alloc::boxed::Box::leak(error.path.into_boxed_str()), error.at)
    }

    #[test]
    fn each_rule_with_its_place() {
        assert_eq!(breaks(""), (Rule::Syntax, "", 0));
        assert_eq!(breaks("{\"a\":1}x"), (Rule::Trailing, "", 7));
        assert_eq!(breaks("{\"a\":{\"b\":1,\"b\":2}}"), (Rule::DuplicateKey, "a.b", 5));
        assert_eq!(breaks("{\"a\":1,\"\\u0061\":2}"), (Rule::DuplicateKey, "a", 0));
        assert_eq!(breaks("{\"a\":[0,\"\\ud800\"]}"), (Rule::LoneSurrogate, "a[1]", 10));
        assert_eq!(breaks("\"\\udc00\"").0, Rule::LoneSurrogate);
        assert_eq!(breaks("\"\\ud800\\u0041\"").0, Rule::LoneSurrogate);
        assert_eq!(breaks("\"\\u0000\"").0, Rule::Nul);
        assert_eq!(breaks("\"\0\"").0, Rule::Nul);
        assert_eq!(breaks("[[[[[]]]]]").0, Rule::Depth);
        for text in ["9007199254740993", "-9007199254740992", "1e17", "999999999999999900000"] {
            assert_eq!(breaks(text).0, Rule::UnsafeInteger, "{text}");
        }
        for digits in [21, 22, 30, 308] {
            let text = "1".repeat(digits);
            assert_eq!(breaks(&text).0, Rule::UnsafeInteger, "{text}");
            assert_eq!(breaks(&format!("-{text}")).0, Rule::UnsafeInteger, "-{text}");
        }
        assert_eq!(breaks(&"9".repeat(400)).0, Rule::Overflow);
        assert_eq!(breaks("[1e400]"), (Rule::Overflow, "[0]", 1));
        assert_eq!(parse(b"\"\xff\"", 1).unwrap_err().rule, Rule::Utf8);
    }

    #[test]
    fn what_is_not_json() {
        for text in [
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "NaN",
            "nul",
            "{a:1}",
            "{\"a\":1,}",
            "[1,]",
            "[1",
            "{\"a\"}",
            "\"\n\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\u{feff}{}",
            "'a'",
            "\u{a0}1",
        ] {
            assert_eq!(breaks(text).0, Rule::Syntax, "{text}");
        }
    }

    #[test]
    fn numbers_at_the_edges() {
        for (text, number) in [
            ("9007199254740991", 9_007_199_254_740_991.0),
            ("1e21", 1e21),
            ("1e+22", 1e22),
            ("-1e+22", -1e22),
            ("123456789012345678901234567890.0", 123_456_789_012_345_678_901_234_567_890.0),
            ("-0", -0.0),
            ("1e-400", 0.0),
            ("123456789012345", 123_456_789_012_345.0),
        ] {
            assert_eq!(parse(text.as_bytes(), 0), Ok(Value::Number(number)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = parse(&bytes, 8);
        }

        #[test]
        fn nearly_json_is_read_as_serde_json_reads_it(
            text in r#"[\[\]{}",:0-9eE.+\- \\untfalsr]{0,24}"#
        ) {
            if let Ok(ours) = parse(text.as_bytes(), 32) {
                let theirs: serde_json::Value = serde_json::from_str(&text).unwrap();
                let mut canonical = String::new();
                ours.write(&mut canonical);
                let theirs = serde_json_canonicalizer::to_string(&theirs).unwrap();
                prop_assert_eq!(canonical, theirs);
            }
        }
    }
}
