//! `verify`: computes all stored data again and compares it.
//!
//! **Invariant:** nothing is repaired.

use crate::context::Context;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use anyhow::Context as _;
use ipse_inspect::verify::{SHOWN, verify as verify_store};

/// Compute all stored data again and compare it; repair nothing
///
/// Checks the identity of the manifest, the digest, entry and typed columns of every event, gaps,
/// chunks, index, passes, facts and sums, and the file itself. A finding is a mismatch (exit 1); a
/// note is not. docs/guide/operate.md says what to do about each.
#[derive(clap::Args, Debug)]
pub(crate) struct Args;

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, _: &Args) -> CommandResult {
    let (reader, identity) = context.read()?;
    let manifests = reader.manifests()?;
    let manifest = manifests.iter().find(|(hash, _)| *hash == identity.to_string());
    let (_, manifest) = manifest.context("the identity is no longer registered")?;
    let snapshot = reader.view(&identity)?;
    let bar = terminal.bar("events");
    context.keys().check_public()?;
    let outside = context.outside(&identity)?;
    let report = verify_store(&snapshot, &identity, manifest, &outside, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = report?;
    if context.json {
        terminal.json(&report.json(&identity))?;
    } else {
        terminal.page(&report.page(&identity))?;
        if report.findings.len() > SHOWN {
            writeln!(terminal.err, "hint: --json lists all findings")?;
        }
    }
    Ok(Exit::fine_if(report.findings.is_empty()))
}
