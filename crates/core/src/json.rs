//! JSON values and their one canonical text, RFC 8785.
//!
//! **Invariants:** members of an `Object` are unique and sorted by UTF-16 code units, from the
//! moment it is built; so writing never sorts, and equal values have equal bytes.

use crate::Micro;
use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Ordering;

/// A JSON value; text is borrowed from the input where it holds no escape.
#[derive(Clone, PartialEq, Debug)]
pub enum Value<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A finite double.
    Number(f64),
    /// A string.
    Text(Cow<'a, str>),
    /// An array.
    Array(Vec<Value<'a>>),
    /// An object.
    Object(Object<'a>),
}

impl<'a> Value<'a> {
    /// The text, if this is a string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The micro-units, if this is a usable number.
    pub fn as_micro(&self) -> Option<Micro> {
        match self {
            Value::Number(number) => Micro::from_f64(*number),
            _ => None,
        }
    }

    /// The integer, if this is one that is not negative.
    pub fn as_count(&self) -> Option<u64> {
        match self {
            Value::Number(number) => ryu_js::Buffer::new().format_finite(*number).parse().ok(),
            _ => None,
        }
    }

    /// The members, if this is an object.
    pub fn as_object(&self) -> Option<&Object<'a>> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Appends the RFC 8785 bytes of this value.
    pub fn write(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(true) => out.push_str("true"),
            Value::Bool(false) => out.push_str("false"),
            Value::Number(number) => out.push_str(ryu_js::Buffer::new().format_finite(*number)),
            Value::Text(text) => write_text(text, out),
            Value::Array(items) => write_list(items, out),
            Value::Object(object) => object.write(out),
        }
    }
}

fn write_list(items: &[Value<'_>], out: &mut String) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        item.write(out);
    }
    out.push(']');
}

/// The members of a JSON object, unique and in UTF-16 order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Object<'a>(Vec<(Cow<'a, str>, Value<'a>)>);

impl<'a> Object<'a> {
    /// Sorts the members; fails with the first duplicate name.
    pub fn from_members(mut members: Vec<(Cow<'a, str>, Value<'a>)>) -> Result<Self, String> {
        members.sort_by(|a, b| utf16_order(&a.0, &b.0));
        match members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(pair[0].0.to_string()),
            None => Ok(Object(members)),
        }
    }

    /// The member called `name`.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        self.0.iter().find(|(member, _)| member == name).map(|(_, value)| value)
    }

    /// Sets a member, replacing one of the same name.
    pub fn set(&mut self, name: &'a str, value: Value<'a>) {
        match self.0.binary_search_by(|(member, _)| utf16_order(member, name)) {
            Ok(place) => self.0[place].1 = value,
            Err(place) => self.0.insert(place, (Cow::Borrowed(name), value)),
        }
    }

    /// Removes the member called `name` and returns it.
    pub fn take(&mut self, name: &str) -> Option<Value<'a>> {
        let place = self.0.iter().position(|(member, _)| member == name)?;
        Some(self.0.remove(place).1)
    }

    /// All members in canonical order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value<'a>)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value))
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the object has no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends the RFC 8785 bytes of this object.
    pub fn write(&self, out: &mut String) {
        write_members(self.0.iter().map(|(name, value)| (name.as_ref(), value)), out, Value::write);
    }
}

/// An object that is built from members in canonical JSON.
///
/// ```
/// # use ipse_core::json::Members;
/// let inner = Members::new().raw("n", "15").finish();
/// let text = Members::new().text("b", "x").raw("a", inner).finish();
/// assert_eq!(text, r#"{"a":{"n":15},"b":"x"}"#);
/// ```
#[derive(Debug, Default)]
pub struct Members(Vec<(String, String)>);

impl Members {
    /// Starts without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a member whose value is canonical JSON text.
    #[must_use]
    pub fn raw(mut self, name: impl Into<String>, json: impl ToString) -> Self {
        self.0.push((name.into(), json.to_string()));
        self
    }

    /// Adds a member whose value is a string.
    #[must_use]
    pub fn text(self, name: impl Into<String>, text: &str) -> Self {
        self.raw(name, quoted(text))
    }

    /// Adds a member if there is a value.
    #[must_use]
    pub fn optional(self, name: impl Into<String>, json: Option<impl ToString>) -> Self {
        match json {
            Some(json) => self.raw(name, json),
            None => self,
        }
    }

    /// Whether no member was added.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The canonical text. A duplicate name is a bug of the caller.
    pub fn finish(mut self) -> String {
        self.0.sort_by(|a, b| utf16_order(&a.0, &b.0));
        debug_assert!(self.0.windows(2).all(|pair| pair[0].0 != pair[1].0), "BUG: member twice");
        let mut out = String::new();
        let members = self.0.iter().map(|(name, json)| (name.as_str(), json));
        write_members(members, &mut out, |json, out| out.push_str(json));
        out
    }
}

fn write_members<'m, V: 'm>(
    members: impl Iterator<Item = (&'m str, &'m V)>,
    out: &mut String,
    write_value: impl Fn(&'m V, &mut String),
) {
    out.push('{');
    for (index, (name, value)) in members.enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_text(name, out);
        out.push(':');
        write_value(value, out);
    }
    out.push('}');
}

/// An array of texts that are already canonical JSON.
///
/// ```
/// # use ipse_core::json::list;
/// assert_eq!(list(["1", "\"b\""].map(str::to_owned)), r#"[1,"b"]"#);
/// ```
pub fn list(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    String::from("[") + &items.join(",") + "]"
}

/// A JSON string literal.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    write_text(text, &mut out);
    out
}

/// The inside of a JSON string literal: control characters, quotes and backslashes escaped.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    write_escaped(text, &mut out);
    out
}

/// Appends a text as a JSON string.
pub fn write_text(text: &str, out: &mut String) {
    out.push('"');
    write_escaped(text, out);
    out.push('"');
}

fn write_escaped(text: &str, out: &mut String) {
    // Most texts need no escape: check them sixteen bytes at a time, and copy.
    let needs_escape = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    let any = |bytes: &[u8]| bytes.iter().fold(false, |any, byte| any | needs_escape(byte));
    let (blocks, rest) = text.as_bytes().as_chunks::<16>();
    if !blocks.iter().any(|block| any(block)) && !any(rest) {
        out.push_str(text);
        return;
    }
    let mut clean_from = 0;
    for (at, byte) in text.bytes().enumerate().filter(|(_, byte)| needs_escape(byte)) {
        out.push_str(&text[clean_from..at]);
        write_escape(byte, out);
        clean_from = at + 1;
    }
    out.push_str(&text[clean_from..]);
}

fn write_escape(byte: u8, out: &mut String) {
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        0x08 => out.push_str("\\b"),
        b'\t' => out.push_str("\\t"),
        b'\n' => out.push_str("\\n"),
        0x0c => out.push_str("\\f"),
        b'\r' => out.push_str("\\r"),
        _ => {
            out.push_str("\\u00");
            out.push_str(&crate::hex::encode(&[byte]));
        }
    }
}

/// RFC 8785's member order: by UTF-16 code units.
///
/// It differs from byte order only where a character beyond U+FFFF meets one from U+E000 on, and
/// both begin with a byte of 0xEE or more.
pub fn utf16_order(a: &str, b: &str) -> Ordering {
    // The two orders differ only where both texts continue with a character beyond the surrogates.
    match a.bytes().zip(b.bytes()).find(|(a, b)| a != b) {
        Some((0xee.., 0xee..)) => a.encode_utf16().cmp(b.encode_utf16()),
        Some((a, b)) => a.cmp(&b),
        None => a.len().cmp(&b.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json_parse::parse;
    use alloc::format;
    use proptest::prelude::*;

    fn canonical(text: &str) -> String {
        let mut out = String::new();
        parse(text.as_bytes(), 64).unwrap().write(&mut out);
        out
    }

    #[test]
    fn rfc_8785_section_3_2_2() {
        let input = r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
            "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals":[null,true,false]}"#;
        let want = "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,\
            0.002,1e-27],\"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}";
        assert_eq!(canonical(input), want);
    }

    #[test]
    fn rfc_8785_appendix_b_numbers() {
        for (bits, text) in [
            (0x0000_0000_0000_0000_u64, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            let mut out = String::new();
            Value::Number(f64::from_bits(bits)).write(&mut out);
            assert_eq!(out, text, "{bits:016x}");
        }
    }

    #[test]
    fn members_are_sorted_by_utf16_units() {
        let input = "{\"\\u20ac\":1,\"\\r\":2,\"\\ufb33\":3,\"1\":4,\"\u{1f600}\":5,\"\\u0080\":6,\
            \"\\u00f6\":7}";
        assert_eq!(
            canonical(input),
            "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}"
        );
    }

    proptest! {
        #[test]
        fn short_cut_of_the_order_is_the_order(a in "\\PC{0,4}", b in "\\PC{0,4}") {
            prop_assert_eq!(utf16_order(&a, &b), a.encode_utf16().cmp(b.encode_utf16()));
        }

        #[test]
        fn two_other_programs_agree(text in "\\PC{0,6}", bits: u64) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite() && !(9e15..1e21).contains(&number.abs()));
            let input = format!("{{{}:[{number:e}],\"k\u{fb33}\":1,\"k😀\":true}}", quoted(&text));
            prop_assume!(parse(input.as_bytes(), 8).is_ok());
            let theirs: serde_json::Value = serde_json::from_str(&input).unwrap();
            prop_assert_eq!(
                canonical(&input),
                serde_json_canonicalizer::to_string(&theirs).unwrap()
            );
        }
    }
}
