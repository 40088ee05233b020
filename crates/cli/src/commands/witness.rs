//! `witness`: asks witnesses to cosign the tree head, and stores their cosignatures.
//!
//! **Invariants:** no command opens a connection; the operator posts the request. A cosignature is
//! stored only if it verifies.

use crate::commands::proof::{MAX_NOTE_BYTES, name_of, read_text, signed_head};
use crate::context::Context;
use crate::terminal::Terminal;
use crate::vocabulary::Nested;
use crate::{CommandResult, Exit};
use anyhow::{Context as _, bail};
use ipse_core::Identity;
use ipse_core::json::Members;
use ipse_engine::{Cosigning, add_cosignature, head_of, sign_head};
use ipse_inspect::{RequestAnswer, cosign_request, request_json};
use ipse_ledger::{CosignRequest, Cosignature, WitnessKey};
use std::path::{Path, PathBuf};

pub(crate) type Args = Nested<Action>;

#[derive(clap::Subcommand, Debug)]
pub(crate) enum Action {
    Request(Request),
    Add(Add),
}

/// Write the request to a witness: cosign the tree head
///
/// A tree head over the whole log is signed first; without the log's key the newest one is used.
/// The request is the body of an `add-checkpoint` request (C2SP tlog-witness): post it with curl.
/// It proves that the log continues the tree head that the witness cosigned last. A witness that
/// cosigned another size answers 409 with that size: request again with --since SIZE.
///
/// Example: ipse witness request > request
#[derive(clap::Args, Debug)]
pub(crate) struct Request {
    /// Prove consistency with the tree head of this size, 0 for none [default: the newest one
    /// that has a cosignature here]
    #[arg(long, value_name = "N")]
    since: Option<u64>,
}

/// Check the answer of a witness and store its cosignature
///
/// The cosignature must be one of this witness, under the tree head of the request. `ipse export`
/// puts it into the bundle of that tree head, and `ipse-verify --witness` requires it. Give the
/// request too: the log may have a newer tree head by now.
///
/// Example: ipse witness add answer --request request --witness witness.vkey
#[derive(clap::Args, Debug)]
pub(crate) struct Add {
    /// Read the answer of the witness from this file, signature lines or a whole signed tree head;
    /// - for standard input
    file: PathBuf,
    /// The witness: its verifier key (name+id+key), or a file with it
    #[arg(long, value_name = "KEY|FILE")]
    witness: String,
    /// Read the cosigned tree head from this file, a request or a tree head [default: the answer if
    /// it is a whole tree head, or else the newest tree head of the store]
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    match &args.action {
        Action::Request(args) => request(context, terminal, args),
        Action::Add(args) => add(context, terminal, args),
    }
}

fn request(context: &Context, terminal: &mut Terminal<'_>, args: &Request) -> CommandResult {
    let (reader, identity) = context.read_to_write(terminal)?;
    if let Some(notary) = context.notary(terminal, &identity)? {
        sign_head(context.store()?, &identity, &notary)?;
    }
    match cosign_request(reader.view(&identity)?.view(), args.since)? {
        RequestAnswer::Request(request) => {
            match context.json {
                true => terminal.json(&request_json(&request))?,
                false => write!(terminal.out, "{}", request.text())?,
            }
            Ok(Exit::Fine)
        }
        RequestAnswer::Unsigned => {
            writeln!(terminal.err, "no tree head is signed yet: the log's key is needed")?;
            Ok(Exit::Found)
        }
        RequestAnswer::Beyond(0) => {
            writeln!(terminal.err, "the log is empty: there is nothing to cosign yet")?;
            Ok(Exit::Found)
        }
        RequestAnswer::Beyond(size) => bail!(
            "--since is beyond the tree head, which covers {size} entries; if a witness cosigned \
             more, this store is an older copy"
        ),
    }
}

fn add(context: &Context, terminal: &mut Terminal<'_>, args: &Add) -> CommandResult {
    let witness = witness_key(&args.witness)?;
    let answer = read_text(&args.file, MAX_NOTE_BYTES)?;
    let (reader, identity) = context.read_to_write(terminal)?;
    let (note, from) = match &args.request {
        Some(file) => (note_in(&read_text(file, MAX_NOTE_BYTES)?), name_of(file)),
        None if head_of(&answer).is_some() => (answer.clone(), name_of(&args.file)),
        None => {
            let note = reader.view(&identity)?.view().tree_head()?;
            (note.context("no tree head is signed yet")?, "the store".to_string())
        }
    };
    let keys = context.outside(&identity)?.log_keys;
    let head = signed_head(&note, &identity, &keys)
        .with_context(|| format!("could not use the tree head in {from}"))?;
    let (size, key) = (head.size, witness.key_id());
    let why = match add_cosignature(context.store()?, &identity, &note, &answer, &witness)? {
        Cosigning::Stored(line) => return tell(context, terminal, &identity, size, (&line, true)),
        Cosigning::Known(line) => return tell(context, terminal, &identity, size, (&line, false)),
        Cosigning::Full => bail!(
            "the tree head over {} has 15 cosignatures: no more fit into its note",
            entries_of(size)
        ),
        Cosigning::Missing => format!("no cosignature by {key} in {}", name_of(&args.file)),
        Cosigning::Wrong => format!(
            "the cosignature by {key} does not verify under the tree head over {}",
            entries_of(size)
        ),
    };
    writeln!(terminal.err, "{why}; nothing was stored")?;
    if args.request.is_none() {
        let hint = "the log may have grown since: give the request that you posted with --request";
        writeln!(terminal.err, "hint: {hint}")?;
    }
    Ok(Exit::Found)
}

fn tell(
    context: &Context,
    terminal: &mut Terminal<'_>,
    identity: &Identity,
    size: u64,
    (cosignature, is_new): (&Cosignature, bool),
) -> CommandResult {
    let (key, when) = (cosignature.key_id(), cosignature.when());
    if context.json {
        let members = Members::new()
            .text("identity_hash", &identity.to_string())
            .text("key_id", &key)
            .raw("new", is_new)
            .text("time", &when)
            .raw("tree_size", size);
        terminal.json(&members.finish())?;
    } else {
        let known = if is_new { "stored" } else { "already stored" };
        let entries = entries_of(size);
        writeln!(terminal.out, "{known}: {key} cosigned the tree head over {entries} at {when}")?;
    }
    Ok(Exit::Fine)
}

/// `1 entry`, `2 entries`.
pub(crate) fn entries_of(size: u64) -> String {
    if size == 1 { "1 entry".to_owned() } else { format!("{size} entries") }
}

/// The signed tree head in a request, or the text itself.
fn note_in(text: &str) -> String {
    CosignRequest::parse(text).map_or_else(|| text.to_owned(), |request| request.note)
}

/// Reads the value of `--witness`: a verifier key, or a file with one.
fn witness_key(word: &str) -> anyhow::Result<WitnessKey> {
    if let Some(key) = WitnessKey::parse(word) {
        return Ok(key);
    }
    let path = Path::new(word);
    if !path.exists() {
        bail!(
            "--witness is neither a file nor the verifier key of a witness: name+id+key, of type 4 \
             (cosignature/v1), of an Ed25519 key that is not weak"
        );
    }
    let text = read_text(path, MAX_NOTE_BYTES)?;
    WitnessKey::parse(text.trim())
        .with_context(|| format!("{} holds no verifier key of one witness", name_of(path)))
}
