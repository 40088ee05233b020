//! `bench`: measures the main jobs on this machine, in CPU and wall time.
//!
//! **Invariant:** a given store is only read; jobs that write use a copy.

mod jobs;
mod measure;
mod workload;

use crate::context::Context;
use crate::experiments::Machine;
use crate::terminal::Terminal;
use crate::vocabulary::{at_least_one, rule_set};
use crate::{CommandResult, Exit};
use ipse_consolidate::Rules;
use ipse_core::json::Members;
use ipse_reproduce::runtime::Instruments;
use jobs::Bench;
use measure::{Run, Spread};

/// Measure how fast the main jobs are on this machine
///
/// Measures on the given store, or with --events on a generated one: a stream of grasps with
/// --keys keys. A given store is only read: jobs that write use a copy.
///
/// Example: ipse bench rebuild --events 100000 --keys 2
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Measure this job
    #[arg(value_enum)]
    job: Job,
    /// Generate a store of N events
    #[arg(long, value_name = "N", value_parser = at_least_one::<u64>)]
    events: Option<u64>,
    /// Generate events with K keys; 2 is the paper's stream
    #[arg(long, value_name = "K", default_value_t = 2)]
    keys: u64,
    /// Let the generated log follow this rule set
    #[arg(long, value_name = "VERSION", default_value = "v1", requires = "events",
          value_parser = rule_set)]
    rules: Rules,
    /// Measure R times
    #[arg(long, value_name = "R", default_value_t = 9, value_parser = at_least_one::<usize>)]
    runs: usize,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Job {
    /// All facts recomputed from the log
    Rebuild,
    /// Import of 100000 more events, in durable batches, with one pass at the end
    Append,
    /// One more event, durable, with its pass
    Record,
    /// One fact by its key, in memory
    Lookup,
    /// The first page of a fact's evidence, and its sum
    Explain,
    /// The advice whether to attempt the skill with most observations
    MayAttempt,
    /// The advice which value of its first parameter to try, of 21 candidates; needs --rules v2
    Suggest,
    /// Opening the store, until its facts are read and a first event is durable
    Open,
    /// One event forgotten, until its bytes are gone
    Forget,
    /// Every tenth event forgotten at once, until their bytes are gone
    ForgetTenth,
    /// One more event and its pass, then a tree head over all, signed and durable
    Sign,
    /// The proof that an event is under the signed tree head
    Proof,
    /// Import of 102400 more events that a producer signed, 1024 at a time
    AppendSigned,
}

impl Job {
    fn name(self) -> &'static str {
        match self {
            Job::Rebuild => "rebuild",
            Job::Append => "append",
            Job::Record => "record",
            Job::Lookup => "lookup",
            Job::Explain => "explain",
            Job::MayAttempt => "may-attempt",
            Job::Suggest => "suggest",
            Job::Open => "open",
            Job::Forget => "forget",
            Job::ForgetTenth => "forget-tenth",
            Job::Sign => "sign",
            Job::Proof => "proof",
            Job::AppendSigned => "append-signed",
        }
    }

    /// Whether it uses a copy of the store.
    fn writes(self) -> bool {
        !matches!(self, Job::Rebuild | Job::Lookup | Job::Explain | Job::MayAttempt | Job::Suggest)
    }
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    let bench = Bench::prepare(context, terminal, args)?;
    let runs = match args.job {
        Job::Rebuild => bench.rebuild(args.runs),
        Job::Append => bench.append(args.runs),
        Job::Record => bench.record(args.runs),
        Job::Lookup => bench.lookup(args.runs),
        Job::Explain => bench.explain(args.runs),
        Job::MayAttempt => bench.may_attempt(args.runs),
        Job::Suggest => bench.suggest(args.runs),
        Job::Open => bench.open(args.runs),
        Job::Forget => bench.forget(args.runs, 1),
        Job::ForgetTenth => bench.forget(args.runs, bench.events / 10),
        Job::Sign => bench.sign(args.runs),
        Job::Proof => bench.proof(args.runs),
        Job::AppendSigned => bench.append_signed(args.runs),
    }?;
    report(&bench, context, terminal, args, &runs)?;
    Ok(Exit::Fine)
}

fn report(
    bench: &Bench,
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &Args,
    runs: &[Run],
) -> anyhow::Result<()> {
    let cpu = Spread::of(runs.iter().map(|run| run.cpu));
    let wall = Spread::of(runs.iter().map(|run| run.wall));
    let (done, spent) = runs.iter().fold((0, 0), |(n, t), run| (n + run.count, t + run.wall));
    let rate = i128::from(done) * 1_000_000_000 / spent.max(1);
    let disk = std::fs::metadata(bench.context.location.to_string())?.len();
    // 0 if the kernel does not report it.
    let peak = Machine::new().peak().unwrap_or(0);
    let job = args.job.name();
    if context.json {
        let json = Members::new()
            .text("job", job)
            .raw("events", bench.events)
            .raw("runs", args.runs)
            .raw("cpu_ms", cpu.json())
            .raw("wall_ms", wall.json())
            .raw("per_second", rate)
            .raw("peak_memory_bytes", peak)
            .raw("disk_bytes", disk)
            .finish();
        return Ok(terminal.json(&json)?);
    }
    writeln!(terminal.out, "{job} on {} events, {} runs", bench.events, args.runs)?;
    for (name, spread) in [("CPU ", cpu), ("wall", wall)] {
        writeln!(terminal.out, "  {name}  {}", spread.words())?;
    }
    writeln!(terminal.out, "  {rate} a second; peak memory {} MB", peak / 1_000_000)?;
    writeln!(terminal.out, "  {} MB on disk", disk / 1_000_000)?;
    Ok(())
}
