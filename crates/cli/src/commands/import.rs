//! `import`: appends events from a JSON Lines file, with progress and a summary.

use crate::context::Context;
use crate::input::{not_events, open_events};
use crate::pass_report::pass_words;
use crate::terminal::{Terminal, counted};
use crate::{CommandResult, Exit};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ipse::{Refusal, Rule, SystemHost};
use ipse_engine::TYPE_HINT;
use ipse_exchange::{Imported, MAX_LISTED, Options, Progress, Signing, import};
use ipse_store::Signatures;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Refusals that are printed; the others are counted.
pub(crate) const MAX_PRINTED: u64 = 20;
/// A bar appears on work that takes longer than this.
const BAR_AFTER: Duration = Duration::from_secs(1);

/// Append events from a JSON Lines file and update the facts
///
/// Each line is one CloudEvents object with id, source, type (or kind), time and data. Valid lines
/// are stored. Refused lines are listed with their number, field and rule. Importing a file again
/// is safe: stored events count as duplicates. One pass runs at the end.
///
/// A line that facts are learned from, wrapped here to fit:
/// {"id":"7","source":"arm","type":"execution_result","time":"2026-05-06T10:00:00Z","data":
/// {"skill_id":"grasp","target_class":"cup","environment":"ward3","params":{"force_n":25},
/// "success":false,"failure_reason":"slip","zone":"dock","object":{"mass_g":180}}}
///
/// Exit 1 if a line was refused or conflicts with a stored event.
///
/// Example: zcat week.jsonl.gz | ipse import -
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The file, plain or gzip; - for standard input
    pub(crate) file: PathBuf,
    /// Store the events without running a pass
    #[arg(long)]
    pub(crate) no_consolidate: bool,
    /// Verify and store the signatures in a file that `ipse sign` wrote
    #[arg(long)]
    pub(crate) signed: bool,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    // The input is opened first, so that a mistyped name does not touch the store.
    let (input, size) = open_events(&args.file)?;
    let mut log = context.write(terminal)?;
    let signing = args.signed.then(|| signing(context, terminal)).transpose()?;
    let (live, consolidate) = (args.file == Path::new("-"), !args.no_consolidate);
    let options = Options { live, signing, consolidate };
    let durable = Arc::new(AtomicU64::new(0));
    watch_interrupts(durable.clone())?;
    let bar = Bar::new(size, terminal.shows_bars());
    let mut reporter = ImportReporter { bar, terminal, refused: 0, durable };
    let input = reporter.bar.bar.wrap_read(input);
    let host = &mut SystemHost::new();
    let done = import(&mut log, input, &options, host, &mut |progress| reporter.report(progress));
    reporter.bar.bar.finish_and_clear();
    let refused = reporter.refused;
    let done = done.map_err(|error| not_events(error, &args.file, "import"))?;
    summarise(context, terminal, args, &done, refused)?;
    let signed_head = context.tell_head(terminal, &mut log)?;
    Ok(Exit::fine_if(done.is_clean() && signed_head))
}

/// Ends the process at an interrupt, and prints how far the import came. Ending is safe at any
/// moment: a batch is stored completely or not at all.
fn watch_interrupts(durable: Arc<AtomicU64>) -> anyhow::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let line = durable.load(Ordering::Relaxed);
            let _ = writeln!(
                std::io::stderr(),
                "\nstopped: lines up to {line} are stored; run the same command again to continue"
            );
            std::process::exit(128 + signal);
        }
    });
    Ok(())
}

/// The producers whose signatures count. Prints a note if there are none.
fn signing(context: &Context, terminal: &mut Terminal<'_>) -> anyhow::Result<Signing> {
    let (reader, identity) = context.read_to_write(terminal)?;
    let signing = Signing::of(reader.view(&identity)?.view(), &identity)?;
    if signing.policy == Signatures::Off {
        let hint = "`ipse config signatures record` stores them";
        writeln!(terminal.err, "note: signatures are ignored for this identity: {hint}")?;
    } else if signing.producers.is_empty() {
        let hint = "`ipse key new producer NAME --source SOURCE --public KEY` registers one";
        writeln!(terminal.err, "note: no producer is registered for this identity: {hint}")?;
    }
    Ok(signing)
}

/// Reports the progress of an import.
struct ImportReporter<'t, 'o> {
    terminal: &'t mut Terminal<'o>,
    bar: Bar,
    /// Refused lines so far.
    refused: u64,
    /// The last durable line.
    durable: Arc<AtomicU64>,
}

impl ImportReporter<'_, '_> {
    /// A message that cannot be written is dropped, and the import continues.
    fn report(&mut self, progress: Progress<'_>) {
        let _ = match progress {
            Progress::Refused(line, refusal) => {
                self.refused += 1;
                match self.refused <= MAX_PRINTED {
                    true => writeln!(self.terminal.asks(), "line {line}: {refusal}"),
                    false => Ok(()),
                }
            }
            Progress::Durable { line, so_far, had_events } => {
                self.durable.store(line, Ordering::Relaxed);
                self.bar.durable(line);
                if !had_events || !self.terminal.verbose {
                    return;
                }
                let duplicates = counted(so_far.duplicates, "duplicate");
                let appended = so_far.appended;
                let err = &mut self.terminal.err;
                writeln!(err, "durable up to line {line}: {appended} appended, {duplicates}")
            }
        };
    }
}

/// Prints the summary.
fn summarise(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &Args,
    done: &Imported,
    printable: u64,
) -> anyhow::Result<()> {
    if printable > MAX_PRINTED {
        let more = printable - MAX_PRINTED;
        writeln!(terminal.err, "… and {more} more such lines (--json lists {MAX_LISTED})")?;
    }
    let envelope = |(_, refusal): &(u64, Refusal)| refusal.rule == Rule::WrongSignature;
    if !args.signed && done.listed.iter().any(envelope) {
        writeln!(terminal.err, "hint: the file has signatures; --signed verifies and stores them")?;
    }
    let Imported { appended, duplicates, conflicts, refused, .. } = done;
    let unsigned = (appended + duplicates).saturating_sub(done.signed);
    if args.signed && unsigned > 0 {
        writeln!(
            terminal.err,
            "note: {} without a valid signature. Signing the same events again gives them new \
             salts, so earlier signatures do not match",
            counted(unsigned, "event")
        )?;
    }
    if appended + duplicates + conflicts + refused == 0 {
        writeln!(terminal.err, "note: the input holds no event")?;
    }
    if done.misnamed > 0 {
        let events = counted(done.misnamed, "event");
        let (err, hint) = (&mut terminal.err, TYPE_HINT);
        writeln!(err, "hint: {events} of a type that ends in .execution_result: {hint}")?;
    }
    for (unused, count, line) in done.unused.iter() {
        let events = counted(count, "event");
        writeln!(terminal.err, "hint: {unused} ({events}, first in line {line})")?;
    }
    if done.unused.omitted > 0 {
        let more = counted(done.unused.omitted, "other member");
        writeln!(terminal.err, "hint: {more} feed no fact either")?;
    }
    if context.json {
        return Ok(terminal.json(&done.json())?);
    }
    let duplicates = counted(*duplicates, "duplicate");
    let conflicts = counted(*conflicts, "conflict");
    let signed = if args.signed { format!(", {} signed", done.signed) } else { String::new() };
    writeln!(
        terminal.out,
        "{appended} appended, {duplicates}, {conflicts}, {refused} refused{signed}"
    )?;
    if !args.no_consolidate {
        writeln!(terminal.out, "{}", pass_words(done.pass.as_ref()))?;
    }
    Ok(())
}

/// A progress bar that appears only on a terminal and only during long work.
struct Bar {
    bar: ProgressBar,
    watched: bool,
    started: Instant,
}

impl Bar {
    fn new(size: u64, watched: bool) -> Self {
        let bar = match size {
            0 => ProgressBar::no_length(),
            size => ProgressBar::new(size),
        };
        bar.set_draw_target(ProgressDrawTarget::hidden());
        let template = "{bar:20} {binary_bytes}/{binary_total_bytes} {eta} left, {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Bar { bar, watched, started: Instant::now() }
    }

    fn durable(&self, line: u64) {
        self.bar.set_message(format!("line {line} durable"));
        if self.watched && self.bar.is_hidden() && self.started.elapsed() > BAR_AFTER {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}
