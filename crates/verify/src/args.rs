//! Arguments as they are typed. The doc comments are the help texts.

use clap::Parser;
use ipse_bundle::EventRef;
use ipse_bundle::trail::{EVIDENCE, MAX_EVIDENCE};
use std::path::PathBuf;

/// Verify a bundle: is this the log that its keys signed, whole, and do the facts follow from it?
///
/// Everything in the file is computed again and compared: the archive byte for byte, every hash and
/// signature, the identity from the manifest, the tree over all entries, each event, each pass, and
/// the facts. A line that begins with PASS was checked and holds, FAIL does not hold, LIMIT cannot
/// be known from this file with these keys.
///
/// Trust begins with keys that you already have. Get them from the operator over a way that the
/// bundle did not take, and compare their sha256sum by voice. Keys inside the bundle are never
/// trust.
///
/// Keep the bundle's tree-head.note, and give it with --anchors next time: only so can it be
/// noticed that a log was rolled back, or that two histories of it exist.
///
/// With --why it also tells, of a bundle that passed, what an action goes back to: its intent, what
/// the gates said, what the planner knew then, the evidence behind that, and the proofs.
///
/// Example: ipse-verify week.ipse --trust log.vkey operator.pub --anchors last-week.note
#[derive(Parser, Debug)]
#[command(
    name = "ipse-verify",
    version,
    after_help = "Exit 0: verified. 1: something does not hold, or --why found no action. \
                  2: could not run.\n\
                  The report goes to standard output, words about trouble to standard error."
)]
pub(crate) struct Args {
    /// The bundle, as `ipse export` writes it
    #[arg(value_name = "FILE.ipse")]
    pub(crate) file: PathBuf,

    /// Keys that you trust: verifier keys (name+id+key), or files that hold them or PEM public keys
    ///
    /// The operator's key vouches for the bundle and the certificate, the log's key (its name is
    /// `ipse/` and the identity) for the tree head, any other key for what a producer signed. May
    /// be given several times.
    #[arg(long, value_name = "KEY|FILE", num_args = 1..)]
    pub(crate) trust: Vec<String>,

    /// Tree heads of this log that you saw before: a file with one or more notes
    #[arg(long, value_name = "FILE")]
    pub(crate) anchors: Option<PathBuf>,

    /// Tell also what an action goes back to: the ref of an intent, a confirmation, or an outcome
    #[arg(long, value_name = "EVENT_REF", value_parser = event_ref)]
    pub(crate) why: Option<EventRef>,

    /// With --why: how many of the newest events behind each fact are listed
    #[arg(long, value_name = "N", requires = "why", default_value_t = EVIDENCE as u64,
          value_parser = clap::value_parser!(u64).range(1..=MAX_EVIDENCE as u64))]
    pub(crate) evidence: u64,

    /// With --why: which fifty of the facts that the planner knew are listed
    #[arg(long, value_name = "N", requires = "why", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) page: u64,

    /// Answer in JSON, for programs
    #[arg(long)]
    pub(crate) json: bool,
}

fn event_ref(text: &str) -> Result<EventRef, String> {
    EventRef::parse(text).ok_or_else(|| "an event ref is ev_ and 32 hex digits".to_owned())
}
