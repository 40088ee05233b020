//! Signing and verification keys in files.
//!
//! A private half is a PKCS#8 PEM file, as `openssl genpkey -algorithm ed25519` writes it. A public
//! half is a line of text, or PEM as `openssl pkey -pubin` reads it.
//!
//! The Cargo feature `passphrase` adds private halves that are encrypted under a passphrase. It is
//! off by default. Without it, a passphrase or an encrypted key is
//! [`KeyError::PassphraseUnsupported`]. An agent that is opened without a passphrase does not sign
//! if its key is encrypted ([`Agent::signs`](crate::Agent::signs)).
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
//! - A private half that other users can read is neither used nor written. No private half is used
//!   or created in a directory that other users can write to.
//! - A private half is not used if the public half next to it belongs to another key.
//! - No key is overwritten. After a crash a key file is complete or absent.
//! - No error and no `Debug` output contains a part of a private half.

mod changes;
mod directory;
#[cfg(feature = "passphrase")]
mod encryption;
#[cfg(not(feature = "passphrase"))]
#[path = "no_encryption.rs"]
mod encryption;
mod pem;

pub use directory::{KeyDirectory, OPERATOR, Protection, Role};
pub use ipse_bundle::key_sha256;
pub use pem::MAX_KEY_BYTES;

use crate::files;
use ipse_ledger::{NoteKey, NoteSigner, SecretKey};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The longest name of a producer, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// The reason why a key cannot be used or created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The key file does not exist.
    #[error("no key at {}", .0.display())]
    Missing(PathBuf),
    /// A key or its public half already exists.
    #[error("a key already exists at {}", .0.display())]
    Exists(PathBuf),
    /// The key is encrypted and no passphrase was given.
    #[error("{} is encrypted, and no passphrase was given", .0.display())]
    NoPassphrase(PathBuf),
    /// The passphrase is wrong.
    #[error("the passphrase does not open {}", .0.display())]
    WrongPassphrase(PathBuf),
    /// A passphrase is needed or given, and this build does not support passphrases.
    #[error(
        "{} needs a passphrase, and this build does not support passphrases: build ipse with the \
         feature `passphrase`",
        .0.display()
    )]
    PassphraseUnsupported(PathBuf),
    /// Other users can read or write the private key.
    #[error("other users can read or write {}, so it is not secret", .0.display())]
    Unsafe(PathBuf),
    /// Other users could replace the key.
    #[error("other users can write to {}, so private keys in it are not used", .0.display())]
    UnsafeDirectory(PathBuf),
    /// The two files are not the halves of one key.
    #[error("{} is not the private half of the key in {}", .private.display(), .public.display())]
    Mismatch {
        /// The file of the private half.
        private: PathBuf,
        /// The file of the public half.
        public: PathBuf,
    },
    /// The manifest names another operator key.
    #[error(
        "the manifest names the operator key sha256:{named}, and that key is not at {}",
        .path.display()
    )]
    OtherOperator {
        /// The file of the public half.
        path: PathBuf,
        /// The SHA-256 of the key that the manifest names, as hex digits.
        named: String,
    },
    /// The content is not a valid key.
    #[error("{} is not a valid key: {why}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The reason why it is not valid.
        why: &'static str,
    },
    /// The key is weak: anyone could sign under its public half.
    #[error("{} is a weak key", .0.display())]
    Weak(PathBuf),
    /// The name is not allowed for a producer.
    #[error("`{}` is not a valid producer name", ipse_door::printable(.0))]
    Name(String),
    /// A file operation failed.
    #[error("could not {what} {}", .path.display())]
    Io {
        /// The operation, as a verb.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
}

impl KeyError {
    fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| KeyError::Io { what, path, source }
    }

    /// Whether a key file is damaged, or its public half is unreadable or belongs to another key. A
    /// log without a private key continues unsigned; a log with such a key does not.
    pub fn is_damage(&self) -> bool {
        let damaged = matches!(self, KeyError::Malformed { .. } | KeyError::Weak(_));
        damaged || self.is_of_public_half()
    }

    /// Whether a public half is damaged, unreadable or belongs to another key.
    pub fn is_of_public_half(&self) -> bool {
        let public = |path: &Path| path.extension().is_some_and(|it| it == "vkey" || it == "pub");
        match self {
            KeyError::Mismatch { .. } => true,
            KeyError::Malformed { path, .. } | KeyError::Io { path, .. } => public(path),
            KeyError::Weak(path) => public(path),
            _ => false,
        }
    }

    /// Whether this user lacks the permission to read the key.
    fn is_denied(&self) -> bool {
        matches!(self, KeyError::Io { source, .. }
            if source.kind() == io::ErrorKind::PermissionDenied)
    }

    fn malformed(path: &Path, why: &'static str) -> Self {
        KeyError::Malformed { path: path.to_path_buf(), why }
    }
}

/// A source of 32 random bytes for a key.
pub type Random<'r> = dyn FnMut() -> [u8; 32] + 'r;

/// Reads a private key from any file, to sign under a name.
///
/// The file must be an ordinary one that only its owner can read, in a directory that only its
/// owner can write to.
pub fn read_signer(
    path: &Path,
    name: &str,
    passphrase: Option<&str>,
) -> Result<NoteSigner, KeyError> {
    // If it is missing or not a file, reading it below returns that error.
    if path.is_file() {
        check_directories(path)?;
    }
    let key = pem::read_secret(path, passphrase)?;
    NoteSigner::new(name, key).ok_or_else(|| KeyError::Name(name.to_string()))
}

/// Reads a public key in PEM from any file, under a name: one SubjectPublicKeyInfo of an Ed25519
/// key, as `openssl pkey -pubout` writes it.
pub fn read_verifier(path: &Path, name: &str) -> Result<NoteKey, KeyError> {
    let key = pem::read_public(path)?;
    NoteKey::new(name, key).ok_or_else(|| KeyError::Name(name.to_string()))
}

/// Checks the directory of a key file, because users who can write to it could replace the key. For
/// a symbolic link, checks the directories of the link and of its target.
fn check_directories(path: &Path) -> Result<(), KeyError> {
    let file = path.canonicalize().map_err(KeyError::io("read", path))?;
    check_directory(files::directory_of(path))?;
    check_directory(files::directory_of(&file))
}

/// Returns an error if other users can write to a directory.
fn check_directory(directory: &Path) -> Result<(), KeyError> {
    let metadata = directory.metadata().map_err(KeyError::io("read", directory))?;
    match metadata.permissions().mode() & 0o022 {
        0 => Ok(()),
        _ => Err(KeyError::UnsafeDirectory(directory.to_path_buf())),
    }
}

/// Creates a private key in a new file, and returns the public half under a name.
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

/// Validates the name of a producer: 1 to 64 of `[A-Za-z0-9._-]`, not starting with a dot, and not
/// the name of one of the store's own keys.
pub fn check_producer_name(name: &str) -> Result<(), KeyError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let fits = (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with('.')
        && ![Role::Log, Role::Operator].map(Role::name).contains(&name);
    fits.then_some(()).ok_or_else(|| KeyError::Name(name.to_string()))
}

/// Creates a private key in a new file; an existing file is an error.
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
