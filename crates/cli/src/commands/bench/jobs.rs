//! The jobs of `bench`. Each is measured several times.

use super::Args;
use super::measure::Run;
use super::workload::{generate, import_quietly, signed_lines, write_lines};
use crate::context::Context;
use crate::scratch::Scratch;
use crate::terminal::Terminal;
use anyhow::{Context as _, bail};
use ipse::{Agent, DirectoryNotary, SystemHost};
use ipse_core::{EventRef, FactKey, FactKind, Identity, Seq, is_housekeeping};
use ipse_door::{Origin, admit};
use ipse_engine::facts::ScoredFact;
use ipse_engine::{FactTable, Host as _, Log, NextStep, Selection, Trigger, rebuild, sign_head};
use ipse_inspect::explain::Explanation;
use ipse_inspect::{AttemptAdvice, PlannedAttempt, ValueAdvice, prove};
use ipse_ledger::{NoteSigner, SecretKey};
use ipse_plan::{Candidates, Question};
use ipse_reproduce::Workload;
use ipse_store::Location;
use std::time::Instant;

/// Events that one run of `append` adds: enough for many durable batches.
const APPENDED: u64 = 100_000;
/// Events that one run of `append-signed` adds: a whole number of signatures.
const SIGNED_APPENDED: u64 = 102_400;
/// Records for each key before `record` measures.
const WARM_UP: u64 = 5;
/// A prime, so that consecutive lookups use distant keys.
const SPREAD: usize = 7919;
/// Candidates of a suggestion: as many as a registry gives.
const CANDIDATES: usize = 21;
/// Lookups of one run.
const LOOKUPS: usize = 10_000;

/// A store to measure on.
pub(super) struct Bench {
    pub(super) context: Context,
    identity: Identity,
    keys: u64,
    pub(super) events: u64,
    directory: Scratch,
}

impl Bench {
    pub(super) fn prepare(
        context: &Context,
        terminal: &mut Terminal<'_>,
        args: &Args,
    ) -> anyhow::Result<Self> {
        let directory = Scratch::new()?;
        let mut path = directory.path().join("bench.db");
        match args.events {
            Some(events) => generate(&path, events, args.keys, args.rules, terminal)?,
            None if args.job.writes() => context.store()?.copy_to(&path)?,
            None => path = context.location.path().context("only a file can be measured")?.into(),
        }
        let context = Context::on(Location::file(path));
        let (reader, identity) = context.read_to_write(terminal)?;
        if args.job.writes() {
            // A copy has no keys: create its own.
            context.keys().create(&identity, &mut SystemHost::random, None)?;
        }
        let events = reader.view(&identity)?.view().head()?.0;
        Ok(Bench { context, identity, keys: args.keys, events, directory })
    }

    fn log(&self) -> anyhow::Result<Log> {
        let (mut out, mut err) = (std::io::sink(), std::io::sink());
        self.context.write(&mut Terminal::plain(&mut out, &mut err))
    }

    pub(super) fn rebuild(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let reader = self.context.store()?.reader()?;
        let snapshot = reader.view(&self.identity)?;
        let checkpoint = snapshot.view().progress()?.checkpoint;
        let one = |_| Run::of(self.events, || Ok(rebuild(snapshot.view(), checkpoint)?));
        (0..runs).map(one).collect()
    }

    pub(super) fn append(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let file = self.directory.path().join("more.jsonl");
        let mut from = self.events;
        let mut all = Vec::with_capacity(runs);
        for _ in 0..runs {
            write_lines(&file, Workload::new(self.keys, from).take(APPENDED as usize))?;
            from += APPENDED;
            let import = || import_quietly(&self.context, &file, false);
            all.push(Run::of(APPENDED, import)?);
        }
        Ok(all)
    }

    pub(super) fn record(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let mut log = self.log()?;
        let mut one = |line: String| {
            Run::of(1, || {
                let event = admit(line.as_bytes(), Origin::Producer, || log.host().salt())?;
                Ok(log.append(&[event], NextStep::Consolidate(Trigger::Threshold))?)
            })
        };
        let mut lines = Workload::new(self.keys, self.events);
        // The tally of a fact is loaded at its first change, so warm up before measuring.
        let warm = usize::try_from(self.keys * WARM_UP).unwrap_or(usize::MAX);
        lines.by_ref().take(warm).try_for_each(|line| one(line).map(drop))?;
        lines.take(runs).map(one).collect()
    }

    pub(super) fn lookup(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let reader = self.context.store()?.reader()?;
        let known = FactTable::read(reader.view(&self.identity)?.view())?;
        let keys: Vec<FactKey> = known.iter().map(|fact| fact.fact.key.clone()).collect();
        if keys.is_empty() {
            bail!("the store has no facts to look up");
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

    /// Explains one fact in each run, spread over all: also rare ones, whose evidence is old.
    pub(super) fn explain(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let reader = self.context.store()?.reader()?;
        let snapshot = reader.view(&self.identity)?;
        let facts = snapshot.view().facts()?;
        if facts.is_empty() {
            bail!("the store has no facts to explain");
        }
        let one = |number: usize| {
            let fact = &facts[number * SPREAD % facts.len()];
            Run::of(1, || Ok(Explanation::of(snapshot.view(), &self.identity, fact, Some(1))?))
        };
        (0..runs).map(one).collect()
    }

    /// The fact about a skill with most observations: its parts, and its first parameter.
    fn busiest(&self) -> anyhow::Result<(PlannedAttempt, Option<String>)> {
        let reader = self.context.store()?.reader()?;
        let facts = reader.view(&self.identity)?.view().facts()?;
        let skills = facts.into_iter().map(ScoredFact::new).collect::<Result<Vec<_>, _>>()?;
        let rates = skills.iter().filter(|one| one.fact.key.kind() == FactKind::SkillSuccessRate);
        let most = rates.max_by_key(|one| one.n_observations);
        let most = most.context("the store has no fact about a skill")?;
        let parts = most.fact.key.parts();
        let planned = PlannedAttempt::new(&parts[0], Some(&parts[1]), Some(&parts[2]));
        let value = most.value();
        let params = value.get("params").and_then(|params| params.as_object());
        let first = params.and_then(|params| params.iter().next());
        Ok((planned, first.map(|(name, _)| name.to_owned())))
    }

    pub(super) fn may_attempt(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let (planned, _) = self.busiest()?;
        let reader = self.context.store()?.reader()?;
        let snapshot = reader.view(&self.identity)?;
        let question = Question::at(SystemHost::new().now());
        let one = |_| {
            let ask =
                || Ok(AttemptAdvice::read(snapshot.view(), &self.identity, &planned, &question)?);
            Run::of(1, ask)
        };
        (0..runs).map(one).collect()
    }

    pub(super) fn suggest(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let (planned, param) = self.busiest()?;
        let param = param.context("the fact with most observations has no parameter")?;
        let reader = self.context.store()?.reader()?;
        let snapshot = reader.view(&self.identity)?;
        let values: Vec<f64> = (0..CANDIDATES).map(|place| 5.0 + 2.0 * place as f64).collect();
        let candidates = Candidates::numbers(&values)?;
        let one = |_| {
            let ask = || {
                let view = snapshot.view();
                let identity = &self.identity;
                Ok(ValueAdvice::read(view, identity, &planned, &param, &candidates, None)?)
            };
            Run::of(1, ask)
        };
        (0..runs).map(one).collect()
    }

    pub(super) fn open(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let one = |line: String| {
            Run::of(1, || {
                let memory =
                    Agent::open(self.context.location.to_string(), self.identity)?.memory().clone();
                memory.append(line.as_bytes())??;
                Ok(memory)
            })
        };
        Workload::new(self.keys, self.events).take(runs).map(one).collect()
    }

    /// Forgets `count` events in each run, spread over the log; no event is selected twice.
    pub(super) fn forget(&self, runs: usize, count: u64) -> anyhow::Result<Vec<Run>> {
        let mut names: Vec<Vec<EventRef>> = vec![Vec::new(); runs];
        let wanted = (count * runs as u64).max(1);
        let step = (self.events / wanted).max(1);
        let reader = self.context.store()?.reader()?;
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
            Run::of(done, || Ok(log.forget(&Selection::Refs(names))?))
        };
        names.into_iter().filter(|names| !names.is_empty()).map(&mut one).collect()
    }

    pub(super) fn sign(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let notary = DirectoryNotary::open(&self.context.keys(), &self.identity, None)?;
        let mut log = self.log()?;
        log.sign_head()?;
        let one = |line: String| {
            let event = admit(line.as_bytes(), Origin::Producer, || log.host().salt())?;
            log.append(&[event], NextStep::Consolidate(Trigger::Threshold))?;
            Run::of(1, || Ok(sign_head(self.context.store()?, &self.identity, &notary)?))
        };
        Workload::new(self.keys, self.events).take(runs).map(one).collect()
    }

    pub(super) fn proof(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        self.log()?.sign_head()?;
        let reader = self.context.store()?.reader()?;
        let snapshot = reader.view(&self.identity)?;
        let one = |number: usize| {
            let seq = Seq(1 + (number * SPREAD) as u64 % self.events);
            Run::of(1, || prove(snapshot.view(), seq)?.context("BUG: a signed event has no proof"))
        };
        (0..runs).map(one).collect()
    }

    pub(super) fn append_signed(&self, runs: usize) -> anyhow::Result<Vec<Run>> {
        let seed = SystemHost::random();
        let signer = NoteSigner::new("bench", SecretKey::from_seed(&seed));
        let signer = signer.context("BUG: bench is not a valid key name")?;
        let mut settings = self.context.store()?.settings()?;
        settings.put_producer(&self.identity, &signer.public().to_string(), None)?;
        let file = self.directory.path().join("signed.jsonl");
        let mut from = self.events;
        let mut all = Vec::with_capacity(runs);
        for _ in 0..runs {
            let lines = Workload::new(self.keys, from).take(SIGNED_APPENDED as usize);
            write_lines(&file, signed_lines(lines, &self.identity, &signer)?.into_iter())?;
            from += SIGNED_APPENDED;
            let import = || import_quietly(&self.context, &file, true);
            all.push(Run::of(SIGNED_APPENDED, import)?);
        }
        Ok(all)
    }
}
