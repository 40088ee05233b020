//! `export`: one file that proves identity, events, facts and passes to somebody without the store.
//!
//! **Invariants:** the bundle is of one moment; it is streamed, and stands under its name only when
//! it is whole. The same content gives the same bytes. A bundle that a server spools never has a
//! name: if the process dies, the bytes go with it.

use super::Exit;
use super::args::ExportArgs;
use super::context::Context;
use super::init::stored_manifest;
use super::output::{Output, is_standard_output, shown};
use super::passphrase;
use super::terminal::{Terminal, counted};
use anyhow::{Context as _, bail};
use indicatif::ProgressBar;
use ipse_bundle::{Writer, pem};
use ipse_consolidate::{RuleSet, V1, snapshot as snapshot_bytes};
use ipse_core::json::Members;
use ipse_core::{Identity, Seq};
use ipse_engine::{as_of, head_of, sign_head};
use ipse_ledger::account::Claimed;
use ipse_ledger::{Bundled, Certificate, Note, NoteKey, NoteSigner, TreeHead, dsse};
use ipse_store::sqlite::View;
use std::fs::File;
use std::io::{self, BufWriter, IntoInnerError, Read, Seek, Write};
use std::path::Path;

pub(crate) fn run(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &ExportArgs,
) -> anyhow::Result<Exit> {
    let (range, output) = ((args.from, args.to), args.output.as_path());
    // Asked before the bundle takes the place of a file that standard output was sent to.
    let to_stdout = output == Path::new("-") || is_standard_output(output);
    with_export(context, terminal, range, |export, terminal, keys| {
        let done = export.write_out(context, terminal, output, keys)?;
        export.tell(context, terminal, (!to_stdout).then_some(output), &done)
    })
}

/// Writes a bundle of a whole log to a file that has no name.
pub(crate) fn spool(context: &Context, terminal: &mut Terminal<'_>) -> anyhow::Result<File> {
    with_export(context, terminal, (None, None), |export, _, keys| {
        let attempt = "could not write a temporary file (TMPDIR says where)";
        let mut file = BufWriter::new(tempfile::tempfile().context(attempt)?);
        export.write(&ProgressBar::hidden(), &mut file, keys)?;
        let mut file = file.into_inner().map_err(IntoInnerError::into_error).context(attempt)?;
        file.rewind().context(attempt)?;
        Ok(file)
    })
}

/// The keys of an export. Each is read once, so that what was compared is what is used.
struct Keys {
    operator: NoteSigner,
    /// The public halves under which the log's tree heads count.
    log: Vec<NoteKey>,
}

/// The first and the last event that are asked for.
type Range = (Option<u64>, Option<u64>);

/// Signs a head, and hands on what goes into a bundle of that moment.
fn with_export<T>(
    context: &Context,
    terminal: &mut Terminal<'_>,
    range: Range,
    then: impl FnOnce(&Export<'_>, &mut Terminal<'_>, &Keys) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let (reader, identity) = context.read_or_migrate()?;
    let directory = context.keys();
    let operator = passphrase::open(terminal, |word| directory.operator_signer(word))?;
    let notary = context.notary(terminal, &identity)?;
    let keys = Keys { operator, log: context.outside(&identity)?.log_keys };
    let manifest = stored_manifest(&reader, &identity)?;
    for left in (0..TRIES).rev() {
        if let Some(notary) = &notary {
            sign_head(&context.store, &identity, notary)?;
        }
        let snapshot = reader.view(&identity)?;
        let export = Export::of(snapshot.view(), identity, &manifest, range)?;
        if export.lost_content()? {
            // An event was forgotten between the head and this moment: a newer head covers that.
            if left > 0 && notary.is_some() {
                continue;
            }
            bail!("events under the tree head were forgotten since: `ipse tree-head --sign` first");
        }
        export.check_head(&keys, notary.is_some() || range.1.is_some())?;
        return then(&export, terminal, &keys);
    }
    bail!("BUG: an export neither ended nor failed")
}

/// How often a head is signed anew while somebody forgets.
const TRIES: u32 = 20;

/// What goes into a bundle.
struct Export<'v> {
    view: View<'v>,
    identity: Identity,
    manifest: &'v str,
    note: String,
    bundled: Bundled,
    /// The snapshot, if the bundle has facts.
    facts: Option<String>,
}

/// What went into it.
struct Done {
    events: u64,
    signatures: u64,
}

impl<'v> Export<'v> {
    fn of(
        view: View<'v>,
        identity: Identity,
        manifest: &'v str,
        (first, last): Range,
    ) -> anyhow::Result<Self> {
        let hint = "`ipse tree-head --sign` needs the log's key";
        let note = view.tree_head()?.with_context(|| format!("no tree head is signed: {hint}"))?;
        let head: TreeHead = head_of(&note).context("the tree head cannot be read: ipse verify")?;
        let size = head.size;
        let (from, to) = (Seq(first.unwrap_or(1)), Seq(last.unwrap_or(size)));
        if last.is_none() && from.0 > size.max(1) {
            bail!("--from {from} is beyond the signed tree head, which covers {size} entries");
        }
        if to.0 > size {
            bail!("--to {to} is beyond the signed tree head, which covers {size} entries");
        }
        if from > to && (from, to) != (Seq(1), Seq(0)) {
            bail!("--from {from} is after --to {to}");
        }
        let record = view.last_of_type("consolidation_run", Seq(1)..=to)?;
        let claimed = record.map(|record| {
            Claimed::read(record.seq, record.canonical.as_bytes(), 0)
                .with_context(|| format!("the pass record at seq {} is damaged", record.seq))
        });
        let checkpoint = claimed.transpose()?.map_or(Seq(0), |claimed| claimed.last);
        let checkpoint = (from == Seq(1)).then_some(checkpoint);
        let facts = checkpoint.map(|checkpoint| facts_at(view, checkpoint)).transpose()?;
        let sums = ipse_core::Digest([0; 32]);
        let bundled = Bundled { identity, sums, from, to, size, checkpoint };
        Ok(Export { view, identity, manifest, note, bundled, facts })
    }

    /// Whether something that the head covers was forgotten by what it does not cover.
    fn lost_content(&self) -> anyhow::Result<bool> {
        let after = Seq(self.bundled.size).next()..=self.view.head()?;
        Ok(self.view.last_of_type("forget", after)?.is_some())
    }

    /// The head must count for those who have `log.vkey`, and cover what is asked for.
    fn check_head(&self, keys: &Keys, may_cover_less: bool) -> anyhow::Result<()> {
        if Note::parse(&self.note).is_ok_and(|note| note.verify(&keys.log).is_err()) {
            bail!("the newest tree head is not signed with the key in log.vkey; sign one anew");
        }
        let (size, head) = (self.bundled.size, self.view.head()?.0);
        if head > size && !may_cover_less {
            bail!(
                "the newest tree head covers {size} of {head} events, and there is no key to sign \
                 another; --to {size} exports what it covers"
            );
        }
        Ok(())
    }

    fn write_out(
        &self,
        context: &Context,
        terminal: &mut Terminal<'_>,
        output: &Path,
        keys: &Keys,
    ) -> anyhow::Result<Done> {
        let bar = terminal.bar("bytes");
        if output == Path::new("-") {
            return self.write(&bar, &mut *terminal.out, keys);
        }
        let mut file = Output::create(context, output, &[])?;
        let done = self.write(&bar, &mut file, keys);
        bar.finish_and_clear();
        let done = done?;
        file.finish()?;
        Ok(done)
    }

    fn write(
        &self,
        bar: &ProgressBar,
        out: &mut dyn Write,
        Keys { operator, log }: &Keys,
    ) -> anyhow::Result<Done> {
        let certificate = Certificate { manifest: self.manifest.to_string() };
        if certificate.identity() != self.identity {
            bail!("the stored manifest is not that of the identity: ipse verify");
        }
        let mut writer = Writer::new(out);
        writer.bytes("manifest.json", self.manifest.as_bytes())?;
        let envelope = dsse::sign(&certificate.statement(), operator);
        writer.bytes("certificate.dsse.json", envelope.as_bytes())?;
        let events = self.stream(bar, &mut writer, "events.jsonl", Self::events)?;
        self.stream(bar, &mut writer, "entries.jsonl", Self::entries)?;
        if let Some(facts) = &self.facts {
            writer.bytes("facts.jsonl", facts.as_bytes())?;
        }
        writer.bytes("rule-set.json", V1.descriptor().as_bytes())?;
        writer.bytes("tree-head.note", self.note.as_bytes())?;
        let (signatures, signers) = self.signatures(&mut writer)?;
        writer.bytes("keys/log.vkey", key_lines(log).as_bytes())?;
        writer.bytes("keys/operator.pub", pem(operator.public().key()).as_bytes())?;
        if !signers.is_empty() {
            let lines: String = signers.iter().flat_map(|key| [key.as_str(), "\n"]).collect();
            writer.bytes("keys/producers.vkey", lines.as_bytes())?;
        }
        writer.finish(|sums| {
            let bundled = Bundled { sums, ..self.bundled.clone() };
            dsse::sign(&bundled.statement(), operator)
        })?;
        Ok(Done { events, signatures })
    }

    /// Writes a member of lines, which are counted first: its size stands before it.
    fn stream(
        &self,
        bar: &ProgressBar,
        writer: &mut Writer<impl Write>,
        name: &str,
        lines: impl Fn(&Self, &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()>,
    ) -> anyhow::Result<u64> {
        let (mut size, mut count) = (0, 0);
        lines(self, &mut |line| {
            size += line.len() as u64 + 1;
            count += 1;
            Ok(())
        })?;
        bar.inc_length(size);
        writer.member(name, size, |out| {
            let write = |line: &str| {
                bar.inc(line.len() as u64 + 1);
                out.write_all(line.as_bytes())?;
                Ok(out.write_all(b"\n")?)
            };
            let mut write = write;
            lines(self, &mut write).map_err(io::Error::other)
        })?;
        Ok(count)
    }

    /// The events of the range, and all that say what was forgotten since.
    fn events(&self, each: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let Bundled { from, to, size, .. } = self.bundled;
        self.view.each_content(from..=to, |event| each(event).map_err(Told))?;
        self.view
            .house_content("forget", to.next()..=Seq(size), |event| each(event).map_err(Told))?;
        Ok(())
    }

    fn entries(&self, each: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut line = String::with_capacity(256);
        self.view.each_entry(Seq(1)..=Seq(self.bundled.size), |entry, _| {
            line.clear();
            entry.write(&mut line);
            each(&line).map_err(Told)
        })?;
        Ok(())
    }

    /// What producers signed, and who they are.
    fn signatures(&self, writer: &mut Writer<impl Write>) -> anyhow::Result<(u64, Vec<String>)> {
        let (mut number, mut signers) = (0, Vec::new());
        let mut index = dsse::StatementIndex::default();
        for signed in self.view.statements()? {
            // What came after the tree head is not in the bundle; what is about other events than
            // those of the range proves nothing in it.
            let Bundled { from, to, size, .. } = self.bundled;
            let inside = signed.events.iter().any(|run| *run.start() <= to && *run.end() >= from);
            if !inside || signed.events.last().is_none_or(|run| run.end().0 > size) {
                continue;
            }
            let envelope = self.view.envelope(signed.number)?;
            // Earlier versions kept a statement again if its envelope was encoded otherwise.
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

    /// Says what was written to a file, or to standard output if there is none.
    fn tell(
        &self,
        context: &Context,
        terminal: &mut Terminal<'_>,
        file: Option<&Path>,
        done: &Done,
    ) -> anyhow::Result<Exit> {
        let Bundled { from, to, size, checkpoint, .. } = self.bundled;
        let facts = self.facts.as_ref().map(|facts| facts.lines().count() as u64);
        let to_stdout = file.is_none();
        if context.json && !to_stdout {
            let json = Members::new()
                .text("identity_hash", &self.identity.to_string())
                .raw("from", from)
                .raw("to", to)
                .raw("tree_size", size)
                .raw("events", done.events)
                .raw("signatures", done.signatures)
                .raw("facts", facts.map_or("null".to_string(), |facts| facts.to_string()))
                .raw("checkpoint", checkpoint.map_or("null".to_string(), |at| at.to_string()));
            terminal.json(&json.finish())?;
            return Ok(Exit::Fine);
        }
        let events = counted(done.events, "event");
        let facts = match facts {
            Some(facts) => counted(facts, "fact"),
            None => "no facts (the range does not start at 1)".to_string(),
        };
        let name = file.map_or("standard output".to_string(), shown);
        let words = format!("exported to {name}: {events}, {facts}, tree head over {size}");
        writeln!(if to_stdout { &mut terminal.err } else { &mut terminal.out }, "{words}")?;
        if to_stdout {
            return Ok(Exit::Fine);
        }
        let keys = context.keys();
        let keys = shown(keys.path());
        writeln!(
            terminal.err,
            "hint: whoever has {keys}/log.vkey and {keys}/operator.pub can check it: \
             ipse-verify {name} --trust log.vkey operator.pub"
        )?;
        Ok(Exit::Fine)
    }
}

/// An error of a caller, on its way through a store.
struct Told(anyhow::Error);

impl From<ipse_store::Error> for Told {
    fn from(error: ipse_store::Error) -> Self {
        Told(error.into())
    }
}

impl From<Told> for anyhow::Error {
    fn from(told: Told) -> Self {
        told.0
    }
}

/// The facts that planners read, or those of an earlier pass.
fn facts_at(view: View<'_>, checkpoint: Seq) -> anyhow::Result<String> {
    Ok(snapshot_bytes(&as_of(view, &V1, checkpoint)?.facts))
}

fn key_lines(keys: &[NoteKey]) -> String {
    keys.iter().map(|key| format!("{key}\n")).collect()
}

/// The longest file of public keys.
const MAX_KEYS_BYTES: u64 = 1 << 20;

/// What is given to `--trust`: a key itself, or a file of keys.
pub(crate) fn trusted(words: &[String]) -> anyhow::Result<ipse_bundle::Trust> {
    let mut trust = ipse_bundle::Trust::default();
    for word in words {
        match NoteKey::parse(word) {
            Some(_) => trust.add(word)?,
            None => {
                let text = read_keys(Path::new(word))?;
                trust.add(&text).with_context(|| format!("in {}", ipse_door::printable(word)))?;
            }
        }
    }
    Ok(trust)
}

fn read_keys(path: &Path) -> anyhow::Result<String> {
    let attempt = || format!("could not read the key {}", shown(path));
    // Asked before it is opened: opening a pipe would wait for whoever writes to it.
    if !path.metadata().with_context(attempt)?.is_file() {
        bail!("{} is not an ordinary file", shown(path));
    }
    let mut text = String::new();
    let file = File::open(path).with_context(attempt)?;
    file.take(MAX_KEYS_BYTES).read_to_string(&mut text).with_context(attempt)?;
    Ok(text)
}
