//! `explain`: why a fact says what it says, and what an event taught.

use super::Exit;
use super::args::ExplainArgs;
use super::context::Context;
use super::proof;

use super::terminal::{Terminal, counted};
use anyhow::bail;
use ipse_consolidate::V1;
use ipse_core::json::Value;
use ipse_core::{
    Columns, EventKind, EventRef, Fact, FactId, FactKey, FactKind, Identity, Outcome, Seq,
    is_housekeeping, json_parse,
};
use ipse_engine::answer::clean;
use ipse_engine::explain::{
    Explanation, PAGE, Planned, explained_event, feeds, said_by, source_and_id,
};
use ipse_engine::grounding::body;
use ipse_engine::trail::{AttemptStanding, EVIDENCE, Found, Listing, MAX_EVIDENCE, Trail};
use ipse_engine::{SignedBy, Signers, Walked};
use ipse_store::Stored;
use ipse_store::sqlite::{RawPass, View};

pub(crate) fn run(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &ExplainArgs,
) -> anyhow::Result<Exit> {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let view = snapshot.view();
    let page = args.page.map_or(1, |page| usize::try_from(page).unwrap_or(usize::MAX));
    if let Some(event_ref) = EventRef::parse(&args.what) {
        let Some(seq) = view.find(&event_ref)? else {
            writeln!(terminal.err, "no event {event_ref} in this log")?;
            return Ok(Exit::Found);
        };
        if args.proof {
            return proof::tell(context, terminal, view, seq);
        }
        let evidence = if args.all { MAX_EVIDENCE } else { EVIDENCE };
        let listing = Listing { evidence, page };
        let found = Trail::of(&Walked(view), &identity, &event_ref, listing)?;
        let trail = match &found {
            Found::Action(trail) => Some(&**trail),
            _ => None,
        };
        return event(context, terminal, view, &identity, seq, trail);
    }
    if args.proof {
        bail!("a proof is of an event: give an event ref (ev_…), such as a fact's evidence has");
    }
    if args.all && args.page.is_some() {
        bail!("--all shows all of a fact's evidence: leave --page out");
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
        [one] => {
            let page = (!args.all).then_some(page);
            let of = Explanation::of(view, &identity, one, page)?;
            Shown { identity: &identity, of, page }.tell(context, terminal)
        }
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

/// An explanation, and which part of its evidence is shown.
struct Shown<'a> {
    identity: &'a Identity,
    of: Explanation,
    /// The page; `None` for all of it.
    page: Option<usize>,
}

impl Shown<'_> {
    fn tell(&self, context: &Context, terminal: &mut Terminal<'_>) -> anyhow::Result<Exit> {
        let pages = self.of.pages();
        if self.page.is_some_and(|page| page as u64 > pages) {
            let page = self.page.unwrap_or_default();
            writeln!(terminal.err, "there is no page {page}: the last one is {pages}")?;
            return Ok(Exit::Found);
        }
        if !self.of.true_to_sum {
            writeln!(
                terminal.err,
                "WARNING: the stored fact is not what its sum gives: ipse verify"
            )?;
        }
        if context.json {
            terminal.json(&self.of.json(self.identity))?;
            return Ok(Exit::fine_if(self.of.true_to_sum));
        }
        let key = &self.of.fact.fact.key;
        let id = FactId::new(self.identity, key);
        writeln!(terminal.out, "{} {id}", key.kind())?;
        terminal.prose(2, &clean(key.text()))?;
        terminal.prose(2, &clean(&body(&self.of.fact)))?;
        writeln!(terminal.out, "  last updated {}", self.of.fact.fact.last.time)?;
        writeln!(terminal.out, "\nWhy")?;
        for line in &self.of.words {
            terminal.prose(2, line)?;
        }
        for chart in &self.of.charts {
            write!(terminal.out, "\n{chart}")?;
        }
        self.tell_evidence(terminal)?;
        if !self.of.passes.is_empty() {
            writeln!(terminal.out, "\nPasses that folded them")?;
            let row = |pass: &RawPass| {
                vec![
                    pass.seq.to_string(),
                    format!("{}..{}", pass.first, pass.last),
                    pass.rule_version.clone(),
                ]
            };
            let rows: Vec<_> = self.of.passes.iter().map(row).collect();
            terminal.table(&["SEQ", "RANGE", "RULES"], &rows)?;
        }
        Ok(Exit::fine_if(self.of.true_to_sum))
    }

    fn tell_evidence(&self, terminal: &mut Terminal<'_>) -> anyhow::Result<()> {
        let total = self.of.fact.n_observations;
        writeln!(terminal.out, "\nEvidence: {}, latest in the log first", counted(total, "event"))?;
        if self.of.forgotten > 0 {
            let past = counted(self.of.forgotten, "past observation");
            writeln!(terminal.out, "Forgotten since: {past}, counted in nothing above")?;
        }
        if self.of.signed.events > 0 {
            let SignedBy { events, producers } = &self.of.signed;
            let by = counted(producers.len() as u64, "producer");
            let names: Vec<String> = producers.iter().map(|name| clean(name)).collect();
            let names = names.join(", ");
            writeln!(terminal.out, "Signed: {events} of {total}, by {by} ({names})")?;
        }
        let Planned { any_intent, planned, against } = self.of.planned;
        if any_intent {
            let against = if against > 0 { format!("; {against} against them") } else { "".into() };
            writeln!(terminal.out, "Planned: {planned} of {total}, through the gates{against}")?;
        }
        let row = |(stored, standing): (&Stored, &(_, _))| {
            let (source, id) = source_and_id(stored);
            let mut row = vec![
                stored.seq.to_string(),
                to_minutes(stored),
                stored.event_ref.to_string(),
                ended(stored),
            ];
            row.extend(any_intent.then(|| intended(standing)));
            row.push(clean(&format!("{source} {id}")));
            row
        };
        let rows: Vec<_> = self.of.evidence.iter().zip(&self.of.standings).map(row).collect();
        let mut heads = vec!["SEQ", "TIME", "EVENT", "ENDED"];
        heads.extend(any_intent.then_some("INTENT"));
        heads.push("SOURCE, ID");
        if !rows.is_empty() {
            terminal.table(&heads, &rows)?;
        }
        let pages = total.div_ceil(PAGE as u64);
        if let Some(page) = self.page.filter(|_| pages > 1) {
            writeln!(terminal.err, "page {page} of {pages}: --page N for another, --all for all")?;
        }
        Ok(())
    }
}

/// A time that leaves room for the rest of a line.
fn to_minutes(stored: &Stored) -> String {
    let text = stored.time.to_string();
    format!("{}Z", text.get(..16).unwrap_or(&text))
}

/// The intent that an attempt names, shortened, and what is wrong with that.
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

/// How an attempt ended, in a word.
fn ended(stored: &Stored) -> String {
    let columns = ipse_door::columns_of(&stored.canonical).unwrap_or_default();
    let outcome = Columns::decode(&columns).and_then(|columns| columns.outcome);
    outcome.map_or("-", Outcome::name).to_string()
}

fn event(
    context: &Context,
    terminal: &mut Terminal<'_>,
    view: View<'_>,
    identity: &Identity,
    seq: Seq,
    action: Option<&Trail>,
) -> anyhow::Result<Exit> {
    let Some(stored) = view.stored(seq)? else { bail!("the log has no event at seq {seq}") };
    let fed = feeds(view, &V1, seq)?;
    let signers = Signers::of(view)?;
    let names = signers.names(seq);
    if context.json {
        terminal.json(&explained_event(view, identity, &stored, &names, &fed, action)?)?;
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
    // What names no intent goes back to nothing, and so does what is itself forgotten.
    let told = action.filter(|trail| match trail.standing() {
        Some(AttemptStanding::Unplanned) => false,
        Some(AttemptStanding::Forgotten) => !stored.is_forgotten(),
        _ => true,
    });
    if stored.is_forgotten() {
        let exit = forgotten(terminal, view, &stored)?;
        return told.map_or(Ok(()), |trail| page(terminal, trail)).map(|()| exit);
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
    if told.is_none() && EventKind::of(&stored.event_type) == EventKind::ExecutionResult {
        writeln!(terminal.out, "  planned no: it names no intent")?;
    }
    writeln!(terminal.out, "\nContent")?;
    let value = json_parse::parse(stored.canonical.as_bytes(), ipse_door::MAX_DEPTH).ok();
    if let Some(value) = &value {
        indented(terminal, value, 1)?;
    }
    if let Some(trail) = told {
        page(terminal, trail)?;
        if is_housekeeping(&stored.event_type) {
            return Ok(Exit::Fine);
        }
    }
    tell_fed(terminal, identity, &stored, &fed)
}

/// What an action goes back to.
fn page(terminal: &mut Terminal<'_>, trail: &Trail) -> anyhow::Result<()> {
    write!(terminal.out, "\n{}", trail.text())?;
    Ok(())
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
