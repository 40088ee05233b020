//! An intent: a planner's proposal, read from the body of a request.
//!
//! **Invariants:** an intent has a skill, and its names and texts can be printed and stored.
//! Unknown members are an error, so that nothing in a request is silently ignored.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use ipse_core::MAX_TEXT_BYTES;
use ipse_core::intent::MAX_PLANNER_BYTES;
use ipse_core::json::{Object, Value};
use ipse_core::json_parse::{self, ParseError, Rule};
use ipse_core::text::printable;

/// The largest body. Together with the verdict it must fit into an event of 64 KiB.
pub const MAX_INTENT_BYTES: usize = 49_152;
/// The deepest nesting, the intent itself being 1.
pub const MAX_INTENT_DEPTH: usize = 8;
/// The longest skill, target class or environment: they are names.
pub const MAX_NAME_BYTES: usize = 256;
/// The most parameters of an intent, and of a skill.
pub const MAX_PARAMS: usize = 64;
/// The longest name of a parameter.
pub const MAX_PARAM_NAME_BYTES: usize = 64;
/// The largest `params`, as canonical JSON: the event stores them as requested and as admitted.
pub const MAX_PARAMS_BYTES: usize = 8192;

const MEMBERS: [&str; 6] =
    ["skill_id", "target_class", "environment", "params", "consultation", "planner"];
const PLANNER: [&str; 2] = ["name", "version"];

/// A planner's proposal.
///
/// ```
/// # use ipse_gates::Intent;
/// let intent = Intent::read(br#"{"skill_id":"grasp","params":{"force_n":25}}"#).unwrap();
/// assert_eq!((&*intent.skill_id, intent.params.len()), ("grasp", 1));
///
/// let bad = Intent::read(br#"{"skill":"grasp"}"#).unwrap_err();
/// assert_eq!((&*bad.field, bad.rule), ("skill", "unknown_member"));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Intent<'a> {
    /// The skill to use.
    pub skill_id: Cow<'a, str>,
    /// The class of the target.
    pub target_class: Option<Cow<'a, str>>,
    /// The environment of the action.
    pub environment: Option<Cow<'a, str>>,
    /// The parameters, as requested.
    pub params: Object<'a>,
    /// The consultation: the record of the facts that the planner read.
    pub consultation: Option<Object<'a>>,
    /// The program that proposes, as it names itself.
    pub planner: Option<Planner<'a>>,
}

/// The program that proposes. It is recorded, and no gate reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planner<'a> {
    /// The name of the program.
    pub name: Cow<'a, str>,
    /// The version of the program.
    pub version: Cow<'a, str>,
}

/// The reason why a body is not a valid intent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadIntent {
    /// The offending field, as in `params.force_n`, shortened and without control characters; empty
    /// for the body as a whole.
    pub field: String,
    /// The code of the broken rule.
    pub rule: &'static str,
    /// The error and the correct form.
    pub message: String,
}

impl BadIntent {
    fn new(field: &str, rule: &'static str, message: impl Into<String>) -> Self {
        BadIntent { field: printable(field), rule, message: message.into() }
    }
}

impl fmt::Display for BadIntent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadIntent { field, rule, message } = self;
        match field.is_empty() {
            true => write!(f, "{message} [{rule}]"),
            false => write!(f, "`{field}`: {message} [{rule}]"),
        }
    }
}

impl core::error::Error for BadIntent {}

impl<'a> Intent<'a> {
    /// Reads the body of a request.
    pub fn read(body: &'a [u8]) -> Result<Self, BadIntent> {
        if body.len() > MAX_INTENT_BYTES {
            let message = format!("{} bytes; at most {MAX_INTENT_BYTES} are allowed", body.len());
            return Err(BadIntent::new("", "too_large", message));
        }
        let value = json_parse::parse(body, MAX_INTENT_DEPTH).map_err(|error| not_json(&error))?;
        let Value::Object(mut members) = value else {
            return Err(BadIntent::new("", "not_an_object", "an intent is a JSON object"));
        };
        if let Some((name, _)) = members.iter().find(|(name, _)| !MEMBERS.contains(name)) {
            let message = format!("no such member; there are {}", MEMBERS.join(", "));
            return Err(BadIntent::new(name, "unknown_member", message));
        }
        let Some(skill_id) = name(&mut members, "skill_id")? else {
            return Err(BadIntent::new("skill_id", "missing", "every intent must name a skill"));
        };
        let intent = Intent {
            skill_id,
            target_class: name(&mut members, "target_class")?,
            environment: name(&mut members, "environment")?,
            params: object(&mut members, "params")?.unwrap_or_default(),
            consultation: object(&mut members, "consultation")?,
            planner: object(&mut members, "planner")?.map(planner).transpose()?,
        };
        check_params(&intent.params)?;
        Ok(intent)
    }
}

fn name<'a>(members: &mut Object<'a>, field: &str) -> Result<Option<Cow<'a, str>>, BadIntent> {
    match members.take(field) {
        None => Ok(None),
        Some(Value::Text(text)) => {
            check_text(field, &text, MAX_NAME_BYTES)?;
            Ok(Some(text))
        }
        Some(_) => Err(BadIntent::new(field, "not_text", "must be a string, or left out")),
    }
}

fn object<'a>(members: &mut Object<'a>, field: &str) -> Result<Option<Object<'a>>, BadIntent> {
    match members.take(field) {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(_) => Err(BadIntent::new(field, "not_an_object", "must be an object, or left out")),
    }
}

fn planner(mut members: Object<'_>) -> Result<Planner<'_>, BadIntent> {
    if let Some((name, _)) = members.iter().find(|(name, _)| !PLANNER.contains(name)) {
        let message = format!("no such member; there are {}", PLANNER.join(", "));
        return Err(BadIntent::new(&format!("planner.{name}"), "unknown_member", message));
    }
    let [name, version] = PLANNER.map(|member| {
        let field = format!("planner.{member}");
        match members.take(member) {
            None => Err(BadIntent::new(&field, "missing", "a planner has a name and a version")),
            Some(Value::Text(text)) => {
                check_text(&field, &text, MAX_PLANNER_BYTES)?;
                Ok(text)
            }
            Some(_) => Err(BadIntent::new(&field, "not_text", "must be a string")),
        }
    });
    Ok(Planner { name: name?, version: version? })
}

fn check_params(params: &Object<'_>) -> Result<(), BadIntent> {
    if params.len() > MAX_PARAMS {
        let message = format!("{} parameters; at most {MAX_PARAMS} are allowed", params.len());
        return Err(BadIntent::new("params", "too_many_params", message));
    }
    for (name, value) in params.iter() {
        let field = format!("params.{name}");
        check_text(&field, name, MAX_PARAM_NAME_BYTES)?;
        if let Value::Text(text) = value {
            check_text(&field, text, MAX_TEXT_BYTES)?;
        }
    }
    let mut canonical = String::new();
    params.write(&mut canonical);
    if canonical.len() > MAX_PARAMS_BYTES {
        let message = format!("{} bytes; at most {MAX_PARAMS_BYTES} are allowed", canonical.len());
        return Err(BadIntent::new("params", "too_large", message));
    }
    Ok(())
}

fn check_text(field: &str, text: &str, limit: usize) -> Result<(), BadIntent> {
    if text.is_empty() {
        Err(BadIntent::new(field, "empty", "must not be empty"))
    } else if text.len() > limit {
        let message = format!("{} bytes; at most {limit} are allowed", text.len());
        Err(BadIntent::new(field, "too_long", message))
    } else if text.chars().any(char::is_control) {
        let message = "control characters are not allowed".to_string();
        Err(BadIntent::new(field, "control_character", message))
    } else {
        Ok(())
    }
}

/// Uses the codes of the door.
fn not_json(error: &ParseError) -> BadIntent {
    let (rule, message) = match error.rule {
        Rule::Syntax => ("invalid_json", "not valid JSON"),
        Rule::Utf8 => ("invalid_utf8", "not valid UTF-8"),
        Rule::Trailing => ("trailing_data", "data after the intent"),
        Rule::DuplicateKey => ("duplicate_key", "duplicate name"),
        Rule::LoneSurrogate => ("lone_surrogate", "half of a surrogate pair"),
        Rule::Nul => ("nul", "U+0000 is not allowed"),
        Rule::UnsafeInteger => ("unsafe_integer", "an integer beyond ±9007199254740991"),
        Rule::Overflow => ("number_overflow", "too large for a double"),
        Rule::Depth => ("too_deep", "nested more than 8 deep"),
    };
    BadIntent::new(&error.path, rule, format!("{message} (byte {})", error.at + 1))
}
