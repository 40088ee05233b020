//! `import`: events from a JSON Lines file, with a report while it goes on and at the end.

use crate::context::Context;
use crate::hints::shell_word;
use crate::input::open_events;
use crate::pass_report::pass_words;
use crate::terminal::{Terminal, counted, shown};
use crate::{CommandResult, Exit};
use anyhow::anyhow;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ipse::{Refusal, Rule, SystemHost};
use ipse_engine::TYPE_HINT;
use ipse_exchange::{Error, Imported, MAX_LISTED, Options, Progress, Signing, import};
use ipse_store::Signatures;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Refusals that are printed; the others are counted.
pub(crate) const MAX_TOLD: u64 = 20;
/// A bar appears on work that takes longer than this.
const BAR_AFTER: Duration = Duration::from_secs(1);

/// Append events from a JSON Lines file, and renew the facts
///
/// One CloudEvents object a line: id, source, type (or kind), time, data. Good lines are
/// stored, bad ones are listed with their line number, field and rule. Sending a file again is
/// safe: what is there already counts as a duplicate. One pass follows at the end.
///
/// A line that teaches:
/// {"id":"7","source":"arm","type":"execution_result","time":"2026-05-06T10:00:00Z","data":
/// {"skill_id":"grasp","target_class":"cup","environment":"ward3","params":{"force_n":25},
/// "success":false,"failure_reason":"slip","zone":"dock","object":{"mass_g":180}}}
///
/// Exit 1 if a line was refused or in conflict with an event in the log.
///
/// Example: zcat week.jsonl.gz | ipse import -
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The file, plain or gzip; - for standard input
    pub(crate) file: PathBuf,
    /// Store the events but leave the facts as they are
    #[arg(long)]
    pub(crate) no_consolidate: bool,
    /// The file is one that `ipse sign` made: check who signed the events, and keep that
    #[arg(long)]
    pub(crate) signed: bool,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    // The input is opened first: a mistyped name must not touch the store.
    let (input, size) = open_events(&args.file)?;
    let mut log = context.write(terminal)?;
    let signing = args.signed.then(|| signing(context, terminal)).transpose()?;
    let (live, consolidate) = (args.file == Path::new("-"), !args.no_consolidate);
    let options = Options { live, signing, consolidate };
    let mut teller =
        ImportReporter { bar: Bar::new(size, terminal.shows_bars()), terminal, told: 0 };
    let input = teller.bar.bar.wrap_read(input);
    let host = &mut SystemHost::new();
    let done = import(&mut log, input, &options, host, &mut |news| teller.tell(news));
    teller.bar.bar.finish_and_clear();
    let told = teller.told;
    let done = done.map_err(|error| match error {
        Error::IsBundle => is_bundle(&args.file),
        error => error.into(),
    })?;
    tell(context, terminal, args, &done, told)?;
    let signed_head = context.tell_head(terminal, &mut log)?;
    Ok(Exit::fine_if(done.is_clean() && signed_head))
}

/// The error of a bundle in the place of events, with the command that takes it in.
fn is_bundle(file: &Path) -> anyhow::Error {
    let (name, file) = match file == Path::new("-") {
        true => ("standard input".to_string(), "FILE".to_string()),
        false => (shown(file), shell_word(&file.to_string_lossy())),
    };
    anyhow!(
        "{name} is a bundle, and no file of events; nothing was stored. To take it in, unpacked if \
         it is gzip: ipse import-bundle {file} --trust log.vkey operator.pub"
    )
}

/// Whose signatures count; says so if none does.
fn signing(context: &Context, terminal: &mut Terminal<'_>) -> anyhow::Result<Signing> {
    let (reader, identity) = context.read_to_write(terminal)?;
    let signing = Signing::of(reader.view(&identity)?.view(), &identity)?;
    if signing.policy == Signatures::Off {
        let hint = "`ipse config signatures record` keeps them";
        writeln!(terminal.err, "note: signatures are passed over for this identity: {hint}")?;
    } else if signing.producers.is_empty() {
        let hint = "`ipse key new producer NAME --public KEY` registers one";
        writeln!(terminal.err, "note: no producer may sign for this identity: {hint}")?;
    }
    Ok(signing)
}

/// Reports an import while it goes on.
struct ImportReporter<'t, 'o> {
    terminal: &'t mut Terminal<'o>,
    bar: Bar,
    /// Refusals so far.
    told: u64,
}

impl ImportReporter<'_, '_> {
    /// Words that cannot be written are lost; the import goes on.
    fn tell(&mut self, news: Progress<'_>) {
        let _ = match news {
            Progress::Refused(line, refusal) => {
                self.told += 1;
                match self.told <= MAX_TOLD {
                    true => writeln!(self.terminal.asks(), "line {line}: {refusal}"),
                    false => Ok(()),
                }
            }
            Progress::Durable { line, so_far, had_events } => {
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

/// Sums up what was done.
fn tell(
    context: &Context,
    terminal: &mut Terminal<'_>,
    args: &Args,
    done: &Imported,
    told: u64,
) -> anyhow::Result<()> {
    if told > MAX_TOLD {
        let more = told - MAX_TOLD;
        writeln!(terminal.err, "… and {more} more such lines (--json lists {MAX_LISTED})")?;
    }
    let envelope = |(_, refusal): &(u64, Refusal)| refusal.rule == Rule::WrongSignature;
    if !args.signed && done.listed.iter().any(envelope) {
        writeln!(terminal.err, "hint: the file has signatures; --signed checks and keeps them")?;
    }
    let Imported { appended, duplicates, conflicts, refused, .. } = done;
    let unsigned = (appended + duplicates).saturating_sub(done.signed);
    if args.signed && unsigned > 0 {
        writeln!(
            terminal.err,
            "note: {} of them without a signature that counts (another salt than before is \
             another digest)",
            counted(unsigned, "event")
        )?;
    }
    if appended + duplicates + conflicts + refused == 0 {
        writeln!(terminal.err, "note: there was no event in the input")?;
    }
    if done.misnamed > 0 {
        let events = counted(done.misnamed, "event");
        let (err, hint) = (&mut terminal.err, TYPE_HINT);
        writeln!(err, "hint: {events} of a type that ends in .execution_result: {hint}")?;
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

/// A progress bar that shows itself only to a person, and only on long work.
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
