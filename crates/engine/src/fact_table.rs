//! An immutable table of facts in memory that readers share.
//!
//! **Invariants:** a table never changes. A pass creates a new one that shares every unchanged
//! page. So a reader can use one checkpoint for any time, and never waits for a writer.

use crate::Error;
use crate::facts::{Chosen, Filter, ScoredFact};
use crate::rules::rules_name_at;
use ipse_core::{Fact, FactKey, FactKind, Seq};
use ipse_store::View;
use std::sync::Arc;

/// Maximum number of facts per page. A change of one fact copies its page.
const PAGE: usize = 128;

type Page = Arc<Vec<Arc<ScoredFact>>>;

/// All facts at one checkpoint.
#[derive(Clone, Debug, Default)]
pub struct FactTable {
    checkpoint: Seq,
    rule_version: String,
    /// Pages in the order of keys. No page is empty.
    pages: Vec<Page>,
}

impl FactTable {
    /// Reads all facts of a view.
    pub fn read(view: View<'_>) -> Result<Self, Error> {
        let progress = view.progress()?;
        let mut facts = view.facts()?;
        facts.sort_by(|a, b| a.key.cmp(&b.key));
        let facts: Vec<Arc<ScoredFact>> = facts
            .into_iter()
            .map(|fact| ScoredFact::new(fact).map(Arc::new))
            .collect::<Result<_, _>>()?;
        let pages = facts.chunks(PAGE).map(|page| Arc::new(page.to_vec())).collect();
        let checkpoint = progress.checkpoint;
        let rule_version = rules_name_at(view, checkpoint)?.version;
        Ok(FactTable { checkpoint, rule_version, pages })
    }

    /// The table after a pass with these changed and deleted facts.
    pub fn after(
        &self,
        checkpoint: Seq,
        changed: Vec<Fact>,
        gone: &[FactKey],
    ) -> Result<Self, Error> {
        let mut next = FactTable { checkpoint, ..self.clone() };
        for fact in changed {
            next.put(Arc::new(ScoredFact::new(fact)?));
        }
        gone.iter().for_each(|key| next.remove(key));
        Ok(next)
    }

    fn remove(&mut self, key: &FactKey) {
        let place = self.page_of(key);
        let Some(page) = self.pages.get_mut(place) else { return };
        if let Ok(at) = page.binary_search_by(|other| other.fact.key.cmp(key)) {
            Arc::make_mut(page).remove(at);
        }
        if page.is_empty() {
            self.pages.remove(place);
        }
    }

    fn put(&mut self, fact: Arc<ScoredFact>) {
        let place = self.page_of(&fact.fact.key);
        let Some(page) = self.pages.get_mut(place) else {
            self.pages.push(Arc::new(vec![fact]));
            return;
        };
        let page = Arc::make_mut(page);
        match page.binary_search_by(|other| other.fact.key.cmp(&fact.fact.key)) {
            Ok(at) => page[at] = fact,
            Err(at) => page.insert(at, fact),
        }
        if page.len() > PAGE {
            let half = page.split_off(PAGE / 2);
            self.pages.insert(place + 1, Arc::new(half));
        }
    }

    /// The page of a key: the last one that does not begin after it.
    fn page_of(&self, key: &FactKey) -> usize {
        self.pages.partition_point(|page| page[0].fact.key <= *key).saturating_sub(1)
    }

    /// The fact with this key.
    pub fn get(&self, key: &FactKey) -> Option<&Arc<ScoredFact>> {
        let page = self.pages.get(self.page_of(key))?;
        let at = page.binary_search_by(|other| other.fact.key.cmp(key)).ok()?;
        page.get(at)
    }

    /// The facts that match a filter, by confidence descending, then kind, then key.
    pub fn choose(&self, filter: &Filter) -> Vec<Arc<ScoredFact>> {
        self.chosen(filter).facts
    }

    /// Like [`FactTable::choose`], with the number of facts that match.
    pub fn chosen(&self, filter: &Filter) -> Chosen {
        filter.among(self.matching(filter))
    }

    /// A superset of the facts that match a filter, in the order of their keys.
    pub(crate) fn matching(&self, filter: &Filter) -> impl Iterator<Item = &Arc<ScoredFact>> {
        let kinds = FactKind::ALL.into_iter();
        let kinds = kinds.filter_map(|kind| Some((kind, filter.beginning(kind)?)));
        kinds.flat_map(|(kind, text)| self.beginning_with(kind, text))
    }

    /// The facts of a kind whose keys begin with a text. Only their pages are read.
    fn beginning_with(
        &self,
        kind: FactKind,
        text: String,
    ) -> impl Iterator<Item = &Arc<ScoredFact>> {
        let first = FactKey::from_text(kind, text);
        let pages = self.pages.get(self.page_of(&first)..).unwrap_or_default();
        let at = pages.first().map_or(0, |page| page.partition_point(|it| it.fact.key < first));
        let facts = pages.iter().flat_map(|page| page.iter()).skip(at);
        facts.take_while(move |fact| {
            let key = &fact.fact.key;
            key.kind() == kind && key.text().starts_with(first.text())
        })
    }

    /// All facts in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ScoredFact>> {
        self.pages.iter().flat_map(|page| page.iter())
    }

    /// The number of facts.
    pub fn len(&self) -> usize {
        self.pages.iter().map(|page| page.len()).sum()
    }

    /// Whether the table has no facts.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The last position that the facts include.
    pub fn checkpoint(&self) -> Seq {
        self.checkpoint
    }

    /// The version of the rules; empty before the first pass.
    pub fn rule_version(&self) -> &str {
        &self.rule_version
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipse_core::{EventRef, FactKind, Support, Time};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn fact(name: u16, n: u8) -> Fact {
        Fact {
            key: FactKey::new(FactKind::ZoneRisk, &[&format!("z{name}")]),
            last: Support {
                time: Time::from_micros(0).unwrap(),
                event_ref: EventRef::new("s", "i"),
                worked: false,
            },
            value: format!("{{\"confidence\":0.5,\"n_observations\":{n}}}"),
        }
    }

    /// Key parts that are prefixes of each other or contain separators.
    const PARTS: [&str; 7] = ["a", "ab", "a + b", "a+", "*", "b", "b\\"];

    fn part() -> impl Strategy<Value = String> {
        proptest::sample::select(&PARTS[..]).prop_map(str::to_owned)
    }

    fn key() -> impl Strategy<Value = FactKey> {
        let kinds = proptest::sample::select(&FactKind::ALL[..]);
        (kinds, proptest::collection::vec(part(), 3)).prop_map(|(kind, parts)| {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            let count = match kind {
                FactKind::SkillAdvice | FactKind::ZoneRisk => 1,
                FactKind::ObjectProperty => 2,
                _ => 3,
            };
            FactKey::new(kind, &parts[..count])
        })
    }

    fn filter() -> impl Strategy<Value = Filter> {
        let some = || proptest::option::of(part());
        let kind = proptest::option::of(proptest::sample::select(&FactKind::ALL[..]));
        (some(), some(), some(), some(), kind).prop_map(
            |(skill, target, environment, zone, kind)| Filter {
                skill,
                target,
                environment,
                zone,
                kind,
                limit: None,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_chosen_is_what_a_look_at_every_fact_finds(
            keys in proptest::collection::vec(key(), 0..400),
            filter in filter(),
        ) {
            let facts = keys.into_iter().map(|key| Fact { key, ..fact(0, 1) }).collect();
            let known = FactTable::default().after(Seq(1), facts, &[]).unwrap();
            prop_assert_eq!(known.chosen(&filter), filter.among(known.iter()));
        }

        #[test]
        fn pages_hold_what_a_map_holds(
            passes in proptest::collection::vec(
                (proptest::collection::vec((0_u16..600, any::<u8>()), 0..200),
                 proptest::collection::vec(0_u16..600, 0..300)), 1..6)
        ) {
            let mut known = FactTable::default();
            let mut map = BTreeMap::new();
            for (pass, (changes, gone)) in passes.into_iter().enumerate() {
                let before: Vec<_> = known.iter().cloned().collect();
                let held = known.clone();
                let facts: Vec<Fact> = changes.iter().map(|(name, n)| fact(*name, *n)).collect();
                map.extend(facts.iter().map(|fact| (fact.key.clone(), fact.value.clone())));
                let gone: Vec<FactKey> = gone.iter().map(|name| fact(*name, 0).key).collect();
                gone.iter().for_each(|key| drop(map.remove(key)));
                known = known.after(Seq(pass as u64), facts, &gone).unwrap();
                prop_assert_eq!(held.iter().cloned().collect::<Vec<_>>(), before, "immutable");
            }
            let ours: Vec<_> =
                known.iter().map(|c| (c.fact.key.clone(), c.fact.value.clone())).collect();
            prop_assert_eq!(&ours, &map.clone().into_iter().collect::<Vec<_>>());
            for (key, value) in &map {
                prop_assert_eq!(&known.get(key).unwrap().fact.value, value);
            }
            prop_assert!(known.get(&fact(601, 0).key).is_none());
            let zone = Filter { zone: Some("z17".to_owned()), ..Filter::default() };
            prop_assert_eq!(known.chosen(&zone), zone.among(known.iter()));
            prop_assert!(known.pages.iter().all(|page| !page.is_empty() && page.len() <= PAGE));
        }
    }
}
