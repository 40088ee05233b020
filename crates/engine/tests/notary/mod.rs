//! Keys and heads of a log in memory.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::unwrap_used)]

use crate::world::World;
use ipse_core::Time;
use ipse_engine::Notary;
use ipse_ledger::{Note, NoteSigner, SecretKey, TreeHead};
use std::any::Any;
use std::io;
use std::sync::{Arc, Mutex};

/// Keys and last head in memory, shared by its clones.
#[derive(Clone)]
pub struct TestNotary {
    pub signer: NoteSigner,
    pub kept: Arc<Mutex<Vec<String>>>,
    pub broken: bool,
}

impl TestNotary {
    pub fn new(world: &World) -> Self {
        let origin = TreeHead::origin_of(&world.identity);
        let signer = NoteSigner::new(&origin, SecretKey::from_seed(&[7; 32])).unwrap();
        TestNotary { signer, kept: Arc::default(), broken: false }
    }

    pub fn heads(&self) -> Vec<String> {
        self.kept.lock().unwrap().clone()
    }
}

impl Notary for TestNotary {
    fn lock(&self) -> io::Result<Box<dyn Any>> {
        Ok(Box::new(()))
    }

    fn last(&self) -> io::Result<Option<String>> {
        Ok(self.heads().last().cloned())
    }

    fn last_time(&self) -> Option<Time> {
        None
    }

    fn sign(&self, text: &str) -> Option<String> {
        self.signer.sign(text)
    }

    fn signed(&self, note: &str) -> bool {
        Note::parse(note).is_ok_and(|note| note.verify(&[self.signer.public()]).is_ok())
    }

    fn keep(&self, note: &str) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other("the disk is full"));
        }
        self.kept.lock().unwrap().push(note.to_string());
        Ok(())
    }
}
