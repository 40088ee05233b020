//! Lists of event sources: those that a producer's token or key may use.
//!
//! **Invariants**
//! - An entry is a whole source, or the beginning of sources and one final `*`, as in `otel:*`.
//! - A list is compared where events enter a log. Nothing that validates stored events uses it.

use crate::HOUSE_SOURCE;
use crate::event::MAX_NAME_BYTES;
use crate::text::printable;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Maximum number of entries of a list: more belong under a common beginning.
pub const MAX_SOURCES: usize = 16;

/// Why a list of sources is not valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SourcesError {
    /// The list has this many entries.
    TooMany(usize),
    /// No producer can have events of this source.
    Entry(String),
}

impl fmt::Display for SourcesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourcesError::TooMany(count) => {
                write!(f, "a producer has at most {MAX_SOURCES} sources; {count} were given")
            }
            SourcesError::Entry(entry) => write!(
                f,
                "`{}` is not a valid source: 1 to {MAX_NAME_BYTES} bytes, no control characters, \
                 not `{HOUSE_SOURCE}`, and `*` only once, at the end, after other characters",
                printable(entry)
            ),
        }
    }
}

impl core::error::Error for SourcesError {}

/// The list without duplicates, or the reason why it is not valid.
pub fn checked(sources: Vec<String>) -> Result<Vec<String>, SourcesError> {
    if sources.len() > MAX_SOURCES {
        return Err(SourcesError::TooMany(sources.len()));
    }
    let mut list: Vec<String> = Vec::new();
    for source in sources {
        if !is_entry(&source) {
            return Err(SourcesError::Entry(source));
        }
        if !list.contains(&source) {
            list.push(source);
        }
    }
    Ok(list)
}

/// Whether a list permits a source.
///
/// ```
/// let list = ["arm-7", "otel:*"].map(String::from);
/// assert!(ipse_core::sources::permits(&list, "otel:lidar"));
/// assert!(!ipse_core::sources::permits(&list, "arm-70"));
/// ```
pub fn permits(list: &[String], source: &str) -> bool {
    list.iter().any(|entry| match beginning(entry) {
        Some(beginning) => source.starts_with(beginning),
        None => entry == source,
    })
}

/// Whether an entry is one whole source.
pub fn is_whole(entry: &str) -> bool {
    beginning(entry).is_none()
}

/// The beginning of the sources that an entry permits; `None` if it is a whole source. A lone `*`
/// is one: earlier versions stored it as such.
fn beginning(entry: &str) -> Option<&str> {
    entry.strip_suffix('*').filter(|beginning| !beginning.is_empty())
}

/// Validates an entry by the rules that the door has for events of producers.
fn is_entry(entry: &str) -> bool {
    let fits = (1..=MAX_NAME_BYTES).contains(&entry.len());
    let stars_fit = !beginning(entry).unwrap_or(entry).contains('*');
    fits && stars_fit && !entry.chars().any(char::is_control) && entry != HOUSE_SOURCE
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;
    use alloc::format;
    use alloc::vec;

    fn list(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|entry| (*entry).to_owned()).collect()
    }

    #[test]
    fn a_source_is_permitted_whole_or_by_its_beginning() {
        for (entries, source, want) in [
            (&["arm-7"][..], "arm-7", true),
            (&["arm-7"], "arm-70", false),
            (&["arm-7"], "arm-", false),
            (&["arm-7"], "ARM-7", false),
            (&["otel:*"], "otel:a", true),
            (&["otel:*"], "otel:", true),
            (&["otel:*"], "otel:*", true),
            (&["otel:*"], "otel", false),
            (&["otel:*"], "xotel:a", false),
            (&["a", "b*"], "bc", true),
            (&["a", "b*"], "ab", false),
            (&["*"], "a", false),
            (&["*"], "*", true),
            (&[], "a", false),
        ] {
            assert_eq!(permits(&list(entries), source), want, "{entries:?} {source}");
        }
    }

    #[test]
    fn a_list_is_short_and_its_entries_are_sources() {
        let long = format!("{}*", "x".repeat(MAX_NAME_BYTES - 1));
        for good in ["a", "a*", "ip*", "ä b", &long] {
            assert_eq!(checked(list(&[good, good])), Ok(list(&[good])), "{good}");
        }
        let longer = format!("{long}x");
        for bad in ["", "*", "**", "a**", "*a", "a*b", "a*b*", "ipse", "a\nb", "a\u{85}", &longer] {
            assert_eq!(checked(list(&["a", bad])), Err(SourcesError::Entry(bad.into())), "{bad}");
        }
        let many = |count: usize| (0..count).map(|n| format!("{n}")).collect::<Vec<_>>();
        assert_eq!(checked(many(MAX_SOURCES)), Ok(many(MAX_SOURCES)));
        let error = Err(SourcesError::TooMany(MAX_SOURCES + 1));
        assert_eq!(checked(many(MAX_SOURCES + 1)), error);
        assert_eq!(checked(vec![]), Ok(vec![]));
    }
}
