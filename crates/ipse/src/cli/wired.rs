//! What a server is handed: clock, randomness, memories with their notaries, manifests and bundles.

use super::context::Context;
use super::exporting;
use super::gate_files::GateFiles;
use super::heads::{check_last_head, is_damage};
use super::passphrase;
use super::settings::Settings;
use super::terminal::Terminal;
use ipse::keys::{KeyDirectory, KeyError};
use ipse::{DirectoryNotary, Manifest, Memory, Policy, SystemHost};
use ipse_core::{Identity, Time};
use ipse_engine::{Error, Host, Notary};
use ipse_gates::Gates;
use ipse_http::Outside;
use ipse_store::sqlite::Reader;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The wiring of one server.
pub(crate) struct Wired {
    store: PathBuf,
    keys: KeyDirectory,
    policy: Policy,
    host: Mutex<SystemHost>,
    begun: Instant,
    /// What judges intents, if anything does.
    gates: Option<GateFiles>,
    intents_per_minute: u64,
}

impl Wired {
    pub(crate) fn new(context: &Context, settings: &Settings, gates: Option<GateFiles>) -> Self {
        let policy = Policy { every: settings.pass_every, quiet: settings.pass_quiet };
        let (keys, intents_per_minute) = (context.keys(), settings.intent_rate);
        Wired { keys, policy, gates, intents_per_minute, ..Wired::on(context.store.clone()) }
    }

    /// The wiring of a store whose keys are beside it.
    pub(crate) fn on(store: PathBuf) -> Self {
        let (keys, host) = (KeyDirectory::of_store(&store), Mutex::new(SystemHost::new()));
        let (policy, begun) = (Policy::default(), Instant::now());
        Wired { store, keys, policy, host, begun, gates: None, intents_per_minute: 0 }
    }

    fn notary(&self, identity: &Identity) -> anyhow::Result<DirectoryNotary> {
        // Nobody is asked: a server has no one at its keyboard.
        let (mut out, mut err) = (std::io::sink(), std::io::sink());
        let mut nobody = Terminal::plain(&mut out, &mut err);
        passphrase::open(&mut nobody, |word| DirectoryNotary::open(&self.keys, identity, word))
    }

    fn exported(&self, identity: &Identity) -> anyhow::Result<File> {
        let context = Context::of(self.store.clone(), &self.keys, identity);
        let (mut out, mut err) = (std::io::sink(), std::io::sink());
        exporting::spool(&context, &mut Terminal::plain(&mut out, &mut err))
    }
}

impl Outside for Wired {
    fn now(&self) -> Time {
        SystemHost::new().now()
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn random(&self) -> [u8; 16] {
        self.host.lock().unwrap_or_else(PoisonError::into_inner).salt()
    }

    fn open(&self, identity: &Identity) -> Result<Memory, Error> {
        let notary = match self.notary(identity) {
            Ok(notary) => Some(Box::new(notary) as Box<dyn Notary>),
            Err(error) if is_damage(&error) => {
                let error = error.downcast::<KeyError>();
                return Err(Error::Notary(error.map_or_else(io::Error::other, io::Error::other)));
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::warn!(%identity, error, "tree heads are not signed");
                check_last_head(&self.store, &self.keys, identity)?;
                None
            }
        };
        Memory::open(&self.store, *identity, self.policy, Box::new(SystemHost::new()), notary)
    }

    fn is_of(&self, manifest: &str, identity: &Identity) -> bool {
        Manifest::from_canonical(manifest.as_bytes()).is_ok_and(|it| it.identity() == *identity)
    }

    fn bundle(&self, identity: &Identity) -> Result<File, String> {
        self.exported(identity).map_err(|error| format!("{error:#}"))
    }

    fn gates(&self, identity: &Identity) -> Result<Option<Arc<Gates>>, Error> {
        let Some(gates) = &self.gates else { return Ok(None) };
        let name = identity.to_string();
        let manifests = Reader::open(&self.store)?.manifests()?;
        let manifest = manifests.into_iter().find(|(hash, _)| *hash == name);
        Ok(manifest.and_then(|(_, manifest)| gates.gates_of(&manifest)))
    }

    fn intents_per_minute(&self) -> u64 {
        self.intents_per_minute
    }
}
