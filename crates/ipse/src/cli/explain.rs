//! `explain`: why a fact says what it says, and what an event taught.

use super::Exit;
use super::args::ExplainArgs;
use super::context::Context;
use super::proof;
use super::reading::{clean, stored_json};
use super::terminal::{Terminal, counted};
use super::words;
use anyhow::bail;
use ipse::Consulted;
use ipse_consolidate::V1;
use ipse_core::json::{Members, Value, list, quoted};
use ipse_core::{
    Columns, EventRef, Fact, FactId, FactKey, FactKind, Identity, Outcome, Seq, is_housekeeping,
    json_parse,
};
use ipse_engine::explain::{evidence, feeds, group};
use ipse_engine::grounding::body;
use ipse_engine::{SignedBy, Signers};
use ipse_store::Stored;
use ipse_store::sqlite::{RawPass, View};

/// Events of a page.
const PAGE: usize = 100;
/// Parameters that are drawn at most.
const CHARTS: usize = 8;

pub(crate) fn run(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &ExplainArgs,
) -> anyhow::Result<Exit> {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let view = snapshot.view();
    if let Some(event_ref) = EventRef::parse(&args.what) {
        let Some(seq) = view.find(&event_ref)? else {
            writeln!(terminal.err, "no event {event_ref} in this log")?;
            return Ok(Exit::Found);
        };
        if args.proof {
            return proof::tell(context, terminal, view, seq);
        }
        return event(context, terminal, view, &identity, seq);
    }
    if args.proof {
        bail!("a proof is of an event: give an event ref (ev_…), such as a fact's evidence has");
    }
    match named(view, &identity, &args.what)?.as_slice() {
        [] => {
            let what = clean(&args.what);
            writeln!(
                terminal.err,
                "nothing here is called `{what}`\n\
                 hint: a fact id (fa_…), an event ref (ev_…), or a key as `ipse facts` shows it"
            )?;
            Ok(Exit::Found)
        }
        [one] => Explanation::of(view, &identity, one, args)?.tell(context, terminal),
        several => {
            let listed = several.iter().map(|fact| {
                let id = FactId::new(&identity, &fact.key);
                format!("\n  {id} {}", fact.key.kind())
            });
            bail!(
                "that key names several facts; say which by its id:{}",
                listed.collect::<String>()
            )
        }
    }
}

/// The facts of that id or key.
fn named(view: View<'_>, identity: &Identity, what: &str) -> anyhow::Result<Vec<Fact>> {
    if let Some(id) = FactId::parse(what) {
        return Ok(view.fact(&id)?.into_iter().collect());
    }
    let ids = FactKind::ALL
        .map(|kind| FactId::new(identity, &FactKey::from_text(kind, what.to_string())));
    let mut facts = Vec::new();
    for id in ids {
        facts.extend(view.fact(&id)?);
    }
    Ok(facts)
}

/// A fact and everything that is told of it.
pub(crate) struct Explanation<'a> {
    identity: &'a Identity,
    fact: Consulted,
    evidence: Vec<Stored>,
    passes: Vec<RawPass>,
    words: Vec<String>,
    charts: Vec<String>,
    /// Past observations that were forgotten since.
    forgotten: u64,
    /// Observations that producers signed.
    signed: SignedBy,
    /// Whether the stored value is what the sum gives.
    true_to_sum: bool,
    page: usize,
    all: bool,
}

impl<'a> Explanation<'a> {
    pub(crate) fn of(
        view: View<'_>,
        identity: &'a Identity,
        fact: &Fact,
        args: &ExplainArgs,
    ) -> anyhow::Result<Self> {
        let checkpoint = view.progress()?.checkpoint;
        let page = usize::try_from(args.page).unwrap_or(usize::MAX);
        let (skipped, wanted) =
            if args.all { (0, usize::MAX) } else { ((page - 1).saturating_mul(PAGE), PAGE) };
        let seqs = evidence(view, &V1, &fact.key, checkpoint, skipped, wanted)?;
        let mut shown = Vec::with_capacity(seqs.len());
        // Positions descend, so a pass that no longer holds one holds none of those that follow.
        let mut passes: Vec<RawPass> = Vec::new();
        for seq in seqs {
            shown.extend(view.stored(seq)?);
            if passes.last().is_none_or(|pass| !(pass.first..=pass.last).contains(&seq)) {
                passes.extend(view.pass_over(seq)?);
            }
        }
        let group = group(view, &V1, identity, &fact.key)?;
        let published = group.publish(&V1, &fact.key).ok().flatten();
        let true_to_sum = published.is_some_and(|published| published.value == fact.value);
        let tally = group.tally;
        let words = words::arithmetic(fact.key.kind(), &tally);
        let numbers = tally.numbers.iter().filter(|(name, _)| !name.is_empty());
        let charts = numbers.map(|(name, histogram)| words::strip(name, histogram));
        let charts = charts.take(CHARTS).collect();
        Ok(Explanation {
            identity,
            fact: Consulted::new(fact.clone())?,
            evidence: shown,
            passes,
            words,
            charts,
            forgotten: view.forgotten_of(&FactId::new(identity, &fact.key))?,
            signed: signed_observations(view, &fact.key, checkpoint)?,
            true_to_sum,
            page,
            all: args.all,
        })
    }

    fn tell(&self, context: &Context, terminal: &mut Terminal<'_>) -> anyhow::Result<Exit> {
        let pages = self.fact.n_observations.div_ceil(PAGE as u64);
        if !self.all && self.page as u64 > pages {
            writeln!(terminal.err, "there is no page {}: the last one is {pages}", self.page)?;
            return Ok(Exit::Found);
        }
        if !self.true_to_sum {
            writeln!(
                terminal.err,
                "WARNING: the stored fact is not what its sum gives: ipse verify"
            )?;
        }
        if context.json {
            terminal.json(&self.json())?;
            return Ok(Exit::fine_if(self.true_to_sum));
        }
        let key = &self.fact.fact.key;
        let id = FactId::new(self.identity, key);
        writeln!(terminal.out, "{} {id}", key.kind())?;
        terminal.prose(2, &clean(key.text()))?;
        terminal.prose(2, &clean(&body(&self.fact)))?;
        writeln!(terminal.out, "  last updated {}", self.fact.fact.last.time)?;
        writeln!(terminal.out, "\nWhy")?;
        for line in &self.words {
            terminal.prose(2, line)?;
        }
        for chart in &self.charts {
            write!(terminal.out, "\n{chart}")?;
        }
        self.tell_evidence(terminal)?;
        if !self.passes.is_empty() {
            writeln!(terminal.out, "\nPasses that folded them")?;
            let row = |pass: &RawPass| {
                vec![
                    pass.seq.to_string(),
                    format!("{}..{}", pass.first, pass.last),
                    pass.rule_version.clone(),
                ]
            };
            let rows: Vec<_> = self.passes.iter().map(row).collect();
            terminal.table(&["SEQ", "RANGE", "RULES"], &rows)?;
        }
        Ok(Exit::fine_if(self.true_to_sum))
    }

    fn tell_evidence(&self, terminal: &mut Terminal<'_>) -> anyhow::Result<()> {
        let total = self.fact.n_observations;
        writeln!(terminal.out, "\nEvidence: {}, latest in the log first", counted(total, "event"))?;
        if self.forgotten > 0 {
            let past = counted(self.forgotten, "past observation");
            writeln!(terminal.out, "Forgotten since: {past}, counted in nothing above")?;
        }
        if self.signed.events > 0 {
            let SignedBy { events, producers } = &self.signed;
            let by = counted(producers.len() as u64, "producer");
            let names: Vec<String> = producers.iter().map(|name| clean(name)).collect();
            let names = names.join(", ");
            writeln!(terminal.out, "Signed: {events} of {total}, by {by} ({names})")?;
        }
        let row = |stored: &Stored| {
            let (source, id) = source_and_id(stored);
            vec![
                stored.seq.to_string(),
                to_minutes(stored),
                stored.event_ref.to_string(),
                ended(stored),
                clean(&format!("{source} {id}")),
            ]
        };
        let rows: Vec<_> = self.evidence.iter().map(row).collect();
        if !rows.is_empty() {
            terminal.table(&["SEQ", "TIME", "EVENT", "ENDED", "SOURCE, ID"], &rows)?;
        }
        let pages = total.div_ceil(PAGE as u64);
        if !self.all && pages > 1 {
            let page = self.page;
            writeln!(terminal.err, "page {page} of {pages}: --page N for another, --all for all")?;
        }
        Ok(())
    }

    fn json(&self) -> String {
        let fact = Members::new()
            .text("fact_id", &FactId::new(self.identity, &self.fact.fact.key).to_string())
            .text("fact_kind", self.fact.fact.key.kind().name())
            .text("fact_key", self.fact.fact.key.text())
            .text("last_updated", &self.fact.fact.last.time.to_string())
            .raw("value", &self.fact.fact.value)
            .finish();
        let event = |stored: &Stored| {
            let (source, id) = source_and_id(stored);
            Members::new()
                .text("event_ref", &stored.event_ref.to_string())
                .raw("seq", stored.seq)
                .text("time", &stored.time.to_string())
                .text("type", &stored.event_type)
                .text("source", &source)
                .text("id", &id)
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
        Members::new()
            .raw("fact", fact)
            .raw("evidence", list(self.evidence.iter().map(event)))
            .raw("evidence_total", self.fact.n_observations)
            .raw("forgotten", self.forgotten)
            .raw("signed", self.signed.events)
            .raw("signers", list(self.signed.producers.iter().map(|name| quoted(name))))
            .raw("passes", list(self.passes.iter().map(pass)))
            .raw("words", list(self.words.iter().map(|line| quoted(line))))
            .finish()
    }
}

/// How many of a fact's observations are signed: all of its evidence is looked at, if anything is
/// signed at all.
fn signed_observations(view: View<'_>, key: &FactKey, up_to: Seq) -> anyhow::Result<SignedBy> {
    let signers = Signers::of(view)?;
    if signers.is_empty() {
        return Ok(SignedBy::default());
    }
    Ok(signers.count(&evidence(view, &V1, key, up_to, 0, usize::MAX)?))
}

/// A time that leaves room for the rest of a line.
fn to_minutes(stored: &Stored) -> String {
    let text = stored.time.to_string();
    format!("{}Z", text.get(..16).unwrap_or(&text))
}

/// How an attempt ended, in a word.
fn ended(stored: &Stored) -> String {
    let columns = ipse_door::columns_of(&stored.canonical).unwrap_or_default();
    let outcome = Columns::decode(&columns).and_then(|columns| columns.outcome);
    outcome.map_or("-", Outcome::name).to_string()
}

/// The names under which a producer knows an event.
fn source_and_id(stored: &Stored) -> (String, String) {
    let value = json_parse::parse(stored.canonical.as_bytes(), ipse_door::MAX_DEPTH).ok();
    let text = |name: &str| {
        let text = value.as_ref().and_then(|value| value.as_object()?.get(name)?.as_text());
        text.unwrap_or_default().to_string()
    };
    (text("source"), text("id"))
}

fn event(
    context: &Context,
    terminal: &mut Terminal<'_>,
    view: View<'_>,
    identity: &Identity,
    seq: Seq,
) -> anyhow::Result<Exit> {
    let Some(stored) = view.stored(seq)? else { bail!("the log has no event at seq {seq}") };
    let fed = feeds(view, &V1, seq)?;
    let signers = Signers::of(view)?;
    let names = signers.names(seq);
    if context.json {
        let event = stored_json(&stored, &names).finish();
        terminal.json(&event_json(view, identity, &stored, event, &fed)?)?;
        return Ok(Exit::Fine);
    }
    writeln!(terminal.out, "{} at seq {seq}", stored.event_ref)?;
    writeln!(terminal.out, "  type    {}", clean(&stored.event_type))?;
    writeln!(terminal.out, "  time    {}", stored.time)?;
    writeln!(terminal.out, "  digest  {}", stored.digest)?;
    let names: Vec<String> = names.iter().map(|name| clean(name)).collect();
    if !names.is_empty() {
        writeln!(terminal.out, "  signed  by {}", names.join(", "))?;
    }
    if stored.is_forgotten() {
        return forgotten(terminal, view, &stored);
    }
    match view.pass_over(seq)? {
        _ if is_housekeeping(&stored.event_type) => {
            writeln!(terminal.out, "  folded  never: ipse wrote it about itself")?;
        }
        Some(pass) => {
            let RawPass { first, last, seq, .. } = pass;
            writeln!(terminal.out, "  folded  by the pass at seq {seq}, range {first}..{last}")?;
        }
        None => writeln!(terminal.out, "  folded  not yet: `ipse consolidate` does it")?,
    }
    writeln!(terminal.out, "\nContent")?;
    let value = json_parse::parse(stored.canonical.as_bytes(), ipse_door::MAX_DEPTH).ok();
    if let Some(value) = &value {
        indented(terminal, value, 1)?;
    }
    tell_fed(terminal, identity, &stored, &fed)
}

fn event_json(
    view: View<'_>,
    identity: &Identity,
    stored: &Stored,
    event: String,
    fed: &[(FactKey, bool)],
) -> anyhow::Result<String> {
    let fact = |(key, supports): &(FactKey, bool)| {
        Members::new()
            .text("fact_id", &FactId::new(identity, key).to_string())
            .text("fact_kind", key.kind().name())
            .text("fact_key", key.text())
            .raw("supports", supports)
            .finish()
    };
    let forgotten = match said_by(view, stored)? {
        Some(said) => {
            Members::new().raw("seq", said.seq).text("time", &said.time.to_string()).finish()
        }
        None => "null".to_string(),
    };
    Ok(Members::new()
        .raw("event", event)
        .raw("facts", list(fed.iter().map(fact)))
        .raw("forgotten", forgotten)
        .finish())
}

/// The event that says that this one is forgotten, if it is.
fn said_by(view: View<'_>, stored: &Stored) -> anyhow::Result<Option<Stored>> {
    if !stored.is_forgotten() {
        return Ok(None);
    }
    let by = view.forgotten_by(&stored.event_ref, stored.seq)?;
    Ok(by.map(|seq| view.stored(seq)).transpose()?.flatten())
}

/// What is left to say of an event without content.
fn forgotten(terminal: &mut Terminal<'_>, view: View<'_>, stored: &Stored) -> anyhow::Result<Exit> {
    let said = said_by(view, stored)?;
    match &said {
        Some(said) => {
            writeln!(terminal.out, "  forgotten at seq {}, {}", said.seq, said.time)?;
        }
        None => writeln!(terminal.out, "  forgotten, and nothing says so: ipse verify")?,
    }
    writeln!(
        terminal.out,
        "\nIts content is gone and feeds no fact; what is above stays, so that the log has no gap."
    )?;
    Ok(Exit::fine_if(said.is_some()))
}

fn tell_fed(
    terminal: &mut Terminal<'_>,
    identity: &Identity,
    stored: &Stored,
    fed: &[(FactKey, bool)],
) -> anyhow::Result<Exit> {
    writeln!(terminal.out, "\nFacts it feeds")?;
    for (key, supports) in fed {
        let id = FactId::new(identity, key);
        let role = if *supports { "" } else { " (counted apart, no observation)" };
        writeln!(terminal.out, "  {id} {}{role}", key.kind())?;
        terminal.prose(2, &format!("  {}", clean(key.text())))?;
    }
    if fed.is_empty() && is_housekeeping(&stored.event_type) {
        writeln!(terminal.out, "  none")?;
    } else if fed.is_empty() {
        writeln!(terminal.out, "  none; `ipse passes` says why events feed no fact")?;
    }
    Ok(Exit::Fine)
}

/// A value, one member a line.
fn indented(terminal: &mut Terminal<'_>, value: &Value<'_>, depth: usize) -> anyhow::Result<()> {
    let Some(object) = value.as_object() else { return Ok(()) };
    for (name, value) in object.iter() {
        let space = "  ".repeat(depth);
        if value.as_object().is_some_and(|object| !object.is_empty()) {
            writeln!(terminal.out, "{space}{}", clean(name))?;
            indented(terminal, value, depth + 1)?;
        } else {
            let mut text = String::new();
            value.write(&mut text);
            writeln!(terminal.out, "{space}{}: {}", clean(name), clean(&text))?;
        }
    }
    Ok(())
}
