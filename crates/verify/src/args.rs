//! Arguments as they are typed. The doc comments are the help texts.

use clap::Parser;
use ipse_bundle::EventRef;
use ipse_bundle::trail::{EVIDENCE, MAX_EVIDENCE};
use std::path::PathBuf;

/// Verify a bundle: its keys signed this log, it is complete, and the facts follow from it
///
/// Everything in the file is computed again and compared: the archive byte for byte, every hash and
/// signature, the identity from the manifest, the tree over all entries, each event, each pass,
/// each verdict of the gates, and the facts. A line with PASS is a check that holds, FAIL a check
/// that does not hold, LIMIT a check that is not possible with this file and these keys.
///
/// Trust begins with keys that you already have. Get them from the operator over another channel
/// than the bundle, and compare their sha256sum by voice. Keys inside the bundle are never trusted.
///
/// Keep the bundle's tree-head.note, and give it with --anchors next time. Without it, a log that
/// was rolled back or that has two histories cannot be detected.
///
/// With --why it also shows the trail of an action, if the bundle passed: its intent, the verdict
/// of the gates, the facts that the planner knew then, their evidence, and the proofs.
///
/// Example: ipse-verify week.ipse --trust log.vkey operator.pub --anchors last-week.note
#[derive(Parser, Debug)]
#[command(
    name = "ipse-verify",
    version,
    after_help = "Exit 0: verified. 1: something does not hold, or --why found no action. \
                  2: could not run.\n\
                  The report goes to standard output, errors to standard error."
)]
pub(crate) struct Args {
    /// Verify this bundle, a file of `ipse export`
    #[arg(value_name = "FILE.ipse")]
    pub(crate) file: PathBuf,

    /// Trust these keys: verifier keys (name+id+key), or files with verifier or PEM public keys
    ///
    /// The operator's key signs the bundle and the certificate, the log's key (its name is `ipse/`
    /// and the identity) signs tree heads, any other key is a producer's. Repeatable.
    #[arg(long, value_name = "KEY|FILE", num_args = 1..)]
    pub(crate) trust: Vec<String>,

    /// Require that this witness cosigned the tree head: its verifier key (name+id+key), or a file
    /// with keys of witnesses
    ///
    /// A witness cosigns a tree head only if it continues everything that the witness has seen of
    /// this log. Repeatable; all of them are required.
    #[arg(long, value_name = "KEY|FILE", num_args = 1..)]
    pub(crate) witness: Vec<String>,

    /// Compare with earlier tree heads of this log: a file with one or more notes
    #[arg(long, value_name = "FILE")]
    pub(crate) anchors: Option<PathBuf>,

    /// Judge intents again with the gate files in this directory that the bundle lacks:
    /// ecm-registry.toml, policy.toml, temperament.toml
    #[arg(long, value_name = "DIR")]
    pub(crate) gates: Option<PathBuf>,

    /// Show also the trail of an action: the ref of an intent, a confirmation, or an outcome
    #[arg(long, value_name = "EVENT_REF", value_parser = event_ref)]
    pub(crate) why: Option<EventRef>,

    /// With --why: list the newest N events of the evidence of each fact
    #[arg(long, value_name = "N", requires = "why", default_value_t = EVIDENCE as u64,
          value_parser = clap::value_parser!(u64).range(1..=MAX_EVIDENCE as u64))]
    pub(crate) evidence: u64,

    /// With --why: list this page of the facts that the planner knew, fifty on a page
    #[arg(long, value_name = "N", requires = "why", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) page: u64,

    /// Print the report as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn event_ref(text: &str) -> Result<EventRef, String> {
    EventRef::parse(text).ok_or_else(|| "an event ref is ev_ and 32 hex digits".to_owned())
}
