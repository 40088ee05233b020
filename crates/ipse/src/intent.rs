//! Intents as a program writes them, without JSON.

use crate::answer::Answer;
use crate::{Error, Result};
use ipse_core::json::{Members, Value, quoted};

/// What an agent wants to do.
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
    params: Vec<(String, f64)>,
    consultation: Option<String>,
}

impl Intent {
    /// An intent to use a skill.
    pub fn new(skill: impl Into<String>) -> Self {
        let (target, environment, consultation) = (None, None, None);
        Intent { skill: skill.into(), target, environment, params: Vec::new(), consultation }
    }

    /// Sets the class of the object.
    pub fn target(mut self, class: impl Into<String>) -> Self {
        self.target = Some(class.into());
        self
    }

    /// Sets the environment.
    pub fn environment(mut self, environment: impl Into<String>) -> Self {
        self.environment = Some(environment.into());
        self
    }

    /// Adds a parameter.
    pub fn param(mut self, name: impl Into<String>, value: impl Into<f64>) -> Self {
        self.params.push((name.into(), value.into()));
        self
    }

    /// Echoes the facts that it rests on, so that an auditor can ask the log for them again.
    pub fn consulted(mut self, answer: &Answer) -> Self {
        self.consultation = Some(answer.consultation().to_owned());
        self
    }

    pub(crate) fn json(&self) -> Result<String> {
        let mut params = Members::new();
        for (name, value) in &self.params {
            if !value.is_finite() {
                return Err(Error::NotANumber(name.clone()));
            }
            let mut text = String::new();
            Value::Number(*value).write(&mut text);
            params = params.raw(name, text);
        }
        Ok(Members::new()
            .text("skill_id", &self.skill)
            .optional("target_class", self.target.as_deref().map(quoted))
            .optional("environment", self.environment.as_deref().map(quoted))
            .raw("params", params.finish())
            .optional("consultation", self.consultation.as_ref())
            .finish())
    }
}
