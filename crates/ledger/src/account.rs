//! Checks ipse's own records of passes and forgetting against the log.
//!
//! **Invariants:** every event without content is named by a `forget` event, and every named event
//! has no content. The ranges of passes have no gap and no overlap. Each pass counts the events
//! that existed when it ran.

use crate::rules::RulesHistory;
use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::RangeInclusive;
use ipse_core::event::{FORGET, MAX_DEPTH, PASS_RECORD};
use ipse_core::intent::INTENT;
use ipse_core::json::{Object, Value};
use ipse_core::{EventRef, HOUSE_SOURCE, Seq, is_housekeeping, json_parse};

/// Whether an event of this type can be forgotten. Intents are housekeeping but can be forgotten.
pub fn can_be_forgotten(event_type: &str) -> bool {
    event_type == INTENT || !is_housekeeping(event_type)
}

/// A mismatch: its place and a message.
pub type Fault = (String, String);

/// The forgotten events and the `forget` events of a log.
#[derive(Default)]
pub struct ForgetRecords {
    /// Events without content by position: their names, and whether passes count such events.
    gone: BTreeMap<Seq, (EventRef, bool)>,
    /// The position of the first `forget` event that names an event.
    said: BTreeMap<EventRef, Seq>,
    /// The last event if it was a `forget` event, and the `forget` events without a pass.
    behind_forget: Option<Seq>,
    without_pass: Vec<Seq>,
}

impl ForgetRecords {
    /// Records an event without content.
    pub fn gone(&mut self, name: EventRef, seq: Seq, event_type: &str) {
        self.gone.insert(seq, (name, !is_housekeeping(event_type)));
    }

    /// Records the names in a `forget` event. Returns the fault of an event that ipse cannot have
    /// written.
    pub fn said(&mut self, seq: Seq, event: EventRef, payload: &[u8]) -> Option<Fault> {
        let names = forgotten_names(payload);
        for name in names.iter().flatten() {
            self.said.entry(*name).or_insert(seq);
        }
        let id = format!("forget:{seq}");
        let fault = match names {
            _ if event != EventRef::new(HOUSE_SOURCE, &id) => format!("its id is not {id}"),
            None => "cannot be read".to_owned(),
            Some(_) => return None,
        };
        Some((format!("forget event at seq {seq}"), fault))
    }

    /// Whether a `forget` event names an event.
    pub fn names(&self, name: &EventRef) -> bool {
        self.said.contains_key(name)
    }

    /// The number of forgotten events.
    pub fn len(&self) -> u64 {
        self.gone.len() as u64
    }

    /// Whether no event is forgotten.
    pub fn is_empty(&self) -> bool {
        self.gone.is_empty()
    }

    /// The larger of two numbers: events without content, and names in `forget` events.
    pub fn most(&self) -> u64 {
        self.gone.len().max(self.said.len()) as u64
    }

    /// The number of events of a range that were forgotten before a pass at a position.
    pub fn missed(&self, range: RangeInclusive<Seq>, pass: Seq) -> u64 {
        let missed = |(_, (name, counts)): &(&Seq, &(EventRef, bool))| {
            *counts && self.said.get(name).is_some_and(|said| *said < pass)
        };
        self.among(range).filter(missed).count() as u64
    }

    /// Whether a range has events without content that no `forget` event names.
    pub fn lost(&self, range: RangeInclusive<Seq>) -> bool {
        self.among(range).any(|(seq, (name, _))| !self.is_said(*seq, name))
    }

    fn among(&self, range: RangeInclusive<Seq>) -> impl Iterator<Item = (&Seq, &(EventRef, bool))> {
        // The range of a damaged record may be reversed.
        let range = Some(range).filter(|range| range.start() <= range.end());
        range.into_iter().flat_map(|range| self.gone.range(range))
    }

    /// Whether a range has forgotten events.
    pub fn any(&self, range: RangeInclusive<Seq>) -> bool {
        self.among(range).next().is_some()
    }

    fn is_said(&self, seq: Seq, name: &EventRef) -> bool {
        self.said.get(name).is_some_and(|said| *said > seq)
    }

    /// Records the next event of the log. A pass must directly follow `forget` events.
    pub fn next(&mut self, seq: Seq, event_type: &str) {
        if !matches!(event_type, FORGET | PASS_RECORD) {
            self.without_pass.extend(self.behind_forget);
        }
        self.behind_forget = (event_type == FORGET).then_some(seq);
    }

    /// Compares events without content with the names in `forget` events.
    pub fn faults(&self) -> Vec<Fault> {
        let message = "is not followed by its pass";
        let alone = self.without_pass.iter().chain(&self.behind_forget);
        let alone = alone.map(|seq| (format!("forget event at seq {seq}"), message.to_string()));
        let silent = self.gone.iter().filter(|(seq, (name, _))| !self.is_said(**seq, name));
        let message = "its content is missing, but no later forget event names it";
        let silent = silent.map(|(seq, _)| (format!("seq {seq}"), message.to_string()));
        let gone: BTreeSet<&EventRef> = self.gone.values().map(|(name, _)| name).collect();
        let there = self.said.iter().filter(|(name, _)| !gone.contains(name));
        let there = there.map(|(name, said)| {
            let message = format!("names {name} as forgotten, but its content exists");
            (format!("forget event at seq {said}"), message)
        });
        silent.chain(there).chain(alone).collect()
    }
}

/// The maximum number of refs in a `forget` event, so that it stays below the size limit of events.
pub const MAX_REFS: usize = 1600;

/// The names in a `forget` event: at least one, without duplicates.
pub fn forgotten_names(payload: &[u8]) -> Option<Vec<EventRef>> {
    let value = json_parse::parse(payload, MAX_DEPTH).ok()?;
    let data = house_data(&value, &["event_refs"])?;
    let Value::Array(names) = data.get("event_refs")? else { return None };
    let names = names.iter().map(|name| EventRef::parse(name.as_text()?));
    let names = names.collect::<Option<Vec<EventRef>>>()?;
    let distinct: BTreeSet<&EventRef> = names.iter().collect();
    let fits = (1..=MAX_REFS).contains(&names.len()) && distinct.len() == names.len();
    fits.then_some(names)
}

/// The members of an event that ipse writes about itself.
const HOUSE_MEMBERS: [&str; 7] = ["data", "id", "salt", "source", "specversion", "time", "type"];

/// The parts of an event that ipse writes.
pub struct HouseParts<'v> {
    /// The CloudEvents id.
    pub id: &'v str,
    /// The time, as written.
    pub time: &'v str,
    /// The members of `data`.
    pub data: &'v Object<'v>,
}

/// Reads an event that has the source of ipse and exactly the members that ipse writes.
pub fn house_parts<'v>(value: &'v Value<'_>) -> Option<HouseParts<'v>> {
    let event = value.as_object()?;
    let text = |name: &str| event.get(name)?.as_text();
    let fits = has_exactly(event, &HOUSE_MEMBERS) && text("source")? == HOUSE_SOURCE;
    let (id, time, data) = (text("id")?, text("time")?, event.get("data")?.as_object()?);
    fits.then_some(HouseParts { id, time, data })
}

fn has_exactly(object: &Object<'_>, names: &[&str]) -> bool {
    object.iter().map(|(name, _)| name).eq(names.iter().copied())
}

/// The data of such an event, if it has exactly these members.
fn house_data<'v>(value: &'v Value<'_>, members: &[&str]) -> Option<&'v Object<'v>> {
    house_parts(value).map(|parts| parts.data).filter(|data| has_exactly(data, members))
}

/// The claim of a pass record about its range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PassClaim {
    /// The position of the record.
    pub seq: Seq,
    /// The first position of its range.
    pub first: Seq,
    /// The last position of its range.
    pub last: Seq,
    /// The number of events that the pass counted.
    pub processed: u64,
    /// The number of counted events that fed no fact.
    pub skipped: u64,
    /// The skipped events by type and reason.
    pub skipped_by_type: Skipped<String>,
    /// The version of the rules.
    pub rule_version: String,
    /// The hash of the rule set's descriptor, in hex.
    pub rule_set: String,
    /// The reason for the pass.
    pub trigger: String,
    /// The number of events before the record, without housekeeping.
    pub counted: u64,
    first_name: Option<EventRef>,
    last_name: Option<EventRef>,
}

/// The members of a pass record's data, in canonical order.
const RECORD_MEMBERS: [&str; 11] = [
    "events_processed",
    "events_skipped",
    "first_processed_event_id",
    "first_seq",
    "last_processed_event_id",
    "last_seq",
    "rows_touched",
    "rule_set_sha256",
    "rule_version",
    "skipped",
    "trigger",
];
/// The triggers of a pass.
const TRIGGERS: [&str; 5] = ["startup", "threshold", "manual", "forget", RULES_TRIGGER];
/// The trigger of the pass that follows a change of rules.
pub const RULES_TRIGGER: &str = "rules";

impl PassClaim {
    /// Reads the record at a position after `counted` events, without housekeeping.
    pub fn read(seq: Seq, payload: &[u8], counted: u64) -> Option<Self> {
        let value = json_parse::parse(payload, MAX_DEPTH).ok()?;
        let data = house_data(&value, &RECORD_MEMBERS)?;
        let trigger = data.get("trigger")?.as_text()?;
        if !TRIGGERS.contains(&trigger) || data.get("rows_touched")?.as_count().is_none() {
            return None;
        }
        let count = |name: &str| data.get(name).and_then(Value::as_count);
        let text = |name: &str| data.get(name)?.as_text().map(str::to_owned);
        let name = |member: &str| text(member).and_then(|text| EventRef::parse(&text));
        Some(PassClaim {
            seq,
            first: Seq(count("first_seq")?),
            last: Seq(count("last_seq")?),
            processed: count("events_processed")?,
            skipped: count("events_skipped")?,
            skipped_by_type: by_type(data.get("skipped")?.as_object()?)?,
            counted,
            first_name: name("first_processed_event_id"),
            last_name: name("last_processed_event_id"),
            rule_version: text("rule_version")?,
            rule_set: text("rule_set_sha256")?,
            trigger: trigger.to_owned(),
        })
    }

    /// The contradictions to the log with these names in order. `follows` is the position of the
    /// previous pass record. `since` is the number of events before the range, without
    /// housekeeping, if it is known. `rules` are those in force at every position.
    pub fn contradictions(
        &self,
        follows: Option<Seq>,
        since: Option<u64>,
        names: &[EventRef],
        forgets: &ForgetRecords,
        rules: &RulesHistory,
    ) -> Vec<&'static str> {
        // A pass with a new rule set, or after a rebuild, begins at the start. Any other begins
        // with the previous record, because a pass ends right before its record.
        let joined = self.first == Seq(1) || Some(self.first) == follows;
        // Events that were forgotten before the pass are not counted.
        let missed = forgets.missed(self.first..=self.last, self.seq);
        let processed = self.processed.saturating_add(missed);
        let counted = since.map_or(processed, |since| self.counted.saturating_sub(since));
        let name_at = |seq: Seq| {
            let place = usize::try_from(seq.0).ok()?.checked_sub(1)?;
            names.get(place).copied()
        };
        let by_type = self.skipped_by_type.values().flat_map(BTreeMap::values);
        let by_type = by_type.fold(0_u64, |sum, n| sum.saturating_add(*n));
        let id = format!("pass:{}:{}-{}", self.rule_version, self.first, self.last);
        let found = [
            (!joined, "its range leaves a gap or overlaps the previous one"),
            (
                self.last.0.checked_add(1) != Some(self.seq.0) || self.first > self.last,
                "its range does not end directly before it",
            ),
            (processed != counted, "its number of events is not that of its range"),
            (
                self.skipped > self.processed || by_type != self.skipped,
                "its number of skipped events is not that of its list",
            ),
            (
                self.first_name != name_at(self.first) || self.last_name != name_at(self.last),
                "its first and last events are not those of its range",
            ),
            (
                name_at(self.seq) != Some(EventRef::new(HOUSE_SOURCE, &id)),
                "its id is not pass:<rule version>:<first>-<last>",
            ),
        ];
        let found = found.into_iter().filter(|(wrong, _)| *wrong).map(|(_, message)| message);
        found.chain(self.rules_fault(rules)).collect()
    }

    /// The contradiction to the rules in force before the record.
    fn rules_fault(&self, rules: &RulesHistory) -> Option<&'static str> {
        let before = Seq(self.seq.0.saturating_sub(1));
        let (in_force, follows_change) = (rules.at(before), rules.is_change(before));
        if in_force.version != self.rule_version || in_force.hex() != self.rule_set {
            return Some("names rules that were not in force");
        }
        match self.trigger == RULES_TRIGGER {
            true if !follows_change => Some("is triggered by rules, but none changed before it"),
            true if self.first != Seq(1) => Some("must cover the log from seq 1"),
            false if follows_change => Some("must be triggered by rules"),
            _ => None,
        }
    }
}

/// The maximum number of types that a pass record lists as skipped, the most frequent ones. Others
/// are summed under `ipse.other`, so that the record stays far below the size limit of events.
pub const MAX_SKIPPED_TYPES: usize = 64;
const OTHER_TYPES: &str = "ipse.other";

/// Skipped events by type and reason. The reason is a code by default.
pub type Skipped<C = &'static str> = BTreeMap<String, BTreeMap<C, u64>>;

/// Keeps the most frequent types and sums the others, as in a pass record.
pub fn shortened<C: Ord>(skipped: Skipped<C>) -> Skipped<C> {
    if skipped.len() <= MAX_SKIPPED_TYPES {
        return skipped;
    }
    let mut types: Vec<_> = skipped.into_iter().collect();
    types.sort_by_key(|(name, reasons)| (Reverse(reasons.values().sum::<u64>()), name.clone()));
    let others = types.split_off(MAX_SKIPPED_TYPES);
    let mut short: Skipped<C> = types.into_iter().collect();
    let sum = short.entry(OTHER_TYPES.to_string()).or_default();
    for (code, count) in others.into_iter().flat_map(|(_, reasons)| reasons) {
        *sum.entry(code).or_default() += count;
    }
    short
}

fn by_type(skipped: &Object<'_>) -> Option<Skipped<String>> {
    let reasons = |(name, reasons): (&str, &Value<'_>)| {
        let reasons = reasons.as_object()?.iter();
        let counts = reasons.map(|(code, n)| Some((code.to_string(), n.as_count()?)));
        Some((name.to_string(), counts.collect::<Option<_>>()?))
    };
    skipped.iter().map(reasons).collect()
}
