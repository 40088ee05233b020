//! Taking a bundle into a store: a log that proves itself moves to another machine.

use crate::keys::KeyDirectory;
use crate::{Error, Result};
use ipse_bundle::{Report, Trust, Verdict, open};
use ipse_exchange::{TakenIn, take_in};
use std::fs::File;
use std::path::Path;

/// Verifies a bundle under keys that the caller trusts, and takes it into a store in which its
/// identity is registered and its log is empty. `trusted` are public keys as text: `log.vkey`,
/// `operator.pub` and the keys of producers.
pub fn import_bundle(store: &Path, bundle: &Path, trusted: &[&str]) -> Result<TakenIn> {
    let file_error = |source| Error::File { path: bundle.display().to_string(), source };
    let file = File::open(bundle).map_err(file_error)?;
    let mut trust = Trust::default();
    for key in trusted {
        trust.add(key).map_err(|error| Error::Unverified(error.to_string()))?;
    }
    let opened = open(&file, &trust, &[], &mut |_, _| {}).map_err(file_error)?;
    let opened = opened.map_err(|report| Error::Unverified(first_fault(&report)))?;
    let keys = KeyDirectory::of_store(store);
    let last = keys
        .last_head(&opened.identity)
        .map_err(|source| Error::File { path: keys.path().display().to_string(), source })?;
    let last = last.as_ref().map(|(note, _)| note.as_str());
    Ok(take_in(store, &opened, trust.keys(), last, &mut |_, _| {})?)
}

fn first_fault(report: &Report) -> String {
    let fault = report.lines.iter().find(|line| line.verdict == Verdict::Fail);
    fault.map_or_else(String::new, |line| format!("{}: {}", line.place, line.message))
}
