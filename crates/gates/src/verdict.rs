//! What the gates say: a ruling, why, and what may be acted with.
//!
//! **Invariants:** a gate's result is the gravest of its findings', a ruling the gravest of its
//! gates'. A verdict that denies admits no parameters. What is written of a gate is bounded, so
//! that a verdict fits into an event beside its intent.

use crate::params::{Datum, Params};
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use ipse_core::Ruling;
use ipse_core::json::{Members, Value, list};

/// The most findings that a gate lists; what is beyond is counted in `more`.
pub const MAX_FINDINGS: usize = 16;
/// The most bytes of findings that a gate lists; the first finding is always listed.
pub const MAX_GATE_BYTES: usize = 2048;
/// The longest value, as JSON, that a finding repeats: it stands in the intent anyway.
const MAX_ASKED_BYTES: usize = 128;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal $ruling:ident),* $(,)?) => {
        /// What a gate found. The codes are part of the interface.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $name),* }

        impl Code {
            /// Every code.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// The word on the wire.
            pub fn name(self) -> &'static str {
                match self { $(Code::$name => $code),* }
            }

            /// What it makes of an intent.
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
    /// A parameter is of another type.
    MistypedParameter = "mistyped_parameter" Denied,
    /// A parameter that the skill requires is not there.
    MissingParameter = "missing_parameter" Denied,
    /// A target class or an environment that the skill requires is not there.
    MissingField = "missing_field" Denied,
    /// The skill cannot be done on such targets.
    UnknownTarget = "unknown_target" Denied,
    /// The skill cannot be done in such an environment.
    UnknownEnvironment = "unknown_environment" Denied,
    /// A number is beyond what the body can do.
    OutOfRange = "out_of_range" Denied,
    /// A text is none of the choices.
    UnknownChoice = "unknown_choice" Denied,
    /// The policy does not name the skill and denies such.
    UnlistedSkill = "unlisted_skill" Denied,
    /// The policy forbids the skill here.
    Forbidden = "forbidden" Denied,
    /// A number is in a range that the policy forbids.
    ForbiddenRange = "forbidden_range" Denied,
    /// A text or boolean is a value that the policy forbids.
    ForbiddenValue = "forbidden_value" Denied,
    /// Too many intents of the skill were let through lately.
    RateLimited = "rate_limited" Denied,
    /// A number was raised to the least that the policy allows.
    BelowMinimum = "below_minimum" Clamped,
    /// A number was lowered to the most that the policy allows.
    AboveMaximum = "above_maximum" Clamped,
    /// The skill's ethics are below the temperament's floor.
    BelowEthicalFloor = "below_ethical_floor" Denied,
    /// The skill's risk is above the temperament's appetite.
    RiskAboveAppetite = "risk_above_appetite" NeedsConfirmation,
    /// The temperament asks for a person here.
    HumanCheck = "human_check" NeedsConfirmation,
}

/// One thing that a gate found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What it is.
    pub code: Code,
    /// The same for people.
    pub detail: String,
    /// The parameter it is about.
    pub param: Option<String>,
    /// What was asked for, as canonical JSON, unless that is long.
    pub asked: Option<String>,
    /// What is given instead, as canonical JSON.
    pub given: Option<String>,
    /// Where the rule stands in its file, as in `skills."manipulation.grasp".clamp[0]`.
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

/// What one gate said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gate {
    /// `admission`, `policy` or `contract`.
    pub name: &'static str,
    /// The gravest of its findings; `Admitted` if there is none.
    pub ruling: Ruling,
    /// What it found.
    pub findings: Vec<Finding>,
    /// How many more it found than are listed.
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

    /// The word on the wire: `passed`, `clamped`, `needs_confirmation` or `denied`.
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

/// What the gates say of an intent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// What becomes of it.
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

    /// What may be acted with, as canonical JSON; `None` if denied.
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

    /// Sentences for people: what becomes of the intent, then why.
    pub fn summary(&self) -> Vec<String> {
        let becomes = match self.ruling {
            Ruling::Admitted => "Admitted as asked.",
            Ruling::Clamped => "Admitted, with numbers moved into the policy's bounds.",
            Ruling::NeedsConfirmation => "Needs a person's confirmation before it is acted on.",
            Ruling::Denied => "Denied.",
        };
        let mut sentences = Vec::from([becomes.to_string()]);
        for gate in &self.gates {
            let told = gate.findings.iter();
            sentences.extend(told.map(|finding| format!("{}: {}.", gate.name, finding.detail)));
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
