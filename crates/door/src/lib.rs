//! The door: bytes from outside become a typed event here, or are refused with a reason.
//!
//! **Invariants**
//! - There is one door. Files, standard input, flags and requests all pass it. Canonical bytes,
//!   digest, ref and typed columns are computed here, once.
//! - The door is a pure function of the bytes and a salt: no clock, no file, no store.
//! - A refused event leaves nothing behind. Nothing here panics on any bytes.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod columns;
mod refusal;
mod unused;

pub use ipse_core::event::MAX_DEPTH;
pub use ipse_core::text::printable;
pub use refusal::{Refusal, Rule};
pub use unused::{Places, Unused, UnusedMembers, unused};

pub use ipse_core::event::MAX_NAME_BYTES;

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use core::ops::Range;
use ipse_core::json::{Object, Value, write_text};
use ipse_core::time::TimeError;
use ipse_core::{Admitted, Digest, EventRef, HOUSE_SOURCE, Time, hex, is_housekeeping, json_parse};
use ipse_core::{Columns, sha256};

/// The largest event, as sent and in canonical form: one event must not fill a batch or a page.
pub const MAX_EVENT_BYTES: usize = 65_536;
/// The most members of `data.params`: each parameter has its own distribution.
pub const MAX_PARAMS: usize = 256;

/// The source of an event without one.
const DEFAULT_SOURCE: &str = "import";
const SPEC_VERSION: &str = "1.0";
const SALT_DIGITS: usize = 32;

/// Random bytes, so that the content of a forgotten event cannot be guessed from its digest.
pub type Salt = [u8; 16];

/// The origin of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Any sender outside ipse: reserved types and the reserved source are refused.
    Producer,
    /// ipse itself.
    House,
}

/// Validates an event. `salt` is called only if the event has none.
///
/// ```
/// # use ipse_door::{admit, Origin, Rule};
/// let event = br#"{"id":"1","kind":"note","time":"2026-05-06T10:00:00Z","data":{}}"#;
/// let admitted = admit(event, Origin::Producer, || [7; 16]).unwrap();
/// assert_eq!(admitted.event_type, "note");
///
/// let refusal = admit(br#"{"id":"1","kind":"note"}"#, Origin::Producer, || [7; 16]).unwrap_err();
/// assert_eq!((refusal.field.as_str(), refusal.rule), ("time", Rule::Missing));
/// ```
pub fn admit(
    bytes: &[u8],
    origin: Origin,
    salt: impl FnOnce() -> Salt,
) -> Result<Admitted, Refusal> {
    Ok(validated(bytes, origin, salt)?.0)
}

/// Reads an event from a log. Its bytes must be canonical, and its writer must be one who may write
/// its type. Returns the event, or what is wrong with it.
///
/// ```
/// # use ipse_door::{admit, read_stored, Origin};
/// let event = br#"{"id":"1","kind":"note","time":"2026-05-06T10:00:00Z","data":{}}"#;
/// let admitted = admit(event, Origin::Producer, || [7; 16]).unwrap();
/// assert!(read_stored(admitted.canonical.as_bytes()).is_ok());
/// assert_eq!(read_stored(event).unwrap_err(), "is not in canonical form");
/// ```
pub fn read_stored(bytes: &[u8]) -> Result<Admitted, String> {
    // A stored event has its salt. If it is missing, the zero salt changes the bytes.
    let read = validated(bytes, Origin::House, || [0; 16]);
    let (event, is_house) = read.map_err(|refusal| refusal.to_string())?;
    let fault = match (is_house, is_housekeeping(&event.event_type)) {
        (true, false) => "has the source of ipse's own events, but not one of their types",
        (false, true) => "has a type that only ipse may write, but another source",
        _ if event.canonical.as_bytes() != bytes => "is not in canonical form",
        _ => return Ok(event),
    };
    Err(fault.to_string())
}

/// Validates an event; returns it, and whether it has the source of ipse's own events.
fn validated(
    bytes: &[u8],
    origin: Origin,
    salt: impl FnOnce() -> Salt,
) -> Result<(Admitted, bool), Refusal> {
    if bytes.len() > MAX_EVENT_BYTES {
        return Err(too_large("as sent", bytes.len()));
    }
    let value = json_parse::parse(bytes, MAX_DEPTH).map_err(|error| Refusal::json(&error))?;
    let Value::Object(mut event) = value else {
        return Err(Refusal::new("", Rule::NotAnObject, "an event is a JSON object"));
    };
    let names = Names::take(&mut event, origin)?;
    let time = check_time(&event)?;
    check_version(&event)?;
    let salt = take_salt(&mut event, salt)?;
    check_data(&event)?;

    event.set("specversion", text(SPEC_VERSION));
    event.set("source", text(&names.source));
    event.set("type", text(&names.event_type));
    event.set("salt", text(&salt));
    let (canonical, salt_at) = written(&event);
    if canonical.len() > MAX_EVENT_BYTES {
        return Err(too_large("in canonical form", canonical.len()));
    }
    let admitted = Admitted {
        event_ref: EventRef::new(&names.source, &names.id),
        time,
        digest: Digest(sha256(&[canonical.as_bytes()])),
        salt_at,
        columns: typed_columns(&event, &names.event_type).encode(),
        canonical,
        event_type: names.event_type,
    };
    Ok((admitted, names.source == HOUSE_SOURCE))
}

/// An event of ipse itself, from parts that need no validation. Gives the same bytes as `admit`,
/// without parsing.
pub fn house_event(event_type: &str, id: &str, time: Time, data: &str, salt: Salt) -> Admitted {
    debug_assert!(is_housekeeping(event_type), "BUG: {event_type} is not housekeeping");
    let (id_text, salt) = (ipse_core::json::quoted(id), hex::encode(&salt));
    let before = format!("{{\"data\":{data},\"id\":{id_text},\"salt\":\"");
    let canonical = format!(
        "{before}{salt}\",\"source\":\"{HOUSE_SOURCE}\",\"specversion\":\"{SPEC_VERSION}\",\
         \"time\":\"{time}\",\"type\":\"{event_type}\"}}"
    );
    Admitted {
        event_ref: EventRef::new(HOUSE_SOURCE, id),
        event_type: event_type.to_string(),
        time,
        digest: Digest(sha256(&[canonical.as_bytes()])),
        salt_at: before.len()..before.len() + SALT_DIGITS,
        columns: Columns { source: Some(HOUSE_SOURCE), ..Columns::default() }.encode(),
        canonical,
    }
}

/// An event of ipse itself whose `data` is any JSON. It is validated like any other event, and
/// refused if it is too large.
pub fn admit_own(
    event_type: &str,
    id: &str,
    time: Time,
    data: &str,
    salt: Salt,
) -> Result<Admitted, Refusal> {
    let (id, kind) = (ipse_core::json::quoted(id), ipse_core::json::quoted(event_type));
    let event = format!(
        "{{\"data\":{data},\"id\":{id},\"source\":\"{HOUSE_SOURCE}\",\"time\":\"{time}\",\
         \"type\":{kind}}}"
    );
    admit(event.as_bytes(), Origin::House, || salt)
}

/// The typed columns for an event's stored canonical bytes, to check the stored copy.
pub fn columns_of(canonical: &str) -> Option<alloc::vec::Vec<u8>> {
    let value = json_parse::parse(canonical.as_bytes(), MAX_DEPTH).ok()?;
    let event = value.as_object()?;
    Some(typed_columns(event, event.get("type")?.as_text()?).encode())
}

/// The typed columns in an event that was parsed before.
pub fn columns_in<'e>(event: &'e Object<'_>, event_type: &str) -> Columns<'e> {
    typed_columns(event, event_type)
}

fn typed_columns<'e>(event: &'e Object<'_>, event_type: &str) -> Columns<'e> {
    let data = event.get("data").and_then(Value::as_object);
    let columns = data.map(|data| columns::read(data, event_type)).unwrap_or_default();
    Columns { source: event.get("source").and_then(Value::as_text), ..columns }
}

/// The refusal of an event that is too large.
pub fn too_large(how: &str, length: usize) -> Refusal {
    let message = format!("{length} bytes {how}; at most {MAX_EVENT_BYTES} are allowed");
    Refusal::new("", Rule::TooLarge, &message)
}

fn text<'a>(text: &str) -> Value<'a> {
    Value::Text(Cow::Owned(text.to_string()))
}

/// The canonical text of an event, and the range of the salt's digits in it.
fn written(event: &Object<'_>) -> (String, Range<usize>) {
    let mut canonical = String::with_capacity(512);
    let mut salt_at = 0..0;
    for (name, value) in event.iter() {
        canonical.push(if canonical.is_empty() { '{' } else { ',' });
        write_text(name, &mut canonical);
        canonical.push(':');
        if name == "salt" {
            let digits = canonical.len() + 1;
            salt_at = digits..digits + SALT_DIGITS;
        }
        value.write(&mut canonical);
    }
    canonical.push('}');
    (canonical, salt_at)
}

/// The three names of an event; `source` may be absent, and `type` may be given as `kind`.
struct Names {
    id: String,
    source: String,
    event_type: String,
}

impl Names {
    fn take(event: &mut Object<'_>, origin: Origin) -> Result<Self, Refusal> {
        let id = check_name("id", event.get("id"))?;
        let source = match event.get("source") {
            None => DEFAULT_SOURCE.to_string(),
            source => check_name("source", source)?,
        };
        let kind = event.take("kind");
        let event_type = match (event.get("type"), kind) {
            (Some(_), Some(_)) => {
                let message = "`kind` is an alias of `type`: give only one of them";
                return Err(Refusal::new("kind", Rule::TypeAndKind, message));
            }
            (None, kind @ Some(_)) => check_name("kind", kind.as_ref())?,
            (event_type, None) => check_name("type", event_type)?,
        };
        if origin == Origin::Producer {
            check_reserved(&source, &event_type)?;
        }
        Ok(Names { id, source, event_type })
    }
}

fn check_name(field: &str, value: Option<&Value<'_>>) -> Result<String, Refusal> {
    let refuse = |rule, message: &str| Err(Refusal::new(field, rule, message));
    let Some(value) = value else {
        return refuse(Rule::Missing, "every event must have it");
    };
    let Some(name) = value.as_text() else {
        return refuse(Rule::NotText, "must be a string");
    };
    if name.is_empty() {
        refuse(Rule::Empty, "must not be empty")
    } else if name.len() > MAX_NAME_BYTES {
        let length = name.len();
        let message = format!("{length} bytes long; at most {MAX_NAME_BYTES} are allowed");
        refuse(Rule::TooLong, &message)
    } else if name.chars().any(char::is_control) {
        refuse(Rule::ControlCharacter, "must not hold control characters")
    } else {
        Ok(name.to_string())
    }
}

fn check_reserved(source: &str, event_type: &str) -> Result<(), Refusal> {
    if source == HOUSE_SOURCE {
        let message = format!("`{HOUSE_SOURCE}` is the source of ipse's own events");
        return Err(Refusal::new("source", Rule::ReservedSource, &message));
    }
    if is_housekeeping(event_type) {
        let message = format!("`{event_type}` events are written by ipse itself");
        return Err(Refusal::new("type", Rule::ReservedType, &message));
    }
    Ok(())
}

fn check_time(event: &Object<'_>) -> Result<Time, Refusal> {
    let refuse = |rule, message: &str| Refusal::new("time", rule, message);
    let value =
        event.get("time").ok_or_else(|| refuse(Rule::Missing, "every event must have it"))?;
    let text = value.as_text().ok_or_else(|| {
        refuse(Rule::NotText, "must be a string in RFC 3339, such as \"2026-05-06T10:00:00Z\"")
    })?;
    Time::parse(text).map_err(|error| match error {
        TimeError::Grammar => {
            refuse(Rule::NotRfc3339, "must be RFC 3339, such as 2026-05-06T10:00:00Z")
        }
        TimeError::LeapSecond => refuse(Rule::LeapSecond, "leap seconds are not allowed"),
        TimeError::Range => refuse(Rule::TimeRange, "must lie in the years 1970 to 9999 in UTC"),
    })
}

fn check_version(event: &Object<'_>) -> Result<(), Refusal> {
    match event.get("specversion") {
        None => Ok(()),
        Some(version) if version.as_text() == Some(SPEC_VERSION) => Ok(()),
        Some(_) => {
            let message = format!("must be \"{SPEC_VERSION}\" or absent");
            Err(Refusal::new("specversion", Rule::SpecVersion, &message))
        }
    }
}

fn take_salt(event: &mut Object<'_>, fresh: impl FnOnce() -> Salt) -> Result<String, Refusal> {
    let Some(value) = event.take("salt") else { return Ok(hex::encode(&fresh())) };
    let well_formed = |salt: &&str| {
        salt.len() == SALT_DIGITS && salt.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    value.as_text().filter(well_formed).map(ToString::to_string).ok_or_else(|| {
        let message = format!("must be {SALT_DIGITS} hex digits, or absent");
        Refusal::new("salt", Rule::Salt, &message)
    })
}

fn check_data(event: &Object<'_>) -> Result<(), Refusal> {
    let Some(data) = event.get("data") else { return Ok(()) };
    let Some(data) = data.as_object() else {
        return Err(Refusal::new("data", Rule::DataNotObject, "must be an object"));
    };
    match data.get("params").and_then(Value::as_object) {
        Some(params) if params.len() > MAX_PARAMS => {
            let count = params.len();
            let message = format!("{count} parameters; at most {MAX_PARAMS} are allowed");
            Err(Refusal::new("data.params", Rule::TooManyParams, &message))
        }
        _ => Ok(()),
    }
}
