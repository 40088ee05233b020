//! A rule set with derived facts, for tests only, and a direct computation of its facts.
//!
//! It is `v1` and two kinds of derived facts: one about each skill, derived from the success rates
//! of that skill, and one about all skills, derived from success rates and patterns. So two facts
//! may be derived from one sum, and an event may support a derived fact through two facts.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use ipse_consolidate::v1::Observed;
use ipse_consolidate::{
    BulkFold, Contribution, LimitError, RuleSet, Skip, Tally, V1, Wanted, snapshot,
};
use ipse_core::{Event, Fact, FactKey, FactKind, Seq, Support, json};
use ipse_store::View;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug)]
pub struct Advised;

const PREFIX: &str = "advice: ";
const VERSION: &str = "advised";

/// A fact about a skill. No event of these tests has a zone with such a name.
pub fn about(skill: &str) -> FactKey {
    FactKey::new(FactKind::ZoneRisk, &[&format!("{PREFIX}{skill}")])
}

/// The fact about all skills.
pub fn about_all() -> FactKey {
    about("*")
}

pub fn is_advice(key: &FactKey) -> bool {
    key.kind() == FactKind::ZoneRisk && key.text().starts_with(PREFIX)
}

/// The contributions of a sum to derived facts. They are not additive.
fn following(key: &FactKey, whole: &Observed) -> Vec<(FactKey, Observed)> {
    let (s, f) = (whole.successes, whole.failures);
    // The balances of several facts may cancel out.
    let balance = Observed { successes: s * s - f * f, ..Observed::default() };
    match key.kind() {
        FactKind::SkillSuccessRate => {
            let word = if s > f { "works" } else { "fails" };
            let advice = Observed {
                successes: s * (f + 1) * (f + 1) / (s + f + 1),
                failures: f * f,
                incidents: i64::from(s + f > 0),
                texts: (s != f).then(|| (word.to_string(), 1)).into_iter().collect(),
                ..Observed::default()
            };
            vec![(about(&key.parts()[0]), advice), (about_all(), balance)]
        }
        FactKind::InteractionPattern => vec![(about_all(), balance)],
        FactKind::ObjectProperty | FactKind::SkillAdvice | FactKind::ZoneRisk => Vec::new(),
    }
}

impl RuleSet for Advised {
    type Tally = Observed;

    fn version(&self) -> &'static str {
        VERSION
    }

    fn descriptor(&self) -> String {
        format!("{{\"rule_version\":\"{VERSION}\"}}")
    }

    fn contributions(&self, event: &Event<'_>) -> Result<Vec<Contribution<Observed>>, Skip> {
        V1.contributions(event)
    }

    fn bulk<'w>(&self, wanted: Wanted<'w>) -> Option<Box<dyn BulkFold<Observed> + 'w>> {
        V1.bulk(wanted)
    }

    fn derives(&self) -> bool {
        true
    }

    fn derived(&self, key: &FactKey, whole: &Observed) -> Vec<(FactKey, Observed)> {
        following(key, whole)
    }

    fn publish(
        &self,
        key: &FactKey,
        tally: &Observed,
        last: &Support,
    ) -> Result<Option<String>, LimitError> {
        if !is_advice(key) {
            let value = V1.publish(key, tally, last)?;
            return Ok(value
                .map(|it| it.replace("\"rule_version\":\"v1\"", "\"rule_version\":\"advised\"")));
        }
        let texts = tally.texts.iter().map(|(text, n)| format!("{n} {text}"));
        let value = json::Members::new()
            .raw("confidence", "0.5")
            .raw("failures", tally.failures)
            .raw("keys", tally.incidents)
            .text("last_supporting_event_id", &last.event_ref.to_string())
            .raw("n_observations", 1)
            .text("rule_version", VERSION)
            .raw("successes", tally.successes)
            .text("texts", &texts.collect::<Vec<_>>().join(", "));
        Ok(Some(value.finish()))
    }
}

/// The facts of a log, computed event by event without the code under test.
#[derive(Default)]
pub struct Direct {
    pub sums: BTreeMap<FactKey, (Observed, Option<Support>)>,
    /// The positions of the events that support each fact.
    pub evidence: BTreeMap<FactKey, BTreeSet<Seq>>,
}

impl Direct {
    pub fn of(view: View<'_>, up_to: Seq) -> Self {
        let mut direct = Direct::default();
        let up_to = up_to.min(view.head().unwrap());
        let each = |seq, event: &Event<'_>| {
            direct.add(seq, event);
            Ok::<_, ipse_store::Error>(())
        };
        view.each_event(Seq(1)..=up_to, each).unwrap();
        direct.follow();
        direct
    }

    pub fn add(&mut self, seq: Seq, event: &Event<'_>) {
        let this = event.support();
        for part in V1.contributions(event).unwrap_or_default() {
            let (sum, last) = self.sums.entry(part.key.clone()).or_default();
            sum.add(&part.tally);
            if part.supports {
                *last = (*last).max(Some(this));
                self.evidence.entry(part.key).or_default().insert(seq);
            }
        }
    }

    /// Adds the derived facts.
    pub fn follow(&mut self) {
        for (key, (sum, last)) in self.sums.clone() {
            for (to, part) in following(&key, &sum) {
                let evidence = self.evidence.get(&key).cloned().unwrap_or_default();
                self.evidence.entry(to.clone()).or_default().extend(evidence);
                let (sum, before) = self.sums.entry(to).or_default();
                sum.add(&part);
                *before = last.max(*before);
            }
        }
    }

    pub fn facts(&self) -> Vec<Fact> {
        let fact = |(key, (sum, last)): (&FactKey, &(Observed, Option<Support>))| {
            let last = (*last)?;
            let value = Advised.publish(key, sum, &last).unwrap()?;
            Some(Fact { key: key.clone(), last, value })
        };
        self.sums.iter().filter_map(fact).collect()
    }

    pub fn snapshot(&self) -> String {
        snapshot(&self.facts())
    }
}
