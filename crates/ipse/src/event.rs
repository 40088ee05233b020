//! Builders for events, without JSON.
//!
//! **Invariant:** an event that is built here becomes JSON and is validated by the same door as any
//! other event.

use crate::value::{Value, Values};
use crate::{Result, SystemHost};
use ipse_core::event::{EXECUTION_RESULT, INCIDENT};
use ipse_core::json::Members;
use ipse_core::{EventRef, Outcome, Time, hex};
use ipse_engine::Host;

/// The default source of an event.
const DEFAULT_SOURCE: &str = "program";

/// Something that happened to the agent.
///
/// ```
/// use ipse::Event;
/// let worked = Event::attempt("grasp").target("cup").param("force_n", 25).success();
/// let slipped = Event::attempt("grasp").target("cup").param("force_n", 12.5).failed("slip");
/// let spill = Event::incident("ward 3").reason("spill").id("spill-1");
/// ```
///
/// A setter, data member, parameter or property that is given twice keeps the last value. The same
/// holds for [`Attempt`] and [`Intent`](crate::Intent).
///
/// The time of an event is the time at which it was built, unless [`Event::at`] sets another.
/// Recording a clone of an event that has an [`Event::id`] is therefore a duplicate and stores
/// nothing. An event that is built again with that id has another time and is a conflict.
#[derive(Clone, PartialEq, Debug)]
pub struct Event {
    event_type: String,
    id: Option<String>,
    source: String,
    time: Time,
    data: Vec<(String, Data)>,
}

/// A member of an event's data.
#[derive(Clone, PartialEq, Debug)]
enum Data {
    Value(Value),
    Values(Values),
}

impl Event {
    /// Starts an attempt at a skill. [`Attempt::success`], [`Attempt::failed`] or
    /// [`Attempt::ended`] turns it into an event.
    pub fn attempt(skill: impl Into<String>) -> Attempt {
        Attempt(Event::new(EXECUTION_RESULT).text("skill_id", skill))
    }

    /// An incident in a zone: something went wrong, without an attempt.
    pub fn incident(zone: impl Into<String>) -> Self {
        Event::new(INCIDENT).text("zone", zone)
    }

    /// An event of any other type. It feeds only facts about its [`Event::object`], if it has one.
    pub fn new(event_type: impl Into<String>) -> Self {
        Event {
            event_type: event_type.into(),
            id: None,
            source: DEFAULT_SOURCE.to_owned(),
            time: SystemHost::new().now(),
            data: Vec::new(),
        }
    }

    /// Sets the id, which is unique within the source. An event that is recorded again with the
    /// same id is stored once; without an id each call stores another event. To retry, keep the
    /// event and record a clone of it, or set the time with [`Event::at`].
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the program that reports the event. Default: `program`.
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }

    /// Sets the time at which it happened. Default: the time at which it was built.
    ///
    /// ```
    /// use ipse::{Event, Time};
    /// let text = Event::incident("ward 3").at(Time::parse("2026-05-06T10:00:00Z")?);
    /// let clock = std::time::UNIX_EPOCH.elapsed().map_or(0, |it| it.as_micros() as i64);
    /// let number = Time::from_micros(clock).map(|time| Event::incident("ward 3").at(time));
    /// # Ok::<(), ipse::Error>(())
    /// ```
    pub fn at(mut self, time: Time) -> Self {
        self.time = time;
        self
    }

    /// Sets the reason of the failure or incident.
    pub fn reason(self, reason: impl Into<String>) -> Self {
        self.text("failure_reason", reason)
    }

    /// Sets a member of its data: a number, a text or a boolean. Facts read the members that have
    /// a setter here; any other member is stored and feeds no fact.
    ///
    /// A member with the name of a setter replaces the value of that setter.
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set(name.into(), Data::Value(value.into()));
        self
    }

    fn text(self, name: &str, text: impl Into<String>) -> Self {
        self.with(name, text.into())
    }

    /// Sets a property of the object that the event is about, such as `("mass_g", 180)`.
    pub fn object(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set_in("object", name.into(), value.into());
        self
    }

    fn set_in(&mut self, object: &str, name: String, value: Value) {
        if let Some((_, Data::Values(values))) = self.data.iter_mut().find(|(it, _)| it == object) {
            values.set(name, value);
            return;
        }
        let mut values = Values::default();
        values.set(name, value);
        self.set(object.to_owned(), Data::Values(values));
    }

    fn set(&mut self, name: String, value: Data) {
        self.data.retain(|(other, _)| *other != name);
        self.data.push((name, value));
    }

    /// The event as JSON; the host generates a missing id.
    pub(crate) fn json(&self, host: &mut dyn Host) -> Result<String> {
        let mut data = Members::new();
        for (name, value) in &self.data {
            data = match value {
                Data::Value(value) => data.raw(name, value.json(name)?),
                Data::Values(values) => data.raw(name, values.json()?),
            };
        }
        let id = self.id.clone().unwrap_or_else(|| hex::encode(&host.salt()));
        Ok(Members::new()
            .text("id", &id)
            .text("source", &self.source)
            .text("type", &self.event_type)
            .text("time", &self.time.to_string())
            .raw("data", data.finish())
            .finish())
    }
}

/// An attempt at a skill whose outcome is not known yet.
#[must_use = "say how it ended: success(), failed(reason) or ended(outcome)"]
#[derive(Clone, PartialEq, Debug)]
pub struct Attempt(Event);

impl Attempt {
    /// Sets the class of the object.
    pub fn target(self, class: impl Into<String>) -> Self {
        Attempt(self.0.text("target_class", class))
    }

    /// Sets the environment.
    pub fn environment(self, environment: impl Into<String>) -> Self {
        Attempt(self.0.text("environment", environment))
    }

    /// Sets the zone.
    pub fn zone(self, zone: impl Into<String>) -> Self {
        Attempt(self.0.text("zone", zone))
    }

    /// Sets a parameter of the attempt. Facts use numbers from -10^9 to 10^9, to 6 decimals; a
    /// recommended value has 4 significant digits ([`Recommended`](crate::Recommended)). Any other
    /// number, a text or a boolean is stored and feeds no fact.
    pub fn param(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.0.set_in("params", name.into(), value.into());
        self
    }

    /// Names the intent that led to this attempt.
    pub fn intent(self, intent: EventRef) -> Self {
        Attempt(self.0.text("intent", intent.to_string()))
    }

    /// Ends the attempt as a success.
    pub fn success(self) -> Event {
        self.ended(Outcome::Success)
    }

    /// Ends the attempt as a failure with a reason.
    pub fn failed(self, reason: impl Into<String>) -> Event {
        self.ended(Outcome::Failed).reason(reason)
    }

    /// Ends the attempt with any outcome; only success and failure count in rates. The time of the
    /// event is now.
    pub fn ended(self, outcome: Outcome) -> Event {
        self.0.text("outcome", outcome.name()).at(SystemHost::new().now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            .with("retries", 2)
            .with("gloves", false)
            .id("7")
            .source("arm")
            .at(Time::parse("2026-05-06T10:00:00Z").unwrap());
        let json = event.json(&mut SystemHost::new()).unwrap();
        assert_eq!(
            json,
            "{\"data\":{\"environment\":\"ward\",\"failure_reason\":\"slip\",\
             \"gloves\":false,\"object\":{\
             \"colour\":\"red\",\"full\":true,\"mass_g\":180},\"outcome\":\"failed\",\"params\":{\
             \"force_n\":26,\"speed\":0.5},\"retries\":2,\"skill_id\":\"grasp\",\
             \"target_class\":\"cup \\\"a\\\"\"},\
             \"id\":\"7\",\"source\":\"arm\",\"time\":\"2026-05-06T10:00:00Z\",\
             \"type\":\"execution_result\"}"
        );
    }

    #[test]
    fn a_number_that_is_none_is_an_error_that_names_it() {
        for bad in [f64::NAN, f64::INFINITY] {
            let param = Event::attempt("grasp").param("force_n", bad).success();
            for event in [param, Event::new("x").with("force_n", bad)] {
                let error = event.json(&mut SystemHost::new()).unwrap_err();
                assert_eq!(
                    (error.code(), error.to_string().contains("force_n")),
                    ("not_a_number", true)
                );
            }
        }
    }

    #[test]
    fn an_attempt_happened_when_it_ended() {
        let begun = Event::attempt("grasp");
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert!(begun.clone().success().time > begun.0.time);
    }
}
