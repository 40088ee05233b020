//! Builders for intents and their outcomes, without JSON.

use crate::Result;
use crate::answer::Answer;
use crate::value::{Value, Values};
use ipse_core::json::{Members, quoted};
use ipse_core::{Outcome, Time};

/// An intended action of an agent. A value that is set again replaces the earlier one, as in an
/// [`Event`](crate::Event).
///
/// ```
/// use ipse::Intent;
/// let intent = Intent::new("grasp").target("cup").param("force_n", 25);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Intent {
    skill: String,
    target: Option<String>,
    environment: Option<String>,
    params: Values,
    consultation: Option<String>,
    planner: Option<(String, String)>,
}

impl Intent {
    /// An intent to use a skill.
    pub fn new(skill: impl Into<String>) -> Self {
        Intent {
            skill: skill.into(),
            target: None,
            environment: None,
            params: Values::default(),
            consultation: None,
            planner: None,
        }
    }

    /// Sets the class of the target object.
    pub fn target(mut self, class: impl Into<String>) -> Self {
        self.target = Some(class.into());
        self
    }

    /// Sets the environment.
    pub fn environment(mut self, environment: impl Into<String>) -> Self {
        self.environment = Some(environment.into());
        self
    }

    /// Sets a parameter: a number, a text or a boolean.
    pub fn param(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.params.set(name.into(), value.into());
        self
    }

    /// Attaches the consultation that the intent rests on, so that an auditor can query the log for
    /// the same facts. An answer has at most 1000 facts, and all of them can be echoed.
    pub fn consulted(mut self, answer: &Answer) -> Self {
        self.consultation = Some(answer.consultation().to_owned());
        self
    }

    /// Sets name and version of the planner, 1 to 64 bytes each. The trail shows them; no gate uses
    /// them.
    pub fn planner(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.planner = Some((name.into(), version.into()));
        self
    }

    pub(crate) fn json(&self) -> Result<String> {
        let planner = self.planner.as_ref().map(|(name, version)| {
            Members::new().text("name", name).text("version", version).finish()
        });
        Ok(Members::new()
            .optional("planner", planner)
            .text("skill_id", &self.skill)
            .optional("target_class", self.target.as_deref().map(quoted))
            .optional("environment", self.environment.as_deref().map(quoted))
            .raw("params", self.params.json()?)
            .optional("consultation", self.consultation.as_ref())
            .finish())
    }
}

/// The default source of a report.
const DEFAULT_SOURCE: &str = "program";

/// The outcome of an intent ([`Agent::report`](crate::Agent::report)). Skill, target and
/// environment are those of the intent, and so are the parameters unless others are given.
///
/// ```
/// use ipse::OutcomeReport;
/// let worked = OutcomeReport::success();
/// let slipped = OutcomeReport::failed("slip").param("force_n", 12.5);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct OutcomeReport {
    outcome: Outcome,
    reason: Option<String>,
    params: Option<Values>,
    object: Option<Values>,
    source: String,
    time: Option<Time>,
}

impl OutcomeReport {
    /// Reports a success.
    pub fn success() -> Self {
        Self::ended(Outcome::Success)
    }

    /// Reports a failure with its reason.
    pub fn failed(reason: impl Into<String>) -> Self {
        OutcomeReport { reason: Some(reason.into()), ..Self::ended(Outcome::Failed) }
    }

    /// Reports any outcome; only success and failure count in rates.
    pub fn ended(outcome: Outcome) -> Self {
        let (reason, params, object, time) = (None, None, None, None);
        let source = DEFAULT_SOURCE.to_owned();
        OutcomeReport { outcome, reason, params, object, source, time }
    }

    /// Sets a parameter that was used. If one is set, only the set ones count as used. If none is
    /// set, the parameters that the gates admitted count.
    pub fn param(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.params.get_or_insert_default().set(name.into(), value.into());
        self
    }

    /// Sets a property of the object, such as `("mass_g", 180)`.
    pub fn object(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.object.get_or_insert_default().set(name.into(), value.into());
        self
    }

    /// Sets the program that reports. Default: `program`. Each source may report an intent once.
    pub fn source(mut self, source: impl Into<String>) -> Self {
        self.source = source.into();
        self
    }

    /// Sets the time at which it happened. Default: the time of the first report, so that a report
    /// that is sent again is a duplicate.
    pub fn at(mut self, time: Time) -> Self {
        self.time = Some(time);
        self
    }

    pub(crate) fn source_name(&self) -> &str {
        &self.source
    }

    pub(crate) fn json(&self) -> Result<String> {
        Ok(Members::new()
            .text("outcome", self.outcome.name())
            .optional("failure_reason", self.reason.as_deref().map(quoted))
            .optional("params", self.params.as_ref().map(Values::json).transpose()?)
            .optional("object", self.object.as_ref().map(Values::json).transpose()?)
            .optional("time", self.time.map(|time| quoted(&time.to_string())))
            .finish())
    }
}
