//! A verified bundle, opened for import.
//!
//! **Invariant:** a bundle that did not pass returns no content.

use crate::archive::Archive;
use crate::envelope;
use crate::name::Name;
use crate::report::Report;
use crate::source::{Lines, Part, Source};
use crate::trust::Trust;
use crate::verify::{GatesInput, run};
use ipse_core::{Identity, Seq, sha256};
use ipse_door::MAX_EVENT_BYTES;
use ipse_ledger::account::PassClaim;
use ipse_ledger::{Bundled, Entry, Governance, NoteKey, RulesHistory, TreeHead};
use std::io;

/// The largest file of the gates, as in verification.
pub(crate) const MAX_GATE_FILE: usize = 1 << 20;

/// A bundle that passed verification.
pub struct Opened<'s> {
    /// The report of the verification.
    pub report: Report,
    /// The identity of the log.
    pub identity: Identity,
    /// The canonical manifest.
    pub manifest: String,
    /// The operator's signed statement about the contents.
    pub bundled: Bundled,
    /// The signed tree head.
    pub head: TreeHead,
    /// The claims of the pass records in the range, in order.
    pub passes: Vec<PassClaim>,
    /// The rules in force at every position.
    pub rules: RulesHistory,
    /// The acts of governance, and the settings that they give.
    pub governance: Governance,
    /// The producers' keys in the bundle. They are not trusted.
    pub producers: Vec<NoteKey>,
    pub(crate) archive: Archive<'s>,
}

/// Verifies a bundle and opens it. Returns only the report if the bundle did not pass. No intent is
/// judged again.
pub fn open<'s>(
    source: &'s dyn Source,
    trust: &Trust,
    anchors: &[String],
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<Result<Opened<'s>, Report>> {
    open_judged(source, trust, anchors, &GatesInput::default(), progress)
}

/// Like [`open`], and judges the intents again.
pub fn open_judged<'s>(
    source: &'s dyn Source,
    trust: &Trust,
    anchors: &[String],
    gates: &GatesInput<'_>,
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<Result<Opened<'s>, Report>> {
    let (report, found) = run(source, trust, anchors, gates, progress)?;
    match found.filter(|_| report.passed()) {
        Some(opened) => Ok(Ok(Opened { report, ..opened })),
        None => Ok(Err(report)),
    }
}

impl Opened<'_> {
    /// Whether it holds the complete log. Only such a bundle can be imported.
    pub fn is_whole(&self) -> bool {
        self.bundled.from == Seq(1) && self.bundled.to.0 == self.bundled.size
    }

    /// All entries in order, each with its event unless it is forgotten or out of range.
    pub fn log(&self) -> Log<'_> {
        let lines = |name, limit| self.archive.part(name).map(|part| part.lines(limit));
        Log {
            entries: lines(Name::Entries, MAX_EVENT_BYTES),
            events: lines(Name::Events, MAX_EVENT_BYTES),
            next: None,
        }
    }

    /// The snapshot: canonical bytes of all facts. `None` if the bundle has no facts.
    pub fn facts(&self) -> io::Result<Option<String>> {
        let Some(part) = self.archive.part(Name::Facts) else { return Ok(None) };
        let bytes = part.whole(usize::MAX)?.unwrap_or_default();
        String::from_utf8(bytes).map(Some).map_err(|_| changed())
    }

    /// The files of the gates in the bundle. They hash to the fields of the manifest.
    pub fn gate_files(&self) -> io::Result<Vec<Vec<u8>>> {
        let parts = Name::GATES.into_iter().filter_map(|name| self.archive.part(name));
        parts.map(|part| part.whole(MAX_GATE_FILE)?.ok_or_else(changed)).collect()
    }

    /// The note with the signed tree head.
    pub fn head_note(&self) -> io::Result<String> {
        self.text(Name::TreeHead)
    }

    /// The envelope with the operator's certificate.
    pub fn certificate(&self) -> io::Result<String> {
        self.text(Name::Certificate)
    }

    /// The envelopes with the producers' statements, in order.
    pub fn statements(&self) -> impl Iterator<Item = io::Result<String>> {
        self.archive.signatures().map(|(name, _)| self.text(name))
    }

    /// The contents of a member.
    pub(crate) fn part(&self, name: Name) -> Option<Part<'_>> {
        self.archive.part(name)
    }

    fn text(&self, name: Name) -> io::Result<String> {
        let part = self.archive.part(name).ok_or_else(changed)?;
        let bytes = part.whole(envelope::MAX_BYTES)?.ok_or_else(changed)?;
        String::from_utf8(bytes).map_err(|_| changed())
    }
}

/// The error for bytes that changed after they were verified.
pub(crate) fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the bundle changed while it was read")
}

/// Entries in order, with their events.
pub struct Log<'a> {
    entries: Option<Lines<'a>>,
    events: Option<Lines<'a>>,
    /// The event that was read and not returned yet.
    next: Option<String>,
}

impl Log<'_> {
    fn step(&mut self) -> io::Result<Option<(Entry, Option<String>)>> {
        if self.next.is_none() {
            self.next = line(&mut self.events)?;
        }
        let Some(entry) = line(&mut self.entries)? else {
            return if self.next.is_none() { Ok(None) } else { Err(changed()) };
        };
        let entry = Entry::parse(entry.as_bytes()).ok_or_else(changed)?;
        // The digest says whether the event belongs to this entry.
        let is_its = |event: &mut String| sha256(&[event.as_bytes()]) == entry.digest.0;
        let event = self.next.take_if(is_its);
        Ok(Some((entry, event)))
    }
}

fn line(lines: &mut Option<Lines<'_>>) -> io::Result<Option<String>> {
    let Some(lines) = lines else { return Ok(None) };
    let Some(line) = lines.next()? else { return Ok(None) };
    let line = line.map_err(|_| changed())?;
    String::from_utf8(line.to_vec()).map(Some).map_err(|_| changed())
}

impl Iterator for Log<'_> {
    type Item = io::Result<(Entry, Option<String>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}
