//! `explain`: why a fact says what it says, and what an event taught.

use crate::context::Context;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use anyhow::bail;
use ipse_core::{EventRef, Fact, FactId, FactKey, FactKind, Identity};
use ipse_engine::trail::{EVIDENCE, Listing, MAX_EVIDENCE};
use ipse_inspect::answer::clean;
use ipse_inspect::explain::{ExplainedEvent, Explanation};
use ipse_inspect::prove;
use ipse_store::View;

/// Show why a fact says what it says, or what an event taught
///
/// A fact: the arithmetic in words, the attempts by value, the events it rests on (latest in
/// the log first, a hundred at a time) and the passes that folded them. An event: its entry,
/// its content, and the facts it feeds. An intent, a confirmation, or an outcome that names an
/// intent: also the walk back from the action to its intent, what the gates said, what the
/// planner knew then with the evidence behind it, and the proofs. A key that names facts of
/// several kinds lists them (exit 2). Exit 1 if there is no such thing, or the stored fact is
/// not what its sum gives.
///
/// Example: ipse explain 'manipulation.grasp + glass_cup + ward3'
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// A fact id (fa_…), a fact key, or an event ref (ev_…)
    #[arg(value_name = "FACT_ID|FACT_KEY|EVENT_REF")]
    what: String,

    /// Which hundred events of a fact's evidence, from the end of the log on; of an action, which
    /// fifty facts that the planner knew [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    page: Option<u64>,

    /// All of a fact's evidence; of an action, a hundred events behind each fact instead of ten
    #[arg(long)]
    all: bool,

    /// The proof that an event is in the signed log, as a file: C2SP tlog-proof
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
            let explanation = Explanation::of(view, &identity, one, page)?;
            tell(context, terminal, &explanation, page)
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

/// Prints an explanation, if it has such a page.
fn tell(
    context: &Context,
    terminal: &mut Terminal<'_>,
    explanation: &Explanation,
    page: Option<usize>,
) -> CommandResult {
    let pages = explanation.pages();
    if let Some(page) = page.filter(|page| *page as u64 > pages) {
        writeln!(terminal.err, "there is no page {page}: the last one is {pages}")?;
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

/// Prints the proof file of an event, for a reader without the store.
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
             hint: `ipse tree-head --sign` signs one now"
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
    writeln!(terminal.err, "no event {event_ref} in this log")?;
    Ok(Exit::Found)
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
