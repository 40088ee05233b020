//! The key directory of a store: its log's key, its operator's, and those of producers made here.
//!
//! ```text
//! log.key        log.vkey        signs tree heads; one line for each identity of the store
//! operator.key   operator.pub    signs certificates and bundles
//! producers/     NAME.key, NAME.vkey
//! heads/         the last signed tree head of each identity
//! revoked/       keys that are no longer used, each in a directory of its own
//! lock           held by whoever makes keys or signs a tree head
//! ```

use super::{KeyError, Random, check_directory, check_producer_name};
use super::{new_key_file, new_secret, pem, read_signer};
use crate::files;
use ipse_core::{Identity, hex};
use ipse_ledger::{NoteKey, NoteSigner, PublicKey, TreeHead};
use ipse_store::Location;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The name that an operator signs under.
pub use ipse_bundle::OPERATOR;
/// The largest list of public keys: some thousand identities.
const MAX_LIST_BYTES: u64 = 1 << 20;
/// The largest signed tree head: three short lines and sixteen signatures.
const MAX_HEAD_BYTES: u64 = 16 << 10;

/// What a key of the store is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It signs tree heads.
    Log,
    /// It signs certificates and bundles.
    Operator,
}

impl Role {
    /// The word for it.
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

/// How a private half is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protection {
    /// In a file that its owner can read.
    Plain,
    /// Under a passphrase.
    Encrypted,
}

/// The directory.
#[derive(Clone, Debug)]
pub struct KeyDirectory {
    path: PathBuf,
}

impl KeyDirectory {
    /// The directory at a path; it need not be there yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        KeyDirectory { path: path.into() }
    }

    /// The directory beside a store: `ipse.db.keys` for `ipse.db`. If the path is a link and has no
    /// such directory beside it, the directory beside the file that it leads to.
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the keys that are missing, and names the log's key after an identity. Returns the
    /// files of the private halves that it made.
    ///
    /// A key whose public half alone is here is kept elsewhere; it is not missing.
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

    /// An error if [`KeyDirectory::create`] cannot make keys here; nothing is written by that.
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

    /// An error if a passphrase is given and this build does not support passphrases.
    pub(crate) fn check_passphrase(&self, passphrase: Option<&str>) -> Result<(), KeyError> {
        match passphrase.is_some() && !cfg!(feature = "passphrase") {
            true => Err(KeyError::PassphraseUnsupported(self.file(Role::Log.private()))),
            false => Ok(()),
        }
    }

    /// Whether a key of the store is here, or at least its public half.
    pub fn has(&self, role: Role) -> bool {
        let there = |name| self.file(name).symlink_metadata().is_ok();
        there(role.private()) || there(role.public())
    }

    /// Whether a key has its private half alone: the process that made it died before it wrote the
    /// public half.
    pub fn is_unfinished(&self, role: Role) -> bool {
        let there = |name| self.file(name).symlink_metadata().is_ok();
        there(role.private()) && !there(role.public())
    }

    /// Makes a key for the logs of these identities, or finishes an unfinished one; there must be
    /// no other.
    pub fn new_log(
        &self,
        identities: &[Identity],
        random: &mut Random<'_>,
        passphrase: Option<&str>,
    ) -> Result<Vec<NoteKey>, KeyError> {
        self.begin(Role::Log, identities, random, passphrase)?;
        self.log_keys()
    }

    /// Makes a key for the operator, or finishes an unfinished one; there must be no other.
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
        // A process that dies here leaves an unfinished key; the next call or `create` finishes it.
        self.publish(role, &public, identities)
    }

    /// Makes a key pair for a producer; there must be none of that name.
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
        // A process that dies here leaves a private half alone; `complete_producer` adds the rest.
        self.publish_producer(&key)?;
        Ok(key)
    }

    /// Where the private half of a producer's key is made.
    pub fn producer_file(&self, name: &str) -> PathBuf {
        self.file("producers").join(format!("{name}.key"))
    }

    /// Writes the public half of a producer's key beside the private one, if it is missing.
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

    /// The public half of a producer's key that was made here.
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

    /// What signs the tree heads of an identity. If the log has public halves here, that of this
    /// identity must be among them.
    pub fn log_signer(
        &self,
        identity: &Identity,
        passphrase: Option<&str>,
    ) -> Result<NoteSigner, KeyError> {
        let name = TreeHead::origin_of(identity);
        let private = self.file(Role::Log.private());
        let known = self.log_keys();
        if known.as_ref().is_err_and(KeyError::is_denied) {
            // A directory of another user: that the private half is out of reach comes first.
            read_signer(&private, &name, passphrase)?;
        }
        let known = known?;
        let signer = read_signer(&private, &name, passphrase)?;
        let public = signer.public();
        let is_ours = |known: &NoteKey| known.key() == public.key();
        // An identity has no line of its own until `create` adds it.
        let named = known.iter().any(|key| key.name() == name);
        let mut known = known.iter().filter(|key| !named || key.name() == name).peekable();
        match known.peek().is_none() || known.any(is_ours) {
            true => Ok(signer),
            false => Err(self.mismatch(Role::Log)),
        }
    }

    /// What signs certificates and bundles. If its public half is here, it must be that one's.
    pub fn operator_signer(&self, passphrase: Option<&str>) -> Result<NoteSigner, KeyError> {
        let known = self.operator_key_if_there()?;
        let signer = read_signer(&self.file(Role::Operator.private()), OPERATOR, passphrase)?;
        match known.is_none_or(|known| known == signer.public()) {
            true => Ok(signer),
            false => Err(self.mismatch(Role::Operator)),
        }
    }

    /// The private half is no half of the public one.
    fn mismatch(&self, role: Role) -> KeyError {
        KeyError::Mismatch { private: self.file(role.private()), public: self.file(role.public()) }
    }

    /// Checks that the public halves of the store's keys can be read, as far as they are here.
    pub fn check_public(&self) -> Result<(), KeyError> {
        self.log_keys()?;
        self.operator_key_if_there()?;
        Ok(())
    }

    /// Public halves of the log's key, one for each identity; none if there is no such file.
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

    /// How the private half of a key is kept; [`KeyError::Missing`] if it is not here.
    pub fn held(&self, role: Role) -> Result<Protection, KeyError> {
        held(&self.file(role.private()))
    }

    /// Puts the log's key away, with its public half and the heads that it signed. Returns where.
    pub fn revoke_log(&self, passphrase: Option<&str>) -> Result<PathBuf, KeyError> {
        self.revoke(Role::Log, passphrase)
    }

    /// Puts the operator's key away, with its public half. Returns where.
    pub fn revoke_operator(&self, passphrase: Option<&str>) -> Result<PathBuf, KeyError> {
        self.revoke(Role::Operator, passphrase)
    }

    /// Puts the private half of a producer's key away, if it was made here. Returns where.
    pub fn revoke_producer(&self, name: &str) -> Result<Option<PathBuf>, KeyError> {
        let Some(key) = self.producer_key(name)? else { return Ok(None) };
        let _lock = self.made_and_locked()?;
        let place = self.place_of_revoked(&format!("producer-{name}"), &key)?;
        for path in [self.producer_file(name), self.producer_public(name)] {
            files::move_into(&place, &path).map_err(KeyError::io("move", &path))?;
        }
        Ok(Some(place))
    }

    /// Makes the directory that a revoked key goes to.
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
        // The public half goes last: whoever dies in between finds the key still there, without its
        // private half, and revokes it again.
        for name in [role.private(), "heads", role.public()] {
            if role == Role::Log || name != "heads" {
                let path = self.file(name);
                files::move_into(&place, &path).map_err(KeyError::io("move", &path))?;
            }
        }
        Ok(place)
    }

    /// Public halves of revoked keys, and what they were for.
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

    /// The last tree head that was signed for an identity, and when it was kept.
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

    /// Keeps a signed tree head, durably, in place of the one before. The caller holds the
    /// [lock](Self::lock).
    pub fn keep_head(&self, identity: &Identity, note: &str) -> io::Result<()> {
        let heads = self.file("heads");
        files::make_directory(&heads)?;
        // No other process writes here under the lock: an unfinished file is of one that died.
        files::sweep(&heads);
        files::replace(&self.head(identity), note.as_bytes(), files::PRIVATE)
    }

    /// Waits until nobody else signs a tree head or makes keys here. Dropping the file lets go.
    pub fn lock(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(files::PRIVATE);
        let file = options.open(self.file("lock"))?;
        file.lock()?;
        Ok(file)
    }

    /// Locks the directory for new private keys: none is made where it would not be used.
    fn locked_for_new_keys(&self) -> Result<File, KeyError> {
        let lock = self.made_and_locked()?;
        check_directory(&self.path)?;
        Ok(lock)
    }

    fn made_and_locked(&self) -> Result<File, KeyError> {
        files::make_directory(&self.path).map_err(KeyError::io("make", &self.path))?;
        let lock = self.lock().map_err(KeyError::io("lock", &self.path))?;
        // No other process writes here under the lock: an unfinished file is of one that died.
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

    /// The public half of a key, from its own file if there is one, else from the private half.
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

    /// Writes what is missing of a public half.
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

/// Reads verifier keys, one a line; none if there is no such file. A file without a key is damaged.
fn read_list(path: &Path) -> Result<Vec<NoteKey>, KeyError> {
    let form = || KeyError::malformed(path, "a line in it is no verifier key");
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
