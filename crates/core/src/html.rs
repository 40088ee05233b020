//! Escaping of text for HTML.

use alloc::string::String;

/// Escapes a text for HTML elements and attributes.
///
/// ```
/// # use ipse_core::html::escaped;
/// assert_eq!(escaped("<a b='\"'> & c"), "&lt;a b=&#39;&quot;&#39;&gt; &amp; c");
/// ```
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
