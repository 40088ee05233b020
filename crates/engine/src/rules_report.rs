//! The report on a change of rules: which facts would differ, as of a position.
//!
//! **Invariants:** the report is a function of the store at the position, in canonical JSON
//! (`ipse-rules-report/1`). Values are compared without `rule_version`, which always differs.

use crate::Error;
use crate::as_of::{Start, as_of_from};
use ipse_consolidate::{RuleSet, Rules, with_rules};
use ipse_core::json::{Members, Object, Value, list};
use ipse_core::{Fact, FactKey, FactKind, Identity, Seq, hex, json_parse, sha256};
use ipse_store::View;
use std::collections::BTreeMap;

/// Facts that a report lists at most; more are counted in `left_out`.
const MAX_FACTS: usize = 1000;
/// The maximum nesting of a fact's value.
const DEPTH: usize = 16;

/// A fact that differs: its values before and after, without `rule_version`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangedFact {
    /// The key.
    pub key: FactKey,
    /// The value under the rules in force.
    pub before: Option<String>,
    /// The value under the proposed rules.
    pub after: Option<String>,
}

/// The numbers of facts of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KindCounts {
    /// Facts that only the rules in force give.
    pub only_before: u64,
    /// Facts that only the proposed rules give.
    pub only_after: u64,
    /// Facts with other values.
    pub changed: u64,
    /// Facts with equal values.
    pub equal: u64,
}

/// A report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RulesReport {
    /// The position.
    pub checkpoint: Seq,
    /// The identity of the log.
    pub identity: Identity,
    /// The rules in force at the position.
    pub from: Rules,
    /// The proposed rules.
    pub to: Rules,
    /// Counts by kind.
    pub kinds: BTreeMap<FactKind, KindCounts>,
    /// The first facts that differ, by kind and key.
    pub facts: Vec<ChangedFact>,
    /// How many more differ.
    pub left_out: u64,
    /// Recommendations that appear, vanish and move.
    pub recommended: [u64; 3],
    /// Whether the rules in force, derived again, give the stored facts.
    pub back: bool,
}

impl RulesReport {
    /// The name of the format.
    pub const FORMAT: &str = "ipse-rules-report/1";

    /// Derives the facts under both rule sets as of a position.
    pub fn compute(
        view: View<'_>,
        identity: &Identity,
        checkpoint: Seq,
        from: Rules,
        to: Rules,
    ) -> Result<Self, Error> {
        let facts =
            |rules: Rules| with_rules!(rules, |rules| as_of_nothing(view, rules, checkpoint));
        let (before, after) = (facts(from)?, facts(to)?);
        let (stored_at, mut stored) = (view.progress()?.checkpoint, view.facts()?);
        stored.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        let back = match stored_at == checkpoint {
            true => stored == before,
            false => stored == with_rules!(from, |it| as_of_nothing(view, it, stored_at))?,
        };
        let mut report = RulesReport {
            checkpoint,
            identity: *identity,
            from,
            to,
            kinds: BTreeMap::new(),
            facts: Vec::new(),
            left_out: 0,
            recommended: [0; 3],
            back,
        };
        let mut values: BTreeMap<&FactKey, [Option<String>; 2]> = BTreeMap::new();
        for (side, facts) in [&before, &after].into_iter().enumerate() {
            for fact in facts {
                values.entry(&fact.key).or_default()[side] = Some(comparable(&fact.value)?);
            }
        }
        for (key, [before, after]) in values {
            report.add(key, before, after)?;
        }
        Ok(report)
    }

    fn add(
        &mut self,
        key: &FactKey,
        before: Option<String>,
        after: Option<String>,
    ) -> Result<(), Error> {
        let counts = self.kinds.entry(key.kind()).or_default();
        match (&before, &after) {
            (Some(before), Some(after)) if before == after => {
                counts.equal += 1;
                return Ok(());
            }
            (Some(_), Some(_)) => counts.changed += 1,
            (Some(_), None) => counts.only_before += 1,
            _ => counts.only_after += 1,
        }
        let moved = recommendations(before.as_deref(), after.as_deref())?;
        for (sum, more) in self.recommended.iter_mut().zip(moved) {
            *sum += more;
        }
        match self.facts.len() < MAX_FACTS {
            true => self.facts.push(ChangedFact { key: key.clone(), before, after }),
            false => self.left_out += 1,
        }
        Ok(())
    }

    /// Whether no fact differs.
    pub fn is_equivalent(&self) -> bool {
        self.facts.is_empty()
    }

    /// The canonical JSON.
    pub fn json(&self) -> String {
        let rules = |rules: Rules| {
            Members::new()
                .text("rule_set_sha256", &hex::encode(&rules.hash()))
                .text("rule_version", rules.version())
                .finish()
        };
        let kinds = self.kinds.iter().fold(Members::new(), |members, (kind, counts)| {
            let counts = Members::new()
                .raw("changed", counts.changed)
                .raw("equal", counts.equal)
                .raw("only_after", counts.only_after)
                .raw("only_before", counts.only_before);
            members.raw(kind.name(), counts.finish())
        });
        let or_null = |value: &Option<String>| value.clone().unwrap_or("null".to_owned());
        let fact = |fact: &ChangedFact| {
            Members::new()
                .raw("after", or_null(&fact.after))
                .raw("before", or_null(&fact.before))
                .text("fact_key", fact.key.text())
                .text("fact_kind", fact.key.kind().name())
                .finish()
        };
        let [appear, vanish, moves] = self.recommended;
        let recommended =
            Members::new().raw("appear", appear).raw("move", moves).raw("vanish", vanish);
        Members::new()
            .raw("back", self.back)
            .raw("checkpoint", self.checkpoint)
            .raw("equivalent", self.is_equivalent())
            .raw("facts", list(self.facts.iter().map(fact)))
            .text("format", Self::FORMAT)
            .raw("from", rules(self.from))
            .text("identity_hash", &self.identity.to_string())
            .raw("kinds", kinds.finish())
            .raw("left_out", self.left_out)
            .raw("recommended", recommended.finish())
            .raw("to", rules(self.to))
            .finish()
    }

    /// The SHA-256 of the canonical JSON.
    pub fn hash(&self) -> [u8; 32] {
        sha256(&[self.json().as_bytes()])
    }
}

/// The facts as of a position, derived from the events alone.
fn as_of_nothing<R: RuleSet>(view: View<'_>, rules: &R, seq: Seq) -> Result<Vec<Fact>, Error> {
    Ok(as_of_from(view, rules, seq, Start::Nothing)?.facts)
}

/// A fact's value without the version of its rules, in canonical JSON.
fn comparable(value: &str) -> Result<String, Error> {
    let mut object = members_of(value)?;
    object.take("rule_version");
    let mut text = String::new();
    object.write(&mut text);
    Ok(text)
}

fn members_of(value: &str) -> Result<Object<'_>, Error> {
    match json_parse::parse(value.as_bytes(), DEPTH) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(Error::Damaged("fact".into())),
    }
}

/// Recommendations that appear, vanish and move between two values of a fact.
fn recommendations(before: Option<&str>, after: Option<&str>) -> Result<[u64; 3], Error> {
    let of = |value: Option<&str>| -> Result<BTreeMap<String, String>, Error> {
        let Some(value) = value else { return Ok(BTreeMap::new()) };
        let object = members_of(value)?;
        let mut found = BTreeMap::new();
        let params = object.get("params").and_then(Value::as_object);
        for (name, param) in params.into_iter().flat_map(Object::iter) {
            if let Some(it) = param.as_object().and_then(|param| param.get("recommended")) {
                let mut text = String::new();
                it.write(&mut text);
                found.insert(name.to_owned(), text);
            }
        }
        Ok(found)
    };
    let (before, after) = (of(before)?, of(after)?);
    let appear = after.keys().filter(|name| !before.contains_key(*name)).count() as u64;
    let vanish = before.keys().filter(|name| !after.contains_key(*name)).count() as u64;
    let moved = before.iter().filter(|(name, it)| after.get(*name).is_some_and(|a| a != *it));
    Ok([appear, vanish, moved.count() as u64])
}
