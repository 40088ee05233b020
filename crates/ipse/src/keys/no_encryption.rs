//! The module `encryption` of a build without the feature `passphrase`.
//!
//! **Invariants:** no key is encrypted or decrypted; both are an error that names the feature. The
//! functions are those of `encryption.rs`, so that callers do not depend on the feature.

use super::KeyError;
use pkcs8::PrivateKeyInfoRef;
use pkcs8::der::SecretDocument;
use std::path::Path;

/// Encrypts no key.
pub(super) fn encrypt(
    path: &Path,
    _info: &PrivateKeyInfoRef<'_>,
    _passphrase: &str,
    _random: [u8; 32],
) -> Result<SecretDocument, KeyError> {
    Err(KeyError::PassphraseUnsupported(path.to_path_buf()))
}

/// Decrypts no key.
pub(super) fn decrypt(
    path: &Path,
    _der: &[u8],
    _passphrase: Option<&str>,
) -> Result<SecretDocument, KeyError> {
    Err(KeyError::PassphraseUnsupported(path.to_path_buf()))
}
