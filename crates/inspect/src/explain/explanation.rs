//! An explanation: a fact with its evidence, the passes that folded it, and its arithmetic.

use super::change::{ByDay, Change};
use super::distance::{self, MissingRecommendation};
use super::words::{About, Arithmetic, Units, micro};
use super::{Planned, evidence_under, group_under};
use crate::answer::{clean, counted};
use crate::signers::{SignedBy, Signers};
use crate::walk::StoreRecord;
use crate::{Error, Page};
use ipse_consolidate::{RuleSet, with_rules};
use ipse_consult::grounding::body;
use ipse_consult::trail::{AttemptStanding, Standings};
use ipse_core::event::MAX_DEPTH;
use ipse_core::json::{Members, list, quoted};
use ipse_core::{Columns, EventRef, Fact, FactId, Identity, Micro, Outcome, Seq, json_parse};
use ipse_engine::facts::ScoredFact;
use ipse_engine::rules_of;
use ipse_store::Stored;
use ipse_store::{RawPass, View};

/// The number of events per page.
pub const PAGE: usize = 100;
/// The maximum number of parameters with a chart.
const CHARTS: usize = 8;

/// A fact with its explanation.
#[derive(Debug)]
pub struct Explanation {
    identity: Identity,
    /// The page of the evidence; `None` for all of it.
    page: Option<usize>,
    /// The fact.
    pub fact: ScoredFact,
    /// A page of its evidence or all of it, latest in the log first.
    pub evidence: Vec<Stored>,
    /// For each event of the page, the intent that it names and its standing.
    pub standings: Vec<(Option<EventRef>, AttemptStanding)>,
    /// The number of planned observations.
    pub planned: Planned,
    /// The passes that folded the events of the page.
    pub passes: Vec<RawPass>,
    /// Its newest stretch and its sources, if its rules keep days.
    pub change: Option<Change>,
    /// The arithmetic of the fact, one sentence each.
    pub words: Vec<String>,
    /// The parameters without a recommendation, and how far they are from one.
    pub missing: Vec<MissingRecommendation>,
    /// The units of its parameters, if they were given.
    pub units: Units,
    /// The charts of its parameters.
    pub charts: Vec<String>,
    /// The number of observations that were forgotten.
    pub forgotten: u64,
    /// The observations that producers signed.
    pub signed: SignedBy,
    /// Whether the stored value equals the one computed from the sum.
    pub true_to_sum: bool,
}

impl Explanation {
    /// The number of pages of its evidence.
    pub fn pages(&self) -> u64 {
        self.fact.n_observations.div_ceil(PAGE as u64)
    }

    /// Explains a fact, with a page of its evidence (from 1) or all of it.
    pub fn of(
        view: View<'_>,
        identity: &Identity,
        fact: &Fact,
        page: Option<usize>,
    ) -> Result<Self, Error> {
        Self::with_units(view, identity, fact, page, Units::default())
    }

    /// The same with the units of parameters.
    pub fn with_units(
        view: View<'_>,
        identity: &Identity,
        fact: &Fact,
        page: Option<usize>,
        units: Units,
    ) -> Result<Self, Error> {
        with_rules!(rules_of(view)?, |rules| Self::under(view, rules, identity, fact, page, units))
    }

    fn under<R>(
        view: View<'_>,
        rules: &R,
        identity: &Identity,
        fact: &Fact,
        page: Option<usize>,
        units: Units,
    ) -> Result<Self, Error>
    where
        R: RuleSet,
        R::Tally: Arithmetic + ByDay,
    {
        let checkpoint = view.progress()?.checkpoint;
        let (skipped, wanted) = match page {
            Some(page) => (page.saturating_sub(1).saturating_mul(PAGE), PAGE),
            None => (0, usize::MAX),
        };
        let basis = fact.evidence_key();
        let seqs = evidence_under(view, rules, &basis, checkpoint, skipped, wanted)?;
        let mut shown = Vec::with_capacity(seqs.len());
        let record = StoreRecord(view);
        let (mut plans, mut standings) = (Standings::new(&record), Vec::new());
        // Positions descend, so a pass without one position has none of the following ones.
        let mut passes: Vec<RawPass> = Vec::new();
        for seq in seqs {
            if let Some(stored) = view.stored(seq)? {
                let canonical = (!stored.is_forgotten()).then_some(&*stored.canonical);
                standings.push(plans.of(seq, canonical)?);
                shown.push(stored);
            }
            if passes.last().is_none_or(|pass| !(pass.first..=pass.last).contains(&seq)) {
                passes.extend(view.pass_over(seq)?);
            }
        }
        let group = group_under(view, rules, identity, &fact.key)?;
        let published = group.publish(rules, &fact.key).ok().flatten();
        let true_to_sum = published.is_some_and(|published| published.value == fact.value);
        let missing = group.tally.missing(fact.key.kind());
        let about = About { missing: &missing, units: &units };
        let words = group.tally.words(fact.key.kind(), &about);
        let all = || evidence_under(view, rules, &basis, checkpoint, 0, usize::MAX);
        Ok(Explanation {
            identity: *identity,
            page,
            fact: ScoredFact::new(fact.clone())?,
            evidence: shown,
            standings,
            planned: Planned::among(view, all)?,
            passes,
            change: Change::of(view, rules, &fact.key, &group, checkpoint)?,
            words,
            missing,
            charts: group.tally.charts(CHARTS, &units),
            units,
            forgotten: view.forgotten_of(&FactId::new(identity, &fact.key))?,
            signed: signed_observations(view, all)?,
            true_to_sum,
        })
    }

    /// The arithmetic and the newest stretch, one sentence each.
    fn all_words(&self) -> impl Iterator<Item = String> {
        let change = self.change.as_ref().map(Change::words).unwrap_or_default();
        self.words.iter().cloned().chain(change).chain(self.retry_words())
    }

    /// Why a failed attempt is due again when the value says so.
    fn retry_words(&self) -> Option<String> {
        let value = self.fact.value();
        let text = |name: &str| value.get(name).and_then(|value| value.as_text());
        let due = text("retry_after").filter(|_| text("last_outcome") == Some("failed"))?;
        Some(format!(
            "The last attempt failed. It is worth another try from {due} on: as long after it as \
             the stretch lasted, and between an hour and seven days."
        ))
    }

    /// The explanation as JSON.
    pub fn json(&self) -> String {
        let fact = Members::new()
            .text("fact_id", &FactId::new(&self.identity, &self.fact.fact.key).to_string())
            .text("fact_kind", self.fact.fact.key.kind().name())
            .text("fact_key", self.fact.fact.key.text())
            .text("last_updated", &self.fact.fact.last.time.to_string())
            .raw("value", &self.fact.fact.value)
            .finish();
        let event = |(stored, (intent, standing)): (&Stored, &(Option<EventRef>, _))| {
            let (source, id) = source_and_id(stored);
            let intent = intent.map_or("null".to_owned(), |name| quoted(&name.to_string()));
            let params = Attempt::of(stored).params_json();
            Members::new()
                .text("event_ref", &stored.event_ref.to_string())
                .raw("seq", stored.seq)
                .text("time", &stored.time.to_string())
                .raw("params", params)
                .text("type", &stored.event_type)
                .text("source", &source)
                .text("id", &id)
                .raw("intent", intent)
                .text("standing", AttemptStanding::name(*standing))
                .finish()
        };
        let pass = |pass: &RawPass| {
            Members::new()
                .raw("seq", pass.seq)
                .raw("first_seq", pass.first)
                .raw("last_seq", pass.last)
                .text("rule_version", &pass.rule_version)
                .finish()
        };
        let members = Members::new()
            .raw("fact", fact)
            .raw("evidence", list(self.evidence.iter().zip(&self.standings).map(event)))
            .raw("evidence_total", self.fact.n_observations)
            .raw("forgotten", self.forgotten)
            .raw("planned", self.planned.planned)
            .raw("signed", self.signed.events)
            .raw("signers", list(self.signed.producers.iter().map(|name| quoted(name))))
            .raw("passes", list(self.passes.iter().map(pass)))
            .raw("missing", distance::json(&self.missing))
            .raw("words", list(self.all_words().map(|line| quoted(&line))));
        match &self.change {
            Some(change) => change.members(members).finish(),
            None => members.finish(),
        }
    }
}

impl Explanation {
    /// The explanation as text.
    pub fn page(&self) -> Page {
        let (mut page, key) = (Page::new(), &self.fact.fact.key);
        if !self.true_to_sum {
            page.note("WARNING: the stored fact does not match its sum: it was changed");
        }
        page.line(format!("{} {}", key.kind(), FactId::new(&self.identity, key)));
        page.prose(2, clean(key.text()));
        page.prose(2, clean(&body(&self.fact)));
        page.line(format!("  last updated {}", self.fact.fact.last.time));
        page.line("\nWhy");
        self.all_words().for_each(|line| page.prose(2, line));
        for chart in &self.charts {
            page.line("");
            chart.lines().for_each(|line| page.line(line));
        }
        if let Some(change) = &self.change {
            change.tell(&mut page);
        }
        self.tell_evidence(&mut page);
        if !self.passes.is_empty() {
            page.line("\nPasses that folded them");
            let row = |pass: &RawPass| {
                let range = format!("{}..{}", pass.first, pass.last);
                vec![pass.seq.to_string(), range, pass.rule_version.clone()]
            };
            page.table(&["SEQ", "RANGE", "RULES"], self.passes.iter().map(row).collect());
        }
        page
    }

    fn tell_evidence(&self, page: &mut Page) {
        let total = self.fact.n_observations;
        page.line(format!("\nEvidence: {}, latest in the log first", counted(total, "event")));
        if self.forgotten > 0 {
            let past = counted(self.forgotten, "past observation");
            page.line(format!("Forgotten since: {past}, not counted above"));
        }
        if self.signed.events > 0 {
            let SignedBy { events, producers } = &self.signed;
            let by = counted(producers.len() as u64, "producer");
            let names: Vec<String> = producers.iter().map(|name| clean(name)).collect();
            page.line(format!("Signed: {events} of {total}, by {by} ({})", names.join(", ")));
        }
        let Planned { any_intent, planned, against } = self.planned;
        if any_intent {
            let against = if against > 0 { format!("; {against} against them") } else { "".into() };
            page.line(format!("Planned: {planned} of {total}, through the gates{against}"));
        }
        let mut header = vec!["SEQ", "TIME", "EVENT", "ENDED"];
        let attempts: Vec<Attempt> = self.evidence.iter().map(Attempt::of).collect();
        let has_params = attempts.iter().any(|attempt| !attempt.params.is_empty());
        header.extend(has_params.then_some("PARAMETERS"));
        header.extend(any_intent.then_some("INTENT"));
        header.push("SOURCE, ID");
        let rows = self.evidence.iter().zip(&self.standings).zip(&attempts);
        let rows = rows.map(|(row, attempt)| {
            let params = has_params.then(|| attempt.params_text(&self.units));
            evidence_row(row, attempt, params, any_intent)
        });
        page.table(&header, rows.collect());
        let pages = self.pages();
        if let Some(number) = self.page.filter(|_| pages > 1) {
            page.note(format!("page {number} of {pages}"));
        }
    }
}

fn evidence_row(
    (stored, standing): (&Stored, &(Option<EventRef>, AttemptStanding)),
    attempt: &Attempt,
    params: Option<String>,
    any_intent: bool,
) -> Vec<String> {
    let (source, id) = source_and_id(stored);
    let time = stored.time.to_string();
    // Minutes leave room for the rest of the line.
    let minutes = format!("{}Z", time.get(..16).unwrap_or(&time));
    let mut row =
        vec![stored.seq.to_string(), minutes, stored.event_ref.to_string(), attempt.ended.into()];
    row.extend(params);
    row.extend(any_intent.then(|| intended(standing)));
    row.push(clean(&format!("{source} {id}")));
    row
}

/// The intent that an attempt names, shortened, and its standing if it is not planned.
fn intended((intent, standing): &(Option<EventRef>, AttemptStanding)) -> String {
    let name = intent.map(|name| name.to_string());
    let name = name.as_deref().and_then(|name| name.get(..11)).unwrap_or("-");
    match standing {
        AttemptStanding::Planned | AttemptStanding::Unplanned => name.to_owned(),
        AttemptStanding::UnknownIntent => format!("{name} unknown"),
        AttemptStanding::AgainstGates => format!("{name} against the gates"),
        AttemptStanding::Forgotten => format!("{name} forgotten"),
    }
}

/// The outcome and the parameters of an event of the evidence.
struct Attempt {
    /// The outcome, in a word.
    ended: &'static str,
    /// The numeric parameters by name.
    params: Vec<(String, Micro)>,
}

impl Attempt {
    fn of(stored: &Stored) -> Self {
        let bytes = ipse_door::columns_of(&stored.canonical).unwrap_or_default();
        let columns = Columns::decode(&bytes).unwrap_or_default();
        let params = columns.params.iter().map(|(name, value)| ((*name).to_owned(), *value));
        Attempt { ended: columns.outcome.map_or("-", Outcome::name), params: params.collect() }
    }

    /// `force_n=25 N, speed=1`
    fn params_text(&self, units: &Units) -> String {
        let one = |(name, value): &(String, Micro)| {
            format!("{}={}{}", clean(name), micro(value.get()), units.after(name))
        };
        self.params.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn params_json(&self) -> String {
        let members = self
            .params
            .iter()
            .fold(Members::new(), |members, (name, value)| members.raw(name, micro(value.get())));
        members.finish()
    }
}

/// Counts the signed observations of a fact. Reads all of its evidence if the log has signatures.
fn signed_observations(
    view: View<'_>,
    evidence: impl FnOnce() -> Result<Vec<Seq>, Error>,
) -> Result<SignedBy, Error> {
    let signers = Signers::of(view)?;
    if signers.is_empty() {
        return Ok(SignedBy::default());
    }
    Ok(signers.count(&evidence()?))
}

/// The source and id of an event, as its producer set them.
fn source_and_id(stored: &Stored) -> (String, String) {
    let value = json_parse::parse(stored.canonical.as_bytes(), MAX_DEPTH).ok();
    let text = |name: &str| {
        let text = value.as_ref().and_then(|value| value.as_object()?.get(name)?.as_text());
        text.unwrap_or_default().to_string()
    };
    (text("source"), text("id"))
}
