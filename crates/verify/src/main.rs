//! The auditor's program: verifies a bundle, without a database and without a network.
//!
//! **Invariants**
//! - It reads the files it is given and writes none. It opens no connection, and contains no code
//!   that could.
//! - Keys inside a bundle are never trusted: without a key of the auditor it does not start.
//! - Of a bundle that did not pass, only the failed checks are reported.
//! - Exit 0: verified. 1: something does not hold, or there is no such action. 2: could not run.
#![forbid(unsafe_code)]

mod args;
mod input;
mod report;

use anyhow::Context;
use args::Args;
use clap::Parser;
use clap::error::ErrorKind;
use input::HintedError;
use ipse_bundle::trail::{Found, Listing, Trail};
use ipse_bundle::{Again, EventRef, GatesInput, Opened, Report, WhyError};
use ipse_gates::read_gates;
use std::io::{self, IsTerminal, Write};
use std::process::{self, ExitCode};

fn main() -> ExitCode {
    let args = Args::try_parse().unwrap_or_else(|error| {
        let _ = error.print();
        if error.kind() == ErrorKind::MissingRequiredArgument {
            let _ = writeln!(io::stderr(), "\nhint: {}", input::FILE_HINT);
        }
        process::exit(error.exit_code())
    });
    match run(&args, &mut io::stdout().lock()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            let mut err = io::stderr().lock();
            let _ = writeln!(err, "error: {}", report::printable(&format!("{error:#}")));
            if let Some(HintedError { hint, .. }) = error.downcast_ref::<HintedError>() {
                let _ = writeln!(err, "hint: {hint}");
            }
            ExitCode::from(2)
        }
    }
}

/// Verifies a bundle; returns whether everything holds and the action of `--why` was found.
fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<bool> {
    let mut trust = input::trust(&args.trust)?;
    input::witnesses(&mut trust, &args.witness)?;
    let anchors = input::anchors(args.anchors.as_deref())?;
    let bundle = input::bundle(&args.file)?;
    let mut progress = report::Progress::new(io::stderr().is_terminal());
    let gates = GatesInput { read: Some(&read_gates), files: input::gates(args.gates.as_deref())? };
    let opened = ipse_bundle::open_judged(&bundle, &trust, &anchors, &gates, &mut |done, of| {
        progress.at(done, of);
    });
    progress.end();
    let opened = opened
        .with_context(|| format!("cannot read {} to its end", args.file.display()))
        .map_err(|error| HintedError::error(error, input::READ_HINT))?;
    let report = match &opened {
        Ok(opened) => &opened.report,
        Err(report) => report,
    };
    let Some(name) = &args.why else {
        let reported = match args.json {
            true => writeln!(out, "{}", report.json()),
            false => report::lines(report, out),
        };
        written(reported, out)?;
        return Ok(report.passed());
    };
    if !args.json {
        let reported = report::lines(report, out);
        written(reported, out)?;
    }
    // No content is reported from a bundle that did not pass.
    let found = match &opened {
        Ok(opened) => why(opened, name, listing(args)),
        Err(_) => Ok(None),
    };
    let action = found.as_ref().ok().and_then(Option::as_ref);
    let reported = match (args.json, action) {
        (true, trail) => {
            let action = trail.map(|trail| trail.json());
            let again = judged_again(report, name, trail.map(|trail| &**trail));
            writeln!(out, "{}", report.json_with(action.as_deref(), again))
        }
        (false, trail) => {
            let text = trail.map(|trail| format!("\n{}", trail.text())).unwrap_or_default();
            match judged_again(report, name, trail.map(|trail| &**trail)) {
                Some(again) => writeln!(out, "{text}\njudged again: {}", again.name()),
                None => write!(out, "{text}"),
            }
        }
    };
    written(reported, out)?;
    Ok(found?.is_some())
}

/// The result of judging the intent behind an action again. Without a trail, because the bundle did
/// not pass, only the intent itself is known.
fn judged_again(report: &Report, name: &EventRef, trail: Option<&Trail>) -> Option<Again> {
    match trail {
        Some(trail) => {
            let intent = trail.intent()?;
            Some(report.judged_again(&intent).unwrap_or(Again::NotJudged))
        }
        None => report.judged_again(name),
    }
}

/// The requested part of a trail.
fn listing(args: &Args) -> Listing {
    let [evidence, page] =
        [args.evidence, args.page].map(|number| usize::try_from(number).unwrap_or(usize::MAX));
    Listing { evidence, page }
}

/// Returns the trail of an action. If the event is not an action, it prints why and returns `None`.
fn why(
    opened: &Opened<'_>,
    name: &EventRef,
    listing: Listing,
) -> anyhow::Result<Option<Box<Trail>>> {
    let found = opened.why(name, listing).map_err(|error| match error {
        WhyError::Lacks { .. } => HintedError::error(error.into(), input::RANGE_HINT),
        error => error.into(),
    });
    let word = match found? {
        Found::Action(trail) => return Ok(Some(trail)),
        Found::Nothing => format!("no event {name} in this log"),
        Found::NoAction(kind) => {
            format!("{name} is not an action: ipse wrote it itself ({})", report::printable(&kind))
        }
    };
    let _ = writeln!(io::stderr().lock(), "{word}");
    Ok(None)
}

fn written(reported: io::Result<()>, out: &mut dyn Write) -> anyhow::Result<()> {
    match reported.and_then(|()| out.flush()) {
        // A reader that closes the pipe has read enough; the exit code has the result.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        reported => reported.context("cannot write the report"),
    }
}
