//! `identity`: who the agent is, and that it has not changed.

use crate::context::{Context, stored_manifest};
use crate::manifest_file;
use crate::passphrase;
use crate::terminal::Terminal;
use crate::{Exit, Ran};
use anyhow::bail;
use ipse_inspect::Standing;
use ipse_ledger::{Certificate, dsse};
use std::path::PathBuf;

/// Show who this is: manifest, identity, and that it has not changed
///
/// The identity is computed anew from the stored manifest and compared with the one it was
/// registered under; exit 1 if they differ. With --manifest it is also compared with a file on
/// disk, as before a restart.
///
/// Example: ipse identity --canonical | sha256sum
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print exactly the bytes whose SHA-256 is the identity, and nothing else
    #[arg(long, conflicts_with = "json")]
    canonical: bool,
    /// Compare with a manifest file, changing nothing; exit 1 if it is another identity
    #[arg(long, value_name = "FILE", conflicts_with = "canonical")]
    manifest: Option<PathBuf>,
    /// Print the operator's signed word for who this is, as a DSSE envelope on one line
    #[arg(long, conflicts_with_all = ["canonical", "manifest"])]
    certificate: bool,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> Ran {
    if args.certificate {
        return certificate(context, terminal);
    }
    let file = args.manifest.as_deref();
    let given = file.map(manifest_file::read).transpose()?.map(|manifest| manifest.identity());
    let (reader, identity) = context.read()?;
    let standing = Standing::read(&reader, &identity)?;
    if args.canonical {
        terminal.out.write_all(standing.manifest.as_bytes())?;
        return Ok(Exit::Fine);
    }
    if context.json {
        let same = given.map(|given| given == identity);
        terminal.json(&standing.json().optional("same_as_file", same).finish())?;
    } else {
        terminal.page(&standing.page())?;
    }
    let same = given.is_none_or(|given| given == identity);
    if let (false, Some(given)) = (same, given) {
        writeln!(terminal.err, "the manifest file is another identity: {given}")?;
    }
    Ok(Exit::fine_if(standing.is_unchanged() && same))
}

/// Prints the operator's word for who this is.
fn certificate(context: &Context, terminal: &mut Terminal<'_>) -> Ran {
    let (reader, identity) = context.read()?;
    let certificate = Certificate { manifest: stored_manifest(&reader, &identity)? };
    if certificate.identity() != identity {
        bail!("the stored manifest is not the one that was registered; nothing was signed");
    }
    let keys = context.keys();
    let signer = passphrase::open(terminal, |word| keys.operator_signer(word))?;
    writeln!(terminal.out, "{}", dsse::sign(&certificate.statement(), &signer))?;
    Ok(Exit::Fine)
}
