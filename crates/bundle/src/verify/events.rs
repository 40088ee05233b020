//! The events against their entries, in one walk over both.
//!
//! **Invariant:** every event that is there is canonical, stands in an entry that says the same of
//! it, and was written by whoever may write it. What is not there is taken down as gone.

use super::Meter;
use super::account::Skips;
use super::entries::{self, Known};
use crate::archive::Archive;
use crate::name::Name;
use crate::report::{Report, counted};
use crate::source::Lines;
use ipse_consolidate::{Groups, RuleSet, Skip};
use ipse_consult::intents::{Content, Intents};
use ipse_core::event::{FORGET, PASS_RECORD};
use ipse_core::{Admitted, Event, EventRef, HOUSE_SOURCE, Seq, is_housekeeping};
use ipse_door::{MAX_EVENT_BYTES, Origin, Rule, admit};
use ipse_ledger::account::{Claimed, Forgets, can_be_forgotten};
use ipse_ledger::{Bundled, Entry};
use std::io;

/// What the walk brings home.
pub(super) struct Walked<T> {
    /// What was forgotten, and what says so.
    pub(super) forgets: Forgets,
    /// Pass records of the range.
    pub(super) records: Vec<Record>,
    /// Intents and decisions.
    pub(super) intents: Intents,
    /// The sums at the checkpoint.
    pub(super) groups: Groups<T>,
}

/// A pass record, with what the walk knew when it came by.
pub(super) struct Record {
    pub(super) seq: Seq,
    /// What it says, if it can be read.
    pub(super) claimed: Option<Claimed>,
    /// Whether it has the name that such a record must have.
    pub(super) named: bool,
    /// Whether it begins where the pass before it, in the range or not, has ended.
    pub(super) joined: bool,
    /// Whether it lists what the rules skip, if nothing was forgotten.
    pub(super) skips: bool,
}

/// An event, with its place.
struct There {
    seq: Seq,
    event: Admitted,
}

/// Walks over entries and events; nothing if an event is not what its entry says.
pub(super) fn walk<R: RuleSet>(
    rules: &R,
    archive: &Archive<'_>,
    known: &Known,
    bundled: &Bundled,
    meter: &mut Meter<'_>,
    report: &mut Report,
) -> io::Result<Option<Walked<R::Tally>>> {
    let (events, entries) = (archive.part(Name::Events), archive.part(Name::Entries));
    let (Some(events), Some(entries)) = (events, entries) else { return Ok(None) };
    let lines = events.lines(MAX_EVENT_BYTES);
    let mut events = Events { lines, known, last: Seq(0), count: 0 };
    let mut walk = Walk::new(rules, bundled);
    let before = report.fails();
    let mut next = events.next(meter, report)?;
    let mut lines = entries.lines(entries::MAX_LINE);
    while let Some(Ok(line)) = lines.next()? {
        // They were read before, so they can be read again.
        let Some(entry) = Entry::parse(line) else { continue };
        match next.take_if(|there| there.seq == entry.seq) {
            Some(there) => {
                walk.there(&entry, &there.event, report);
                next = events.next(meter, report)?;
            }
            None => walk.absent(&entry, report),
        }
        walk.counted += u64::from(!is_housekeeping(&entry.event_type));
    }
    if next.is_some() || lines.number() != known.names.len() as u64 {
        report.fail("bundle", "the file changed while it was read");
    }
    if report.fails() > before {
        return Ok(None);
    }
    let forgotten = walk.walked.forgets.len();
    walk.named_outside(known, report);
    let count = counted(events.count, "event");
    report.pass("events.jsonl", format!("{count} in canonical form, each as its entry says"));
    if forgotten > 0 {
        let events = counted(forgotten, "event");
        let message =
            format!("{events} forgotten: ref, type, time and digest are left, no content");
        report.limit("events.jsonl", message);
    }
    Ok(Some(walk.walked))
}

/// The lines of events.
struct Events<'a> {
    lines: Lines<'a>,
    known: &'a Known,
    last: Seq,
    count: u64,
}

impl Events<'_> {
    /// The next event that can be read; those that cannot are failures.
    fn next(&mut self, meter: &mut Meter<'_>, report: &mut Report) -> io::Result<Option<There>> {
        while let Some(line) = self.lines.next()? {
            let read = match line {
                Ok(line) => {
                    meter.add(line.len() as u64);
                    read(line)
                }
                Err(broken) => Err(broken.message().to_string()),
            };
            match read.and_then(|event| self.placed(event)) {
                Ok(there) => {
                    self.count += 1;
                    return Ok(Some(there));
                }
                Err(message) => {
                    report.fail(format!("events.jsonl, line {}", self.lines.number()), message);
                }
            }
        }
        Ok(None)
    }

    /// Finds the entry that the event belongs to.
    fn placed(&mut self, event: Admitted) -> Result<There, String> {
        let name = event.event_ref;
        let at = self.known.find(&name).ok_or(format!("{name} is in no entry"))?;
        let seq = Seq(at as u64 + 1);
        if self.known.digests[at] != event.digest {
            return Err(format!("{name}: its digest is not that of its entry, seq {seq}"));
        }
        if seq <= self.last {
            return Err(format!("{name}, seq {seq}, stands behind seq {}", self.last));
        }
        self.last = seq;
        Ok(There { seq, event })
    }
}

/// Reads an event that is canonical, and of somebody who may write it.
fn read(line: &[u8]) -> Result<Admitted, String> {
    // An event in a log has its salt: one that is made up makes other bytes.
    let salt = || [0; 16];
    let event = match admit(line, Origin::Producer, salt) {
        Ok(event) => event,
        Err(refusal) if refusal.rule == Rule::ReservedType => {
            return Err("has a type that only ipse writes, under another source".to_string());
        }
        Err(refusal) if refusal.rule == Rule::ReservedSource => {
            let event = admit(line, Origin::House, salt).map_err(|refusal| refusal.to_string())?;
            if !is_housekeeping(&event.event_type) {
                return Err("has the source of ipse's own events, and is none".to_string());
            }
            event
        }
        Err(refusal) => return Err(refusal.to_string()),
    };
    match event.canonical.as_bytes() == line {
        true => Ok(event),
        false => Err("is not in canonical form".to_string()),
    }
}

struct Walk<'b, R: RuleSet> {
    rules: &'b R,
    bundled: &'b Bundled,
    /// Events so far, housekeeping aside.
    counted: u64,
    /// Skipped events since the last pass, and all of them.
    skips: [Skips; 2],
    /// Where the last pass record stands.
    last_pass: Option<Seq>,
    walked: Walked<R::Tally>,
}

impl<'b, R: RuleSet> Walk<'b, R> {
    fn new(rules: &'b R, bundled: &'b Bundled) -> Self {
        let walked = Walked {
            forgets: Forgets::default(),
            records: Vec::new(),
            intents: Intents::default(),
            groups: Groups::default(),
        };
        Walk { rules, bundled, counted: 0, skips: Default::default(), last_pass: None, walked }
    }

    fn in_range(&self, seq: Seq) -> bool {
        (self.bundled.from..=self.bundled.to).contains(&seq)
    }

    /// An entry without content.
    fn absent(&mut self, entry: &Entry, report: &mut Report) {
        let Entry { seq, event_ref, event_type, .. } = entry;
        self.walked.forgets.next(*seq, event_type);
        let place = format!("events.jsonl, seq {seq}");
        if event_type == PASS_RECORD {
            self.last_pass = Some(*seq);
        }
        let inside = self.in_range(*seq);
        let content = if inside { Content::Forgotten } else { Content::Unknown };
        self.walked.intents.event(*seq, *event_ref, event_type, content);
        if inside {
            match can_be_forgotten(event_type) {
                true => self.walked.forgets.gone(*event_ref, *seq, event_type),
                false => report.fail(
                    place,
                    format!("{event_type} events are never forgotten, and this one is missing"),
                ),
            }
        } else if event_type == FORGET && *seq > self.bundled.to {
            report.fail(
                place,
                "is missing: forget events after the range say what was forgotten in it",
            );
        }
    }

    /// An entry with its event.
    fn there(&mut self, entry: &Entry, event: &Admitted, report: &mut Report) {
        let seq = entry.seq;
        self.walked.forgets.next(seq, &entry.event_type);
        let place = format!("events.jsonl, seq {seq}");
        let explains = event.event_type == FORGET && seq > self.bundled.to;
        if !self.in_range(seq) && !explains {
            let (from, to) = (self.bundled.from, self.bundled.to);
            report.fail(&place, format!("lies outside of the range, which is seq {from}..{to}"));
        }
        if entry.event_type != event.event_type {
            report.fail(&place, "its entry says another type");
        }
        if entry.time != event.time {
            report.fail(&place, "its entry says another time");
        }
        let content = Content::Bytes(event.canonical.as_bytes());
        self.walked.intents.event(seq, event.event_ref, &event.event_type, content);
        match event.event_type.as_str() {
            FORGET => self.forget(seq, event, report),
            PASS_RECORD => self.pass(seq, event),
            _ => self.fold(seq, event, report),
        }
    }

    fn forget(&mut self, seq: Seq, event: &Admitted, report: &mut Report) {
        let place = format!("forget event at seq {seq}");
        if event.event_ref != EventRef::new(HOUSE_SOURCE, &format!("forget:{seq}")) {
            report.fail(&place, format!("its id is not forget:{seq}"));
        }
        if !self.walked.forgets.said(seq, event.canonical.as_bytes()) {
            report.fail(place, "cannot be read");
        }
    }

    fn pass(&mut self, seq: Seq, event: &Admitted) {
        let claimed = Claimed::read(seq, event.canonical.as_bytes(), self.counted);
        let named = claimed.as_ref().is_some_and(|claimed| {
            let Claimed { rule_version, first, last, .. } = claimed;
            let id = format!("pass:{rule_version}:{first}-{last}");
            event.event_ref == EventRef::new(HOUSE_SOURCE, &id)
        });
        let [since, all] = &self.skips;
        let skips = claimed.as_ref().is_some_and(|claimed| {
            let expected = if claimed.first == Seq(1) { all } else { since };
            expected.are(&claimed.skipped_by_type)
        });
        self.skips[0] = Skips::default();
        let joined = claimed.as_ref().is_some_and(|claimed| {
            // A pass ends right before its record, so the next one begins with that record.
            claimed.first == Seq(1) || Some(claimed.first) == self.last_pass
        });
        self.last_pass = Some(seq);
        self.walked.records.push(Record { seq, claimed, named, skips, joined });
    }

    fn fold(&mut self, seq: Seq, event: &Admitted, report: &mut Report) {
        let Admitted { event_ref, time, event_type, columns, .. } = event;
        let Some(typed) = Event::of_row(*event_ref, *time, event_type, columns) else {
            report.fail(format!("events.jsonl, seq {seq}"), "has no typed columns");
            return;
        };
        let skip = match self.bundled.checkpoint {
            Some(checkpoint) if seq <= checkpoint => self.walked.groups.fold(self.rules, &typed),
            _ => self.rules.contributions(&typed).err(),
        };
        if let Some(skip) = skip.filter(|skip| *skip != Skip::Housekeeping) {
            self.skips.iter_mut().for_each(|skips| skips.add(event_type, skip));
        }
    }

    /// Forget events may name events outside of the range: those are not there either.
    fn named_outside(&mut self, known: &Known, report: &mut Report) {
        for (seq, (name, forgettable)) in
            (1..).map(Seq).zip(known.names.iter().zip(&known.forgettable))
        {
            if self.in_range(seq) || !self.walked.forgets.names(name) {
                continue;
            }
            if !forgettable {
                let message = format!("{name} is named as forgotten, and such events never are");
                report.fail(format!("events.jsonl, seq {seq}"), message);
            }
            self.walked.forgets.gone(*name, seq, "");
        }
    }
}
