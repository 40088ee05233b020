//! Values of parameters and properties, and the lists of them in the builders.
//!
//! **Invariant:** a list has each name once; a value that is set again replaces the earlier one.

use crate::{Error, Result};
use ipse_core::json::{Members, Value as Json, quoted};

/// A value of a parameter, of a property of an object, or of a member of an event's data: a number,
/// a text or a boolean.
///
/// Made from `f64`, integers of up to 32 bits, `bool`, `&str` and `String`. Larger integers have no
/// exact number: convert them to `f64`, or write them as text.
///
/// ```
/// use ipse::Intent;
/// let drive = Intent::new("navigation.move_to").environment("ward3");
/// let drive = drive.param("place", "bed 4").param("speed_m_s", 0.5);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A number, such as a force or a mass.
    Number(f64),
    /// A word, such as a place or a colour.
    Text(String),
    /// True or false.
    Bool(bool),
}

macro_rules! value_from {
    ($($from:ty => $make:expr),* $(,)?) => {
        $(impl From<$from> for Value {
            fn from(value: $from) -> Self {
                $make(value)
            }
        })*
    };
}

value_from! {
    f64 => Value::Number,
    i8 => |value| Value::Number(f64::from(value)),
    i16 => |value| Value::Number(f64::from(value)),
    i32 => |value| Value::Number(f64::from(value)),
    u8 => |value| Value::Number(f64::from(value)),
    u16 => |value| Value::Number(f64::from(value)),
    u32 => |value| Value::Number(f64::from(value)),
    bool => Value::Bool,
    String => Value::Text,
    &String => |value: &String| Value::Text(value.clone()),
    &str => |value: &str| Value::Text(value.to_owned()),
}

impl Value {
    /// The value as JSON; an error if it is a number that is not finite.
    pub(crate) fn json(&self, name: &str) -> Result<String> {
        Ok(match self {
            Value::Number(number) if number.is_finite() => {
                let mut text = String::new();
                Json::Number(*number).write(&mut text);
                text
            }
            Value::Number(_) => return Err(Error::NotANumber(name.to_owned())),
            Value::Text(text) => quoted(text),
            Value::Bool(value) => value.to_string(),
        })
    }
}

/// Values by parameter or property name.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Values(Vec<(String, Value)>);

impl Values {
    /// Sets the value of a name and replaces an earlier one.
    pub(crate) fn set(&mut self, name: String, value: Value) {
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, value));
    }

    /// The values as a JSON object.
    pub(crate) fn json(&self) -> Result<String> {
        let mut members = Members::new();
        for (name, value) in &self.0 {
            members = members.raw(name, value.json(name)?);
        }
        Ok(members.finish())
    }
}
