//! Keys as PEM: PKCS#8 for private keys, SubjectPublicKeyInfo for public keys.
//!
//! **Invariants:** only Ed25519 is accepted. Buffers that held a secret are wiped. Encryption is in
//! [`encryption`], which the feature `passphrase` enables.

use super::{KeyError, encryption};
use crate::files;
use ipse_ledger::{PublicKey, SecretKey};
use pkcs8::der::asn1::OctetStringRef;
use pkcs8::der::pem::LineEnding;
use pkcs8::der::{Decode, Document, SecretDocument};
use pkcs8::spki::{AlgorithmIdentifierRef, SubjectPublicKeyInfoRef};
use pkcs8::{ObjectIdentifier, PrivateKeyInfoRef};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use zeroize::Zeroizing;

/// The largest key file that is read. An encrypted key has about 400 bytes.
pub const MAX_KEY_BYTES: u64 = 16 << 10;

const ED25519: AlgorithmIdentifierRef<'_> =
    AlgorithmIdentifierRef { oid: ObjectIdentifier::new_unwrap("1.3.101.112"), parameters: None };
const PLAIN: &str = "PRIVATE KEY";
const ENCRYPTED: &str = "ENCRYPTED PRIVATE KEY";
const PUBLIC: &str = "PUBLIC KEY";
/// The beginning of every PEM block, and the end of the first line of a private key's block.
const PEM_BLOCK: &str = "-----BEGIN ";
const END_OF_PRIVATE_LABEL: &str = "PRIVATE KEY-----";

/// The DER header of an octet string of 32 bytes: the form of an Ed25519 seed.
const SEED_HEADER: [u8; 2] = [4, 32];

/// The PEM text of a private key, encrypted if a passphrase and random bytes are given.
pub(super) fn write_secret(
    path: &Path,
    seed: &[u8; 32],
    locked: Option<(&str, [u8; 32])>,
) -> Result<Zeroizing<String>, KeyError> {
    let seed = Zeroizing::new([&SEED_HEADER, &seed[..]].concat());
    let info = PrivateKeyInfoRef::new(
        ED25519,
        OctetStringRef::new(&seed).expect("BUG: a key fits its format"),
    );
    let (label, document) = match locked {
        None => (PLAIN, SecretDocument::encode_msg(&info).expect("BUG: a key fits its format")),
        Some((passphrase, random)) => {
            (ENCRYPTED, encryption::encrypt(path, &info, passphrase, random)?)
        }
    };
    Ok(document.to_pem(label, LineEnding::LF).expect("BUG: a key fits its format"))
}

/// Reads a private key file.
pub(super) fn read_secret(path: &Path, passphrase: Option<&str>) -> Result<SecretKey, KeyError> {
    let text = read_private(path)?;
    let (label, document) = parse(path, &text)?;
    match label {
        PLAIN => secret(path, document.as_bytes()),
        ENCRYPTED => {
            let opened = encryption::decrypt(path, document.as_bytes(), passphrase)?;
            secret(path, opened.as_bytes())
        }
        _ => Err(KeyError::malformed(path, "its PEM block is not a PKCS#8 private key")),
    }
}

/// Whether a private key file needs a passphrase.
pub(super) fn is_encrypted(path: &Path) -> Result<bool, KeyError> {
    let text = read_private(path)?;
    Ok(parse(path, &text)?.0 == ENCRYPTED)
}

fn parse<'t>(path: &Path, text: &'t str) -> Result<(&'t str, SecretDocument), KeyError> {
    SecretDocument::from_pem(text).map_err(|_| KeyError::malformed(path, "it is not PEM"))
}

/// Reads the text of a file; an error if other users can read or write it.
fn read_private(path: &Path) -> Result<Zeroizing<String>, KeyError> {
    let (file, bytes) = read(path)?;
    let bytes = Zeroizing::new(bytes);
    let metadata = file.metadata().map_err(KeyError::io("read", path))?;
    if metadata.permissions().mode() & 0o077 != 0 {
        return Err(KeyError::Unsafe(path.to_path_buf()));
    }
    let text =
        std::str::from_utf8(&bytes).map_err(|_| KeyError::malformed(path, "it is not PEM"))?;
    Ok(Zeroizing::new(text.to_string()))
}

fn read(path: &Path) -> Result<(std::fs::File, Vec<u8>), KeyError> {
    use std::io::ErrorKind;
    files::read(path, MAX_KEY_BYTES).map_err(|error| match error.kind() {
        ErrorKind::NotFound => KeyError::Missing(path.to_path_buf()),
        ErrorKind::InvalidData => KeyError::malformed(
            path,
            "it is not an ordinary file of at most 16384 bytes (MAX_KEY_BYTES)",
        ),
        _ => KeyError::io("read", path)(error),
    })
}

fn secret(path: &Path, der: &[u8]) -> Result<SecretKey, KeyError> {
    let form = || KeyError::malformed(path, "its PKCS#8 content is not a valid key");
    let info = PrivateKeyInfoRef::try_from(der).map_err(|_| form())?;
    if info.algorithm != ED25519 {
        return Err(KeyError::malformed(path, "it is not an Ed25519 key"));
    }
    let seed = info.private_key.as_bytes().strip_prefix(&SEED_HEADER).ok_or_else(form)?;
    let secret = SecretKey::from_seed(seed.try_into().map_err(|_| form())?);
    let public = secret.public().bytes();
    if info.public_key.is_some_and(|given| given.as_bytes() != Some(&public)) {
        return Err(KeyError::malformed(path, "its public half belongs to another key"));
    }
    match PublicKey::new(&public) {
        Some(_) => Ok(secret),
        None => Err(KeyError::Weak(path.to_path_buf())),
    }
}

/// Reads a public key file.
pub(super) fn read_public(path: &Path) -> Result<PublicKey, KeyError> {
    let wrong = |why| KeyError::malformed(path, why);
    let form = || wrong("it is not an Ed25519 public key in PEM");
    let (_, bytes) = read(path)?;
    // The caller may have given a private key by mistake, so the buffer is wiped.
    let bytes = Zeroizing::new(bytes);
    let text = std::str::from_utf8(&bytes).map_err(|_| form())?;
    if text.contains(END_OF_PRIVATE_LABEL) {
        return Err(wrong(
            "it holds a private key; `openssl pkey -in FILE -pubout` prints its \
                          public half",
        ));
    }
    if text.matches(PEM_BLOCK).count() > 1 {
        return Err(wrong("it holds several PEM blocks; one public key is expected"));
    }
    let (label, document) = Document::from_pem(text).map_err(|_| form())?;
    if label != PUBLIC {
        return Err(wrong("its PEM block is not a public key (SubjectPublicKeyInfo)"));
    }
    let info = SubjectPublicKeyInfoRef::from_der(document.as_bytes()).map_err(|_| form())?;
    if info.algorithm != ED25519 {
        return Err(wrong("it is not an Ed25519 key"));
    }
    let bytes = info.subject_public_key.as_bytes().and_then(|bytes| bytes.try_into().ok());
    PublicKey::new(bytes.ok_or_else(form)?).ok_or_else(|| KeyError::Weak(path.to_path_buf()))
}
