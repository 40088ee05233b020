//! Export: one file that proves identity, events, facts and passes to an auditor without the store.
//!
//! **Invariants:** the bundle shows the store at one moment and is streamed; the same content gives
//! the same bytes. A spooled bundle never has a name: if the process dies, its bytes are freed.

use crate::cosigned::CosignedHead;
use crate::error::Error;
use ipse_bundle::{Writer, gate_names, pem};
use ipse_consolidate::snapshot;
use ipse_core::event::{ACT, FORGET, PASS_RECORD, RULES};
use ipse_core::json::Members;
use ipse_core::judge::gate_hashes;
use ipse_core::{Digest, Identity, Seq, sha256};
use ipse_engine::{Notary, as_of, rules_at, sign_head};
use ipse_ledger::account::PassClaim;
use ipse_ledger::{Bundled, Certificate, Note, NoteKey, NoteSigner, dsse};
use ipse_store::{Reader, Store, View};
use std::fs::File;
use std::io::{self, BufWriter, IntoInnerError, Seek, Write};
use std::ops::ControlFlow;

/// The number of attempts to sign a tree head while another process forgets events.
const TRIES: u32 = 20;

/// The keys of an export, and other files that the store lacks. Each is read once, so that the keys
/// that are checked are the ones that are used.
pub struct Keys {
    /// The operator's key, which signs the certificate and the sums.
    pub operator: NoteSigner,
    /// The public keys that tree heads of the log must be signed with.
    pub log: Vec<NoteKey>,
    /// Signs a tree head over everything first; without it the newest one is used.
    pub notary: Option<Box<dyn Notary>>,
    /// Files of the gates for those that the store lacks. Only files that the manifest names are
    /// exported.
    pub gates: Vec<Vec<u8>>,
}

/// The requested events: first and last, both included.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Range {
    /// The first event; the first of the log if absent.
    pub from: Option<u64>,
    /// The last event; the last under the tree head if absent.
    pub to: Option<u64>,
    /// Whether to export under the newest tree head that a witness cosigned.
    pub cosigned: bool,
}

/// Writes a bundle of a whole log to a file without a name, and rewinds it.
pub fn spool(store: &Store, identity: &Identity, keys: &Keys) -> Result<File, Error> {
    with_export(store, identity, keys, Range::default(), |export| {
        let mut file = BufWriter::new(tempfile::tempfile().map_err(Error::Spool)?);
        export.write(&mut file, &mut |_, _| {})?;
        let file = file.into_inner().map_err(IntoInnerError::into_error);
        let mut file = file.map_err(Error::Spool)?;
        file.rewind().map_err(Error::Spool)?;
        Ok(file)
    })
}

/// Signs a tree head and calls `then` with the content of a bundle of that moment.
pub fn with_export<T, E: From<Error>>(
    store: &Store,
    identity: &Identity,
    keys: &Keys,
    range: Range,
    then: impl FnOnce(&Export<'_>) -> Result<T, E>,
) -> Result<T, E> {
    let reader = store.reader().map_err(Error::from)?;
    let manifest = manifest_of(&reader, identity)?;
    let mut left = TRIES;
    loop {
        left -= 1;
        if let Some(notary) = &keys.notary {
            sign_head(store, identity, &**notary).map_err(Error::from)?;
        }
        let snapshot = reader.view(identity).map_err(Error::from)?;
        let export = Export::of(snapshot.view(), *identity, &manifest, range, keys)?;
        // An event was forgotten between signing and this moment: a newer head covers that.
        if !export.lost_content()? {
            let may_cover_less = keys.notary.is_some() || range.to.is_some() || range.cosigned;
            export.check_head(may_cover_less)?;
            return then(&export);
        }
        if range.cosigned {
            return Err(Error::ForgottenSince(export.bundled.size).into());
        }
        if left == 0 || keys.notary.is_none() {
            return Err(Error::Forgotten.into());
        }
    }
}

fn manifest_of(reader: &Reader, identity: &Identity) -> Result<String, Error> {
    let name = identity.to_string();
    let found = reader.manifests()?.into_iter().find(|(hash, _)| *hash == name);
    Ok(found.map(|(_, canonical)| canonical).unwrap_or_default())
}

/// The content of a bundle.
pub struct Export<'v> {
    view: View<'v>,
    identity: Identity,
    manifest: &'v str,
    keys: &'v Keys,
    note: String,
    /// The number of cosignatures in the note.
    cosignatures: u64,
    bundled: Bundled,
    /// The snapshot, if the bundle has facts.
    facts: Option<String>,
}

/// The contents of a written bundle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exported {
    /// The identity, the range, the tree head and the checkpoint.
    pub bundled: Bundled,
    /// The number of events with content: those of the range, of producers and of ipse, without
    /// forgotten ones, and later `forget` events.
    pub events: u64,
    /// The number of statements of producers.
    pub signatures: u64,
    /// The number of facts; `None` if the range does not start at 1.
    pub facts: Option<u64>,
    /// The number of cosignatures under the tree head.
    pub cosignatures: u64,
}

impl Exported {
    /// The receipt as canonical JSON.
    pub fn json(&self) -> String {
        let or_null = |number: Option<u64>| number.map_or("null".to_string(), |n| n.to_string());
        let Bundled { identity, from, to, size, checkpoint, .. } = &self.bundled;
        Members::new()
            .text("identity_hash", &identity.to_string())
            .raw("from", from)
            .raw("to", to)
            .raw("tree_size", size)
            .raw("events", self.events)
            .raw("signatures", self.signatures)
            .raw("cosignatures", self.cosignatures)
            .raw("facts", or_null(self.facts))
            .raw("checkpoint", or_null(checkpoint.map(|at| at.0)))
            .finish()
    }
}

/// Called with the number of written bytes and their total.
type ProgressCallback<'t> = &'t mut dyn FnMut(u64, u64);

impl<'v> Export<'v> {
    fn of(
        view: View<'v>,
        identity: Identity,
        manifest: &'v str,
        range: Range,
        keys: &'v Keys,
    ) -> Result<Self, Error> {
        let CosignedHead { head, note, cosignatures } = match range.cosigned {
            true => CosignedHead::newest_cosigned(view)?,
            false => CosignedHead::newest(view)?,
        };
        let (from, to) = checked(range, head.size)?;
        let checkpoint = match from == Seq(1) {
            true => Some(checkpoint(view, to)?),
            false => None,
        };
        let facts = checkpoint.map(|checkpoint| facts_at(view, checkpoint)).transpose()?;
        // Set once the members are written.
        let sums = Digest([0; 32]);
        let bundled = Bundled { identity, sums, from, to, size: head.size, checkpoint };
        Ok(Export { view, identity, manifest, keys, note, cosignatures, bundled, facts })
    }

    /// Whether events under the head were forgotten by events that it does not cover.
    fn lost_content(&self) -> Result<bool, Error> {
        let after = Seq(self.bundled.size).next()..=self.view.head()?;
        Ok(self.view.last_of_type(FORGET, after)?.is_some())
    }

    /// Checks that the head is signed with a key in `log.vkey` and covers the requested range.
    fn check_head(&self, may_cover_less: bool) -> Result<(), Error> {
        if Note::parse(&self.note).is_ok_and(|note| note.verify(&self.keys.log).is_err()) {
            return Err(Error::ForeignHead);
        }
        let (size, head) = (self.bundled.size, self.view.head()?.0);
        match head > size && !may_cover_less {
            true => Err(Error::Uncovered { size, head }),
            false => Ok(()),
        }
    }

    /// Writes the bundle.
    pub fn write(
        &self,
        out: &mut dyn Write,
        emit: ProgressCallback<'_>,
    ) -> Result<Exported, Error> {
        let Keys { operator, log, .. } = self.keys;
        let certificate = Certificate { manifest: self.manifest.to_string() };
        if certificate.identity() != self.identity {
            return Err(Error::ForeignManifest);
        }
        let mut streams = Streams { emit, done: 0, total: 0 };
        let mut writer = Writer::new(out);
        writer.bytes("manifest.json", self.manifest.as_bytes())?;
        let envelope = dsse::sign(&certificate.statement(), operator);
        writer.bytes("certificate.dsse.json", envelope.as_bytes())?;
        let events = streams.member(&mut writer, "events.jsonl", |each| self.events(each))?;
        streams.member(&mut writer, "entries.jsonl", |each| self.entries(each))?;
        if let Some(facts) = &self.facts {
            writer.bytes("facts.jsonl", facts.as_bytes())?;
        }
        let rules = rules_at(self.view, self.bundled.checkpoint.unwrap_or(self.bundled.to))?;
        writer.bytes("rule-set.json", rules.descriptor().as_bytes())?;
        for (name, file) in gate_names().iter().zip(self.gate_files()?) {
            if let Some(bytes) = file {
                writer.bytes(name, &bytes)?;
            }
        }
        writer.bytes("tree-head.note", self.note.as_bytes())?;
        let (signatures, signers) = self.signatures(&mut writer)?;
        let lines: String = log.iter().map(|key| format!("{key}\n")).collect();
        writer.bytes("keys/log.vkey", lines.as_bytes())?;
        writer.bytes("keys/operator.pub", pem(operator.public().key()).as_bytes())?;
        if !signers.is_empty() {
            let lines: String = signers.iter().flat_map(|key| [key.as_str(), "\n"]).collect();
            writer.bytes("keys/producers.vkey", lines.as_bytes())?;
        }
        let mut bundled = self.bundled.clone();
        writer.finish(|sums| {
            bundled.sums = sums;
            dsse::sign(&bundled.statement(), operator)
        })?;
        let facts = self.facts.as_ref().map(|facts| facts.lines().count() as u64);
        let cosignatures = self.cosignatures;
        Ok(Exported { bundled, events, signatures, facts, cosignatures })
    }

    /// The events of the range, all earlier changes of rules and acts, and all later `forget`
    /// events.
    fn events(&self, each: LineCallback<'_>) -> Result<(), Error> {
        let Bundled { from, to, size, .. } = self.bundled;
        let before = Seq(1)..=Seq(from.0.saturating_sub(1));
        let mut earlier = Vec::new();
        for event_type in [RULES, ACT] {
            self.view.house_back(event_type, before.clone(), |stored| {
                earlier.push((stored.seq, stored.canonical));
                Ok::<_, Error>(ControlFlow::Continue(()))
            })?;
        }
        earlier.sort_unstable();
        earlier.iter().try_for_each(|(_, event)| each(event))?;
        self.view.each_content(from..=to, |event| Ok::<_, Error>(each(event)?))?;
        self.view
            .house_content(FORGET, to.next()..=Seq(size), |event| Ok::<_, Error>(each(event)?))?;
        Ok(())
    }

    /// The files of the gates that the manifest names: those of the store, and the given ones.
    fn gate_files(&self) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let file = |hash: &Digest| match self.view.artefact(hash)? {
            Some(bytes) => Ok(Some(bytes)),
            None => {
                let is_it = |bytes: &&Vec<u8>| sha256(&[bytes]) == hash.0;
                Ok(self.keys.gates.iter().find(is_it).cloned())
            }
        };
        let hashes = gate_hashes(self.manifest);
        hashes.iter().map(|hash| hash.as_ref().map_or(Ok(None), file)).collect()
    }

    fn entries(&self, each: LineCallback<'_>) -> Result<(), Error> {
        let mut line = String::with_capacity(256);
        self.view.each_entry(Seq(1)..=Seq(self.bundled.size), |entry, _| {
            line.clear();
            entry.write(&mut line);
            Ok::<_, Error>(each(&line)?)
        })
    }

    /// Writes the statements of producers; returns their number and the producers.
    fn signatures(&self, writer: &mut Writer<impl Write>) -> Result<(u64, Vec<String>), Error> {
        let (mut number, mut signers) = (0, Vec::new());
        let mut index = dsse::StatementIndex::default();
        for signed in self.view.statements()? {
            // A statement that came after the tree head is not in the bundle; one about events
            // outside the range proves nothing in it.
            let Bundled { from, to, size, .. } = self.bundled;
            let inside = signed.events.iter().any(|run| *run.start() <= to && *run.end() >= from);
            if !inside || signed.events.last().is_none_or(|run| run.end().0 > size) {
                continue;
            }
            let envelope = self.view.envelope(signed.number)?;
            // Earlier versions stored a statement again if its envelope was encoded differently.
            if index.add(envelope.as_bytes(), ()).is_some() {
                continue;
            }
            number += 1;
            writer.bytes(&format!("signatures/{number:06}.dsse.json"), envelope.as_bytes())?;
            if !signers.contains(&signed.signer) {
                signers.push(signed.signer);
            }
        }
        Ok((number, signers))
    }
}

/// Called with each line.
type LineCallback<'e> = &'e mut dyn FnMut(&str) -> io::Result<()>;

/// Writes members that consist of lines.
struct Streams<'t> {
    emit: ProgressCallback<'t>,
    done: u64,
    total: u64,
}

impl Streams<'_> {
    /// Writes a member of lines. They are counted first, because the size precedes the content.
    fn member(
        &mut self,
        writer: &mut Writer<impl Write>,
        name: &str,
        lines: impl Fn(LineCallback<'_>) -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let (mut size, mut count) = (0, 0);
        lines(&mut |line| {
            size += line.len() as u64 + 1;
            count += 1;
            Ok(())
        })?;
        self.total += size;
        let mut failed = None;
        let written = writer.member(name, size, |out| {
            let ended = lines(&mut |line| {
                self.done += line.len() as u64 + 1;
                (self.emit)(self.done, self.total);
                out.write_all(line.as_bytes())?;
                out.write_all(b"\n")
            });
            // Return an error of the store unchanged, and pass an error of the output on.
            match ended {
                Err(Error::Output(error)) => Err(error),
                Err(error) => {
                    failed = Some(error);
                    Err(io::ErrorKind::Other.into())
                }
                Ok(()) => Ok(()),
            }
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(written.map(|()| count)?),
        }
    }
}

/// The positions of a range, which must be covered by the head.
fn checked(range: Range, size: u64) -> Result<(Seq, Seq), Error> {
    let (from, to) = (Seq(range.from.unwrap_or(1)), Seq(range.to.unwrap_or(size)));
    if range.to.is_none() && from.0 > size.max(1) {
        return Err(Error::Beyond { end: "from", seq: from, size });
    }
    if to.0 > size {
        return Err(Error::Beyond { end: "to", seq: to, size });
    }
    if from > to && (from, to) != (Seq(1), Seq(0)) {
        return Err(Error::EmptyRange(from, to));
    }
    Ok((from, to))
}

/// The checkpoint of the last pass whose record is in the range.
fn checkpoint(view: View<'_>, to: Seq) -> Result<Seq, Error> {
    let Some(record) = view.last_of_type(PASS_RECORD, Seq(1)..=to)? else { return Ok(Seq(0)) };
    let claimed = PassClaim::read(record.seq, record.canonical.as_bytes(), 0);
    let damaged = || Error::Damaged(format!("pass record at seq {}", record.seq));
    Ok(claimed.ok_or_else(damaged)?.last)
}

/// The facts that planners read, or those of an earlier pass.
fn facts_at(view: View<'_>, checkpoint: Seq) -> Result<String, Error> {
    Ok(snapshot(&as_of(view, checkpoint)?.facts))
}
