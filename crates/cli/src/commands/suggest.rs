//! `suggest`: names the value of a parameter to try next.

use crate::context::Context;
use crate::gate_files::registry;
use crate::position::note_pending;
use crate::terminal::Terminal;
use crate::vocabulary::Planned;
use crate::{CommandResult, Exit};
use anyhow::anyhow;
use ipse_core::Micro;
use ipse_inspect::{Look, ValueAdvice, default_candidates};
use ipse_plan::{BadCandidates, Candidates, number};
use std::path::PathBuf;

/// Name the value of a parameter to try next
///
/// The answer is the candidate that could still be the best, given the newest attempts: it tries
/// where little is known, and stops where enough is known. Give the candidates as a list, or as a
/// range, or let the registry's bounds make a list of 21. Use about 25 candidates at most, because
/// each must be tried before it can be ruled out. It is advice: the gates judge the value as any
/// other. See docs/guide/planning.md.
///
/// Examples: ipse suggest --skill grasp --target cup --param force_n --candidates 20,25,30; ipse
/// suggest --skill grasp --param force_n --from 5 --to 45 --step 2
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    planned: Planned,
    /// Choose a value of this parameter
    #[arg(long, value_name = "NAME")]
    param: String,
    /// Choose among these values
    #[arg(long, value_name = "A,B,C", allow_hyphen_values = true, value_parser = Candidates::parse)]
    candidates: Option<Candidates>,
    /// Choose among values from this one
    #[arg(
        long,
        value_name = "A",
        allow_hyphen_values = true,
        value_parser = number,
        requires_all = ["to", "step"],
        conflicts_with = "candidates"
    )]
    from: Option<Micro>,
    /// … up to this one
    #[arg(
        long,
        value_name = "B",
        allow_hyphen_values = true,
        value_parser = number,
        requires = "from"
    )]
    to: Option<Micro>,
    /// … in steps of this size
    #[arg(
        long,
        value_name = "C",
        allow_hyphen_values = true,
        value_parser = number,
        requires = "from"
    )]
    step: Option<Micro>,
    /// Choose among 21 values between the bounds in this registry
    #[arg(long, value_name = "FILE", conflicts_with_all = ["candidates", "from"])]
    ecm_registry: Option<PathBuf>,
    /// Begin near this value while nothing has worked yet [default: the middle candidate]
    #[arg(long, value_name = "V", allow_hyphen_values = true, value_parser = number)]
    prefer: Option<Micro>,
}

impl Args {
    fn candidates(
        &self,
        manifest: impl FnOnce() -> anyhow::Result<String>,
    ) -> anyhow::Result<Candidates> {
        let made = match (&self.candidates, self.from.zip(self.to).zip(self.step)) {
            (Some(list), _) => return Ok(list.clone()),
            (None, Some(((from, to), step))) => Candidates::range(from, to, step),
            (None, None) => match &self.ecm_registry {
                Some(path) => {
                    let registry = registry(path, &manifest()?)?;
                    default_candidates(&registry, None, &self.planned.attempt(), &self.param)
                }
                None => Err(BadCandidates::None),
            },
        };
        made.map_err(|bad| {
            let hint = match (&self.ecm_registry, &bad) {
                (Some(_), BadCandidates::None) => {
                    "the registry gives this parameter of the skill no minimum and maximum: give \
                     --candidates A,B,C, or --from, --to and --step"
                }
                _ => "give --candidates A,B,C, or --from, --to and --step, or --ecm-registry FILE",
            };
            anyhow!("bad_candidates: {bad}; {hint}")
        })
    }
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let (reader, identity) = context.read()?;
    let manifest = || Ok(Look::at(context.store()?, identity).standing()?.manifest);
    let candidates = args.candidates(manifest)?;
    let snapshot = reader.view(&identity)?;
    let view = snapshot.view();
    note_pending(terminal, view, &view.progress()?)?;
    let planned = args.planned.attempt();
    let advice =
        ValueAdvice::read(view, &identity, &planned, &args.param, &candidates, args.prefer)?;
    match context.json {
        true => terminal.json(&advice.json())?,
        false => terminal.page(&advice.page())?,
    }
    Ok(Exit::Fine)
}
