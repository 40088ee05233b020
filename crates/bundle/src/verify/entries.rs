//! The ledger: entries in order, the root over them, and tree heads that were seen before.

use super::Meter;
use super::signed::read_head;
use crate::archive::Archive;
use crate::name::Name;
use crate::report::{Report, counted};
use crate::trust::Trust;
use ipse_core::{Digest, EventRef, Identity, Seq, is_housekeeping};
use ipse_ledger::account::can_be_forgotten;
use ipse_ledger::{Edge, Entry, Hash, Note, TreeHead};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The longest line of an entry: a type of 256 bytes, each escaped, and the rest.
pub(super) const MAX_LINE: usize = 4096;
/// Entries at most: positions are kept in 32 bits.
const MAX_ENTRIES: usize = u32::MAX as usize;

/// What is kept of all entries.
pub(super) struct Known {
    /// Names by position.
    pub(super) names: Vec<EventRef>,
    /// Digests by position.
    pub(super) digests: Vec<Digest>,
    /// Positions from 0, sorted by name.
    by_name: Vec<u32>,
    /// Whether ipse wrote them, by position.
    pub(super) house: Vec<bool>,
    /// Whether they can be forgotten, by position.
    pub(super) forgettable: Vec<bool>,
    /// Entries of events, housekeeping aside.
    pub(super) events: u64,
    edge: Edge,
    /// Roots at the sizes that were asked for.
    roots: BTreeMap<u64, Hash>,
}

impl Known {
    /// The position, from 0, of the event of that name.
    pub(super) fn find(&self, name: &EventRef) -> Option<usize> {
        let named = |place: &u32| self.names[*place as usize];
        let place = self.by_name.binary_search_by_key(name, named).ok()?;
        Some(self.by_name[place] as usize)
    }
}

/// The sizes that anchors speak of, believed or not.
pub(super) fn sizes(anchors: &[String]) -> BTreeSet<u64> {
    let size = |note: &String| Some(TreeHead::parse(Note::parse(note).ok()?.text)?.size);
    anchors.iter().filter_map(size).collect()
}

/// Walks over all entries; nothing if they are no ledger.
pub(super) fn walk(
    archive: &Archive<'_>,
    sizes: &BTreeSet<u64>,
    meter: &mut Meter<'_>,
    report: &mut Report,
) -> io::Result<Option<Known>> {
    let Some(part) = archive.part(Name::Entries) else { return Ok(None) };
    let mut known = Known {
        names: Vec::new(),
        digests: Vec::new(),
        by_name: Vec::new(),
        house: Vec::new(),
        forgettable: Vec::new(),
        events: 0,
        edge: Edge::default(),
        roots: BTreeMap::new(),
    };
    known.remember_root(sizes);
    let mut lines = part.lines(MAX_LINE);
    while let Some(line) = lines.next()? {
        meter.add(line.map_or(0, <[u8]>::len) as u64);
        let added = line.map_err(|broken| broken.message()).and_then(|line| known.add(line));
        if let Err(message) = added {
            report.fail(format!("entries.jsonl, line {}", lines.number()), message);
            return Ok(None);
        }
        known.remember_root(sizes);
    }
    Ok(known.sorted(report).then_some(known))
}

impl Known {
    fn add(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let entry = Entry::parse(line).ok_or("is no entry in canonical form")?;
        if entry.seq != Seq(self.names.len() as u64 + 1) {
            return Err("its seq does not follow the one before it");
        }
        if self.names.len() == MAX_ENTRIES {
            return Err("there are more entries than 4294967295");
        }
        let house = is_housekeeping(&entry.event_type);
        self.events += u64::from(!house);
        self.house.push(house);
        self.names.push(entry.event_ref);
        self.digests.push(entry.digest);
        self.forgettable.push(can_be_forgotten(&entry.event_type));
        self.edge.push(ipse_ledger::entry_hash(line), |_, _, _| {});
        Ok(())
    }

    fn remember_root(&mut self, sizes: &BTreeSet<u64>) {
        let size = self.edge.size();
        if sizes.contains(&size) {
            self.roots.insert(size, self.edge.root());
        }
    }

    /// Sorts the names; says whether none stands twice.
    fn sorted(&mut self, report: &mut Report) -> bool {
        let names = &self.names;
        self.by_name = (0..).take(names.len()).collect();
        self.by_name.sort_unstable_by_key(|place| (names[*place as usize], *place));
        let pairs = self.by_name.windows(2).map(|pair| [pair[0], pair[1]].map(|at| at as usize));
        let before = report.fails();
        for [first, second] in pairs.filter(|[a, b]| names[*a] == names[*b]) {
            let message = format!("{} stands at seq {} already", names[first], first + 1);
            report.fail(format!("entries.jsonl, line {}", second + 1), message);
        }
        report.fails() == before
    }
}

/// Whether the tree head is that of the entries.
pub(super) fn rooted(known: &Known, head: &TreeHead, report: &mut Report) -> bool {
    let size = known.edge.size();
    if size != head.size {
        let message = format!("the tree head covers {}, and there are {size}", head.size);
        report.fail("entries.jsonl", message);
        return false;
    }
    if known.edge.root() != head.root {
        report.fail("entries.jsonl", "their root is not the one in the tree head");
        return false;
    }
    let entries = counted(size, "entry");
    report.pass(
        "entries.jsonl",
        format!("{entries} in canonical form; their root is the signed one"),
    );
    true
}

/// Compares with tree heads that were seen before.
pub(super) fn anchored(
    known: &Known,
    anchors: &[String],
    identity: &Identity,
    head: &TreeHead,
    trust: &Trust,
    report: &mut Report,
) {
    for (number, note) in (1..).zip(anchors) {
        let place = format!("anchor {number}");
        match read_head(note, identity, trust) {
            Err(message) => report.fail(place, message),
            Ok((anchor, _)) if anchor.size > head.size => {
                let (was, is) = (anchor.size, head.size);
                let message =
                    format!("the log had {was} entries then, and has {is} here: rolled back");
                report.fail(place, message);
            }
            Ok((anchor, _)) if known.roots.get(&anchor.size) != Some(&anchor.root) => {
                let message = format!(
                    "the first {} entries were others then: a fork, two histories of one log",
                    anchor.size
                );
                report.fail(place, message);
            }
            Ok((anchor, _)) => {
                let entries = counted(anchor.size, "entry");
                report.pass(place, format!("this log goes on from those {entries}"));
            }
        }
    }
}
