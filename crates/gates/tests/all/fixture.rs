//! A small agent, and verdicts as one line each.

use ipse_gates::{FileError, Finding, Gates, Ruling, Verdict};

pub(crate) const REGISTRY: &str = r#"
format = "ipse-ecm-registry/1"

[skills."arm.grasp"]
risk = 0.3
ethics = 0.9
requires = ["target_class", "environment"]
targets = ["cup", "tray"]
environments = ["ward", "lab"]
params.force_n = { type = "number", unit = "N", min = 0, max = 140, required = true }
params.retries = { type = "integer", unit = "1", min = 0, max = 5 }
params.offset_m = { type = "number", unit = "m" }
params.grip = { type = "text", one_of = ["soft", "firm", "pinch"] }
params.gentle = { type = "boolean" }
params.note = { type = "text" }

# Exactly as risky, and exactly as good, as the temperament bears.
[skills."arm.wave"]
risk = 0.5
ethics = 0.4
params.times = { type = "integer", unit = "1", required = true }

[skills."arm.throw"]
risk = 0.500001
ethics = 0.9
params.force_n = { type = "number", unit = "N", min = 0, max = 140 }

[skills."arm.hit"]
risk = 0.9
ethics = 0.399999
"#;

pub(crate) const POLICY: &str = r#"
format = "ipse-policy/1"
unlisted_skills = "admit"

[skills."arm.grasp"]
rate_limit = { intents = 3, seconds = 60 }
clamp = [
  { param = "force_n", min = 5, max = 100 },
  { param = "force_n", max = 40, target_class = "cup" },
  { param = "force_n", min = 10, max = 30, target_class = "cup", environment = "ward" },
  { param = "retries", max = 3 },
  { param = "offset_m", min = -0.5 },
]
forbid = [
  { param = "force_n", from = 60, to = 80, target_class = "cup", reason = "glass breaks" },
  { param = "force_n", from = 100, to = 100, target_class = "tray" },
  { param = "force_n", to = 1, environment = "lab" },
  { param = "force_n", from = 130 },
  { param = "grip", equals = "pinch", target_class = "cup" },
  { param = "gentle", equals = false, environment = "ward" },
  { target_class = "tray", environment = "lab", reason = "trays stay out" },
]

[skills."arm.throw"]
rate_limit = { intents = 1, seconds = 1 }
"#;

pub(crate) const TEMPERAMENT: &str = r#"
format = "ipse-temperament/1"
risk_appetite = 0.5
ethical_floor = 0.4
confirm_within_s = 300

[[human_check]]
skill_id = "arm.grasp"
param = "force_n"
above = 25
below = 8
target_class = "cup"

[[human_check]]
skill_id = "arm.grasp"
param = "grip"
equals = "firm"
reason = "it may slip"

[[human_check]]
skill_id = "arm.grasp"
param = "gentle"
equals = true
environment = "lab"

[[human_check]]
param = "times"
above = 3

[[human_check]]
skill_id = "arm.grasp"
param = "retries"
above = 2
target_class = "tray"
"#;

pub(crate) fn gates() -> Gates {
    Gates::new(REGISTRY, POLICY, TEMPERAMENT).unwrap()
}

/// The three files, as a table has changed them.
pub(crate) struct Files {
    pub(crate) registry: String,
    pub(crate) policy: String,
    pub(crate) temperament: String,
}

impl Files {
    pub(crate) fn base() -> Self {
        let (registry, policy) = (REGISTRY.to_string(), POLICY.to_string());
        Files { registry, policy, temperament: TEMPERAMENT.into() }
    }

    /// `base`, `policy OLD => NEW`, `temperament + LINE`, `registry = ALL`; `\n` ends a line.
    pub(crate) fn change(&mut self, directive: &str) {
        let (which, change) = directive.split_once(' ').unwrap_or((directive, ""));
        let file = match which {
            "registry" => &mut self.registry,
            "policy" => &mut self.policy,
            "temperament" => &mut self.temperament,
            "base" => return *self = Files::base(),
            _ => panic!("no such file: {directive}"),
        };
        let change = change.replace("\\n", "\n");
        if let Some(line) = change.strip_prefix("+ ") {
            *file += &format!("{line}\n");
        } else if let Some(whole) = change.strip_prefix("= ") {
            *file = whole.to_string();
        } else {
            let (old, new) = change.split_once(" => ").expect(directive);
            assert_eq!(file.matches(old).count(), 1, "{directive}");
            *file = file.replace(old, new);
        }
    }

    pub(crate) fn gates(&self) -> Result<Gates, Vec<FileError>> {
        Gates::new(&self.registry, &self.policy, &self.temperament)
    }
}

/// Goes through a table: what is not indented is kept, and `answer` says what follows each line
/// that is neither empty nor a comment. The table must come out as it is.
#[track_caller]
pub(crate) fn check(table: &str, least: usize, mut answer: impl FnMut(&str) -> Vec<String>) {
    let (mut got, mut cases) = (Vec::new(), 0);
    for line in table.lines().filter(|line| !line.starts_with("  ")) {
        got.push(line.to_string());
        if !line.is_empty() && !line.starts_with('#') {
            let answers = answer(line);
            cases += usize::from(!answers.is_empty());
            got.extend(answers.iter().map(|line| format!("  {line}")));
        }
    }
    let want: Vec<&str> = table.lines().collect();
    let differs = got.iter().zip(&want).position(|(got, want)| got != want);
    let at = differs.unwrap_or(got.len().min(want.len()));
    assert_eq!(got.get(at).map(String::as_str), want.get(at).copied(), "line {}", at + 1);
    assert!(cases >= least, "only {cases} cases were found");
}

/// A verdict, one line for the ruling with its parameters and one for each finding. `~` stands for
/// the grasp's place in the policy.
pub(crate) fn reported(verdict: &Verdict) -> Vec<String> {
    let params = verdict.admitted_params().map(|params| format!(" {params}"));
    let mut lines = vec![format!("{}{}", verdict.ruling.name(), params.unwrap_or_default())];
    for (gate, name) in verdict.ran().iter().zip(["admission", "policy", "contract"]) {
        assert_eq!(gate.name, name, "the order of the gates");
        let say = |what: &str| format!("{name} {}: {what}", gate.result());
        lines.extend(gate.findings.iter().map(|finding| say(&told_finding(finding))));
        lines.extend((gate.more > 0).then(|| say(&format!("and {} more", gate.more))));
    }
    let denied = verdict.ran().iter().position(|gate| gate.ruling == Ruling::Denied);
    let last = denied.map_or(3, |at| at + 1);
    assert_eq!(verdict.ran().len(), last, "a gate that denies is the last: {lines:?}");
    lines
}

fn told_finding(finding: &Finding) -> String {
    let Finding { code, detail, param, asked, given, rule } = finding;
    assert!(!detail.is_empty() && !detail.ends_with('.'), "{detail}");
    let mut text = code.name().to_string();
    for part in [param, asked].into_iter().flatten() {
        text += &format!(" {part}");
    }
    text += &given.as_ref().map(|given| format!(" -> {given}")).unwrap_or_default();
    text += &rule.as_ref().map(|rule| format!(" by {rule}")).unwrap_or_default();
    text.replace("skills.\"arm.grasp\"", "~")
}
