//! Refusals: the field, the broken rule, and a message.
//!
//! **Invariant:** every rule has one fixed code, and the codes are part of the interface.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use ipse_core::json_parse::{self, ParseError};
use ipse_core::text::printable;

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident = $code:literal),* $(,)?) => {
        /// A rule of the door.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub enum Rule { $($(#[$doc])* $name),* }

        impl Rule {
            /// Every rule.
            pub const ALL: &[Rule] = &[$(Rule::$name),*];

            /// The code in reports.
            pub fn code(self) -> &'static str {
                match self { $(Rule::$name => $code),* }
            }
        }
    };
}

rules! {
    /// Not JSON.
    InvalidJson = "invalid_json",
    /// Not UTF-8.
    InvalidUtf8 = "invalid_utf8",
    /// Data after the object.
    TrailingData = "trailing_data",
    /// A duplicate name in one object.
    DuplicateKey = "duplicate_key",
    /// Half of a surrogate pair.
    LoneSurrogate = "lone_surrogate",
    /// U+0000 in a text or a name.
    Nul = "nul",
    /// An integer beyond ±(2⁵³ − 1).
    UnsafeInteger = "unsafe_integer",
    /// A number too large for a double.
    NumberOverflow = "number_overflow",
    /// Nested more than 32 deep.
    TooDeep = "too_deep",
    /// More than 64 KiB.
    TooLarge = "too_large",
    /// The event is not an object.
    NotAnObject = "not_an_object",
    /// A required field is missing.
    Missing = "missing",
    /// A name is empty.
    Empty = "empty",
    /// A field that must be a string is not one.
    NotText = "not_text",
    /// A name is longer than 256 bytes.
    TooLong = "too_long",
    /// A name contains a control character.
    ControlCharacter = "control_character",
    /// The time is not RFC 3339.
    NotRfc3339 = "not_rfc3339",
    /// The time is a leap second.
    LeapSecond = "leap_second",
    /// The time is outside the years 1970 to 9999.
    TimeRange = "time_range",
    /// `type` and `kind` together.
    TypeAndKind = "type_and_kind",
    /// Another version of CloudEvents.
    SpecVersion = "specversion",
    /// The salt is not 32 hex digits.
    Salt = "salt",
    /// `data` is not an object.
    DataNotObject = "data_not_object",
    /// `data` and `data_base64` together; stored and signed events may have both.
    DataAndBase64 = "data_and_base64",
    /// More than 256 parameters.
    TooManyParams = "too_many_params",
    /// A type that only ipse writes.
    ReservedType = "reserved_type",
    /// The source under which only ipse writes.
    ReservedSource = "reserved_source",
    /// The event was in the log and was forgotten; only the log can check this.
    Forgotten = "forgotten",
    /// The same source and id with other content is in the log.
    Conflict = "conflict",
    /// The log requires signed events, and this one has no valid signature.
    Unsigned = "unsigned",
    /// The time is too far ahead of the clock of the receiver; only the ways in check this.
    TimeAhead = "time_ahead",
    /// The token or the key of the producer may not use this source; only the ways in check this.
    SourceNotAllowed = "source_not_allowed",
    /// A producer's signature is invalid; its events count as unsigned.
    WrongSignature = "wrong_signature",
    /// The input ended inside this line.
    Truncated = "truncated",
}

/// The reason why an event was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// The offending field, as in `data.params.force_n`, shortened and without control characters;
    /// empty for the event as a whole.
    pub field: String,
    /// The broken rule.
    pub rule: Rule,
    /// The error and the correct form.
    pub message: String,
}

impl Refusal {
    /// A refusal with a message.
    pub fn new(field: &str, rule: Rule, message: &str) -> Self {
        Refusal { field: printable(field), rule, message: message.to_string() }
    }

    /// The refusal of bytes that are not strict JSON.
    pub fn json(error: &ParseError) -> Self {
        let column = error.at + 1;
        let (rule, message) = match error.rule {
            json_parse::Rule::Syntax => (Rule::InvalidJson, "not valid JSON"),
            json_parse::Rule::Utf8 => (Rule::InvalidUtf8, "not valid UTF-8"),
            json_parse::Rule::Trailing => (Rule::TrailingData, "data after the event"),
            json_parse::Rule::DuplicateKey => (Rule::DuplicateKey, "duplicate name"),
            json_parse::Rule::LoneSurrogate => (Rule::LoneSurrogate, "half of a surrogate pair"),
            json_parse::Rule::Nul => (Rule::Nul, "U+0000 is not allowed"),
            json_parse::Rule::UnsafeInteger => (
                Rule::UnsafeInteger,
                "an integer beyond ±9007199254740991 reads differently in different programs; \
                 send it as a string",
            ),
            json_parse::Rule::Overflow => (Rule::NumberOverflow, "too large for a double"),
            json_parse::Rule::Depth => (Rule::TooDeep, "nested more than 32 deep"),
        };
        Refusal::new(&error.path, rule, &format!("{message} (byte {column})"))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Refusal { field, rule, message } = self;
        let code = rule.code();
        if field.is_empty() {
            write!(f, "{message} [{code}]")
        } else {
            write!(f, "`{field}`: {message} [{code}]")
        }
    }
}

impl core::error::Error for Refusal {}
