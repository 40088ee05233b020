//! Private keys under a passphrase: PKCS#8 encrypted with PBES2.
//!
//! **Invariants:** OpenSSL can decrypt the keys that are encrypted here. An untrusted key file
//! cannot make this process use more memory or time than the limits below.

use super::KeyError;
use pkcs8::der::SecretDocument;
use pkcs8::pkcs5::pbes2::{EncryptionScheme, Kdf, Parameters, Salt, ScryptParams};
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef};
use std::path::Path;

/// The cost of one guess at a passphrase: 16 MiB, five times. OpenSSL rejects a key that needs more
/// than 32 MiB at once.
const SCRYPT_COST: u64 = 1 << 14;
const SCRYPT_BLOCK: u16 = 8;
const SCRYPT_TIMES: u16 = 5;
/// The most memory that an untrusted key file may require.
const MAX_SCRYPT_BYTES: u64 = 1 << 30;
/// The most PBKDF2 rounds that an untrusted key file may require: some seconds.
const MAX_ROUNDS: u32 = 10_000_000;

/// Encrypts a private key. Only builds without the feature `passphrase` return the error.
pub(super) fn encrypt(
    _path: &Path,
    info: &PrivateKeyInfoRef<'_>,
    passphrase: &str,
    random: [u8; 32],
) -> Result<SecretDocument, KeyError> {
    let document = info.encrypt_with_params(parameters(random), passphrase);
    Ok(document.expect("BUG: a key fits its format"))
}

fn parameters(random: [u8; 32]) -> Parameters {
    let (salt, iv) = random.split_at(16);
    let scrypt = ScryptParams {
        salt: Salt::new(salt).expect("BUG: 16 bytes are a salt"),
        cost_parameter: SCRYPT_COST,
        block_size: SCRYPT_BLOCK,
        parallelization: SCRYPT_TIMES,
        key_length: None,
    };
    let iv = iv.try_into().expect("BUG: 16 bytes are left");
    Parameters { kdf: Kdf::Scrypt(scrypt), encryption: EncryptionScheme::Aes256Cbc { iv } }
}

/// Decrypts the private key in a file.
pub(super) fn decrypt(
    path: &Path,
    der: &[u8],
    passphrase: Option<&str>,
) -> Result<SecretDocument, KeyError> {
    let passphrase = passphrase.ok_or_else(|| KeyError::NoPassphrase(path.to_path_buf()))?;
    let form = "its encryption is not PBES2 with scrypt or PBKDF2, or is too expensive";
    let form = || KeyError::malformed(path, form);
    let locked = EncryptedPrivateKeyInfoRef::try_from(der).map_err(|_| form())?;
    let parameters = locked.encryption_algorithm.pbes2().ok_or_else(form)?;
    if !is_bounded(&parameters.kdf) {
        return Err(form());
    }
    locked.decrypt(passphrase).map_err(|error| match error {
        pkcs8::Error::EncryptedPrivateKey(pkcs8::pkcs5::Error::DecryptFailed)
        // 1 of 256 wrong passphrases decrypts to valid padding, but not to a key.
        | pkcs8::Error::Asn1(_) => KeyError::WrongPassphrase(path.to_path_buf()),
        _ => form(),
    })
}

/// Whether deriving a key stays within the limits.
fn is_bounded(kdf: &Kdf) -> bool {
    match kdf {
        Kdf::Scrypt(scrypt) => {
            let once = scrypt.cost_parameter.checked_mul(128 * u64::from(scrypt.block_size));
            let all = once.and_then(|once| once.checked_mul(u64::from(scrypt.parallelization)));
            all.is_some_and(|bytes| bytes <= MAX_SCRYPT_BYTES)
        }
        Kdf::Pbkdf2(rounds) => rounds.iteration_count <= MAX_ROUNDS,
        _ => false,
    }
}
