//! `explain`: shows the evidence of a fact, and the facts that an event feeds.

mod find;

use crate::context::{Context, stored_manifest};
use crate::gate_files::registry;
use crate::terminal::Terminal;
use crate::vocabulary::at_least_one;
use crate::{CommandResult, Exit};
use anyhow::bail;
use find::Found;
use ipse_core::{EventRef, Fact, Identity};
use ipse_engine::facts::Filter;
use ipse_engine::trail::{EVIDENCE, Listing, MAX_EVIDENCE};
use ipse_inspect::answer::clean;
use ipse_inspect::explain::{ExplainedEvent, Explanation, Units};
use ipse_inspect::prove;
use ipse_store::View;
use std::path::PathBuf;

/// Show the evidence of a fact, or the facts that an event feeds
///
/// Of a fact: the arithmetic in words, the attempts by value, the events it rests on (latest in
/// the log first, a hundred on a page) and the passes that folded them. Of an event: its entry,
/// its content, and the facts it feeds. Of an intent, a confirmation, or an outcome that names an
/// intent, also the trail: the intent, the verdict of the gates, the facts that the planner knew
/// then with their evidence, and the proofs.
///
/// For a parameter without a recommendation it says how many more successes would give one.
///
/// In place of a key, --skill, --target, --environment and --zone name its parts; a failure pattern
/// is chosen only if no other fact matches. Several matches are listed with their ids.
/// Exit 1 if nothing or more than one thing matches, or if the stored fact differs from its sum.
///
/// Example: ipse explain --skill manipulation.grasp --target glass_cup --env ward3
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Explain this: a fact id (fa_…), a fact key, or an event ref (ev_…); the first 4 digits of an
    /// id or a part of a key are enough if nothing else has them
    #[arg(value_name = "FACT_ID|FACT_KEY|EVENT_REF")]
    what: Option<String>,

    #[command(flatten)]
    parts: Parts,

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

    /// Take the units of parameters from this registry, the one that the manifest names [default:
    /// the one that `ipse init` or `ipse serve` stored]
    #[arg(long, value_name = "FILE")]
    ecm_registry: Option<PathBuf>,
}

/// The parts of a key, in place of a name.
#[derive(clap::Args, Debug)]
struct Parts {
    /// Explain the fact about this skill
    #[arg(long, value_name = "SKILL_ID", conflicts_with = "what")]
    skill: Option<String>,
    /// Explain the fact about this class of objects
    #[arg(long, value_name = "TARGET_CLASS", conflicts_with = "what")]
    target: Option<String>,
    /// Explain the fact about this environment
    #[arg(long, visible_alias = "env", conflicts_with = "what")]
    environment: Option<String>,
    /// Explain the fact about this zone
    #[arg(long, conflicts_with = "what")]
    zone: Option<String>,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let (reader, identity) = context.read()?;
    let snapshot = reader.view(&identity)?;
    let view = snapshot.view();
    let found = match &args.what {
        Some(what) => find::by_name(view, &identity, what)?,
        None => find::by_filter(view, &identity, &args.parts.filter()?)?,
    };
    if let Found::Event(event_ref) = found {
        return event(context, terminal, (view, &identity), args, &event_ref);
    }
    if args.proof {
        bail!("--proof needs an event ref (ev_…), such as those in a fact's evidence");
    }
    if args.all && args.page.is_some() {
        bail!("--all shows all evidence of a fact: leave --page out");
    }
    let asks = terminal.asks();
    match found {
        Found::Fact(fact) => {
            let page = (!args.all).then_some(args.page());
            let units = args.units(view, &stored_manifest(&reader, &identity)?, &fact)?;
            let explanation = Explanation::with_units(view, &identity, &fact, page, units)?;
            return tell(context, terminal, &explanation, page);
        }
        Found::Several(lines, more) => {
            writeln!(asks, "several match; give one of their ids:")?;
            lines.iter().try_for_each(|line| writeln!(asks, "  {line}"))?;
            if more > 0 {
                writeln!(asks, "  … and {more} more")?;
            }
        }
        Found::TooShort => {
            writeln!(asks, "a shortened id needs at least 4 of its 32 hex digits")?;
        }
        _ => {
            let what = args
                .what
                .as_deref()
                .map_or("like this".to_owned(), |what| format!("`{}`", clean(what)));
            writeln!(
                asks,
                "no fact or event {what}\n\
                 hint: give a fact id (fa_…), an event ref (ev_…), or a key that `ipse facts` \
                 shows; the beginning of an id or a part of a key is enough"
            )?;
        }
    }
    Ok(Exit::Found)
}

impl Parts {
    fn filter(&self) -> anyhow::Result<Filter> {
        let Parts { skill, target, environment, zone } = self;
        if [skill, target, environment, zone].iter().all(|part| part.is_none()) {
            bail!("give a fact id, a key or an event ref, or --skill, --target or --zone");
        }
        let (skill, target) = (skill.clone(), target.clone());
        let (environment, zone) = (environment.clone(), zone.clone());
        Ok(Filter { skill, target, environment, zone, ..Filter::default() })
    }
}

impl Args {
    fn page(&self) -> usize {
        self.page.map_or(1, |page| usize::try_from(page).unwrap_or(usize::MAX))
    }

    /// The units of the parameters of a fact's skill, from the given or the stored registry.
    fn units(&self, view: View<'_>, manifest: &str, fact: &Fact) -> anyhow::Result<Units> {
        let skill = fact.key.parts().into_iter().next().unwrap_or_default();
        match &self.ecm_registry {
            Some(path) => Ok(Units::of(&registry(path, manifest)?, &skill)),
            None => Ok(Units::stored(view, manifest, &skill)?),
        }
    }
}

/// Explains an event, or prints its proof.
fn event(
    context: &Context,
    terminal: &mut Terminal<'_>,
    (view, identity): (View<'_>, &Identity),
    args: &Args,
    event_ref: &EventRef,
) -> CommandResult {
    if args.proof {
        return proof(context, terminal, view, event_ref);
    }
    let evidence = if args.all { MAX_EVIDENCE } else { EVIDENCE };
    let listing = Listing { evidence, page: args.page() };
    let explained = ExplainedEvent::of(view, identity, event_ref, listing)?;
    let Some(event) = explained else { return no_event(terminal, event_ref) };
    match context.json {
        true => terminal.json(&event.json())?,
        false => terminal.page(&event.page())?,
    }
    Ok(Exit::fine_if(event.is_sound()))
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
