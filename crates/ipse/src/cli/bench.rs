//! `bench`: how fast the main jobs are here, in CPU and wall time.
//!
//! **Invariant:** a store that is given is only read; jobs that write work on a copy.

use super::Exit;
use super::bench_args::{BenchArgs, BenchJob};
use super::context::Context;
use super::import;
use super::instruments::Machine;
use super::reading::cpu_micros;
use super::scratch::Scratch;
use super::terminal::Terminal;

use anyhow::{Context as _, bail};
use ipse::files::{self, Unfinished};
use ipse::{DirectoryNotary, Manifest, Policy, SystemHost};
use ipse_consolidate::V1;
use ipse_core::decimal::quotient;
use ipse_core::json::Members;
use ipse_core::{EventRef, FactKey, Identity, Seq, is_housekeeping};
use ipse_door::{Origin, admit};
use ipse_engine::explain::Explanation;
use ipse_engine::{Host, Known, Log, Then, Trigger, Which, prove, rebuild, sign_head};
use ipse_ledger::{NoteSigner, SecretKey, Sent, dsse};
use ipse_reproduce::Workload;
use ipse_reproduce::runtime::{Instruments, nearest_rank};
use ipse_store::sqlite::{Reader, Settings, create};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// Events that one run of `append` adds: enough for many durable batches.
const APPENDED: u64 = 100_000;
/// Events that one run of `append-signed` adds, and those under one signature.
const SIGNED_APPENDED: u64 = 102_400;
const SIGNED_TOGETHER: usize = 1024;
/// Records for each key before `record` measures.
const WARM_UP: u64 = 5;
/// A prime: keys are asked for far from each other.
const SPREAD: usize = 7919;
/// Lookups of one run.
const LOOKUPS: usize = 10_000;

pub(crate) fn run(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &BenchArgs,
) -> anyhow::Result<Exit> {
    let bench = Bench::prepare(context, terminal, args)?;
    let runs = match args.job {
        BenchJob::Rebuild => bench.rebuild(args.runs),
        BenchJob::Append => bench.append(args.runs),
        BenchJob::Record => bench.record(args.runs),
        BenchJob::Lookup => bench.lookup(args.runs),
        BenchJob::Explain => bench.explain(args.runs),
        BenchJob::Open => bench.open(args.runs),
        BenchJob::Forget => bench.forget(args.runs, 1),
        BenchJob::ForgetTenth => bench.forget(args.runs, bench.events / 10),
        BenchJob::Sign => bench.sign(args.runs),
        BenchJob::Proof => bench.proof(args.runs),
        BenchJob::AppendSigned => bench.append_signed(args.runs),
    }?;
    bench.report(context, terminal, args, &runs)?;
    Ok(Exit::Fine)
}

/// One measured run: CPU and wall time in nanoseconds, and how many things it did.
struct Run {
    cpu: i128,
    wall: i128,
    count: u64,
}

impl Run {
    fn of<T>(count: u64, job: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<Run> {
        let (cpu, wall) = (cpu_micros(), Instant::now());
        job()?;
        let wall = i128::try_from(wall.elapsed().as_nanos()).unwrap_or(i128::MAX);
        Ok(Run { cpu: (cpu_micros() - cpu) * 1000, wall, count })
    }
}

struct Bench {
    context: Context,
    identity: Identity,
    keys: u64,
    events: u64,
    directory: Scratch,
}

impl Bench {
    fn prepare(
        context: &Context,
        terminal: &mut Terminal<'_>,
        args: &BenchArgs,
    ) -> anyhow::Result<Self> {
        let directory = Scratch::new()?;
        let mut path = directory.path().join("bench.db");
        match args.events {
            Some(events) => generate(&path, events, args.keys, terminal)?,
            None if args.job.writes() => copy_store(&context.store, &path)?,
            None => path.clone_from(&context.store),
        }
        let context = Context::on(path);
        let (reader, identity) = context.read_or_migrate()?;
        if args.job.writes() {
            // A copy has no keys, and signs with its own.
            context.keys().create(&identity, &mut SystemHost::random, None)?;
        }
        let events = reader.view(&identity)?.view().head()?.0;
        Ok(Bench { context, identity, keys: args.keys, events, directory })
    }

    fn log(&self) -> anyhow::Result<Log<V1>> {
        let (mut out, mut err) = (std::io::sink(), std::io::sink());
        self.context.write(&mut Terminal::plain(&mut out, &mut err))
    }

    fn rebuild(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let reader = Reader::open(&self.context.store)?;
        let snapshot = reader.view(&self.identity)?;
        let checkpoint = snapshot.view().progress()?.checkpoint;
        let one = |_| Run::of(self.events, || Ok(rebuild(snapshot.view(), &V1, checkpoint)?));
        (0..runs).map(one).collect()
    }

    fn append(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let file = self.directory.path().join("more.jsonl");
        let mut from = self.events;
        let mut all = Vec::with_capacity(runs);
        for _ in 0..runs {
            write_lines(&file, Workload::new(self.keys, from).take(APPENDED as usize))?;
            from += APPENDED;
            let (mut out, mut err) = (std::io::sink(), std::io::sink());
            let mut quiet = Terminal::plain(&mut out, &mut err);
            let import = || import::run(&self.context, &mut quiet, &file, false, false);
            all.push(Run::of(APPENDED, import)?);
        }
        Ok(all)
    }

    fn record(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let mut log = self.log()?;
        let mut one = |line: String| {
            Run::of(1, || {
                let event = admit(line.as_bytes(), Origin::Producer, || log.host().salt())?;
                Ok(log.append(&[event], Then::Consolidate(Trigger::Threshold))?)
            })
        };
        let mut lines = Workload::new(self.keys, self.events);
        // A fact's sum is loaded when it is first touched: what is measured comes after that.
        let warm = usize::try_from(self.keys * WARM_UP).unwrap_or(usize::MAX);
        lines.by_ref().take(warm).try_for_each(|line| one(line).map(drop))?;
        lines.take(runs).map(one).collect()
    }

    fn lookup(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let reader = Reader::open(&self.context.store)?;
        let known = Known::read(reader.view(&self.identity)?.view())?;
        let keys: Vec<FactKey> = known.iter().map(|fact| fact.fact.key.clone()).collect();
        if keys.is_empty() {
            bail!("there are no facts to look up");
        }
        let mut all = Vec::with_capacity(runs * LOOKUPS);
        for number in 0..runs * LOOKUPS {
            let key = &keys[number * SPREAD % keys.len()];
            let begun = Instant::now();
            let found = std::hint::black_box(known.get(std::hint::black_box(key)));
            let wall = i128::try_from(begun.elapsed().as_nanos()).unwrap_or(i128::MAX);
            found.context("BUG: a known fact was not found")?;
            all.push(Run { cpu: wall, wall, count: 1 });
        }
        Ok(all)
    }

    /// One fact a run, spread over all of them: common ones, and rare ones whose evidence is old.
    fn explain(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let reader = Reader::open(&self.context.store)?;
        let snapshot = reader.view(&self.identity)?;
        let facts = snapshot.view().facts()?;
        if facts.is_empty() {
            bail!("there are no facts to explain");
        }
        let one = |number: usize| {
            let fact = &facts[number * SPREAD % facts.len()];
            Run::of(1, || Ok(Explanation::of(snapshot.view(), &self.identity, fact, Some(1))?))
        };
        (0..runs).map(one).collect()
    }

    fn open(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let one = |line: String| {
            Run::of(1, || {
                let memory = ipse::open(&self.context.store, self.identity, Policy::default())?;
                memory.append(line.as_bytes())??;
                Ok(memory)
            })
        };
        Workload::new(self.keys, self.events).take(runs).map(one).collect()
    }

    /// So many events a run, spread over the log; the same ones are never met twice.
    fn forget(&self, runs: usize, count: u64) -> anyhow::Result<Vec<Run>> {
        let mut names: Vec<Vec<EventRef>> = vec![Vec::new(); runs];
        let wanted = (count * runs as u64).max(1);
        let step = (self.events / wanted).max(1);
        let reader = Reader::open(&self.context.store)?;
        reader.view(&self.identity)?.view().each_entry(Seq(1)..=Seq(self.events), |entry, _| {
            let number = entry.seq.0 / step;
            if entry.seq.0.is_multiple_of(step) && !is_housekeeping(&entry.event_type) {
                names[number as usize % runs].push(entry.event_ref);
            }
            Ok::<_, ipse_store::Error>(())
        })?;
        drop(reader);
        let mut log = self.log()?;
        let mut one = |mut names: Vec<EventRef>| {
            names.truncate(usize::try_from(count).unwrap_or(usize::MAX));
            let done = names.len() as u64;
            Run::of(done, || Ok(log.forget(&Which::Refs(names))?))
        };
        names.into_iter().filter(|names| !names.is_empty()).map(&mut one).collect()
    }

    fn sign(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let notary = DirectoryNotary::open(&self.context.keys(), &self.identity, None)?;
        let mut log = self.log()?;
        log.sign_head()?;
        let one = |line: String| {
            let event = admit(line.as_bytes(), Origin::Producer, || log.host().salt())?;
            log.append(&[event], Then::Consolidate(Trigger::Threshold))?;
            Run::of(1, || Ok(sign_head(&self.context.store, &self.identity, &notary)?))
        };
        Workload::new(self.keys, self.events).take(runs).map(one).collect()
    }

    fn proof(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        self.log()?.sign_head()?;
        let reader = Reader::open(&self.context.store)?;
        let snapshot = reader.view(&self.identity)?;
        let one = |number: usize| {
            let seq = Seq(1 + (number * SPREAD) as u64 % self.events);
            Run::of(1, || prove(snapshot.view(), seq)?.context("BUG: a signed event has no proof"))
        };
        (0..runs).map(one).collect()
    }

    fn append_signed(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let seed = SystemHost::random();
        let signer = NoteSigner::new("bench", SecretKey::from_seed(&seed));
        let signer = signer.context("BUG: no key can be called bench")?;
        let mut settings = Settings::open(&self.context.store)?;
        settings.put_producer(&self.identity, &signer.public().to_string())?;
        let file = self.directory.path().join("signed.jsonl");
        let mut from = self.events;
        let mut all = Vec::with_capacity(runs);
        for _ in 0..runs {
            let lines = Workload::new(self.keys, from).take(SIGNED_APPENDED as usize);
            write_lines(&file, signed_lines(lines, &self.identity, &signer)?.into_iter())?;
            from += SIGNED_APPENDED;
            let (mut out, mut err) = (std::io::sink(), std::io::sink());
            let mut quiet = Terminal::plain(&mut out, &mut err);
            let import = || import::run(&self.context, &mut quiet, &file, false, true);
            all.push(Run::of(SIGNED_APPENDED, import)?);
        }
        Ok(all)
    }

    fn report(
        &self,
        context: &Context,
        terminal: &mut Terminal<'_>,
        args: &BenchArgs,
        runs: &[Run],
    ) -> anyhow::Result<()> {
        let cpu = Spread::of(runs.iter().map(|run| run.cpu));
        let wall = Spread::of(runs.iter().map(|run| run.wall));
        let (done, spent) = runs.iter().fold((0, 0), |(n, t), run| (n + run.count, t + run.wall));
        let rate = i128::from(done) * 1_000_000_000 / spent.max(1);
        let disk = std::fs::metadata(&self.context.store)?.len();
        // 0 if the kernel does not tell.
        let peak = Machine::new().peak().unwrap_or(0);
        let job = args.job.name();
        if context.json {
            let json = Members::new()
                .text("job", job)
                .raw("events", self.events)
                .raw("runs", args.runs)
                .raw("cpu_ms", cpu.json())
                .raw("wall_ms", wall.json())
                .raw("per_second", rate)
                .raw("peak_memory_bytes", peak)
                .raw("disk_bytes", disk)
                .finish();
            return Ok(terminal.json(&json)?);
        }
        writeln!(terminal.out, "{job} on {} events, {} runs", self.events, args.runs)?;
        for (name, spread) in [("CPU ", cpu), ("wall", wall)] {
            writeln!(terminal.out, "  {name}  {}", spread.words())?;
        }
        writeln!(terminal.out, "  {rate} a second; peak memory {} MB", peak / 1_000_000)?;
        writeln!(terminal.out, "  {} MB on disk", disk / 1_000_000)?;
        Ok(())
    }
}

/// Events in canonical form, with an envelope behind every 1024.
fn signed_lines(
    lines: impl Iterator<Item = String>,
    identity: &Identity,
    signer: &NoteSigner,
) -> anyhow::Result<Vec<String>> {
    let mut host = SystemHost::new();
    let events = lines.map(|line| admit(line.as_bytes(), Origin::Producer, || host.salt()));
    let events = events.collect::<Result<Vec<_>, _>>()?;
    let mut all = Vec::new();
    for batch in events.chunks(SIGNED_TOGETHER) {
        all.extend(batch.iter().map(|event| event.canonical.clone()));
        let events = batch.iter().map(|event| (event.event_ref, event.digest)).collect();
        all.push(dsse::sign(&Sent { identity: *identity, events }.statement(), signer));
    }
    Ok(all)
}

/// Nearest-rank figures of many runs, in nanoseconds.
struct Spread {
    median: i128,
    p90: i128,
    p99: i128,
}

impl Spread {
    fn of(values: impl Iterator<Item = i128>) -> Self {
        let mut values: Vec<i128> = values.collect();
        values.sort_unstable();
        let [median, p90, p99] = [50, 90, 99].map(|percent| nearest_rank(&values, percent));
        Spread { median, p90, p99 }
    }

    fn json(&self) -> String {
        let figure = |nanos: i128| quotient(nanos, 1_000_000, 6);
        Members::new()
            .raw("median", figure(self.median))
            .raw("p90", figure(self.p90))
            .raw("p99", figure(self.p99))
            .finish()
    }

    fn words(&self) -> String {
        let figure = |nanos: i128| match nanos {
            0..10_000 => format!("{nanos} ns"),
            10_000..10_000_000 => format!("{} µs", nanos / 1000),
            _ => format!("{} ms", nanos / 1_000_000),
        };
        let (median, p90, p99) = (figure(self.median), figure(self.p90), figure(self.p99));
        format!("median {median}, p90 {p90}, p99 {p99}")
    }
}

/// Makes a store with a workload in it.
fn generate(
    path: &Path,
    events: u64,
    keys: u64,
    terminal: &mut Terminal<'_>,
) -> anyhow::Result<()> {
    writeln!(terminal.err, "making a store of {events} events and {keys} keys …")?;
    let manifest = Manifest::new(|field| {
        Some(match field {
            "commissioned_at" => "2026-02-01T00:00:00Z".to_string(),
            hash if hash.ends_with("_hash") => "0".repeat(64),
            name => format!("bench {name}"),
        })
    })?;
    let identity = create(path)?.register(&manifest.canonical())?.identity;
    let context = Context::on(path.to_owned());
    context.keys().create(&identity, &mut SystemHost::random, None)?;
    let file = path.with_extension("jsonl");
    let count = usize::try_from(events).unwrap_or(usize::MAX);
    write_lines(&file, Workload::new(keys, 0).take(count))?;
    let (mut out, mut err) = (std::io::sink(), std::io::sink());
    let mut quiet = Terminal::plain(&mut out, &mut err);
    import::run(&context, &mut quiet, &file, false, false)?;
    Ok(std::fs::remove_file(file)?)
}

fn write_lines(file: &Path, lines: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let mut out = std::io::BufWriter::new(Unfinished::begin(file, files::ORDINARY)?);
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(out.into_inner()?.replace()?)
}

/// Copies a store: a given one is only read.
fn copy_store(from: &Path, to: &Path) -> anyhow::Result<()> {
    // Opened first, so that a missing or foreign file is told as everywhere else.
    let reader = Reader::open(from)?;
    reader.copy_to(to)?;
    Ok(())
}
