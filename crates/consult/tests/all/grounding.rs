//! The grounding text: its grammar, its order, and one line per fact for any text of an event.

use crate::log::{Log, ME};
use ipse_consult::facts::{Chosen, Filter};
use ipse_consult::grounding::grounding;
use ipse_consult::trail::Record;
use ipse_core::json::quoted;
use ipse_core::{FactKind, Seq};

/// The line ends of UAX 14: the classes BK, NL, CR and LF.
const UNICODE: &str = "\u{b}\u{c}\u{2028}\u{2029}\u{85}\r\n";
/// The line ends of `str.splitlines` in Python.
const PYTHON: &str = "\n\r\u{b}\u{c}\u{1c}\u{1d}\u{1e}\u{85}\u{2028}\u{2029}";
/// The line terminators of ECMAScript.
const ECMASCRIPT: &str = "\n\r\u{2028}\u{2029}";
/// The text of this many characters is at most as long as a fact takes.
const CHARS: usize = 250;

impl Log {
    fn chosen(&self, filter: &Filter) -> Chosen {
        let facts = self.facts_at(Seq(self.len()), ipse_consolidate::Rules::default());
        filter.chosen(facts.unwrap()).unwrap()
    }

    fn grounding(&self, filter: &Filter) -> String {
        grounding(&ME, "v1", &self.chosen(filter))
    }

    fn observe(&mut self, data: &str) {
        let id = format!("{}", self.len() + 1);
        self.push("eye", &id, "observation", data);
    }

    /// Attempts with one value of a parameter.
    fn attempts(&mut self, times: usize, at: Place<'_>, success: bool, param: (&str, u32)) {
        let [skill, target, environment, zone, reason] =
            [at.skill, at.target, at.environment, at.zone, at.reason].map(quoted);
        let (name, value) = (quoted(param.0), param.1);
        for _ in 0..times {
            self.attempt(&format!(
                r#"{{"skill_id":{skill},"target_class":{target},"environment":{environment},
                "zone":{zone},"success":{success},"failure_reason":{reason},
                "params":{{{name}:{value}}}}}"#
            ));
        }
    }
}

/// The texts of an attempt.
#[derive(Clone, Copy)]
struct Place<'t> {
    skill: &'t str,
    target: &'t str,
    environment: &'t str,
    zone: &'t str,
    reason: &'t str,
}

const WARD: Place<'static> =
    Place { skill: "grasp", target: "cup", environment: "ward", zone: "bed 3", reason: "slip" };

fn first(limit: usize) -> Filter {
    Filter { limit: Some(limit), ..Filter::default() }
}

/// A log with a fact of each kind, and the texts of every field in it.
fn one_of_each_kind(at: Place<'_>, param: &str, property: &str, value: &str) -> Log {
    let mut log = Log::unsigned();
    log.attempts(3, at, false, (param, 15));
    log.attempts(12, at, true, (param, 25));
    let (target, property) = (quoted(at.target), quoted(property));
    let value = quoted(value);
    log.observe(&format!(r#"{{"target_class":{target},"object":{{{property}:{value}}}}}"#));
    log
}

/// The text without the fact ids, which depend on the keys alone.
fn without_ids(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.split(" [fa_").next().unwrap()).collect()
}

#[test]
fn each_kind_has_its_line_in_its_place() {
    let log = one_of_each_kind(WARD, "force_n", "material", "glass");
    let want = [
        "known facts for this agent (rule set v1):",
        "- grasp + cup + ward: recommended_force_n = 25 (25..25, confidence = 0.70), \
         success_rate = 0.8, confidence = 0.83, n_observations = 15",
        "- zone bed 3: risk = 0.2, confidence = 0.57, n_observations = 15",
        "- object cup + material: most common = glass (1 of 1), confidence = 0.25, \
         n_observations = 1",
        "- grasp + cup + slip: 3 failures: slip at force_n = 15 (15..15), confidence = 0.50, \
         n_observations = 3",
    ];
    let text = log.grounding(&Filter::default());
    assert_eq!(without_ids(&text), want);
    assert_eq!(log.grounding(&first(4)), text, "nothing was left out");
    // The limit keeps the most confident facts; their lines keep the order of the groups.
    let text = log.grounding(&first(2));
    assert_eq!(without_ids(&text), [want[0], want[1], want[2], "(2 more facts not shown)"]);
    let risk = Filter { kind: Some(FactKind::ZoneRisk), ..first(1) };
    assert_eq!(without_ids(&log.grounding(&risk)), [want[0], want[2]]);
    let nothing = Filter { zone: Some("bed 4".to_owned()), ..first(1) };
    assert_eq!(without_ids(&log.grounding(&nothing)), [want[0]]);
}

#[test]
fn facts_with_a_recommendation_come_first_and_each_group_is_by_key() {
    let mut log = Log::unsigned();
    let at = |skill, zone| Place { skill, zone, ..WARD };
    log.attempts(9, at("a", "y"), true, ("none", 0));
    for (skill, zone) in [("c", "x"), ("b", "z")] {
        log.attempts(12, at(skill, zone), true, ("force_n", 25));
        log.attempts(3, at(skill, zone), false, ("force_n", 15));
    }
    log.attempts(5, Place { environment: "Ward", ..at("a", "y") }, false, ("none", 0));
    let text = log.grounding(&Filter::default());
    let keys: Vec<&str> =
        text.lines().skip(1).map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(
        keys,
        [
            "- a + cup + ward",
            "- b + cup + ward",
            "- c + cup + ward",
            "- a + cup + Ward",
            "- zone x",
            "- zone y",
            "- zone z",
            "- a + cup + slip",
            "- b + cup + slip",
            "- c + cup + slip",
        ]
    );
}

/// A wide window with every tried value in it is no preference. One value alone is what worked.
#[test]
fn a_window_of_everything_that_was_tried_is_not_recommended() {
    let recommended = |values: &[(usize, bool, u32)]| {
        let mut log = Log::unsigned();
        for (times, success, value) in values {
            log.attempts(*times, WARD, *success, ("force_n", *value));
        }
        let rates = Filter { kind: Some(FactKind::SkillSuccessRate), ..Filter::default() };
        let chosen = log.chosen(&rates);
        assert!(chosen.facts[0].fact.value.contains("\"recommended\""), "{values:?}");
        log.grounding(&rates).contains("recommended_force_n")
    };
    assert!(!recommended(&[(10, true, 20), (10, true, 30)]));
    assert!(recommended(&[(10, true, 20), (10, true, 30), (9, false, 90)]));
    assert!(recommended(&[(20, true, 20)]));
    assert!(!recommended(&[(10, true, 20), (10, true, 30), (1, false, 30)]));
}

#[test]
fn a_pattern_names_each_parameter_by_name() {
    let mut log = Log::unsigned();
    for (force, tilt) in [(10, 1), (20, 2), (30, 3), (40, 4)] {
        log.attempt(&format!(
            r#"{{"skill_id":"grasp","success":false,"failure_reason":"slip",
            "params":{{"tilt":{tilt},"force_n":{force}}}}}"#
        ));
    }
    let patterns = Filter { kind: Some(FactKind::InteractionPattern), ..Filter::default() };
    let text = log.grounding(&patterns);
    let want = "- grasp + * + slip: 4 failures: slip at force_n = 20 (10..30) at tilt = 2 (1..3), ";
    assert!(text.contains(want), "{text}");
}

/// The number of lines of a text that ends with a line feed.
fn lines(text: &str, ends: &str) -> usize {
    assert!(text.ends_with('\n'));
    text.replace("\r\n", "\n").chars().filter(|c| ends.contains(*c)).count()
}

fn is_one_line_a_fact(text: &str, want: usize) -> bool {
    [UNICODE, PYTHON, ECMASCRIPT].iter().all(|ends| lines(text, ends) == want)
}

#[test]
fn every_text_field_reaches_a_line() {
    let at =
        Place { skill: "Skill", target: "Target", environment: "Env", zone: "Zone", reason: "Why" };
    let text = one_of_each_kind(at, "Param", "Property", "Value").grounding(&Filter::default());
    for reached in [
        "- Skill + Target + Env: ",
        "recommended_Param = ",
        "- zone Zone: ",
        "- object Target + Property: ",
        "most common = Value ",
        "- Skill + Target + Why: ",
        "failures: Why at Param = ",
    ] {
        assert!(text.contains(reached), "{reached}\n{text}");
    }
}

#[test]
fn no_character_in_any_field_makes_another_line() {
    // The door refuses U+0000 everywhere.
    let all: Vec<char> = ('\u{1}'..=char::MAX).collect();
    for chars in all.chunks(CHARS) {
        let text: String = chars.iter().collect();
        let (skill, target, environment) = (&*text, &*text, &*text);
        let at = Place { skill, target, environment, zone: &text, reason: &text };
        let log = one_of_each_kind(at, &text, &text, &text);
        let known = log.grounding(&Filter::default());
        assert_eq!(log.chosen(&Filter::default()).total, 4, "{:?}", chars[0]);
        assert!(is_one_line_a_fact(&known, 4 + 1), "{:?}", chars[0]);
        assert!(is_one_line_a_fact(&log.grounding(&first(3)), 3 + 2), "{:?}", chars[0]);
    }
}
