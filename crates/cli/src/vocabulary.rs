//! Arguments that several commands have in common: a word of a closed vocabulary, a command of
//! commands, the length of a list.

use clap::builder::{PossibleValuesParser, TypedValueParser};

// Doc comments of arguments are help texts, so the types that commands share have none.

#[derive(clap::Args, Debug)]
#[command(subcommand_required = true)]
pub(crate) struct Nested<A: clap::Subcommand> {
    #[command(subcommand)]
    pub(crate) action: A,
}

#[derive(clap::Args, Debug)]
pub(crate) struct Newest {
    /// Only the newest so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
}

/// The words of a closed vocabulary, and what they mean.
pub(crate) fn words<T: Clone + Send + Sync + 'static>(
    words: impl IntoIterator<Item = &'static str>,
    parse: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    let unknown = "BUG: a word of the vocabulary has no meaning";
    PossibleValuesParser::new(words).try_map(move |word| parse(&word).ok_or(unknown))
}
