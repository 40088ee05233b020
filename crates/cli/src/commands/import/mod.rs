//! `import`: appends events from JSON Lines files, with progress and a summary.
//!
//! **Invariants:** every file is opened and its format recognised before the first event is stored,
//! so a wrong name among several stores nothing. A dry run opens the store for reading only.

mod reporter;
mod summary;

use crate::context::Context;
use crate::input::{check_events, not_events, open_events};
use crate::terminal::{Terminal, shown};
use crate::{CommandResult, Exit};
use anyhow::{Context as _, bail};
use ipse::SystemHost;
use ipse_engine::{Host, Log, Rehearsal, Trigger};
use ipse_exchange::{Error, Imported, ImportedFiles, Options, Signing, import, rehearse};
use ipse_store::Signatures;
use reporter::ImportReporter;
use std::path::{Path, PathBuf};

/// Refusals that are printed; the others are counted.
pub(crate) const MAX_PRINTED: u64 = 20;

/// Append events from JSON Lines files and update the facts
///
/// Each line is one CloudEvents object with id, source, type (or kind), time and data. Valid lines
/// are stored. Refused lines are listed with their number, field and rule. Importing a file again
/// is safe: stored events count as duplicates. One pass runs at the end.
///
/// Several files are one import: if one of them cannot be opened or is not JSON Lines, nothing is
/// stored. A refused line stops neither its file nor the files after it.
///
/// A line that facts are learned from, wrapped here to fit:
/// {"id":"7","source":"arm","type":"execution_result","time":"2026-05-06T10:00:00Z","data":
/// {"skill_id":"grasp","target_class":"cup","environment":"ward3","params":{"force_n":25},
/// "success":false,"failure_reason":"slip","zone":"dock","object":{"mass_g":180}}}
///
/// The summary lists members that are stored and feed no fact, with a correction where one is
/// known.
///
/// Exit 1 if a line was refused or conflicts with a stored event.
///
/// Example: zcat week.jsonl.gz | ipse import -
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The files, plain or gzip; - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Store the events without running a pass
    #[arg(long)]
    pub(crate) no_consolidate: bool,
    /// Verify and store the signatures in a file that `ipse sign` wrote
    #[arg(long)]
    pub(crate) signed: bool,
    /// Count what would be stored, with duplicates, conflicts and refused lines, and store nothing
    #[arg(long, conflicts_with_all = ["no_consolidate", "signed"])]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    // Checked first, so that a mistyped name does not touch the store.
    let size = check(&args.files)?;
    if args.dry_run {
        let (reader, identity) = context.read()?;
        let snapshot = reader.view(&identity)?;
        let now = SystemHost::new().now();
        let mut rehearsal = Rehearsal::of(snapshot.view(), now)?;
        let mut reporter = ImportReporter::new(terminal, &args.files, size)?;
        let all = each(&mut reporter, args, |input, reporter, options| {
            let host = &mut SystemHost::new();
            rehearse(&mut rehearsal, input, options, host, &mut |it| reporter.report(it))
        })?;
        let (all, refused) = (ImportedFiles { dry_run: true, ..all }, reporter.finish());
        summary::print(context, terminal, args, &all, refused)?;
        return Ok(Exit::fine_if(all.is_clean()));
    }
    let mut log = context.write(terminal)?;
    let signing = args.signed.then(|| signing(context, terminal)).transpose()?;
    let mut reporter = ImportReporter::new(terminal, &args.files, size)?;
    let mut all = each(&mut reporter, args, |input, reporter, options| {
        let options = Options { signing: signing.clone(), ..*options };
        let host = &mut SystemHost::new();
        import(&mut log, input, &options, host, &mut |it| reporter.report(it))
    })?;
    let refused = reporter.finish();
    all.pass = pass(&mut log, args)?;
    summary::print(context, terminal, args, &all, refused)?;
    let signed_head = context.tell_head(terminal, &mut log)?;
    Ok(Exit::fine_if(all.is_clean() && signed_head))
}

/// Checks that every input exists and is JSON Lines. Returns the size of all files.
fn check(files: &[PathBuf]) -> anyhow::Result<u64> {
    if files.iter().filter(|file| is_stdin(file)).count() > 1 {
        bail!("- is given twice; standard input can be read once");
    }
    files.iter().map(|file| check_events(file, "import")).sum()
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// An open file of events.
type Input = Box<dyn std::io::Read + Send>;

/// Imports one file after the other.
fn each(
    reporter: &mut ImportReporter<'_, '_>,
    args: &Args,
    mut one: impl FnMut(Input, &mut ImportReporter<'_, '_>, &Options) -> Result<Imported, Error>,
) -> anyhow::Result<ImportedFiles> {
    let mut all = ImportedFiles::default();
    for (place, file) in args.files.iter().enumerate() {
        let input = reporter.begin(place, open_events(file)?);
        let options = Options { live: is_stdin(file), signing: None, consolidate: false };
        let done = one(input, reporter, &options);
        let done = done.map_err(|error| not_events(error, file, "import"));
        let done = match place {
            0 => done?,
            _ => done.with_context(|| {
                format!("stopped in {}; the files before it are stored", shown(file))
            })?,
        };
        all.files.push((shown(file), done));
    }
    Ok(all)
}

/// Runs the pass at the end.
fn pass(log: &mut Log, args: &Args) -> anyhow::Result<Option<ipse_engine::PassReport>> {
    if args.no_consolidate {
        return Ok(None);
    }
    Ok(log.consolidate(Trigger::Manual).map_err(Error::Pass)?)
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
