//! Display of text from outside.

use alloc::string::String;

/// The longest name from outside that is shown or reported.
const MAX_SHOWN: usize = 200;

/// A name from outside, safe to print: no control characters, not too long.
///
/// ```
/// # use ipse_core::text::printable;
/// assert_eq!(printable("a\u{1b}[31mb"), "a\u{fffd}[31mb");
/// assert_eq!(printable(&"x".repeat(201)), "x".repeat(200) + "…");
/// ```
pub fn printable(name: &str) -> String {
    let mut text: String = name
        .chars()
        .take(MAX_SHOWN)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if name.chars().nth(MAX_SHOWN).is_some() {
        text.push('…');
    }
    text
}
