//! The verdict of the gates: a ruling, its reasons, and the admitted parameters.
//!
//! **Invariants:** the result of a gate is the most severe of its findings, and a ruling the most
//! severe of its gates. A verdict that denies admits no parameters. The output of a gate is
//! bounded, so that a verdict and its intent fit into one event.

use crate::params::{Datum, Params};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use ipse_core::Ruling;
use ipse_core::json::{Members, Value, list};

/// The most findings that a gate lists; `more` counts the others.
pub const MAX_FINDINGS: usize = 16;
/// The most bytes of findings that a gate lists; the first finding is always listed.
pub const MAX_GATE_BYTES: usize = 2048;
/// The longest value, as JSON, that a finding repeats: the intent contains it anyway.
const MAX_ASKED_BYTES: usize = 128;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal $ruling:ident),* $(,)?) => {
        /// The codes of findings. They are part of the interface.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $name),* }

        impl Code {
            /// Every code.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// The name in JSON.
            pub fn name(self) -> &'static str {
                match self { $(Code::$name => $code),* }
            }

            /// The ruling that follows from the code.
            pub fn ruling(self) -> Ruling {
                match self { $(Code::$name => Ruling::$ruling),* }
            }
        }
    };
}

codes! {
    /// The registry has no such skill.
    UnknownSkill = "unknown_skill" Denied,
    /// The skill has no such parameter.
    UnknownParameter = "unknown_parameter" Denied,
    /// A parameter has another type.
    MistypedParameter = "mistyped_parameter" Denied,
    /// A parameter that the skill requires is missing.
    MissingParameter = "missing_parameter" Denied,
    /// A target class or an environment that the skill requires is missing.
    MissingField = "missing_field" Denied,
    /// The skill does not list this target class.
    UnknownTarget = "unknown_target" Denied,
    /// The skill does not list this environment.
    UnknownEnvironment = "unknown_environment" Denied,
    /// A number is beyond the bounds of the registry.
    OutOfRange = "out_of_range" Denied,
    /// A text is not one of the choices.
    UnknownChoice = "unknown_choice" Denied,
    /// The policy does not name the skill, and denies unlisted skills.
    UnlistedSkill = "unlisted_skill" Denied,
    /// The policy forbids the skill in this scope.
    Forbidden = "forbidden" Denied,
    /// A number is in a forbidden range.
    ForbiddenRange = "forbidden_range" Denied,
    /// A text or boolean has a forbidden value.
    ForbiddenValue = "forbidden_value" Denied,
    /// Too many intents of the skill passed within the window of its rate limit.
    RateLimited = "rate_limited" Denied,
    /// A number was raised to the minimum of the policy.
    BelowMinimum = "below_minimum" Clamped,
    /// A number was lowered to the maximum of the policy.
    AboveMaximum = "above_maximum" Clamped,
    /// The skill's ethics are below the temperament's floor.
    BelowEthicalFloor = "below_ethical_floor" Denied,
    /// Another skill has not succeeded shortly before, as the skill's contract requires.
    NotAfter = "not_after" Denied,
    /// The skill's risk is above the temperament's appetite.
    RiskAboveAppetite = "risk_above_appetite" NeedsConfirmation,
    /// A human check of the temperament applies.
    HumanCheck = "human_check" NeedsConfirmation,
}

/// One finding of a gate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The code of the finding.
    pub code: Code,
    /// The finding as a sentence.
    pub detail: String,
    /// The parameter that it is about.
    pub param: Option<String>,
    /// The requested value, as canonical JSON, unless it is long.
    pub asked: Option<String>,
    /// The value after the clamp, as canonical JSON.
    pub given: Option<String>,
    /// The path of the rule in its file, as in `skills."manipulation.grasp".clamp[0]`.
    pub rule: Option<String>,
}

impl Finding {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Finding { code, detail, param: None, asked: None, given: None, rule: None }
    }

    pub(crate) fn on(mut self, param: &str, asked: Option<&Value<'_>>) -> Self {
        self.param = Some(param.to_owned());
        let mut json = String::new();
        match asked {
            Some(value) => {
                value.write(&mut json);
                self.asked(&json)
            }
            None => self,
        }
    }

    pub(crate) fn asked(mut self, json: &str) -> Self {
        self.asked = Some(json.to_owned()).filter(|json| json.len() <= MAX_ASKED_BYTES);
        self
    }

    pub(crate) fn given(mut self, datum: &Datum) -> Self {
        self.given = Some(datum.json());
        self
    }

    pub(crate) fn by(mut self, rule: impl Into<String>) -> Self {
        self.rule = Some(rule.into());
        self
    }

    /// Canonical JSON.
    pub fn json(&self) -> String {
        let Finding { code, detail, param, asked, given, rule } = self;
        let quoted = |text: &Option<String>| text.as_deref().map(ipse_core::json::quoted);
        Members::new()
            .text("code", code.name())
            .text("detail", detail)
            .optional("param", quoted(param))
            .optional("asked", asked.as_ref())
            .optional("given", given.as_ref())
            .optional("rule", quoted(rule))
            .finish()
    }
}

/// The result of one gate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gate {
    /// `admission`, `policy` or `contract`.
    pub name: &'static str,
    /// The most severe of its findings; `Admitted` if there are none.
    pub ruling: Ruling,
    /// The listed findings.
    pub findings: Vec<Finding>,
    /// The number of findings that are not listed.
    pub more: usize,
}

impl Gate {
    pub(crate) fn new(name: &'static str, mut findings: Vec<Finding>) -> Self {
        let gravest = findings.iter().map(|finding| finding.code.ruling()).max();
        let found = findings.len();
        let mut bytes = 0;
        let fit = findings.iter().take(MAX_FINDINGS).take_while(|finding| {
            let before = bytes;
            bytes += finding.json().len();
            before == 0 || bytes <= MAX_GATE_BYTES
        });
        let listed = fit.count();
        findings.truncate(listed);
        let ruling = gravest.unwrap_or(Ruling::Admitted);
        Gate { name, ruling, findings, more: found - listed }
    }

    /// The name in JSON: `passed`, `clamped`, `needs_confirmation` or `denied`.
    pub fn result(&self) -> &'static str {
        match self.ruling {
            Ruling::Admitted => "passed",
            ruling => ruling.name(),
        }
    }

    /// Canonical JSON.
    pub fn json(&self) -> String {
        Members::new()
            .text("gate", self.name)
            .text("result", self.result())
            .raw("findings", list(self.findings.iter().map(Finding::json)))
            .optional("more", Some(self.more).filter(|more| *more > 0))
            .finish()
    }
}

/// The verdict about an intent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The most severe ruling of the gates.
    pub ruling: Ruling,
    gates: Vec<Gate>,
    params: Option<Params>,
}

impl Verdict {
    pub(crate) fn new(gates: Vec<Gate>, params: Option<Params>) -> Self {
        let ruling = gates.iter().map(|gate| gate.ruling).max().unwrap_or(Ruling::Denied);
        debug_assert_eq!(params.is_none(), ruling == Ruling::Denied, "BUG: denied and admitted");
        Verdict { ruling, gates, params }
    }

    /// The admitted parameters, as canonical JSON; `None` if denied.
    pub fn admitted_params(&self) -> Option<String> {
        self.params.as_ref().map(Params::json)
    }

    /// The gates that ran, in order, each as canonical JSON.
    pub fn gates(&self) -> impl Iterator<Item = String> {
        self.gates.iter().map(Gate::json)
    }

    /// The gates that ran, in order.
    pub fn ran(&self) -> &[Gate] {
        &self.gates
    }

    /// Sentences for people: the ruling, then the reasons.
    pub fn summary(&self) -> Vec<String> {
        let becomes = match self.ruling {
            Ruling::Admitted => "Admitted as requested.",
            Ruling::Clamped => "Admitted, with numbers moved into the policy's bounds.",
            Ruling::NeedsConfirmation => "Needs a person's confirmation before it is acted on.",
            Ruling::Denied => "Denied.",
        };
        let mut sentences = Vec::from([becomes.to_string()]);
        for gate in &self.gates {
            let details = gate.findings.iter();
            sentences.extend(details.map(|finding| format!("{}: {}.", gate.name, finding.detail)));
            if gate.more > 0 {
                sentences.push(format!("{}: and {} more.", gate.name, gate.more));
            }
        }
        sentences
    }
}

/// `1 skill`, `2 skills`.
pub(crate) fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}
