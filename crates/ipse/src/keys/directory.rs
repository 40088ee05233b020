//! The key directory of a store: the keys of its log, its operator and its producers.
//!
//! ```text
//! log.key        log.vkey        signs tree heads; one line for each identity of the store
//! operator.key   operator.pub    signs certificates and bundles
//! producers/     NAME.key, NAME.vkey
//! heads/         the last signed tree head of each identity
//! revoked/       keys that are no longer used, each in its own directory
//! lock           locked while keys are created or a tree head is signed
//! ```

use super::{KeyError, Random, check_directory, check_producer_name};
use super::{new_key_file, new_secret, pem, read_signer};
use crate::files;
use ipse_core::{Identity, hex};
use ipse_inspect::verify::ExternalEvidence;
use ipse_ledger::{NoteKey, NoteSigner, PublicKey, TreeHead};
use ipse_manifest::Manifest;
use ipse_store::Location;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The name under which an operator signs.
pub use ipse_bundle::OPERATOR;
/// The largest list of public keys: enough for some thousand identities.
const MAX_LIST_BYTES: u64 = 1 << 20;
/// The largest signed tree head: three short lines and sixteen signatures.
const MAX_HEAD_BYTES: u64 = 16 << 10;

/// The purpose of a key of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The key that signs tree heads.
    Log,
    /// The key that signs certificates and bundles.
    Operator,
}

impl Role {
    /// The name of the role in commands and key names.
    pub fn name(self) -> &'static str {
        match self {
            Role::Log => "log",
            Role::Operator => OPERATOR,
        }
    }

    fn private(self) -> &'static str {
        match self {
            Role::Log => "log.key",
            Role::Operator => "operator.key",
        }
    }

    fn public(self) -> &'static str {
        match self {
            Role::Log => "log.vkey",
            Role::Operator => "operator.pub",
        }
    }
}

/// The protection of a private key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// A plain file that only its owner can read.
    Plain,
    /// Encrypted under a passphrase.
    Encrypted,
}

/// The directory with the keys of a store.
#[derive(Clone, Debug)]
pub struct KeyDirectory {
    path: PathBuf,
}

impl KeyDirectory {
    /// The directory at a path. It does not have to exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        KeyDirectory { path: path.into() }
    }

    /// The directory next to a store: `ipse.db.keys` for `ipse.db`. If the path is a symbolic link
    /// without such a directory, the directory next to the link's target.
    pub fn of_store(store: &Location) -> Self {
        let Some(store) = store.path() else { return Self::at(format!("{store}.keys")) };
        let beside = |store: &Path| {
            let mut name = OsString::from(store);
            name.push(".keys");
            PathBuf::from(name)
        };
        let named = beside(store);
        match store.canonicalize() {
            Ok(file) if store.is_symlink() && !named.exists() => Self::at(beside(&file)),
            _ => Self::at(named),
        }
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates the missing keys, and adds a public log key for an identity. Returns the names of
    /// the private key files that it created.
    ///
    /// A key of which only the public half is here is kept elsewhere; it does not count as missing.
    pub fn create(
        &self,
        identity: &Identity,
        random: &mut Random<'_>,
        passphrase: Option<&str>,
    ) -> Result<Vec<&'static str>, KeyError> {
        let _lock = self.locked_for_new_keys()?;
        let mut made = Vec::new();
        for role in [Role::Log, Role::Operator] {
            let public = match self.has(role) {
                true => self.public_half(role, passphrase)?,
                false => {
                    made.push(role.private());
                    new_secret(&self.file(role.private()), random, passphrase)?.public()
                }
            };
            self.publish(role, &public, &[*identity])?;
        }
        Ok(made)
    }

    /// Returns an error if [`KeyDirectory::create`] could not create keys here. Writes nothing.
    pub(crate) fn check_place(&self) -> Result<(), KeyError> {
        let (parent, not_there) = (files::directory_of(&self.path), io::ErrorKind::NotFound);
        let place = match self.path.metadata() {
            Err(error) if error.kind() == not_there => {
                return match parent.metadata() {
                    Ok(_) => Ok(()),
                    Err(error) => Err(KeyError::io("make", &self.path)(error)),
                };
            }
            place => place.map_err(KeyError::io("read", &self.path))?,
        };
        if !place.is_dir() {
            let error = io::Error::from(io::ErrorKind::NotADirectory);
            return Err(KeyError::io("make", &self.path)(error));
        }
        check_directory(&self.path)?;
        self.check_public()
    }

    /// Returns an error if a manifest names an operator key and it is not the one in this
    /// directory. A private half that cannot be read now is an error of [`KeyDirectory::create`].
    pub fn check_operator(
        &self,
        manifest: &Manifest,
        passphrase: Option<&str>,
    ) -> Result<(), KeyError> {
        let Ok(Some(named)) = manifest.operator_key() else { return Ok(()) };
        let other = || KeyError::OtherOperator {
            path: self.file(Role::Operator.public()),
            named: hex::encode(&named),
        };
        if !self.has(Role::Operator) {
            return Err(other());
        }
        match self.public_half(Role::Operator, passphrase) {
            Ok(key) if ipse_bundle::key_sha256(&key) != named => Err(other()),
            _ => Ok(()),
        }
    }

    /// Returns an error if a passphrase is given and this build does not support passphrases.
    pub(crate) fn check_passphrase(&self, passphrase: Option<&str>) -> Result<(), KeyError> {
        match passphrase.is_some() && !cfg!(feature = "passphrase") {
            true => Err(KeyError::PassphraseUnsupported(self.file(Role::Log.private()))),
            false => Ok(()),
        }
    }

    /// Whether the private or the public half of a key is here.
    pub fn has(&self, role: Role) -> bool {
        let there = |name| self.file(name).symlink_metadata().is_ok();
        there(role.private()) || there(role.public())
    }

    /// Whether only the private half of a key exists: the process that created it died before it
    /// wrote the public half.
    pub fn is_unfinished(&self, role: Role) -> bool {
        let there = |name| self.file(name).symlink_metadata().is_ok();
        there(role.private()) && !there(role.public())
    }

    /// Creates the key for the logs of these identities, or finishes an unfinished one. Any other
    /// existing key is an error.
    pub fn new_log(
        &self,
        identities: &[Identity],
        random: &mut Random<'_>,
        passphrase: Option<&str>,
    ) -> Result<Vec<NoteKey>, KeyError> {
        self.begin(Role::Log, identities, random, passphrase)?;
        self.log_keys()
    }

    /// Creates the operator's key, or finishes an unfinished one. Any other existing key is an
    /// error.
    pub fn new_operator(
        &self,
        random: &mut Random<'_>,
        passphrase: Option<&str>,
    ) -> Result<NoteKey, KeyError> {
        self.begin(Role::Operator, &[], random, passphrase)?;
        self.operator_key()
    }

    fn begin(
        &self,
        role: Role,
        identities: &[Identity],
        random: &mut Random<'_>,
        passphrase: Option<&str>,
    ) -> Result<(), KeyError> {
        let _lock = self.locked_for_new_keys()?;
        let private = self.file(role.private());
        let public = if !self.has(role) {
            new_secret(&private, random, passphrase)?.public()
        } else if self.is_unfinished(role) && (passphrase.is_none() || pem::is_encrypted(&private)?)
        {
            self.public_half(role, passphrase)?
        } else {
            return Err(KeyError::Exists(private));
        };
        // If the process dies here, the key is unfinished; the next call or `create` finishes it.
        self.publish(role, &public, identities)
    }

    /// Creates a key pair for a producer. An existing key of that name is an error.
    pub fn new_producer(
        &self,
        name: &str,
        random: &mut Random<'_>,
        passphrase: Option<&str>,
    ) -> Result<NoteKey, KeyError> {
        check_producer_name(name)?;
        let _lock = self.locked_for_new_keys()?;
        let producers = self.file("producers");
        files::make_directory(&producers).map_err(KeyError::io("make", &producers))?;
        let key = new_key_file(&self.producer_file(name), name, random, passphrase)?;
        // If the process dies here, the public half is missing; `complete_producer` adds it.
        self.publish_producer(&key)?;
        Ok(key)
    }

    /// The path of a producer's private key.
    pub fn producer_file(&self, name: &str) -> PathBuf {
        self.file("producers").join(format!("{name}.key"))
    }

    /// Writes the public half of a producer's key next to the private one if it is missing.
    pub fn complete_producer(
        &self,
        name: &str,
        passphrase: Option<&str>,
    ) -> Result<NoteKey, KeyError> {
        check_producer_name(name)?;
        let _lock = self.made_and_locked()?;
        let key = read_signer(&self.producer_file(name), name, passphrase)?.public();
        match self.producer_key(name)? {
            None => self.publish_producer(&key)?,
            Some(known) if known == key => {}
            Some(_) => {
                let (private, public) = (self.producer_file(name), self.producer_public(name));
                return Err(KeyError::Mismatch { private, public });
            }
        }
        Ok(key)
    }

    /// The public half of a producer's key that was created here.
    pub fn producer_key(&self, name: &str) -> Result<Option<NoteKey>, KeyError> {
        check_producer_name(name)?;
        Ok(read_list(&self.producer_public(name))?.into_iter().next())
    }

    fn producer_public(&self, name: &str) -> PathBuf {
        self.file("producers").join(format!("{name}.vkey"))
    }

    fn publish_producer(&self, key: &NoteKey) -> Result<(), KeyError> {
        let public = self.producer_public(key.name());
        files::replace(&public, format!("{key}\n").as_bytes(), files::PUBLIC)
            .map_err(KeyError::io("write", &public))
    }

    /// The signer for the tree heads of an identity. If public halves of the log's key exist here,
    /// the one of this identity must match.
    pub fn log_signer(
        &self,
        identity: &Identity,
        passphrase: Option<&str>,
    ) -> Result<NoteSigner, KeyError> {
        let name = TreeHead::origin_of(identity);
        let private = self.file(Role::Log.private());
        let known = self.log_keys();
        if known.as_ref().is_err_and(KeyError::is_denied) {
            // The directory belongs to another user: report first that the private key is
            // unreadable.
            read_signer(&private, &name, passphrase)?;
        }
        let known = known?;
        let signer = read_signer(&private, &name, passphrase)?;
        let public = signer.public();
        let is_ours = |known: &NoteKey| known.key() == public.key();
        // An identity has no line until `create` adds it.
        let named = known.iter().any(|key| key.name() == name);
        let mut known = known.iter().filter(|key| !named || key.name() == name).peekable();
        match known.peek().is_none() || known.any(is_ours) {
            true => Ok(signer),
            false => Err(self.mismatch(Role::Log)),
        }
    }

    /// The signer for certificates and bundles. It must match the public half, if that is here.
    pub fn operator_signer(&self, passphrase: Option<&str>) -> Result<NoteSigner, KeyError> {
        let known = self.operator_key_if_there()?;
        let signer = read_signer(&self.file(Role::Operator.private()), OPERATOR, passphrase)?;
        match known.is_none_or(|known| known == signer.public()) {
            true => Ok(signer),
            false => Err(self.mismatch(Role::Operator)),
        }
    }

    /// The error for a private half that does not match the public one.
    fn mismatch(&self, role: Role) -> KeyError {
        KeyError::Mismatch { private: self.file(role.private()), public: self.file(role.public()) }
    }

    /// Returns an error if an existing public half of the store's keys cannot be read.
    pub fn check_public(&self) -> Result<(), KeyError> {
        self.log_keys()?;
        self.operator_key_if_there()?;
        Ok(())
    }

    /// Public halves of the log's key, one for each identity; empty if the file does not exist.
    pub fn log_keys(&self) -> Result<Vec<NoteKey>, KeyError> {
        read_list(&self.file(Role::Log.public()))
    }

    /// The public half of the operator's key.
    pub fn operator_key(&self) -> Result<NoteKey, KeyError> {
        named_operator(pem::read_public(&self.file(Role::Operator.public()))?)
    }

    fn operator_key_if_there(&self) -> Result<Option<NoteKey>, KeyError> {
        match self.operator_key() {
            Err(KeyError::Missing(_)) => Ok(None),
            key => key.map(Some),
        }
    }

    /// The protection of a private half; [`KeyError::Missing`] if it is not here.
    pub fn held(&self, role: Role) -> Result<Protection, KeyError> {
        held(&self.file(role.private()))
    }

    /// Moves the log's key, its public half and its signed heads to `revoked/`. Returns the new
    /// directory.
    pub fn revoke_log(&self, passphrase: Option<&str>) -> Result<PathBuf, KeyError> {
        self.revoke(Role::Log, passphrase)
    }

    /// Moves the operator's key and its public half to `revoked/`. Returns the new directory.
    pub fn revoke_operator(&self, passphrase: Option<&str>) -> Result<PathBuf, KeyError> {
        self.revoke(Role::Operator, passphrase)
    }

    /// Moves a producer's key to `revoked/` if it was created here. Returns the new directory.
    pub fn revoke_producer(&self, name: &str) -> Result<Option<PathBuf>, KeyError> {
        let Some(key) = self.producer_key(name)? else { return Ok(None) };
        let _lock = self.made_and_locked()?;
        let place = self.place_of_revoked(&format!("producer-{name}"), &key)?;
        for path in [self.producer_file(name), self.producer_public(name)] {
            files::move_into(&place, &path).map_err(KeyError::io("move", &path))?;
        }
        Ok(Some(place))
    }

    /// Creates the directory for a revoked key.
    fn place_of_revoked(&self, name: &str, key: &NoteKey) -> Result<PathBuf, KeyError> {
        let revoked = self.file("revoked");
        let place = revoked.join(format!("{name}-{}", hex::encode(&key.id())));
        for directory in [&revoked, &place] {
            files::make_directory(directory).map_err(KeyError::io("make", directory))?;
        }
        Ok(place)
    }

    fn revoke(&self, role: Role, passphrase: Option<&str>) -> Result<PathBuf, KeyError> {
        if !self.has(role) {
            return Err(KeyError::Missing(self.file(role.private())));
        }
        let _lock = self.made_and_locked()?;
        let key = match role {
            Role::Log => self.log_keys()?.into_iter().next(),
            Role::Operator => None,
        };
        let key = match key {
            Some(key) => key,
            None => NoteKey::new(role.name(), self.public_half(role, passphrase)?)
                .expect("BUG: a role is a name"),
        };
        let place = self.place_of_revoked(role.name(), &key)?;
        // Move the public half last: if the process dies in between, the key is still found,
        // without its private half, and can be revoked again.
        for name in [role.private(), "heads", role.public()] {
            if role == Role::Log || name != "heads" {
                let path = self.file(name);
                files::move_into(&place, &path).map_err(KeyError::io("move", &path))?;
            }
        }
        Ok(place)
    }

    /// Public halves of revoked keys, with their roles.
    pub fn revoked(&self) -> Result<Vec<(Role, NoteKey)>, KeyError> {
        let path = self.file("revoked");
        let entries = match std::fs::read_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(KeyError::io("read", &path))?,
        };
        let mut places = Vec::new();
        for entry in entries {
            places.push(entry.map_err(KeyError::io("read", &path))?.path());
        }
        places.sort();
        let mut revoked = Vec::new();
        for place in places {
            let log = read_list(&place.join(Role::Log.public()))?;
            revoked.extend(log.into_iter().map(|key| (Role::Log, key)));
            match pem::read_public(&place.join(Role::Operator.public())) {
                Err(KeyError::Missing(_)) => {}
                key => revoked.push((Role::Operator, named_operator(key?)?)),
            }
        }
        Ok(revoked)
    }

    /// The last signed tree head of an identity, and the time at which it was stored.
    pub fn last_head(&self, identity: &Identity) -> io::Result<Option<(String, SystemTime)>> {
        let read = match files::read(&self.head(identity), MAX_HEAD_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read?,
        };
        let (file, bytes) = read;
        let note = String::from_utf8(bytes)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(Some((note, file.metadata()?.modified()?)))
    }

    /// The evidence about a log that is in this directory, outside its store.
    pub fn evidence(&self, identity: &Identity) -> crate::Result<ExternalEvidence> {
        let (name, mut log_keys) = (TreeHead::origin_of(identity), self.log_keys()?);
        log_keys.retain(|key| key.name() == name);
        let last = self.last_head(identity);
        let last = last.map_err(|source| crate::Error::file(&self.head(identity), source))?;
        let operator_keys = self.operator_key_if_there()?.into_iter().collect();
        Ok(ExternalEvidence { log_keys, last_head: last.map(|(note, _)| note), operator_keys })
    }

    /// Stores a signed tree head durably and replaces the previous one. The caller holds the
    /// [lock](Self::lock).
    pub fn keep_head(&self, identity: &Identity, note: &str) -> io::Result<()> {
        let heads = self.file("heads");
        files::make_directory(&heads)?;
        // No other process writes here under the lock: an unfinished file is from a dead process.
        files::sweep(&heads);
        files::replace(&self.head(identity), note.as_bytes(), files::PRIVATE)
    }

    /// Waits for the lock on signing and on creating keys. Dropping the file releases it.
    pub fn lock(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(files::PRIVATE);
        let file = options.open(self.file("lock"))?;
        file.lock()?;
        Ok(file)
    }

    /// Locks the directory to create private keys; an error if keys in it would not be used.
    fn locked_for_new_keys(&self) -> Result<File, KeyError> {
        let lock = self.made_and_locked()?;
        check_directory(&self.path)?;
        Ok(lock)
    }

    fn made_and_locked(&self) -> Result<File, KeyError> {
        files::make_directory(&self.path).map_err(KeyError::io("make", &self.path))?;
        let lock = self.lock().map_err(KeyError::io("lock", &self.path))?;
        // No other process writes here under the lock: an unfinished file is from a dead process.
        for directory in [self.path.clone(), self.file("producers"), self.file("heads")] {
            files::sweep(&directory);
        }
        Ok(lock)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn head(&self, identity: &Identity) -> PathBuf {
        self.file("heads").join(format!("{identity}.note"))
    }

    /// The public half of a key: from its own file if it exists, else from the private half.
    fn public_half(&self, role: Role, passphrase: Option<&str>) -> Result<PublicKey, KeyError> {
        let known = match role {
            Role::Log => self.log_keys()?.first().map(|key| *key.key()),
            Role::Operator => self.operator_key_if_there()?.map(|key| *key.key()),
        };
        match known {
            Some(key) => Ok(key),
            None => Ok(pem::read_secret(&self.file(role.private()), passphrase)?.public()),
        }
    }

    /// Writes the missing parts of a public half.
    fn publish(
        &self,
        role: Role,
        key: &PublicKey,
        identities: &[Identity],
    ) -> Result<(), KeyError> {
        let path = self.file(role.public());
        let text = match role {
            Role::Operator if path.exists() => return Ok(()),
            Role::Operator => ipse_bundle::pem(key),
            Role::Log => {
                let mut keys = self.log_keys()?;
                let before = keys.len();
                for identity in identities {
                    let name = TreeHead::origin_of(identity);
                    if !keys.iter().any(|key| key.name() == name) {
                        keys.extend(NoteKey::new(&name, *key));
                    }
                }
                if keys.len() == before {
                    return Ok(());
                }
                keys.iter().map(|key| format!("{key}\n")).collect()
            }
        };
        files::replace(&path, text.as_bytes(), files::PUBLIC).map_err(KeyError::io("write", &path))
    }
}

fn held(path: &Path) -> Result<Protection, KeyError> {
    Ok(if pem::is_encrypted(path)? { Protection::Encrypted } else { Protection::Plain })
}

fn named_operator(key: PublicKey) -> Result<NoteKey, KeyError> {
    NoteKey::new(OPERATOR, key).ok_or_else(|| KeyError::Name(OPERATOR.to_string()))
}

/// Reads verifier keys, one per line; empty if the file does not exist. A file without a key is
/// damaged.
fn read_list(path: &Path) -> Result<Vec<NoteKey>, KeyError> {
    let form = || KeyError::malformed(path, "it has a line that is not a verifier key");
    let bytes = match files::read(path, MAX_LIST_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(KeyError::io("read", path))?.1,
    };
    let text = std::str::from_utf8(&bytes).map_err(|_| form())?;
    if text.is_empty() {
        return Err(KeyError::malformed(path, "it is empty"));
    }
    text.lines().map(|line| NoteKey::parse(line).ok_or_else(form)).collect()
}
