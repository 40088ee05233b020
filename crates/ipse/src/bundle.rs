//! Importing a bundle into a store, which moves a log to another machine.

use crate::keys::KeyDirectory;
use crate::{Error, Result};
use ipse_bundle::{Report, Trust, Verdict, open};
use ipse_exchange::{BundleReceipt, take_in};
use ipse_store::{Location, Store};
use std::fs::File;
use std::path::Path;

/// Verifies a bundle under keys that the caller trusts, and imports it into a store in which its
/// identity is registered and its log is empty. `trusted` holds public keys as text: `log.vkey`,
/// `operator.pub` and the keys of producers.
///
/// An unreadable trusted key is [`Error::TrustedKey`]; a bundle that does not verify is
/// [`Error::Unverified`]. In both cases nothing is imported.
pub fn import_bundle(
    store: impl AsRef<Path>,
    bundle: impl AsRef<Path>,
    trusted: &[&str],
) -> Result<BundleReceipt> {
    let bundle = bundle.as_ref();
    let file_error = |source| Error::file(bundle, source);
    let file = File::open(bundle).map_err(file_error)?;
    let mut trust = Trust::default();
    for key in trusted {
        trust.add(key).map_err(|error| Error::TrustedKey(error.to_string()))?;
    }
    let opened = open(&file, &trust, &[], &mut |_, _| {}).map_err(file_error)?;
    let opened = opened.map_err(|report| Error::Unverified(first_fault(&report)))?;
    let location = Location::parse(store)?;
    let keys = KeyDirectory::of_store(&location);
    let last =
        keys.last_head(&opened.identity).map_err(|source| Error::file(keys.path(), source))?;
    let last = last.as_ref().map(|(note, _)| note.as_str());
    let store = Store::open(&location)?;
    Ok(take_in(&store, &opened, trust.keys(), None, last, &mut |_, _| {})?)
}

fn first_fault(report: &Report) -> String {
    let fault = report.lines.iter().find(|line| line.verdict == Verdict::Fail);
    fault.map_or_else(String::new, |line| format!("{}: {}", line.place, line.message))
}
