//! The auditor's program: verifies a bundle, without a database and without a network.
//!
//! **Invariants**
//! - It reads the files it is given and writes none. It opens no connection, and there is no code
//!   in it that could.
//! - Keys inside a bundle are never trust: without a key of the auditor's own it does not begin.
//! - Exit 0: verified. 1: something does not hold. 2: could not run.
#![forbid(unsafe_code)]

mod args;
mod input;
mod tell;

use anyhow::Context;
use args::Args;
use clap::Parser;
use input::Hinted;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args, &mut io::stdout().lock()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            let mut err = io::stderr().lock();
            let _ = writeln!(err, "error: {}", tell::printable(&format!("{error:#}")));
            if let Some(Hinted { hint, .. }) = error.downcast_ref::<Hinted>() {
                let _ = writeln!(err, "hint: {hint}");
            }
            ExitCode::from(2)
        }
    }
}

/// Verifies; says whether everything holds.
fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<bool> {
    let trust = input::trust(&args.trust)?;
    let anchors = input::anchors(args.anchors.as_deref())?;
    let bundle = input::bundle(&args.file)?;
    let mut progress = tell::Progress::new(io::stderr().is_terminal());
    let verified =
        ipse_bundle::verify(&bundle, &trust, &anchors, &mut |done, of| progress.at(done, of));
    progress.end();
    let report = verified
        .with_context(|| format!("cannot read {} to its end", args.file.display()))
        .map_err(|error| Hinted::error(error, input::READ_HINT))?;
    let told = match args.json {
        true => writeln!(out, "{}", report.json()),
        false => tell::lines(&report, out),
    };
    match told.and_then(|()| out.flush()) {
        // Whoever reads no further has read enough; the exit code says the rest.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        told => told.context("cannot write the report")?,
    }
    Ok(report.passed())
}
