//! V3 on a real log: how many failures would facts have avoided, and how many successes lost?
//!
//! The protocol:
//! 1. The door validates the lines; rejected lines are counted and left out. A ref counts once; the
//!    store detects duplicates. Events are ordered by time, then by ref, then by content if a
//!    source used one id twice. The order of the lines does not matter.
//! 2. A *decision* is an event that supports a `skill_success_rate` fact: an attempt at a skill
//!    that succeeded or failed. All other events are part of the log too.
//! 3. The *history* is the first half of the decisions and everything that is not later than the
//!    last of them, so that events of one instant stay together. The agent records it, and one pass
//!    follows.
//! 4. The planner then consults facts for each later decision, in order. It skips the decision if
//!    the fact of its key has a success rate below one half (V3's raw control), and attempts it if
//!    there is no fact. An attempt ends as it did in the log, and the agent records it. A skipped
//!    event did not happen to the agent: it is not appended, and no fact uses it.
//! 5. Passes run in three ways: none after the history (*frozen*), one before the first event of
//!    each UTC day (*daily*), one after each event (*per event*). A key with a low rate is either
//!    never attempted again (*never*), or attempted again if its last attempt is at least a day old
//!    (*after a day*). That makes six policies.
//!
//! A skipped decision that had failed is a failure avoided; one that had succeeded is a success
//! lost. Counting failures alone would reward skipping everything. So two figures compare with
//! skipping at random: the *lift*, (avoided / failures) / (skipped / decisions), which is 1 for it;
//! and the *gain*, avoided / failures − lost / successes, which is 0 for it. (Avoided / failures −
//! skipped / decisions is that gain times the share of successes: where nearly everything fails it
//! is near 0 for any planner, however good.) Decisions of one key are correlated, so the interval
//! of the lift resamples keys.
//!
//! **Invariants**
//! - The planner reads the fact table of the agent's store and nothing else.
//! - Counts are exact. No figure is NaN: a figure without a value is absent.

mod figures;
mod log;
mod page;
mod replay;
mod words;

pub use figures::{Counts, Interval};
pub(crate) use figures::{interval, ratio};
pub(crate) use log::order;
pub use log::{Lines, Part};
pub use page::PROTOCOL;
pub(crate) use page::table_name;
pub use replay::{Passes, Policy, Retry, Run};
pub(crate) use words::FEW as FEW_KEYS;

use crate::Error;
use crate::lab::Lab;
use ipse_core::Time;

/// A real log.
pub struct Source {
    /// The name of the file, as shown in tables.
    pub name: String,
    /// JSON Lines, one event per line.
    pub lines: Vec<Vec<u8>>,
    /// Lines that are longer than any event may be; they count as rejected.
    pub too_long: u64,
}

impl Source {
    /// The name of its table. Logs of one run need distinct names, because files are named after
    /// them.
    pub fn table_name(&self) -> String {
        page::table_name(&self.name)
    }
}

/// The results of a real log.
#[derive(Clone, PartialEq, Debug)]
pub struct Real {
    /// The name of the log's file.
    pub name: String,
    /// The lines of the log by result.
    pub lines: Lines,
    /// The last instant of the history; `None` if the log has no decision.
    pub until: Option<Time>,
    /// Counts up to that instant.
    pub history: Part,
    /// Counts after that instant: the decisions of the planner.
    pub later: Part,
    /// The results of each policy, in the order of [`Policy::ALL`].
    pub runs: Vec<Run>,
}

/// Runs a log under all policies. `progress` receives the number of events that were replayed or
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
