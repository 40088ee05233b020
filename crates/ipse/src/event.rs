//! Events as a program writes them, without JSON.
//!
//! **Invariant:** an event that is built here is text like any other and passes the same door; what
//! the door refuses is refused.

use crate::{Error, Result};
use ipse_core::event::{EXECUTION_RESULT, INCIDENT};
use ipse_core::json::{Members, Value, quoted};
use ipse_core::{EventRef, Outcome, Time, hex};
use ipse_engine::Host;

/// The source of an event that names none.
const DEFAULT_SOURCE: &str = "program";

/// Something that happened.
///
/// ```
/// use ipse::Event;
/// let worked = Event::attempt("grasp").target("cup").param("force_n", 25).success();
/// let slipped = Event::attempt("grasp").target("cup").param("force_n", 12.5).failed("slip");
/// let spill = Event::incident("ward 3").reason("spill").id("spill-1");
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    event_type: String,
    id: Option<String>,
    source: String,
    time: Option<Time>,
    data: Vec<(String, Data)>,
    params: Vec<(String, f64)>,
}

/// A value of an event.
#[derive(Clone, PartialEq, Debug)]
enum Data {
    Text(String),
    Object(Vec<(String, Property)>),
}

/// A property of an object that was met.
#[derive(Clone, PartialEq, Debug)]
pub enum Property {
    /// A number, such as a mass.
    Number(f64),
    /// A word, such as a colour.
    Text(String),
    /// Yes or no.
    Bool(bool),
}

macro_rules! property_from {
    ($($from:ty => $make:expr),* $(,)?) => {
        $(impl From<$from> for Property {
            fn from(value: $from) -> Self {
                $make(value)
            }
        })*
    };
}

property_from! {
    f64 => Property::Number,
    i32 => |value| Property::Number(f64::from(value)),
    u32 => |value| Property::Number(f64::from(value)),
    bool => Property::Bool,
    String => Property::Text,
    &str => |value: &str| Property::Text(value.to_owned()),
}

impl Event {
    /// An attempt at a skill. How it ended makes it an event: [`Attempt::success`],
    /// [`Attempt::failed`] or [`Attempt::ended`].
    pub fn attempt(skill: impl Into<String>) -> Attempt {
        Attempt(Event::new(EXECUTION_RESULT).with("skill_id", skill))
    }

    /// An incident in a zone: something went wrong, without an attempt.
    pub fn incident(zone: impl Into<String>) -> Self {
        Event::new(INCIDENT).with("zone", zone)
    }

    /// An event of any other type. It feeds facts only about the [`Event::object`] it names.
    pub fn new(event_type: impl Into<String>) -> Self {
        Event {
            event_type: event_type.into(),
            id: None,
            source: DEFAULT_SOURCE.to_owned(),
            time: None,
            data: Vec::new(),
            params: Vec::new(),
        }
    }

    /// Sets its name within its source. An event that is sent again under the same name is stored
    /// once; without a name each call stores another event.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets who reports it; `program` if absent.
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }

    /// Sets when it happened; now if absent.
    pub fn at(mut self, time: Time) -> Self {
        self.time = Some(time);
        self
    }

    /// Sets why.
    pub fn reason(self, reason: impl Into<String>) -> Self {
        self.with("failure_reason", reason)
    }

    /// Sets a text member of its data.
    pub fn with(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.set(name.into(), Data::Text(text.into()));
        self
    }

    /// Adds a property of the object that it is about, such as `("mass_g", 180)`.
    pub fn object(mut self, name: impl Into<String>, value: impl Into<Property>) -> Self {
        let property = (name.into(), value.into());
        match self.data.iter_mut().find(|(name, _)| name == "object") {
            Some((_, Data::Object(properties))) => properties.push(property),
            _ => self.set("object".to_owned(), Data::Object(vec![property])),
        }
        self
    }

    fn set(&mut self, name: String, value: Data) {
        self.data.retain(|(other, _)| *other != name);
        self.data.push((name, value));
    }

    /// Its JSON; a missing name and a missing time come from the host.
    pub(crate) fn json(&self, host: &mut dyn Host) -> Result<String> {
        let mut data = Members::new();
        for (name, value) in &self.data {
            data = match value {
                Data::Text(text) => data.text(name, text),
                Data::Object(properties) => data.raw(name, object(properties)?),
            };
        }
        if !self.params.is_empty() {
            let mut params = Members::new();
            for (name, value) in &self.params {
                params = params.raw(name, number(name, *value)?);
            }
            data = data.raw("params", params.finish());
        }
        let id = self.id.clone().unwrap_or_else(|| hex::encode(&host.salt()));
        let time = self.time.unwrap_or_else(|| host.now());
        Ok(Members::new()
            .text("id", &id)
            .text("source", &self.source)
            .text("type", &self.event_type)
            .text("time", &time.to_string())
            .raw("data", data.finish())
            .finish())
    }
}

fn object(properties: &[(String, Property)]) -> Result<String> {
    let mut members = Members::new();
    for (name, property) in properties {
        members = members.raw(
            name,
            match property {
                Property::Number(value) => number(name, *value)?,
                Property::Text(text) => quoted(text),
                Property::Bool(value) => value.to_string(),
            },
        );
    }
    Ok(members.finish())
}

/// A number as JSON; one that is not finite has none.
fn number(name: &str, value: f64) -> Result<String> {
    if !value.is_finite() {
        return Err(Error::NotANumber(name.to_owned()));
    }
    let mut text = String::new();
    Value::Number(value).write(&mut text);
    Ok(text)
}

/// An attempt at a skill whose end is not known yet.
#[must_use = "say how it ended: success(), failed(reason) or ended(outcome)"]
#[derive(Clone, PartialEq, Debug)]
pub struct Attempt(Event);

impl Attempt {
    /// Sets the class of the object that it was tried on.
    pub fn target(self, class: impl Into<String>) -> Self {
        Attempt(self.0.with("target_class", class))
    }

    /// Sets the environment that it was tried in.
    pub fn environment(self, environment: impl Into<String>) -> Self {
        Attempt(self.0.with("environment", environment))
    }

    /// Sets the zone that it was tried in.
    pub fn zone(self, zone: impl Into<String>) -> Self {
        Attempt(self.0.with("zone", zone))
    }

    /// Adds a parameter that it was tried with.
    pub fn param(mut self, name: impl Into<String>, value: impl Into<f64>) -> Self {
        let name = name.into();
        self.0.params.retain(|(other, _)| *other != name);
        self.0.params.push((name, value.into()));
        self
    }

    /// Names the intent that it goes back to.
    pub fn intent(self, intent: EventRef) -> Self {
        Attempt(self.0.with("intent", intent.to_string()))
    }

    /// It worked.
    pub fn success(self) -> Event {
        self.ended(Outcome::Success)
    }

    /// It did not work, for that reason.
    pub fn failed(self, reason: impl Into<String>) -> Event {
        self.ended(Outcome::Failed).reason(reason)
    }

    /// It ended so; only success and failure count for a rate.
    pub fn ended(self, outcome: Outcome) -> Event {
        self.0.with("outcome", outcome.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemHost;

    #[test]
    fn an_event_is_written_as_the_door_reads_it() {
        let event = Event::attempt("grasp")
            .target("cup \"a\"")
            .environment("ward")
            .param("force_n", 25)
            .param("speed", 0.5)
            .param("force_n", 26)
            .failed("slip")
            .object("mass_g", 180)
            .object("colour", "red")
            .object("full", true)
            .id("7")
            .source("arm")
            .at(Time::parse("2026-05-06T10:00:00Z").unwrap());
        let json = event.json(&mut SystemHost::new()).unwrap();
        assert_eq!(
            json,
            "{\"data\":{\"environment\":\"ward\",\"failure_reason\":\"slip\",\"object\":{\
             \"colour\":\"red\",\"full\":true,\"mass_g\":180},\"outcome\":\"failed\",\"params\":{\
             \"force_n\":26,\"speed\":0.5},\"skill_id\":\"grasp\",\
             \"target_class\":\"cup \\\"a\\\"\"},\
             \"id\":\"7\",\"source\":\"arm\",\"time\":\"2026-05-06T10:00:00Z\",\
             \"type\":\"execution_result\"}"
        );
    }

    #[test]
    fn a_number_that_is_none_is_an_error_that_names_it() {
        for bad in [f64::NAN, f64::INFINITY] {
            let event = Event::attempt("grasp").param("force_n", bad).success();
            let error = event.json(&mut SystemHost::new()).unwrap_err();
            assert_eq!(
                (error.code(), error.to_string().contains("force_n")),
                ("not_a_number", true)
            );
        }
    }
}
