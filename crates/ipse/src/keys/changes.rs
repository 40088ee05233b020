//! Changes of the store's keys: the acts about them, and the old key's word about the new one.
//!
//! **Invariant:** only a private key that was revoked here, and that no passphrase protects, signs
//! a change. Without one the act is recorded unsigned.

use super::{KeyDirectory, Role, read_signer};
use ipse_core::{Identity, hex};
use ipse_engine::{Error, Governor};
use ipse_ledger::act::StoreKey;
use ipse_ledger::{KeyStatement, NoteKey, NoteSigner, TreeHead, dsse};

impl Role {
    /// The key in an act.
    pub fn in_acts(self) -> StoreKey {
        match self {
            Role::Log => StoreKey::Log,
            Role::Operator => StoreKey::Operator,
        }
    }

    fn of_act(key: StoreKey) -> Self {
        match key {
            StoreKey::Log => Role::Log,
            StoreKey::Operator => Role::Operator,
        }
    }
}

impl KeyDirectory {
    /// The public half of a key that is in use for an identity, if it is here.
    pub fn in_use(&self, role: Role, identity: &Identity) -> Option<NoteKey> {
        match role {
            Role::Operator => self.operator_key().ok(),
            Role::Log => {
                let origin = TreeHead::origin_of(identity);
                self.log_keys().ok()?.into_iter().find(|key| key.name() == origin)
            }
        }
    }

    /// Appends the changes of keys that the log of a governor is owed and that have happened.
    pub fn complete_changes(
        &self,
        governor: &mut Governor,
        identity: &Identity,
    ) -> Result<(), Error> {
        let current = |key: StoreKey| self.in_use(Role::of_act(key), identity);
        governor.complete_key_changes(&current, &|identity, key, old, new| {
            let signer = self.revoked_signer(Role::of_act(key), identity, old)?;
            let statement = KeyStatement {
                identity: *identity,
                role: key,
                old: old.to_owned(),
                new: new.clone(),
            };
            Some(dsse::sign(&statement.statement(), &signer))
        })
    }

    /// The private half of a revoked key with this id, if it is here without a passphrase.
    fn revoked_signer(&self, role: Role, identity: &Identity, id: &str) -> Option<NoteSigner> {
        let name = match role {
            Role::Log => TreeHead::origin_of(identity),
            Role::Operator => role.name().to_owned(),
        };
        let places = std::fs::read_dir(self.path().join("revoked")).ok()?;
        places.flatten().find_map(|place| {
            let file = place.path().join(format!("{}.key", role.name()));
            let signer = read_signer(&file, &name, None).ok()?;
            (hex::encode(&signer.public().id()) == id).then_some(signer)
        })
    }

    /// Records, before a key is revoked, that the log of a governor is owed the act about its
    /// replacement.
    pub fn announce_change(
        &self,
        governor: &mut Governor,
        role: Role,
        identity: &Identity,
    ) -> Result<(), Error> {
        match self.in_use(role, identity) {
            Some(old) => governor.owe_key_change(role.in_acts(), &old),
            None => Ok(()),
        }
    }
}
