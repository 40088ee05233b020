//! Checks derived data against the log: passes and their rows, facts and tallies.

use super::Check;
use crate::Error;
use crate::report::{DERIVED, RULES};
use ipse_consolidate::{Groups, RuleSet, Tally};
use ipse_core::{FactId, FactKey, Identity, Seq, hex, sha256};
use ipse_door::printable;
use ipse_store::{RawFact, RawPass};
use std::collections::BTreeMap;

fn place_of(key: &FactKey) -> String {
    format!("{} fact `{}`", key.kind(), printable(key.text()))
}

impl<R: RuleSet> Check<'_, R> {
    /// Compares passes, index, facts and tallies with the log, as far as the log exists.
    pub(super) fn derived(&mut self) -> Result<(), Error> {
        if self.log.is_missing {
            let note = "passes, facts, tallies and the index were not compared: events are missing";
            self.report.note(note);
            return Ok(());
        }
        let in_doubt = self.passes()?;
        self.report.all(DERIVED, self.view.index_damage(&self.log.index.names)?);
        let is_lost = self.log.walk.forgets.lost(Seq(1)..=self.log.head);
        let in_doubt =
            if is_lost { Some("events that they rest on are missing") } else { in_doubt };
        let Some(why) = in_doubt else { return self.facts() };
        self.report.note(format!("facts and tallies were not compared: {why}"));
        Ok(())
    }

    /// Compares passes and records. Returns the reason why facts cannot be compared, if the newest
    /// pass differs from its record or follows other rules.
    fn passes(&mut self) -> Result<Option<&'static str>, Error> {
        let (rows, records) = (self.view.raw_passes()?, &self.log.walk.records);
        let pass = |seq: Seq| format!("pass at seq {seq}");
        // Both are in the order of the log.
        let has_record =
            |row: &&RawPass| records.binary_search_by_key(&row.seq, |it| it.seq).is_ok();
        let alone = rows.iter().filter(|row| !has_record(row));
        self.report.all(DERIVED, alone.map(|row| (pass(row.seq), "has no record in the log")));
        // If the oldest row begins at seq 1, rows were deleted and a pass started again there.
        let since = rows.first().filter(|row| row.first == Seq(1)).map_or(Seq(0), |row| row.seq);
        for record in records {
            let row = rows.binary_search_by_key(&record.seq, |row| row.seq).map(|at| &rows[at]);
            match (row, &record.claimed) {
                (Err(_), _) if record.seq >= since => {
                    let place = format!("pass record at seq {}", record.seq);
                    self.report.add(DERIVED, place, "is not listed as a pass");
                }
                (Ok(row), Some(claimed)) if !row.is_of(claimed) => {
                    self.report.add(DERIVED, pass(row.seq), "differs from its record in the log");
                }
                _ => {}
            }
        }
        for (row, next) in rows.iter().zip(rows.iter().skip(1)) {
            if next.tallied < row.tallied && next.rule_set == row.rule_set && next.first != Seq(1) {
                let message = "its tallies end before those of the previous pass";
                self.report.add(DERIVED, pass(next.seq), message);
            }
        }
        let beyond = |row: &&RawPass| row.tallied > row.last || row.last >= row.seq;
        if let Some(row) = rows.last().filter(beyond) {
            self.report.add(DERIVED, pass(row.seq), "reaches beyond its own range");
        }
        let newest = [rows.last().map(|row| row.seq), records.last().map(|record| record.seq)];
        let mut ends = newest.into_iter().flatten().map(|seq| format!("at seq {seq}"));
        let found = &self.report.findings;
        if ends.any(|end| found.iter().any(|finding| finding.place.ends_with(&end))) {
            return Ok(Some("the newest pass has findings"));
        }
        let rule_set = sha256(&[self.rules.descriptor().as_bytes()]);
        let follows =
            |row: &RawPass| row.rule_version == self.rules.version() && row.rule_set == rule_set;
        let Some(row) = rows.last().filter(|row| !follows(row)) else { return Ok(None) };
        let version = printable(&row.rule_version);
        let message = format!("follows rule set `{version}`, which this ipse does not know");
        self.report.add(RULES, pass(row.seq), message);
        Ok(Some("their rules are unknown"))
    }

    fn facts(&mut self) -> Result<(), Error> {
        let [sums, tallied] = std::mem::take(&mut self.sums);
        let (stored, facts) = (self.view.raw_facts()?, sums.publish(self.rules)?);
        // A mismatch of manifest and identity is already reported. Facts may belong to either.
        let hashed = Identity(sha256(&[self.manifest.as_bytes()]));
        let is_hashed =
            |row: &RawFact| Some(FactId::new(&hashed, &row.fact_key()?).0 == *row.fact_id);
        let is_hashed = stored.iter().any(|row| is_hashed(row) == Some(true));
        let identity = if is_hashed { hashed } else { *self.identity };
        let mut expected: BTreeMap<_, _> = facts.iter().map(|fact| (&fact.key, fact)).collect();
        let most_forgotten = self.log.walk.forgets.most().cast_signed();
        for row in &stored {
            let place = format!("{} fact `{}`", row.kind, printable(&row.key));
            let Some(fact) = row.fact_key().and_then(|key| expected.remove(&key)) else {
                self.report.add(DERIVED, place, "cannot be derived from the log");
                continue;
            };
            let (time, id) = (fact.last.time.micros(), FactId::new(&identity, &fact.key));
            let forgotten = (0..=most_forgotten).contains(&row.forgotten);
            let rules = [
                (row.value == fact.value, "has another value than the log gives"),
                (row.last_us == time, "has another time than its last supporting event"),
                (row.last_ref == fact.last.event_ref.0, "names another last supporting event"),
                (row.fact_id == id.0, "is stored under a wrong id"),
                (forgotten, "counts more forgotten observations than events were forgotten"),
            ];
            let broken = rules.into_iter().filter(|(holds, _)| !holds);
            self.report.all(DERIVED, broken.map(|(_, message)| (place.clone(), message)));
        }
        self.report.all(DERIVED, expected.into_keys().map(|key| (place_of(key), "is missing")));
        self.tallies(&identity, tallied)?;
        self.note_idle();
        Ok(())
    }

    /// Adds notes about events past the checkpoint, and about events that feed no fact.
    fn note_idle(&mut self) {
        let checkpoint = self.reached.checkpoint.0;
        let lag = self.log.head.0.saturating_sub(checkpoint + u64::from(checkpoint > 0));
        // Acts feed no fact, so no pass is due for them.
        let acts = self.log.walk.governance.acts().iter().filter(|(seq, _)| seq.0 > checkpoint);
        let lag = lag.saturating_sub(acts.count() as u64);
        self.report.note_count("events past the checkpoint, not folded yet", lag);
        let idle = self.log.walk.idle.get(self.rules.version());
        for (name, reasons) in idle.into_iter().flat_map(|[all, _]| all) {
            let reasons = reasons.iter().map(|(code, n)| format!("{n} {code}"));
            let (name, reasons) = (printable(name), reasons.collect::<Vec<_>>().join(", "));
            self.report.note(format!("{name} events that feed no fact: {reasons}"));
        }
    }

    fn tallies(&mut self, identity: &Identity, sums: Groups<R::Tally>) -> Result<(), Error> {
        let mut stored: BTreeMap<Vec<u8>, Vec<u8>> = self.view.raw_tallies()?.into_iter().collect();
        let mut state = Vec::new();
        // A sum of zero is not stored, and the sum of a derived fact may be zero.
        let sums = sums.into_whole(self.rules).into_iter();
        for (key, group) in sums.filter(|(_, group)| !group.tally.is_zero()) {
            state.clear();
            group.tally.encode(&mut state);
            let fault = match stored.remove(FactId::new(identity, &key).0.as_slice()) {
                Some(found) if found == state => continue,
                Some(_) => "differs from the sum over the log",
                None => "is missing",
            };
            self.report.add(DERIVED, format!("tally of the {}", place_of(&key)), fault);
        }
        let tallies = stored.into_keys().map(|id| format!("tally fa_{}", hex::encode(&id)));
        self.report.all(DERIVED, tallies.map(|tally| (tally, "belongs to no fact")));
        Ok(())
    }
}
