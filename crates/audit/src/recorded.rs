//! A verdict as an intent records it.
//!
//! **Invariant:** the request is rebuilt from the members that the gates read, and from no other.

use ipse_core::event::MAX_DEPTH;
use ipse_core::json::{Members, Object, Value};
use ipse_core::judge::GATES_VERSION;
use ipse_core::{EventRef, Ruling, Time, json_parse};
use ipse_ledger::account::house_parts;

/// The members that the gates read.
const REQUEST: [&str; 4] = ["environment", "params", "skill_id", "target_class"];
/// The code of a line of a contract that does not hold.
const NOT_AFTER: &str = "not_after";

/// The recorded parts of an intent that judging it again gives.
pub(crate) struct RecordedVerdict {
    pub(crate) skill_id: String,
    pub(crate) target_class: Option<String>,
    /// The intent as the gates read it, as JSON.
    pub(crate) request: String,
    pub(crate) ruling: Ruling,
    pub(crate) admitted_params: Option<String>,
    pub(crate) confirm_by: Option<Time>,
    pub(crate) recent: Option<u64>,
    pub(crate) contract: Option<Vec<Option<EventRef>>>,
    pub(crate) version: Option<u64>,
    /// The gates without the audit, as canonical JSON.
    gates: Vec<String>,
}

impl RecordedVerdict {
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let value = json_parse::parse(bytes, MAX_DEPTH).ok()?;
        let data = house_parts(&value)?.data;
        let text = |name: &str| data.get(name).and_then(Value::as_text);
        let Some(Value::Array(gates)) = data.get("gates") else { return None };
        let (_, judged) = gates.split_last()?;
        let given = REQUEST.iter().filter_map(|name| Some((*name, data.get(name)?)));
        let request = given.fold(Members::new(), |all, (name, value)| all.raw(name, json(value)));
        let contract = data.get("contract").map(names);
        Some(RecordedVerdict {
            skill_id: text("skill_id")?.to_owned(),
            target_class: text("target_class").map(str::to_owned),
            request: request.finish(),
            ruling: Ruling::parse(text("verdict")?)?,
            admitted_params: data.get("admitted_params").map(json),
            confirm_by: text("confirm_by").map(Time::parse).transpose().ok()?,
            recent: data.get("recent").and_then(Value::as_count),
            contract,
            version: data.get("gates_version").and_then(Value::as_count),
            gates: judged.iter().map(json).collect(),
        })
    }

    /// Whether a rate limit counts it: it was not denied.
    pub(crate) fn counts(&self) -> bool {
        self.ruling != Ruling::Denied
    }

    /// The last time at which it can be confirmed, if it waits for a decision.
    pub(crate) fn confirm_by(&self, within: Option<u64>, time: Time) -> Option<Time> {
        let seconds = within.filter(|_| self.ruling == Ruling::NeedsConfirmation)?;
        let micros = i64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
        Time::from_micros(time.micros().checked_add(micros)?)
    }

    /// Compares the gates with the judged ones: byte for byte if the same version judged them,
    /// else by their results and codes. An error names the first gate that differs.
    pub(crate) fn compare_gates(&self, judged: &[String]) -> Result<(), String> {
        let exact = self.version == Some(GATES_VERSION);
        for (index, judged) in judged.iter().enumerate() {
            let recorded = self.gates.get(index);
            let is_equal = recorded.is_some_and(|recorded| match exact {
                true => Some(recorded) == canonical(judged).as_ref(),
                false => outline(recorded).is_some_and(|it| Some(it) == outline(judged)),
            });
            if !is_equal {
                let name = outline(judged).map(|it| it.name).unwrap_or_default();
                return Err(format!("its line of the gate {name} is not the one of the files"));
            }
        }
        match judged.len() == self.gates.len() {
            true => Ok(()),
            false => Err("it records more gates than the files run".to_owned()),
        }
    }

    /// Whether every finding of its gates is listed.
    pub(crate) fn lists_all_findings(&self) -> bool {
        self.gates
            .iter()
            .filter_map(|gate| outline(gate))
            .all(|gate| gate.findings.len() == gate.all)
    }

    /// Whether it lists a line of its contract as broken.
    pub(crate) fn says_not_after(&self, rule: &str) -> bool {
        let findings =
            self.gates.iter().filter_map(|gate| outline(gate)).flat_map(|it| it.findings);
        findings.into_iter().any(|[code, _, by]| code == NOT_AFTER && by == rule)
    }
}

/// A gate without the words of its findings.
struct Outline {
    name: String,
    result: String,
    /// Code, parameter and rule of each listed finding.
    findings: Vec<[String; 3]>,
    /// The number of findings, listed or not.
    all: usize,
}

impl PartialEq for Outline {
    /// The words of a finding decide how many are listed, so only those in both are compared.
    fn eq(&self, other: &Self) -> bool {
        let listed = self.findings.iter().zip(&other.findings);
        (&self.name, &self.result, self.all) == (&other.name, &other.result, other.all)
            && listed.into_iter().all(|(one, other)| one == other)
    }
}

fn outline(gate: &str) -> Option<Outline> {
    let value = json_parse::parse(gate.as_bytes(), MAX_DEPTH).ok()?;
    let gate = value.as_object()?;
    let text = |object: &Object<'_>, name: &str| {
        object.get(name).and_then(Value::as_text).unwrap_or_default().to_owned()
    };
    let Some(Value::Array(listed)) = gate.get("findings") else { return None };
    let finding = |finding: &Value<'_>| {
        let finding = finding.as_object()?;
        Some(["code", "param", "rule"].map(|name| text(finding, name)))
    };
    let findings = listed.iter().map(finding).collect::<Option<Vec<_>>>()?;
    let more = gate.get("more").and_then(Value::as_count).unwrap_or_default();
    let all = findings.len().saturating_add(usize::try_from(more).unwrap_or(usize::MAX));
    Some(Outline { name: text(gate, "gate"), result: text(gate, "result"), findings, all })
}

/// The canonical form of JSON.
pub(crate) fn canonical(text: &str) -> Option<String> {
    json_parse::parse(text.as_bytes(), MAX_DEPTH).ok().map(|value| json(&value))
}

fn json(value: &Value<'_>) -> String {
    let mut json = String::new();
    value.write(&mut json);
    json
}

/// The attempts that decided a contract; a value that is not a list has none.
fn names(value: &Value<'_>) -> Vec<Option<EventRef>> {
    let Value::Array(names) = value else { return Vec::new() };
    names.iter().map(|name| name.as_text().and_then(EventRef::parse)).collect()
}
