//! Converts text to HTML: always escaped, with the little markup that descriptions use.
//!
//! **Invariant:** no character of the document reaches the page unescaped.

pub(super) use ipse_core::html::escaped;
use ipse_core::json::Value;

/// The widest example that stays on one line.
const ONE_LINE: usize = 72;

/// A line of text. Text between backticks becomes `<code>`.
pub(super) fn line(text: &str) -> String {
    let mut out = String::new();
    for (at, piece) in text.split('`').enumerate() {
        let piece = escaped(piece);
        match at % 2 {
            0 => out.push_str(&piece),
            _ => out.push_str(&format!("<code>{piece}</code>")),
        }
    }
    out
}

/// Paragraphs separated by blank lines. A paragraph whose lines all begin with `- ` is a list.
pub(super) fn paragraphs(text: &str) -> String {
    let mut out = String::new();
    for block in text.split("\n\n") {
        let items: Option<Vec<&str>> = block.lines().map(|line| line.strip_prefix("- ")).collect();
        match items {
            Some(items) => {
                let items = items.into_iter().map(|item| format!("<li>{}</li>", line(item)));
                out.push_str(&format!("<ul>{}</ul>", items.collect::<String>()));
            }
            None => out.push_str(&format!("<p>{}</p>", line(block))),
        }
    }
    out
}

/// An example: text unchanged, any other value as indented JSON.
pub(super) fn example(value: &Value<'_>) -> String {
    let text = match value.as_text() {
        Some(text) => text.to_owned(),
        None => {
            let mut text = String::new();
            pretty(value, 0, &mut text);
            text
        }
    };
    format!("<pre tabindex=\"0\">{}</pre>", escaped(text.trim_end()))
}

/// Writes JSON, indented where it does not fit on one line.
pub(super) fn pretty(value: &Value<'_>, depth: usize, out: &mut String) {
    let mut flat = String::new();
    value.write(&mut flat);
    if flat.chars().count() + 2 * depth <= ONE_LINE {
        out.push_str(&flat);
        return;
    }
    let indent = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    };
    match value {
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                indent(out, depth + 1);
                pretty(item, depth + 1, out);
            }
            indent(out, depth);
            out.push(']');
        }
        Value::Object(object) => {
            out.push('{');
            for (at, (name, item)) in object.iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                indent(out, depth + 1);
                out.push_str(&ipse_core::json::quoted(name));
                out.push_str(": ");
                pretty(item, depth + 1, out);
            }
            indent(out, depth);
            out.push('}');
        }
        _ => out.push_str(&flat),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_reaches_the_page_unescaped() {
        assert_eq!(escaped("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;");
        assert_eq!(line("a `<b>` c"), "a <code>&lt;b&gt;</code> c");
        assert_eq!(paragraphs("a\n\n- b\n- <c>"), "<p>a</p><ul><li>b</li><li>&lt;c&gt;</li></ul>");
        let text = Value::Text("</pre>".into());
        assert_eq!(example(&text), "<pre tabindex=\"0\">&lt;/pre&gt;</pre>");
    }
}
