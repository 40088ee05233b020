//! The arguments that name the sources of a producer's token or key.

use anyhow::bail;
use ipse_core::json;
use ipse_core::sources::checked;
use ipse_inspect::answer::clean;

// Doc comments of arguments are help texts, so the type has none.

#[derive(clap::Args, Debug)]
pub(crate) struct SourceArgs {
    /// Allow the producer this source, or with a final * every source that begins with this text,
    /// as in otel:*; may be given up to 16 times
    #[arg(long, value_name = "SOURCE", allow_hyphen_values = true)]
    pub(crate) source: Vec<String>,
    /// Allow the producer any source
    #[arg(long, conflicts_with = "source")]
    pub(crate) any_source: bool,
}

impl SourceArgs {
    /// The sources of a producer; `None` allows any. One of the two arguments is required.
    pub(crate) fn of_producer(&self) -> anyhow::Result<Option<Vec<String>>> {
        match (self.any_source, self.source.is_empty()) {
            (true, _) => Ok(None),
            (false, true) => bail!(
                "give --source SOURCE for each source that the producer may use, or --any-source"
            ),
            (false, false) => Ok(Some(checked(self.source.clone())?)),
        }
    }
}

/// A list of sources as JSON.
pub(crate) fn sources_json(sources: &[String]) -> String {
    json::list(sources.iter().map(|source| json::quoted(source)))
}

/// The sources of a producer, for a cell of a table.
pub(crate) fn sources_cell(sources: Option<&[String]>) -> String {
    sources.map_or_else(|| "any".into(), |sources| clean(&sources.join(", ")))
}
