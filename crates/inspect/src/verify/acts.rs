//! Compares the settings, producers and tokens of a store with the acts of the log.
//!
//! **Invariants:** the acts decide. A row that no act explains is a finding. An act without a row
//! is a note, because a log that was moved leaves its tokens behind. While a baseline is owed, the
//! log does not say what was set before, and nothing is compared.

use super::Check;
use crate::Error;
use crate::report::GOVERNED;
use ipse_consolidate::RuleSet;
use ipse_engine::{producer_key, settings_of, token_id, token_record};
use ipse_ledger::Governance;
use ipse_ledger::act::LogSettings;
use ipse_store::{BASELINE, Producer, TokenRow};

impl<R: RuleSet> Check<'_, R> {
    /// Compares the tables with the acts.
    pub(super) fn governed(&mut self) -> Result<(), Error> {
        let governance = std::mem::take(&mut self.log.walk.governance);
        let acts = governance.acts().len() as u64;
        self.report.note_count("acts of governance on the record", acts);
        if self.view.owed()?.iter().any(|owed| owed.act == BASELINE) {
            let note = "settings, producers and tokens were not compared: the next command that \
                        writes records them in the log";
            self.report.note(note);
        } else if self.report.events == 0 {
            self.unfinished_import()?;
        } else if governance.is_incomplete() {
            self.report.note("settings were not compared: an act cannot be read");
        } else {
            self.settings(&governance);
            self.producer_rows(&governance, &self.view.producers()?);
            self.token_rows(&governance, &self.view.tokens()?);
        }
        self.log.walk.governance = governance;
        Ok(())
    }

    /// An import stores settings before the log, so an empty log with settings is one that was
    /// interrupted.
    fn unfinished_import(&mut self) -> Result<(), Error> {
        let settings = settings_of(self.view).unwrap_or_default();
        if settings != LogSettings::default() || !self.view.producers()?.is_empty() {
            let note = "settings or keys are stored and the log is empty: run the import of the \
                        bundle again";
            self.report.note(note);
        }
        Ok(())
    }

    fn settings(&mut self, governance: &Governance) {
        // A setting that cannot be read is reported with the signatures.
        let Ok(stored) = settings_of(self.view) else { return };
        let expected = governance.settings();
        let hours =
            |value: Option<u64>| value.map_or("off".to_owned(), |hours| format!("{hours}h"));
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "off".to_owned());
        let rows = [
            ("signatures", stored.signatures.clone(), expected.signatures.clone()),
            ("retention", text(&stored.retention), text(&expected.retention)),
            ("max-ahead", hours(stored.max_ahead), hours(expected.max_ahead)),
        ];
        for (name, is, should) in rows.into_iter().filter(|(_, is, should)| is != should) {
            let message = format!("is {is}, but the acts of the log give {should}");
            self.report.add(GOVERNED, format!("setting {name}"), message);
        }
    }

    fn producer_rows(&mut self, governance: &Governance, rows: &[Producer]) {
        let mut found = 0;
        for row in rows {
            // A key that cannot be read is reported with the signatures.
            let Some(producer) = producer_key(row) else { continue };
            let message = match governance.producer(&row.key) {
                None => "is registered, but no act of the log registered it",
                Some(known) if known.producer.sources != producer.sources => {
                    "may use other sources than the act that registered it"
                }
                Some(known) if known.revoked.is_some() && !row.revoked => {
                    "is valid, but an act of the log revoked it"
                }
                Some(known) if known.revoked.is_none() && row.revoked => {
                    "is revoked, but no act of the log revoked it"
                }
                Some(_) => {
                    found += 1;
                    continue;
                }
            };
            found += u64::from(governance.producer(&row.key).is_some());
            let place = format!("key of a producer `{}`", producer.key.name());
            self.report.add(GOVERNED, place, message);
        }
        let missing = (governance.producers().count() as u64).saturating_sub(found);
        self.report.note_count("keys of producers in acts that are not in this store", missing);
    }

    fn token_rows(&mut self, governance: &Governance, rows: &[TokenRow]) {
        let mut found = 0;
        for row in rows {
            let known = governance.tokens().get(&token_id(row));
            found += u64::from(known.is_some());
            let message = match known {
                // A baseline does not list revoked tokens, which give no access.
                None if governance.has_baseline() && row.revoked.is_some() => continue,
                None => "exists, but no act of the log created it",
                Some(known) if known.record.as_ref().is_some_and(|it| *it != token_record(row)) => {
                    "differs from the act that created it"
                }
                Some(known) if known.revoked && row.revoked.is_none() => {
                    "is valid, but an act of the log revoked it"
                }
                Some(known) if !known.revoked && row.revoked.is_some() => {
                    "is revoked, but no act of the log revoked it"
                }
                Some(_) => continue,
            };
            self.report.add(GOVERNED, format!("token {}", token_id(row)), message);
        }
        let missing = (governance.tokens().len() as u64).saturating_sub(found);
        self.report.note_count(
            "tokens in acts that are not in this store (tokens do not move with a log)",
            missing,
        );
    }
}
