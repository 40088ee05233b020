//! Finds the events of a chunk that support a fact.
//!
//! **Invariant:** columns only exclude events; the rules themselves, in `feed`, decide whether an
//! event supports the fact.

use crate::feed::{Part, Seen, Sink, Trait, feed, key_length};
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::chunk::{Chunk, ChunkProperty, Dictionary, FIELDS, NO_TEXT, outcome_of};
use ipse_core::fact::ANY;
use ipse_core::{EventKind, FactKey, FactKind};

/// The field of a chunk for each part of a kind's key; the name of a property has none.
fn fields_of(kind: FactKind) -> &'static [usize] {
    match kind {
        FactKind::SkillSuccessRate => &[2, 3, 4],
        FactKind::InteractionPattern => &[2, 3, 6],
        FactKind::ZoneRisk => &[5],
        FactKind::SkillAdvice => &[2],
        FactKind::ObjectProperty => &[3],
    }
}

/// The places of events that support a fact, ascending; `None` if the chunk is damaged.
pub(crate) fn supporters(chunk: &Chunk<'_>, key: &FactKey) -> Option<Vec<usize>> {
    let dictionary = Dictionary::decode(chunk.dictionary)?;
    let parts = key.parts();
    let known = |part: &String| dictionary.texts.binary_search(&part.as_str()).is_ok();
    if !parts.iter().all(|part| part == ANY || known(part)) {
        return Some(Vec::new());
    }
    let candidates = candidates(chunk, &dictionary, key.kind(), &parts)?;
    let mut found = Vec::new();
    for place in candidates {
        let seen = seen(chunk, &dictionary, place)?;
        let own = chunk.properties.binary_search_by_key(&place, |(at, _)| *at);
        let own = own.map_or(&[][..], |at| &chunk.properties[at].1);
        // The observed value of the property does not matter here.
        let named = |(name, _): &(usize, ChunkProperty)| {
            Some((text(&dictionary, *name)??, Trait::Number(0)))
        };
        let own = own.iter().map(named).collect::<Option<Vec<_>>>()?;
        let mut finder = Finder { kind: key.kind(), parts: &parts, found: false };
        let _ = feed(&seen, own.into_iter(), &mut finder);
        if finder.found {
            found.push(place);
        }
    }
    Some(found)
}

/// The places whose columns could have fed a fact of this key.
fn candidates(
    chunk: &Chunk<'_>,
    dictionary: &Dictionary<'_>,
    kind: FactKind,
    parts: &[String],
) -> Option<Vec<usize>> {
    let mut columns: Vec<(usize, &String)> = fields_of(kind).iter().copied().zip(parts).collect();
    // Start with the column with the most distinct values: it leaves the fewest places for the
    // others.
    columns.sort_by_key(|(field, _)| core::cmp::Reverse(dictionary.fields[*field].len()));
    let mut places: Option<Vec<usize>> = None;
    for (field, part) in columns {
        let fits = |id: &usize| text(dictionary, *id).map(|text| text.unwrap_or(ANY) == part);
        let fits: Vec<bool> = dictionary.fields[field].iter().map(fits).collect::<Option<_>>()?;
        let codes = &chunk.fields[field];
        if chunk.count > 0 && codes.greatest() >= fits.len() {
            return None;
        }
        let fit = |place: &usize| codes.get(*place).is_some_and(|code| fits[code]);
        places = Some(match places {
            None => (0..chunk.count).filter(fit).collect(),
            Some(before) => before.into_iter().filter(fit).collect(),
        });
    }
    places
}

/// The text of an id, which may mean no text; `None` if the id is out of range.
fn text<'d>(dictionary: &Dictionary<'d>, id: usize) -> Option<Option<&'d str>> {
    match id {
        NO_TEXT => Some(None),
        id => dictionary.texts.get(id - 1).map(|text| Some(*text)),
    }
}

/// The fields of one event.
fn seen<'d>(chunk: &Chunk<'_>, dictionary: &Dictionary<'d>, place: usize) -> Option<Seen<&'d str>> {
    let mut ids = [0; FIELDS];
    for (id, (codes, values)) in ids.iter_mut().zip(chunk.fields.iter().zip(&dictionary.fields)) {
        *id = *values.get(codes.get(place)?)?;
    }
    let [event_type, outcome, skill, target, environment, zone, reason, _] = ids;
    let text = |id: usize| text(dictionary, id);
    Some(Seen {
        kind: EventKind::of(text(event_type)?.unwrap_or_default()),
        outcome: outcome_of(outcome),
        skill: text(skill)?,
        target: text(target)?,
        environment: text(environment)?,
        zone: text(zone)?,
        reason: text(reason)?,
    })
}

/// Searches for one fact among those that an event feeds.
struct Finder<'k> {
    kind: FactKind,
    parts: &'k [String],
    found: bool,
}

impl<'t> Sink<&'t str> for Finder<'_> {
    fn any(&self) -> &'t str {
        ANY
    }

    fn add(
        &mut self,
        kind: FactKind,
        key: [&'t str; 3],
        _: Part<&'t str>,
        _: bool,
        supports: bool,
    ) {
        let parts = &key[..key_length(kind)];
        self.found |= supports && kind == self.kind && parts.iter().eq(self.parts.iter());
    }
}
