//! Bundles of others: verifying one, and importing one, which moves a log to another machine.
//!
//! **Invariant:** keys inside a bundle are never trusted. Only keys of the caller count.

use crate::keys::KeyDirectory;
use crate::{Error, Result};
use ipse_bundle::{GatesInput, Report, Trust, Verdict, anchors, open_judged, verify_judged};
use ipse_exchange::{BundleReceipt, take_in};
use ipse_gates::read_gates;
use ipse_store::{Location, Store};
use std::fs::File;
use std::path::Path;

/// Verifies a bundle under keys that the caller trusts. It needs no store and writes nothing.
///
/// `trusted` holds public keys as text: `log.vkey`, `operator.pub` and the keys of producers. Get
/// them from their owners and not from the bundle. `anchors` holds tree heads of the same log that
/// the caller kept, as text: the bundle must continue from them. It may be empty.
///
/// A bundle that does not verify is no error: its report has not
/// [`passed`](ipse_bundle::Report::passed). An unreadable trusted key is [`Error::TrustedKey`], a
/// text without a tree head is [`Error::Anchor`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// # let manifest = ipse::Manifest::new(|field| match field {
/// #     "commissioned_at" => Some("2026-05-01T00:00:00Z".into()),
/// #     hash if hash.ends_with("_hash") => Some("1".repeat(64)),
/// #     name => Some(format!("example {name}")),
/// # })?;
/// # let agent = ipse::Agent::register(directory.join("robot.db"), &manifest)?;
/// # agent.record(ipse::Event::attempt("grasp").success())?;
/// use std::fs::{File, read_to_string};
///
/// // The robot:
/// agent.consolidate()?; // An export runs no pass.
/// agent.export(&mut File::create(directory.join("robot.ipse"))?)?;
///
/// // The auditor, who got both keys from the operator:
/// let log = read_to_string(directory.join("robot.db.keys/log.vkey"))?;
/// let operator = read_to_string(directory.join("robot.db.keys/operator.pub"))?;
/// let report = ipse::verify_bundle(directory.join("robot.ipse"), &[&log, &operator], &[])?;
/// for line in &report.lines {
///     println!("{:5}  {}  {}", line.verdict.name(), line.place, line.message);
/// }
/// assert!(report.passed());
/// # Ok(())
/// # }
/// ```
pub fn verify_bundle(
    bundle: impl AsRef<Path>,
    trusted: &[&str],
    anchors: &[&str],
) -> Result<Report> {
    let bundle = bundle.as_ref();
    let file_error = |source| Error::file(bundle, source);
    let file = File::open(bundle).map_err(file_error)?;
    let notes = notes_of(anchors)?;
    let trust = trust(trusted)?;
    verify_judged(&file, &trust, &notes, &gates(), &mut |_, _| {}).map_err(file_error)
}

/// Verifies a bundle under keys that the caller trusts, and imports it into a store in which its
/// identity is registered and its log is empty. `trusted` holds public keys as text: `log.vkey`,
/// `operator.pub` and the keys of producers.
///
/// An unreadable trusted key is [`Error::TrustedKey`]; a bundle that does not verify is
/// [`Error::Unverified`]. In both cases nothing is imported. [`verify_bundle`] only verifies.
pub fn import_bundle(
    store: impl AsRef<Path>,
    bundle: impl AsRef<Path>,
    trusted: &[&str],
) -> Result<BundleReceipt> {
    let bundle = bundle.as_ref();
    let file_error = |source| Error::file(bundle, source);
    let file = File::open(bundle).map_err(file_error)?;
    let trust = trust(trusted)?;
    let opened = open_judged(&file, &trust, &[], &gates(), &mut |_, _| {}).map_err(file_error)?;
    let opened = opened.map_err(|report| Error::Unverified(first_fault(&report)))?;
    let location = Location::parse(store)?;
    let keys = KeyDirectory::of_store(&location);
    let last =
        keys.last_head(&opened.identity).map_err(|source| Error::file(keys.path(), source))?;
    let last = last.as_ref().map(|(note, _)| note.as_str());
    let store = Store::open(&location)?;
    Ok(take_in(&store, &opened, trust.keys(), None, last, &mut |_, _| {})?)
}

/// The gates that judge the intents of a bundle again.
fn gates() -> GatesInput<'static> {
    GatesInput { read: Some(&read_gates), ..GatesInput::default() }
}

fn trust(keys: &[&str]) -> Result<Trust> {
    let mut trust = Trust::default();
    for key in keys {
        trust.add(key).map_err(|error| Error::TrustedKey(error.to_string()))?;
    }
    Ok(trust)
}

/// The tree heads in these texts; each text may hold several.
fn notes_of(texts: &[&str]) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    for text in texts {
        notes.extend(anchors(text).map_err(|error| Error::Anchor(error.to_string()))?);
    }
    Ok(notes)
}

fn first_fault(report: &Report) -> String {
    let fault = report.lines.iter().find(|line| line.verdict == Verdict::Fail);
    fault.map_or_else(String::new, |line| format!("{}: {}", line.place, line.message))
}
