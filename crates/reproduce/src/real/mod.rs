//! V3's question asked of a real log: would facts have spared failures, and at what price?
//!
//! The protocol:
//! 1. Lines pass the door; what it refuses is counted and left out. A ref counts once, and the
//!    store tells which events are new. Order is by time, then by ref (then by content, where a
//!    source says two things under one id): in which order the lines stand does not matter.
//! 2. A *decision* is an event that supports a `skill_success_rate` fact: a skill was tried and
//!    succeeded or failed. All other events are part of the log too.
//! 3. The *history* is the first half of the decisions and everything that is not later than the
//!    last of them, so that no instant is cut in two. The agent lives through it; one pass follows.
//! 4. The planner then consults facts for each later decision, in order. It skips if the fact under
//!    the decision's key has a success rate below one half (V3's raw control); what it does not
//!    know it attempts. An attempt ends as it did in the log, and the agent lives through it. What
//!    was skipped the agent did not do: it is not appended, and nothing is learned from it.
//! 5. Passes come in three ways: none after the history (*frozen*), one before the first event of
//!    each UTC day (*daily*), one after each event (*per event*). A key that facts say to skip is
//!    either left alone (*never*) or tried all the same once a day has gone by since it was last
//!    tried (*after a day*). That makes six policies.
//!
//! What is skipped and had failed is a failure avoided; what is skipped and had succeeded is a
//! success lost. Fewer failures alone would reward skipping everything. So two figures compare with
//! skipping at random: the *lift*, (avoided / failures) / (skipped / decisions), which is 1 for it;
//! and the *gain*, avoided / failures − lost / successes, which is 0 for it. (Avoided / failures −
//! skipped / decisions is that gain times the share of successes: where nearly everything fails it
//! is near 0 for any planner, however good.) Decisions of one key hang together, so the interval of
//! the lift resamples keys.
//!
//! **Invariants**
//! - The planner knows what the table of the agent's store holds, and nothing else.
//! - Counts are exact; no figure is ever "not a number": what has no value is absent.

mod figures;
mod log;
mod page;
mod replay;
mod words;

pub use figures::{Counts, Interval};
pub use log::{Lines, Part};
pub use page::PROTOCOL;
pub use replay::{Passes, Policy, Retry, Run};

use crate::Error;
use crate::lab::Lab;
use ipse_core::Time;

/// A real log.
pub struct Source {
    /// The name of its file, for people.
    pub name: String,
    /// JSON Lines, one event each.
    pub lines: Vec<Vec<u8>>,
    /// Lines that are longer than any event may be, which count as refused.
    pub too_long: u64,
}

impl Source {
    /// The name of its table. Logs that are asked together need one each: files are called so.
    pub fn table_name(&self) -> String {
        page::table_name(&self.name)
    }
}

/// What a real log answers.
#[derive(Clone, PartialEq, Debug)]
pub struct Real {
    /// The name of the log's file.
    pub name: String,
    /// What became of its lines.
    pub lines: Lines,
    /// The last instant of the history; `None` if the log holds no decision.
    pub until: Option<Time>,
    /// What is not later than that.
    pub history: Part,
    /// What is later: the decisions that the planner takes.
    pub later: Part,
    /// What became of these under each policy, in the order of [`Policy::ALL`].
    pub runs: Vec<Run>,
}

/// Asks a log under all policies. `progress` gets the number of events that were replayed or
/// decided so far, and the total.
pub fn ask(
    lab: &Lab<'_>,
    source: &Source,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Real, Error> {
    let store = lab.fresh_store("real");
    let log = log::Log::read(&mut lab.agent(&store, "the log as it is")?, &source.lines)?;
    let of = (Policy::ALL.len() * log.events.len()) as u64;
    let mut done = 0;
    let mut step = |events: usize| {
        done += events as u64;
        progress(done, of);
    };
    let one = |policy| replay::replay(lab, &store, &log, policy, &mut step);
    let runs = Policy::ALL.into_iter().map(one).collect::<Result<_, _>>()?;
    let (history, later) = log.parts();
    let (mut lines, until) = (log.lines, log.until());
    lines.refused += source.too_long;
    Ok(Real { name: source.name.clone(), lines, until, history, later, runs })
}
