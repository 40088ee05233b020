//! The address of a store: parsed once, from `--store` or from a program's argument.

use crate::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// The address of a store.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Location {
    /// A file, with its write-ahead log beside it.
    File(PathBuf),
}

/// Schemes of addresses that are no file names. No engine of this build opens them.
const SCHEMES: [&str; 4] = ["postgres://", "postgresql://", "http://", "https://"];

impl Location {
    /// Reads an address. A text that begins with a scheme such as `postgres://` is not a file name.
    pub fn parse(address: impl AsRef<Path>) -> Result<Self, Error> {
        let path = address.as_ref();
        let text = path.to_string_lossy();
        if text.is_empty() {
            return Err(Error::NoAddress);
        }
        match SCHEMES.iter().find(|scheme| text.starts_with(**scheme)) {
            Some(scheme) => Err(Error::UnknownScheme(scheme)),
            None => Ok(Location::file(path)),
        }
    }

    /// A file.
    pub fn file(path: impl AsRef<Path>) -> Self {
        Location::File(path.as_ref().to_owned())
    }

    /// The path of the file, if the store is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Location::File(path) => Some(path),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::File(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_is_no_file_name() {
        for address in ["postgres://host/db", "postgresql://host/db", "https://host/store"] {
            assert!(matches!(Location::parse(address), Err(Error::UnknownScheme(_))), "{address}");
        }
        assert!(matches!(Location::parse(""), Err(Error::NoAddress)));
        for address in ["ipse.db", "postgres", "./postgres://x", ":memory:", "file:x"] {
            assert_eq!(Location::parse(address).unwrap(), Location::File(address.into()));
        }
    }
}
