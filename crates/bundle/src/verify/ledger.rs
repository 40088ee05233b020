//! The ledger: checks the order of entries, their root, earlier tree heads, and events against
//! their entries.
//!
//! **Invariant:** every event in the bundle is canonical, matches its entry, and its writer may
//! write it. Missing events are recorded as gone.

use super::Check;
use crate::log::{MAX_ENTRY_BYTES, Pairs, add_entry};
use crate::name::Name;
use crate::report::Report;
use crate::source::Broken;
use ipse_audit::{Index, JudgingAgain, Walk, differences};
use ipse_consolidate::{Groups, RuleSet, Tally};
use ipse_consult::answer::counted;
use ipse_consult::intents::Content;
use ipse_core::{Admitted, Identity, Seq};
use ipse_ledger::{Bundled, Entry, TreeHead};
use std::io;

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
        let size = |note: &String| Some(TreeHead::of_note(note)?.size);
        let mut known = Index::new(self.anchors.iter().filter_map(size));
        let mut lines = part.lines(MAX_ENTRY_BYTES);
        while let Some(line) = lines.next()? {
            self.looked_at(line.map_or(0, <[u8]>::len) as u64);
            let added = line.map_err(Broken::message).and_then(|line| add_entry(&mut known, line));
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
        Ok(self.report.tell(Name::Entries, ended).then_some(known))
    }

    /// Compares with earlier tree heads.
    pub(super) fn anchored(&mut self, known: &Index, identity: &Identity) {
        let logs = self.trust.logs(identity);
        for (number, note) in (1..).zip(self.anchors) {
            let compared = TreeHead::signed(note, identity, &logs).and_then(|(anchor, _)| {
                known.continues(&anchor)?;
                Ok(format!("this log continues those {}", counted(anchor.size, "entry")))
            });
            self.report.tell(format!("anchor {number}"), compared);
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
        let Some(mut pairs) = Pairs::new(&self.archive, known) else { return Ok(None) };
        let (began, mut walked) = (self.report.fails(), WalkResult::default());
        while let Some((entry, event)) = pairs.next(self.report)? {
            self.looked_at(event.as_ref().map_or(0, |event| event.canonical.len() as u64));
            walked.entry(rules, bundled, &entry, event.as_ref(), self.report);
            if let Some(again) = again {
                let place = (entry.seq, entry.event_ref, entry.time);
                let typed = event.as_ref().and_then(Admitted::typed);
                let content = content(event.as_ref(), bundled, entry.seq);
                again.next(place, &entry.event_type, content, typed.as_ref());
            }
        }
        if self.report.fails() > began {
            return Ok(None);
        }
        let forgotten = walked.walk.forgets.len();
        walked.named_outside(known, bundled, self.report);
        let count = counted(pairs.events(), "event");
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

/// The content of an entry, as far as the bundle has it.
fn content<'e>(event: Option<&'e Admitted>, bundled: &Bundled, seq: Seq) -> Content<'e> {
    match event {
        Some(event) => Content::Bytes(event.canonical.as_bytes()),
        None if bundled.has(seq) => Content::Forgotten,
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
        let Entry { seq, event_ref, time, .. } = entry;
        let event_type = event.map_or(&entry.event_type, |event| &event.event_type);
        let place = || format!("events.jsonl, seq {seq}");
        if let Some(fault) = bundled.presence_fault(*seq, event_type, event.is_some()) {
            report.fail(place(), fault);
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
                let is_in_sums = Some(*seq) <= bundled.checkpoint;
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
            if bundled.has(seq) || !self.walk.forgets.names(name) {
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
