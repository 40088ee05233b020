//! `key list`: lists the keys of the store and of its producers.

use super::{PRODUCER, REGISTERED, REVOKED, producers};
use crate::context::Context;
use crate::sources::{sources_cell, sources_json};
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use ipse::keys::{KeyDirectory, KeyError, Protection, Role};
use ipse_core::json::{self, Members};
use ipse_core::{Identity, hex};
use ipse_ledger::{NoteKey, TreeHead};
use ipse_store::Producer;

/// A row of the list.
pub(super) struct Row {
    name: String,
    role: &'static str,
    key_id: String,
    pub(super) public_key: String,
    state: String,
    /// The row of a producer in the store.
    producer: Option<Producer>,
}

impl Row {
    pub(super) fn new(role: &'static str, key: &NoteKey, state: String) -> Self {
        Row {
            name: key.name().to_string(),
            role,
            key_id: hex::encode(&key.id()),
            public_key: key.to_string(),
            state,
            producer: None,
        }
    }

    /// The row of a producer's key.
    pub(super) fn of_producer(key: &NoteKey, producer: Producer) -> Self {
        let state = if producer.revoked { REVOKED } else { REGISTERED };
        Row { producer: Some(producer), ..Row::new(PRODUCER, key, state.into()) }
    }

    fn sources(&self) -> Option<&[String]> {
        self.producer.as_ref()?.sources.as_deref()
    }

    fn cells(&self) -> Vec<String> {
        let sources = match self.producer {
            Some(_) => sources_cell(self.sources()),
            None => "-".into(),
        };
        let (name, key_id) = (self.name.clone(), self.key_id.clone());
        vec![name, self.role.into(), key_id, sources, self.state.clone()]
    }

    pub(super) fn json(&self) -> String {
        Members::new()
            .text("name", &self.name)
            .text("role", self.role)
            .text("key_id", &self.key_id)
            .text("public_key", &self.public_key)
            .optional("sources", self.sources().map(sources_json))
            .text("state", &self.state)
            .finish()
    }
}

/// Describes the state of a private half.
pub(super) fn state_of(held: Result<Protection, KeyError>) -> String {
    match held {
        Ok(Protection::Plain) => "here",
        Ok(Protection::Encrypted) => "here, encrypted",
        Err(KeyError::Missing(_)) => "public half only",
        Err(KeyError::Unsafe(_)) => "here, but others may read it",
        Err(_) => "here, but cannot be read",
    }
    .into()
}

/// Lists the keys.
pub(super) fn run(context: &Context, terminal: &mut Terminal<'_>) -> CommandResult {
    let (reader, identity) = context.read()?;
    let directory = context.keys();
    let mut rows = of_store(&directory, &identity)?;
    for (key, producer) in producers(&reader, &identity)? {
        rows.push(Row::of_producer(&key, producer));
    }
    if context.json {
        terminal.json(&json::list(rows.iter().map(Row::json)))?;
    } else if !rows.is_empty() {
        let cells: Vec<_> = rows.iter().map(Row::cells).collect();
        terminal.table(&["NAME", "ROLE", "KEY ID", "SOURCES", "STATE"], &cells)?;
    }
    if rows.is_empty() {
        writeln!(terminal.err, "no keys in {}", directory.path().display())?;
    }
    Ok(Exit::fine_if(!rows.is_empty()))
}

/// The keys of the store that concern an identity.
fn of_store(directory: &KeyDirectory, identity: &Identity) -> anyhow::Result<Vec<Row>> {
    let origin = TreeHead::origin_of(identity);
    let mut rows = Vec::new();
    for key in directory.log_keys()?.iter().filter(|key| key.name() == origin) {
        rows.push(Row::new(Role::Log.name(), key, state_of(directory.held(Role::Log))));
    }
    match directory.operator_key() {
        Err(KeyError::Missing(_)) => {}
        key => {
            let state = state_of(directory.held(Role::Operator));
            rows.push(Row::new(Role::Operator.name(), &key?, state));
        }
    }
    for (role, key) in directory.revoked()? {
        if role == Role::Operator || key.name() == origin {
            rows.push(Row::new(role.name(), &key, REVOKED.into()));
        }
    }
    Ok(rows)
}
