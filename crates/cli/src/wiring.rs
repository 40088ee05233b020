//! The platform of a server: clock, randomness, memories with their notaries, manifests, bundles.

use crate::context::Context;
use crate::gate_files::GateFiles;
use crate::passphrase;
use crate::process;
use crate::terminal::Terminal;
use crate::tree_heads::{check_last_head, is_damage};
use ipse::keys::{KeyDirectory, KeyError};
use ipse::{DirectoryNotary, Memory, Policy, SystemHost};
use ipse_access::{Owner, Token};
use ipse_core::{Identity, Time};
use ipse_engine::{Error, Host, Notary};
use ipse_gates::Gates;
use ipse_http::{Hosts, Platform, Process};
use ipse_store::Store;
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The wiring of one server.
pub(crate) struct Wiring {
    store: Store,
    keys: KeyDirectory,
    policy: Policy,
    /// The gate files; `None` if intents are not judged.
    gates: Option<GateFiles>,
    /// The number of intents that one token may propose in a minute.
    intents_per_minute: u64,
    /// The host names that the server accepts.
    hosts: Hosts,
    /// Tokens that are not in the store.
    tokens: Vec<(Owner, Token)>,
    host: Mutex<SystemHost>,
    begun: Instant,
}

impl Wiring {
    /// The wiring of the store and the keys of a context.
    pub(crate) fn new(
        context: &Context,
        store: &Store,
        policy: Policy,
        gates: Option<GateFiles>,
        intents_per_minute: u64,
        hosts: Hosts,
    ) -> Self {
        let keys = context.keys();
        Wiring { keys, policy, gates, intents_per_minute, hosts, ..Wiring::on(store) }
    }

    /// The wiring of a store with its default key directory, on loopback, with the default pass
    /// timing and without gates.
    pub(crate) fn on(store: &Store) -> Self {
        let keys = KeyDirectory::of_store(store.location());
        let (store, host) = (store.clone(), Mutex::new(SystemHost::new()));
        let (policy, begun) = (Policy::default(), Instant::now());
        let hosts = Hosts::new(Ipv4Addr::LOCALHOST.into(), []);
        let (gates, tokens, intents_per_minute) = (None, Vec::new(), 0);
        Wiring { store, keys, policy, gates, intents_per_minute, hosts, tokens, host, begun }
    }

    /// The same with tokens that are valid while the server runs.
    pub(crate) fn with_tokens(self, tokens: Vec<(Owner, Token)>) -> Self {
        Wiring { tokens, ..self }
    }

    fn notary(&self, identity: &Identity) -> anyhow::Result<DirectoryNotary> {
        // A server has no terminal, so it cannot ask for a passphrase.
        let (mut out, mut err) = (std::io::sink(), std::io::sink());
        let mut silent = Terminal::plain(&mut out, &mut err);
        passphrase::open(&mut silent, |word| DirectoryNotary::open(&self.keys, identity, word))
    }

    fn exported(&self, identity: &Identity) -> anyhow::Result<File> {
        let context = Context::of(&self.store, &self.keys, identity);
        let (mut out, mut err) = (std::io::sink(), std::io::sink());
        let mut silent = Terminal::plain(&mut out, &mut err);
        let keys = context.export_keys(&mut silent, identity)?;
        Ok(ipse_exchange::spool(&self.store, identity, &keys)?)
    }
}

impl Platform for Wiring {
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

    fn bundle(&self, identity: &Identity) -> Result<File, String> {
        self.exported(identity).map_err(|error| format!("{error:#}"))
    }

    fn gates(&self, identity: &Identity) -> Result<Option<Arc<Gates>>, Error> {
        let Some(gates) = &self.gates else { return Ok(None) };
        let name = identity.to_string();
        let manifests = self.store.reader()?.manifests()?;
        let manifest = manifests.into_iter().find(|(hash, _)| *hash == name);
        Ok(manifest.and_then(|(_, manifest)| gates.gates_of(&manifest)))
    }

    fn tokens_in_memory(&self) -> Vec<(Owner, Token)> {
        self.tokens.clone()
    }

    fn intents_per_minute(&self) -> u64 {
        self.intents_per_minute
    }

    fn process(&self) -> Option<Process> {
        process::figures()
    }

    fn hosts(&self) -> Hosts {
        self.hosts.clone()
    }
}
