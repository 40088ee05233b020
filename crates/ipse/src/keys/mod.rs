//! Keys in files: who signs, and what others check with.
//!
//! A private half is a PKCS#8 PEM file, as `openssl genpkey -algorithm ed25519` makes it. A public
//! half is a line of text, or PEM as `openssl pkey -pubin` reads.
//!
//! The Cargo feature `passphrase` adds private halves that are encrypted under a passphrase. It is
//! off by default. Without it, a passphrase is [`KeyError::PassphraseUnsupported`], and so is an
//! encrypted key that is read. An agent that is opened without a passphrase beside such a key does
//! not sign ([`Agent::signs`](crate::Agent::signs)).
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let store = dir.path().join("ipse.db");
//! # let identity = ipse::Identity([1; 32]);
//! use ipse::keys::KeyDirectory;
//!
//! let keys = KeyDirectory::of_store(&ipse::Location::parse(&store)?);
//! keys.create(&identity, &mut ipse::SystemHost::random, None)?;
//! let signer = keys.log_signer(&identity, None)?;
//! assert_eq!(keys.log_keys()?, [signer.public()]);
//! # Ok(())
//! # }
//! ```
//!
//! **Invariants**
//! - A private half that others can read is not used, and none is ever written so. Nor is one used
//!   from a directory that others may write to, and no key is made in such a key directory.
//! - A private half is not used beside a public half of another key.
//! - No key is overwritten. A crash leaves a whole key under its name, or none.
//! - No error, and nothing that can be printed, holds a part of a private half.

mod directory;
#[cfg(feature = "passphrase")]
mod encryption;
#[cfg(not(feature = "passphrase"))]
#[path = "no_encryption.rs"]
mod encryption;
mod pem;

pub use directory::{KeyDirectory, OPERATOR, Protection, Role};
pub use pem::MAX_KEY_BYTES;

use crate::files;
use ipse_ledger::{NoteKey, NoteSigner, SecretKey};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The longest name of a producer.
pub const MAX_NAME_BYTES: usize = 64;

/// Why a key cannot be used or made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// There is none.
    #[error("no key at {}", .0.display())]
    Missing(PathBuf),
    /// One is there already, or its public half is.
    #[error("there is a key at {} already", .0.display())]
    Exists(PathBuf),
    /// It can be read with a passphrase only.
    #[error("{} is encrypted, and no passphrase was given", .0.display())]
    NoPassphrase(PathBuf),
    /// It cannot be read with this passphrase.
    #[error("the passphrase does not open {}", .0.display())]
    WrongPassphrase(PathBuf),
    /// It is encrypted, or is to be, and this build has no support for passphrases.
    #[error(
        "{} needs a passphrase, and this build does not support passphrases: build ipse with the \
         feature `passphrase`",
        .0.display()
    )]
    PassphraseUnsupported(PathBuf),
    /// It is no secret.
    #[error("others may read or write {}, so it is no secret", .0.display())]
    Unsafe(PathBuf),
    /// Others could put a key of theirs in its place.
    #[error("others may write to the directory {}, so no private key in it is used", .0.display())]
    UnsafeDirectory(PathBuf),
    /// The two files are not the halves of one key.
    #[error("{} is not the private half of the key in {}", .private.display(), .public.display())]
    Mismatch {
        /// The file of the private half.
        private: PathBuf,
        /// The file of the public half.
        public: PathBuf,
    },
    /// It has not the form of a key.
    #[error("{} is no key that ipse reads: {why}", .path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Anybody could sign under its public half.
    #[error("{} is a weak key", .0.display())]
    Weak(PathBuf),
    /// No key can be named so.
    #[error("`{}` cannot name a producer", ipse_door::printable(.0))]
    Name(String),
    /// The file system refused.
    #[error("could not {what} {}", .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl KeyError {
    fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| KeyError::Io { what, path, source }
    }

    /// Whether a key file is damaged, or its public half cannot be read or is another key's. A log
    /// without a private key goes on unsigned; a log with such a key does not.
    pub fn is_damage(&self) -> bool {
        let damaged = matches!(self, KeyError::Malformed { .. } | KeyError::Weak(_));
        damaged || self.is_of_public_half()
    }

    /// Whether a public half is damaged, cannot be read or is another key's.
    pub fn is_of_public_half(&self) -> bool {
        let public = |path: &Path| path.extension().is_some_and(|it| it == "vkey" || it == "pub");
        match self {
            KeyError::Mismatch { .. } => true,
            KeyError::Malformed { path, .. } | KeyError::Io { path, .. } => public(path),
            KeyError::Weak(path) => public(path),
            _ => false,
        }
    }

    /// Whether this user may not read it.
    fn is_denied(&self) -> bool {
        matches!(self, KeyError::Io { source, .. }
            if source.kind() == io::ErrorKind::PermissionDenied)
    }

    fn malformed(path: &Path, why: &'static str) -> Self {
        KeyError::Malformed { path: path.to_path_buf(), why }
    }
}

/// Random bytes, as a key is made of.
pub type Random<'r> = dyn FnMut() -> [u8; 32] + 'r;

/// Reads a private key from a file anywhere, to sign under a name.
///
/// The file must be an ordinary one that only its owner may read, in a directory that only its
/// owner may write to.
pub fn read_signer(
    path: &Path,
    name: &str,
    passphrase: Option<&str>,
) -> Result<NoteSigner, KeyError> {
    // Otherwise it is not there, or is no file, and the error says so.
    if path.is_file() {
        check_directories(path)?;
    }
    let key = pem::read_secret(path, passphrase)?;
    NoteSigner::new(name, key).ok_or_else(|| KeyError::Name(name.to_string()))
}

/// Reads a public key in PEM from a file anywhere, under a name: one SubjectPublicKeyInfo of an
/// Ed25519 key, as `openssl pkey -pubout` writes it.
pub fn read_verifier(path: &Path, name: &str) -> Result<NoteKey, KeyError> {
    let key = pem::read_public(path)?;
    NoteKey::new(name, key).ok_or_else(|| KeyError::Name(name.to_string()))
}

/// Others who may write to the directory of a key could put a key of theirs there. If the file is a
/// link, that goes for the directory of the link and for that of the file.
fn check_directories(path: &Path) -> Result<(), KeyError> {
    let file = path.canonicalize().map_err(KeyError::io("read", path))?;
    check_directory(files::directory_of(path))?;
    check_directory(files::directory_of(&file))
}

/// An error if others may write to a directory: a private key in it is neither used nor made.
fn check_directory(directory: &Path) -> Result<(), KeyError> {
    let metadata = directory.metadata().map_err(KeyError::io("read", directory))?;
    match metadata.permissions().mode() & 0o022 {
        0 => Ok(()),
        _ => Err(KeyError::UnsafeDirectory(directory.to_path_buf())),
    }
}

/// Makes a private key in a new file, and returns the public half under a name.
pub fn new_key_file(
    path: &Path,
    name: &str,
    random: &mut Random<'_>,
    passphrase: Option<&str>,
) -> Result<NoteKey, KeyError> {
    check_producer_name(name)?;
    let public = new_secret(path, random, passphrase)?.public();
    Ok(NoteKey::new(name, public).expect("BUG: a producer's name is a key's"))
}

/// Whether a producer may be called so: 1 to 64 of `[A-Za-z0-9._-]`, not beginning with a dot, and
/// not the name of a key of the store's own.
pub fn check_producer_name(name: &str) -> Result<(), KeyError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let fits = (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with('.')
        && ![Role::Log, Role::Operator].map(Role::name).contains(&name);
    fits.then_some(()).ok_or_else(|| KeyError::Name(name.to_string()))
}

/// Makes a private key in a file that must not be there yet.
fn new_secret(
    path: &Path,
    random: &mut Random<'_>,
    passphrase: Option<&str>,
) -> Result<SecretKey, KeyError> {
    let seed = zeroize::Zeroizing::new(random());
    let locked = passphrase.map(|passphrase| (passphrase, random()));
    let text = pem::write_secret(path, &seed, locked)?;
    files::write_new(path, text.as_bytes(), files::PRIVATE).map_err(|error| {
        match error.kind() {
            io::ErrorKind::AlreadyExists => KeyError::Exists(path.to_path_buf()),
            _ => KeyError::io("write", path)(error),
        }
    })?;
    Ok(SecretKey::from_seed(&seed))
}
