//! Settings and producers that move with a log: those that its acts give.
//!
//! **Invariants**
//! - They are stored before the log, in one transaction. *If the process dies in between:* the log
//!   is empty, and the same import goes on.
//! - No event is appended. A bundle of an older version has no acts; its log is owed a baseline,
//!   which the next command that writes appends.

use crate::error::Error;
use ipse_bundle::Opened;
use ipse_core::Identity;
use ipse_engine::{SignedBatch, settings_of};
use ipse_ledger::act::LogSettings;
use ipse_store::{Acting, BASELINE, Producer, Signatures, Store, View};

/// The settings and producers of a log that moves.
pub(crate) struct Moved {
    settings: LogSettings,
    producers: Vec<Producer>,
    /// Whether the acts of the log give them.
    on_record: bool,
}

impl Moved {
    /// Those of the acts in a bundle. Without acts: the defaults, `signatures` if given, and the
    /// signers of the statements that are kept, for any source.
    pub(crate) fn of(
        opened: &Opened<'_>,
        statements: &[SignedBatch],
        signatures: Option<Signatures>,
    ) -> Result<Self, Error> {
        let acts = &opened.governance;
        let mut settings = acts.settings().clone();
        if acts.acts().is_empty() {
            let name = signatures.map(|it| it.name().to_owned());
            settings.signatures = name.unwrap_or(settings.signatures);
            let mut producers: Vec<Producer> = Vec::new();
            for key in statements.iter().map(SignedBatch::signer) {
                if !producers.iter().any(|producer| producer.key == key) {
                    let key = key.to_owned();
                    producers.push(Producer { key, revoked: false, sources: None });
                }
            }
            return Ok(Moved { settings, producers, on_record: false });
        }
        if signatures.is_some_and(|wanted| wanted.name() != settings.signatures) {
            return Err(Error::SignaturesOnRecord(settings.signatures));
        }
        let producers = acts.producers().map(|known| Producer {
            key: known.producer.key.to_string(),
            revoked: known.revoked.is_some(),
            sources: known.producer.sources.clone(),
        });
        Ok(Moved { settings, producers: producers.collect(), on_record: true })
    }

    /// The signature requirement.
    pub(crate) fn signatures(&self) -> Signatures {
        Signatures::parse(&self.settings.signatures).unwrap_or(Signatures::Record)
    }

    /// Stores them, unless an interrupted import did. Fails if the store has others, or tokens.
    pub(crate) fn put(&self, store: &Store, identity: &Identity) -> Result<(), Error> {
        let mut acts = store.acts(identity)?;
        let mut acting = acts.begin()?;
        let view = acting.view();
        if !view.tokens()?.is_empty() {
            return Err(Error::NotPlain(*identity));
        }
        let is_plain = settings_of(view)? == LogSettings::default() && view.producers()?.is_empty();
        if !is_plain && !self.is_put(view)? {
            return Err(Error::NotPlain(*identity));
        }
        if is_plain {
            self.set(&mut acting)?;
            acting.commit()?;
        }
        Ok(())
    }

    fn is_put(&self, view: View<'_>) -> Result<bool, Error> {
        let (mut stored, mut ours) = (view.producers()?, self.producers.clone());
        stored.sort_by(|a, b| a.key.cmp(&b.key));
        ours.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(settings_of(view)? == self.settings && stored == ours)
    }

    fn set(&self, acting: &mut Acting<'_>) -> Result<(), Error> {
        if self.settings.signatures != LogSettings::default().signatures {
            acting.set_signatures(self.signatures())?;
        }
        acting.set_retention(self.settings.retention.as_deref())?;
        if self.settings.max_ahead != LogSettings::default().max_ahead {
            acting.set_max_ahead(self.settings.max_ahead)?;
        }
        // A name is revoked with all its keys, so revoked keys come first.
        let (revoked, valid): (Vec<_>, Vec<_>) = self.producers.iter().partition(|it| it.revoked);
        for producer in &revoked {
            acting.put_producer(&producer.key, producer.sources.as_deref())?;
        }
        for producer in &revoked {
            let name = producer.key.split('+').next().unwrap_or_default();
            acting.revoke_producer(name)?;
        }
        for producer in valid {
            acting.put_producer(&producer.key, producer.sources.as_deref())?;
        }
        match self.on_record {
            true => Ok(()),
            false => Ok(acting.owe(BASELINE, "")?),
        }
    }

    /// Whether the acts of the log give them.
    pub(crate) fn is_on_record(&self) -> bool {
        self.on_record
    }
}
