//! Arguments of `bench`. The doc comments are the help texts.

use clap::{Args as ClapArgs, ValueEnum};

#[derive(ClapArgs, Debug)]
pub(crate) struct BenchArgs {
    /// What to measure
    #[arg(value_enum)]
    pub(crate) job: BenchJob,
    /// Generate a store of so many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) events: Option<u64>,
    /// Keys of generated events; 2 is the paper's stream
    #[arg(long, value_name = "K", default_value_t = 2)]
    pub(crate) keys: u64,
    /// How often to measure
    #[arg(long, value_name = "R", default_value_t = 9, value_parser = at_least_one)]
    pub(crate) runs: usize,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BenchJob {
    /// All facts anew from the log
    Rebuild,
    /// Import of 100000 more events, in durable batches, with one pass at the end
    Append,
    /// One more event, durable, with its pass
    Record,
    /// One fact by its key, in memory
    Lookup,
    /// The first page of a fact's evidence, and its sum
    Explain,
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

impl BenchJob {
    pub(crate) fn name(self) -> &'static str {
        match self {
            BenchJob::Rebuild => "rebuild",
            BenchJob::Append => "append",
            BenchJob::Record => "record",
            BenchJob::Lookup => "lookup",
            BenchJob::Explain => "explain",
            BenchJob::Open => "open",
            BenchJob::Forget => "forget",
            BenchJob::ForgetTenth => "forget-tenth",
            BenchJob::Sign => "sign",
            BenchJob::Proof => "proof",
            BenchJob::AppendSigned => "append-signed",
        }
    }

    /// Whether it works on a copy of the store.
    pub(crate) fn writes(self) -> bool {
        !matches!(self, BenchJob::Rebuild | BenchJob::Lookup | BenchJob::Explain)
    }
}

fn at_least_one(text: &str) -> Result<usize, &'static str> {
    text.parse().ok().filter(|number| *number > 0).ok_or("expected a number from 1 on")
}
