//! `identity`: shows the manifest and the identity, and checks that they did not change.

use crate::context::{Context, stored_manifest};
use crate::manifest_file;
use crate::passphrase;
use crate::terminal::{Terminal, counted};
use crate::{CommandResult, Exit};
use anyhow::bail;
use ipse_core::Seq;
use ipse_core::event::RULES;
use ipse_core::json::{Members, quoted};
use ipse_inspect::{ManifestComparison, Standing};
use ipse_ledger::{Certificate, dsse};
use ipse_store::Error;
use std::path::PathBuf;

/// Show manifest and identity, and check that they did not change
///
/// The identity is computed again from the stored manifest and compared with the registered one.
/// With --manifest it is also compared with a file, for example before a restart: the fields that
/// differ are listed, and the last line is the verdict. Exit 1 if an identity differs.
///
/// Example: ipse identity --canonical | sha256sum
#[derive(clap::Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print only the bytes whose SHA-256 is the identity
    #[arg(long, conflicts_with = "json")]
    canonical: bool,
    /// Compare with a manifest file, changing nothing; exit 1 if it is another identity
    #[arg(long, value_name = "FILE", conflicts_with = "canonical")]
    manifest: Option<PathBuf>,
    /// Print the identity certificate, signed by the operator, as a DSSE envelope on one line
    #[arg(long, conflicts_with_all = ["canonical", "manifest"])]
    certificate: bool,
}

#[derive(clap::Subcommand, Debug)]
enum Action {
    /// Remove an identity that has no event, such as one of an edited manifest
    ///
    /// An identity with events is kept. A token, a producer's key, a changed setting and rule set
    /// v2 are events too. Private keys stay where they are.
    ///
    /// Example: ipse identity remove 4cb9
    Remove {
        /// The beginning of the identity, at least 4 digits
        prefix: String,
    },
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    if let Some(Action::Remove { prefix }) = &args.action {
        return remove(context, terminal, prefix);
    }
    if args.certificate {
        return certificate(context, terminal);
    }
    let file = args.manifest.as_deref().map(manifest_file::read).transpose()?;
    let (reader, identity) = match &file {
        Some(manifest) => context.read_preferring(manifest.identity())?,
        None => context.read()?,
    };
    let standing = Standing::read(&reader, &identity)?;
    if args.canonical {
        terminal.out.write_all(standing.manifest.as_bytes())?;
        return Ok(Exit::Fine);
    }
    let against = file.map(|manifest| standing.against(&manifest.canonical()));
    if context.json {
        let answer = standing.json();
        let file = against.as_ref();
        let answer = answer.optional("same_as_file", file.map(|file| file.same));
        let answer =
            answer.optional("file_identity", file.map(|file| quoted(&file.identity.to_string())));
        terminal
            .json(&answer.optional("differs", file.map(ManifestComparison::fields)).finish())?;
    } else {
        terminal.page(&standing.page(against.as_ref()))?;
    }
    let same = against.is_none_or(|file| file.same);
    Ok(Exit::fine_if(standing.is_unchanged() && same))
}

/// Removes an identity without events.
fn remove(context: &Context, terminal: &mut Terminal<'_>, prefix: &str) -> CommandResult {
    if context.names_identity() {
        bail!("`identity remove` takes the identity as its argument, not as --identity");
    }
    let context = context.with_identity(prefix);
    let (reader, identity) = context.read_to_write(terminal)?;
    let snapshot = reader.view(&identity)?;
    let events = snapshot.view().head()?.0;
    let rules = snapshot.view().stored(Seq(1))?.filter(|first| first.event_type == RULES);
    drop(snapshot);
    drop(reader);
    match context.store()?.remove(&identity) {
        Err(Error::NotEmpty) => {
            let first = match rules {
                Some(_) if events == 1 => ": the one that chose its rule set",
                _ => "",
            };
            bail!(
                "identity {identity} is kept: its log has {}{first}. An identity is removed only \
                 while its log is empty",
                counted(events.max(1), "event")
            )
        }
        removed => removed?,
    }
    if context.json {
        let json = Members::new().text("identity_hash", &identity.to_string());
        terminal.json(&json.raw("removed", true).finish())?;
    } else {
        writeln!(terminal.out, "{identity}")?;
    }
    writeln!(terminal.err, "removed; its log was empty")?;
    Ok(Exit::Fine)
}

/// Prints the identity certificate.
fn certificate(context: &Context, terminal: &mut Terminal<'_>) -> CommandResult {
    let (reader, identity) = context.read()?;
    let certificate = Certificate { manifest: stored_manifest(&reader, &identity)? };
    if certificate.identity() != identity {
        bail!("the stored manifest was changed after it was registered; nothing was signed");
    }
    let keys = context.keys();
    let signer = passphrase::open(terminal, |word| keys.operator_signer(word))?;
    writeln!(terminal.out, "{}", dsse::sign(&certificate.statement(), &signer))?;
    Ok(Exit::Fine)
}
