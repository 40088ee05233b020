//! `explain`: shows the evidence of a fact, and the facts that an event feeds.

use crate::context::Context;
use crate::terminal::Terminal;
use crate::vocabulary::at_least_one;
use crate::{CommandResult, Exit};
use anyhow::bail;
use ipse_core::{EventRef, Fact, FactId, FactKey, FactKind, Identity};
use ipse_engine::trail::{EVIDENCE, Listing, MAX_EVIDENCE};
use ipse_inspect::answer::clean;
use ipse_inspect::explain::{ExplainedEvent, Explanation};
use ipse_inspect::prove;
use ipse_store::View;

/// Show the evidence of a fact, or the facts that an event feeds
///
/// Of a fact: the arithmetic in words, the attempts by value, the events it rests on (latest in
/// the log first, a hundred on a page) and the passes that folded them. Of an event: its entry,
/// its content, and the facts it feeds. Of an intent, a confirmation, or an outcome that names an
/// intent, also the trail: the intent, the verdict of the gates, the facts that the planner knew
/// then with their evidence, and the proofs. A key of facts of several kinds lists them (exit 2).
/// Exit 1 if nothing has this name, or if the stored fact differs from its sum.
///
/// Example: ipse explain 'manipulation.grasp + glass_cup + ward3'
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Explain this: a fact id (fa_…), a fact key, or an event ref (ev_…)
    #[arg(value_name = "FACT_ID|FACT_KEY|EVENT_REF")]
    what: String,

    /// Show this page: of a fact, a hundred events of its evidence, newest first; of an action,
    /// fifty facts that the planner knew [default: 1]
    #[arg(long, value_name = "N", value_parser = at_least_one::<u64>)]
    page: Option<u64>,

    /// Show all evidence of a fact; of an action, a hundred events for each fact instead of ten
    #[arg(long)]
    all: bool,

    /// Print the proof that an event is in the signed log, as a C2SP tlog-proof file
    #[arg(long, conflicts_with_all = ["page", "all"])]
    proof: bool,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let view = snapshot.view();
    let page = args.page.map_or(1, |page| usize::try_from(page).unwrap_or(usize::MAX));
    if let Some(event_ref) = EventRef::parse(&args.what) {
        if args.proof {
            return proof(context, terminal, view, &event_ref);
        }
        let evidence = if args.all { MAX_EVIDENCE } else { EVIDENCE };
        let listing = Listing { evidence, page };
        let explained = ExplainedEvent::of(view, &identity, &event_ref, listing)?;
        let Some(event) = explained else { return no_event(terminal, &event_ref) };
        match context.json {
            true => terminal.json(&event.json())?,
            false => terminal.page(&event.page())?,
        }
        return Ok(Exit::fine_if(event.is_sound()));
    }
    if args.proof {
        bail!("--proof needs an event ref (ev_…), such as those in a fact's evidence");
    }
    if args.all && args.page.is_some() {
        bail!("--all shows all evidence of a fact: leave --page out");
    }
    match named(view, &identity, &args.what)?.as_slice() {
        [] => {
            let what = clean(&args.what);
            writeln!(
                terminal.asks(),
                "no fact or event `{what}`\n\
                 hint: give a fact id (fa_…), an event ref (ev_…), or a key that `ipse facts` shows"
            )?;
            Ok(Exit::Found)
        }
        [one] => {
            let page = (!args.all).then_some(page);
            let explanation = Explanation::of(view, &identity, one, page)?;
            tell(context, terminal, &explanation, page)
        }
        several => {
            let listed = several.iter().map(|fact| {
                let id = FactId::new(&identity, &fact.key);
                format!("\n  {id} {}", fact.key.kind())
            });
            bail!(
                "several facts have this key; give one of their ids:{}",
                listed.collect::<String>()
            )
        }
    }
}

/// Prints a page of an explanation, if it has that page.
fn tell(
    context: &Context,
    terminal: &mut Terminal<'_>,
    explanation: &Explanation,
    page: Option<usize>,
) -> CommandResult {
    let pages = explanation.pages();
    if let Some(page) = page.filter(|page| *page as u64 > pages) {
        writeln!(terminal.asks(), "no page {page}: the last page is {pages}")?;
        return Ok(Exit::Found);
    }
    match context.json {
        true => terminal.json(&explanation.json())?,
        false => {
            terminal.page(&explanation.page())?;
            if page.is_some() && pages > 1 {
                writeln!(terminal.err, "hint: --page N for another page, --all for all of them")?;
            }
        }
    }
    Ok(Exit::fine_if(explanation.true_to_sum))
}

/// Prints the proof file of an event, which can be verified without the store.
fn proof(
    context: &Context,
    terminal: &mut Terminal<'_>,
    view: View<'_>,
    event_ref: &EventRef,
) -> CommandResult {
    let Some(seq) = view.find(event_ref)? else { return no_event(terminal, event_ref) };
    let Some(proof) = prove(view, seq)? else {
        writeln!(
            terminal.err,
            "seq {seq} is not under a signed tree head yet\n\
             hint: run `ipse tree-head --sign`"
        )?;
        return Ok(Exit::Found);
    };
    if context.json {
        terminal.json(&proof.json())?;
    } else {
        terminal.out.write_all(proof.file.text().as_bytes())?;
        writeln!(terminal.err, "the entry it proves: {}", proof.entry.canonical())?;
    }
    Ok(Exit::Fine)
}

fn no_event(terminal: &mut Terminal<'_>, event_ref: &EventRef) -> CommandResult {
    writeln!(terminal.asks(), "no event {event_ref} in this log")?;
    Ok(Exit::Found)
}

/// Returns the facts with this id or key.
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
