//! Replaces the module `encryption` in a build without the feature `passphrase`.
//!
//! **Invariants:** both functions return an error that names the feature. Their signatures are
//! those of `encryption.rs`, so that callers do not depend on the feature.

use super::KeyError;
use pkcs8::PrivateKeyInfoRef;
use pkcs8::der::SecretDocument;
use std::path::Path;

/// Always an error: this build cannot encrypt keys.
pub(super) fn encrypt(
    path: &Path,
    _info: &PrivateKeyInfoRef<'_>,
    _passphrase: &str,
    _random: [u8; 32],
) -> Result<SecretDocument, KeyError> {
    Err(KeyError::PassphraseUnsupported(path.to_path_buf()))
}

/// Always an error: this build cannot decrypt keys.
pub(super) fn decrypt(
    path: &Path,
    _der: &[u8],
    _passphrase: Option<&str>,
) -> Result<SecretDocument, KeyError> {
    Err(KeyError::PassphraseUnsupported(path.to_path_buf()))
}
