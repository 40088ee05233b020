//! The address of a store, parsed from `--store` or from an argument of the library.

use crate::Error;
use std::fmt;
use std::path::{Path, PathBuf};

/// The address of a store.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Location {
    /// A file, with its write-ahead log next to it.
    File(PathBuf),
}

/// URL schemes that are never file names. No engine of this build supports them.
const SCHEMES: [&str; 4] = ["postgres://", "postgresql://", "http://", "https://"];

impl Location {
    /// Parses an address. A text that begins with a scheme such as `postgres://` is rejected.
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

    /// The location of a store file.
    pub fn file(path: impl AsRef<Path>) -> Self {
        Location::File(path.as_ref().to_owned())
    }

    /// The path, if the store is a file.
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
