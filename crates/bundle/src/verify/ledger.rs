//! The ledger: checks the order of entries, their root, earlier tree heads, and events against
//! their entries.
//!
//! **Invariant:** every event in the bundle is canonical, matches its entry, and its writer may
//! write it. Missing events are recorded as gone.

use super::Check;
use super::signed::read_head;
use crate::name::Name;
use crate::report::{Report, counted};
use crate::source::{Broken, Lines};
use ipse_audit::{Index, JudgingAgain, Walk, differences};
use ipse_consolidate::{Groups, RuleSet, Tally};
use ipse_consult::intents::Content;
use ipse_core::event::{FORGET, RULES};
use ipse_core::{Admitted, Identity, Seq, is_housekeeping};
use ipse_door::{MAX_EVENT_BYTES, Origin, Rule, admit};
use ipse_ledger::account::can_be_forgotten;
use ipse_ledger::{Bundled, Entry, Note, TreeHead, entry_hash};
use std::io;

/// The longest line of an entry: a type of 256 bytes, each escaped, and the rest.
const MAX_LINE: usize = 4096;
/// The maximum number of entries: positions are stored in 32 bits.
const MAX_ENTRIES: usize = u32::MAX as usize;

/// The result of the walk over entries and events.
#[derive(Default)]
pub(super) struct WalkResult<T> {
    pub(super) walk: Walk,
    /// The sums at the checkpoint.
    pub(super) groups: Groups<T>,
}

impl Check<'_, '_> {
    /// Walks over all entries. Returns `None` if they are not a ledger, or not the one under the
    /// tree head.
    pub(super) fn entries(&mut self, head: Option<&TreeHead>) -> io::Result<Option<Index>> {
        let Some(part) = self.archive.part(Name::Entries) else { return Ok(None) };
        // The sizes of the anchors. Their signatures are checked later.
        let size = |note: &String| Some(TreeHead::parse(Note::parse(note).ok()?.text)?.size);
        let mut known = Index::new(self.anchors.iter().filter_map(size));
        let mut lines = part.lines(MAX_LINE);
        while let Some(line) = lines.next()? {
            self.looked_at(line.map_or(0, <[u8]>::len) as u64);
            let added = line.map_err(Broken::message).and_then(|line| add(&mut known, line));
            if let Err(message) = added {
                self.report.fail(format!("entries.jsonl, line {}", lines.number()), message);
                return Ok(None);
            }
        }
        let twice = known.sort();
        for [first, second] in &twice {
            let (name, seq) = (known.names[*first], first + 1);
            let message = format!("{name} is a duplicate of seq {seq}");
            self.report.fail(format!("entries.jsonl, line {}", second + 1), message);
        }
        let Some(head) = head.filter(|_| twice.is_empty()) else { return Ok(None) };
        let (size, signed) = (known.edge.size(), head.size);
        let ended = match known.edge.root() == head.root {
            _ if size != signed => {
                Err(format!("the tree head covers {signed}, but there are {size}"))
            }
            false => Err("their root is not the one in the tree head".to_string()),
            true => {
                let entries = counted(size, "entry");
                Ok(format!("{entries} in canonical form; their root is the signed one"))
            }
        };
        Ok(self.tell(Name::Entries, ended).then_some(known))
    }

    /// Compares with earlier tree heads.
    pub(super) fn anchored(&mut self, known: &Index, identity: &Identity, head: &TreeHead) {
        for (number, note) in (1..).zip(self.anchors) {
            let compared = read_head(note, identity, self.trust).and_then(|(anchor, _)| {
                let (was, is) = (anchor.size, head.size);
                match known.continues(&anchor) {
                    _ if was > is => Err(format!(
                        "the log had {was} entries then and has {is} here: rolled back"
                    )),
                    false => Err(format!(
                        "the first {was} entries were different then: the log was forked"
                    )),
                    true => Ok(format!("this log continues those {}", counted(was, "entry"))),
                }
            });
            self.tell(format!("anchor {number}"), compared);
        }
    }

    /// Walks over entries and events. Returns `None` if an event does not match its entry.
    pub(super) fn events<R: RuleSet>(
        &mut self,
        rules: &R,
        known: &Index,
        bundled: &Bundled,
        again: &mut Option<JudgingAgain<'_>>,
    ) -> io::Result<Option<WalkResult<R::Tally>>> {
        let [events, entries] = [Name::Events, Name::Entries].map(|name| self.archive.part(name));
        let (Some(events), Some(entries)) = (events, entries) else { return Ok(None) };
        let mut events = Events { lines: events.lines(MAX_EVENT_BYTES), known, last: Seq(0) };
        let (began, mut walked) = (self.report.fails(), WalkResult::default());
        let mut next = events.next(self.report)?;
        let mut lines = entries.lines(MAX_LINE);
        while let Some(Ok(line)) = lines.next()? {
            // All entries were parsed before, so this does not fail.
            let Some(entry) = Entry::parse(line) else { continue };
            let event = next.take_if(|(seq, _)| *seq == entry.seq).map(|(_, event)| event);
            walked.entry(rules, bundled, &entry, event.as_ref(), self.report);
            if let Some(again) = again {
                let place = (entry.seq, entry.event_ref, entry.time);
                let typed = event.as_ref().and_then(Admitted::typed);
                let content = content(event.as_ref(), bundled, entry.seq);
                again.next(place, &entry.event_type, content, typed.as_ref());
            }
            if let Some(event) = event {
                self.looked_at(event.canonical.len() as u64);
                next = events.next(self.report)?;
            }
        }
        if next.is_some() || lines.number() != known.kinds.len() as u64 {
            self.report.fail("bundle", "the file changed while it was read");
        }
        if self.report.fails() > began {
            return Ok(None);
        }
        let forgotten = walked.walk.forgets.len();
        walked.named_outside(known, bundled, self.report);
        let count = counted(events.lines.number(), "event");
        self.report
            .pass(Name::Events, format!("{count} in canonical form, each matches its entry"));
        if forgotten > 0 {
            let events = counted(forgotten, "event");
            let message =
                format!("{events} forgotten: ref, type, time and digest are left, no content");
            self.report.limit(Name::Events, message);
        }
        Ok(Some(walked))
    }
}

/// Adds an entry to the index.
fn add(index: &mut Index, line: &[u8]) -> Result<(), &'static str> {
    let entry = Entry::parse(line).ok_or("is not an entry in canonical form")?;
    if entry.seq != Seq(index.names.len() as u64 + 1) {
        return Err("its seq does not follow the previous one");
    }
    if index.names.len() == MAX_ENTRIES {
        return Err("there are more entries than 4294967295");
    }
    index.names.push(entry.event_ref);
    index.digests.push(entry.digest);
    index.kinds.push([is_housekeeping(&entry.event_type), can_be_forgotten(&entry.event_type)]);
    index.grow(entry_hash(line), |_, _, _| {});
    Ok(())
}

/// The lines of events.
struct Events<'a> {
    lines: Lines<'a>,
    known: &'a Index,
    last: Seq,
}

impl Events<'_> {
    /// The next readable event with its position. Unreadable events are reported as failures.
    fn next(&mut self, report: &mut Report) -> io::Result<Option<(Seq, Admitted)>> {
        while let Some(line) = self.lines.next()? {
            let read = line.map_err(|broken| broken.message().to_string()).and_then(read);
            match read.and_then(|event| self.placed(event)) {
                Ok(there) => return Ok(Some(there)),
                Err(message) => {
                    report.fail(format!("events.jsonl, line {}", self.lines.number()), message);
                }
            }
        }
        Ok(None)
    }

    /// Looks up the entry of an event.
    fn placed(&mut self, event: Admitted) -> Result<(Seq, Admitted), String> {
        let (name, last) = (event.event_ref, self.last);
        let found = self.known.look_up(&name);
        let (seq, digest) = found.ok_or_else(|| format!("{name} has no entry"))?;
        if digest != event.digest {
            return Err(format!("{name} does not match the digest of its entry, seq {seq}"));
        }
        if seq <= last {
            return Err(format!("{name}, seq {seq}, comes after seq {last}"));
        }
        self.last = seq;
        Ok((seq, event))
    }
}

/// Reads an event that is canonical and whose writer may write it.
fn read(line: &[u8]) -> Result<Admitted, String> {
    // An event in a log has its salt. If it is missing, the zero salt changes the bytes.
    let admitted = |origin| admit(line, origin, || [0; 16]);
    let mut event = admitted(Origin::Producer);
    let is_house = event.as_ref().is_err_and(|refusal| refusal.rule == Rule::ReservedSource);
    if is_house {
        event = admitted(Origin::House);
    }
    match event {
        Err(refusal) if refusal.rule == Rule::ReservedType => {
            Err("has a type that only ipse may write, but another source".to_string())
        }
        Err(refusal) => Err(refusal.to_string()),
        Ok(event) if is_house && !is_housekeeping(&event.event_type) => {
            Err("has the source of ipse's own events, but not one of their types".to_string())
        }
        Ok(event) if event.canonical.as_bytes() != line => {
            Err("is not in canonical form".to_string())
        }
        Ok(event) => Ok(event),
    }
}

/// The content of an entry, as far as the bundle has it.
fn content<'e>(event: Option<&'e Admitted>, bundled: &Bundled, seq: Seq) -> Content<'e> {
    match event {
        Some(event) => Content::Bytes(event.canonical.as_bytes()),
        None if (bundled.from..=bundled.to).contains(&seq) => Content::Forgotten,
        None => Content::Unknown,
    }
}

impl<T: Tally> WalkResult<T> {
    /// Checks an entry, with its event if the bundle has it.
    fn entry<R: RuleSet<Tally = T>>(
        &mut self,
        rules: &R,
        bundled: &Bundled,
        entry: &Entry,
        event: Option<&Admitted>,
        report: &mut Report,
    ) {
        let Bundled { from, to, checkpoint, .. } = bundled;
        let Entry { seq, event_ref, time, .. } = entry;
        let event_type = event.map_or(&entry.event_type, |event| &event.event_type);
        let place = || format!("events.jsonl, seq {seq}");
        let inside = (from..=to).contains(&seq);
        // Events outside of the range that the range cannot be understood without.
        let explains = (event_type == FORGET && seq > to) || (event_type == RULES && seq < from);
        if event.is_some() && !inside && !explains {
            report.fail(place(), format!("lies outside of the range seq {from}..{to}"));
        } else if event.is_none() && inside && !can_be_forgotten(event_type) {
            let message = format!("is missing: {event_type} events cannot be forgotten");
            report.fail(place(), message);
        } else if event.is_none() && explains {
            let side = if seq > to { "after" } else { "before" };
            let message =
                format!("is missing: a bundle has all {event_type} events {side} its range");
            report.fail(place(), message);
        }
        let stored = (&event_ref.0[..], time.micros(), entry.event_type.as_bytes());
        for part in event.into_iter().flat_map(|event| differences(event, stored).rev()) {
            report.fail(place(), format!("its entry has another {part}"));
        }
        let content = content(event, bundled, *seq);
        let fault = self.walk.next(*seq, *event_ref, event_type, content);
        fault.into_iter().for_each(|(place, message)| report.fail(place, message));
        match event.map(Admitted::typed) {
            Some(Some(typed)) => {
                let is_in_sums = Some(*seq) <= *checkpoint;
                self.walk.feed(rules, is_in_sums.then_some(&mut self.groups), &typed);
            }
            Some(None) => report.fail(place(), "has no typed columns"),
            None => {}
        }
    }

    /// Records the events outside of the range that forget events name: they are missing too.
    fn named_outside(&mut self, known: &Index, bundled: &Bundled, report: &mut Report) {
        let all = known.names.iter().zip(&known.kinds);
        for (seq, (name, [_, forgettable])) in (1..).map(Seq).zip(all) {
            let inside = (bundled.from..=bundled.to).contains(&seq);
            if inside || !self.walk.forgets.names(name) {
                continue;
            }
            if !forgettable {
                let message = format!("{name} is named as forgotten, but cannot be forgotten");
                report.fail(format!("events.jsonl, seq {seq}"), message);
            }
            self.walk.forgets.gone(*name, seq, "");
        }
    }
}
