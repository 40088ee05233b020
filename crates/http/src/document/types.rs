//! Describes schemas: the type of a value in one line, and the members of an object.

use super::html::{escaped, line};
use ipse_core::json::{Object, Value};

/// The prefix of references to schemas.
const SCHEMAS: &str = "#/components/schemas/";

/// The longest pattern that is shown. Longer ones are not readable.
const SHOWN_PATTERN: usize = 40;

/// The description of something, if it has one.
pub(super) fn description<'v>(object: &'v Object<'_>) -> &'v str {
    object.get("description").and_then(Value::as_text).unwrap_or_default()
}

fn joined(all: &[Value<'_>], between: &str) -> String {
    all.iter().map(named).collect::<Vec<_>>().join(between)
}

/// The type of a value, in one line of HTML.
pub(super) fn named(schema: &Value<'_>) -> String {
    let Some(schema) = schema.as_object() else { return "anything".to_owned() };
    if let Some(name) = schema.get("$ref").and_then(Value::as_text) {
        let name = escaped(name.strip_prefix(SCHEMAS).unwrap_or(name));
        return format!("<a href=\"#{name}\">{name}</a>");
    }
    for (name, between) in [("anyOf", " or "), ("allOf", ", ")] {
        if let Some(Value::Array(all)) = schema.get(name) {
            return joined(all, between);
        }
    }
    if let Some(value) = schema.get("const") {
        return quoted(value);
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return one_of(values) + &usual(schema);
    }
    match schema.get("type") {
        Some(Value::Array(all)) => {
            let all = all.iter().filter_map(Value::as_text).map(escaped);
            all.collect::<Vec<_>>().join(" or ")
        }
        Some(kind) => of_type(schema, kind.as_text().unwrap_or_default()),
        None => untyped(schema),
    }
}

/// A choice between schemas, or no restriction at all.
fn untyped(schema: &Object<'_>) -> String {
    match schema.get("oneOf") {
        Some(Value::Array(all)) => joined(all, " or "),
        _ => "anything".to_owned(),
    }
}

fn of_type(schema: &Object<'_>, kind: &str) -> String {
    let mut text = match (kind, schema.get("items"), schema.get("additionalProperties")) {
        ("array", Some(items), _) => format!("array of {}", named(items)),
        ("object", _, Some(Value::Object(_))) if schema.get("properties").is_none() => {
            let each = schema.get("additionalProperties").map(named).unwrap_or_default();
            format!("object, each member {each}")
        }
        _ => escaped(kind),
    };
    text.push_str(&bounds(schema));
    text
}

/// The limits of a value, and its default.
fn bounds(schema: &Object<'_>) -> String {
    let number = |name: &str| schema.get(name).map(quoted);
    let mut out = String::new();
    if let Some(format) = schema.get("format").and_then(Value::as_text) {
        out.push_str(&format!(", {}", escaped(format)));
    }
    let pairs = [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " characters"),
        ("minItems", "maxItems", " items"),
        ("minProperties", "maxProperties", " members"),
    ];
    for (least, most, of) in pairs {
        match (number(least), number(most)) {
            (Some(least), Some(most)) => out.push_str(&format!(", {least} to {most}{of}")),
            (Some(least), None) => out.push_str(&format!(", at least {least}{of}")),
            (None, Some(most)) => out.push_str(&format!(", at most {most}{of}")),
            (None, None) => {}
        }
    }
    if let Some(below) = number("exclusiveMaximum") {
        out.push_str(&format!(", below {below}"));
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_text)
        && pattern.len() <= SHOWN_PATTERN
    {
        out.push_str(&format!(", <code>{}</code>", escaped(pattern)));
    }
    out + &usual(schema)
}

/// The default value.
fn usual(schema: &Object<'_>) -> String {
    let usual = schema.get("default").map(quoted);
    usual.map(|usual| format!(", {usual} if absent")).unwrap_or_default()
}

/// The allowed values.
pub(super) fn one_of(values: &[Value<'_>]) -> String {
    values.iter().map(quoted).collect::<Vec<_>>().join(" or ")
}

/// A value as JSON.
fn quoted(value: &Value<'_>) -> String {
    let mut text = String::new();
    value.write(&mut text);
    format!("<code>{}</code>", escaped(&text))
}

/// One row of a list: name, type and description.
pub(super) fn row(name: &str, kind: &str, required: bool, words: &str) -> String {
    let required = if required { " <strong>required</strong>" } else { "" };
    format!(
        "<div class=\"row\"><div><code class=\"name\">{}</code>{required}<br>\
         <span class=\"type\">{kind}</span></div><div>{}</div></div>",
        escaped(name),
        line(words),
    )
}

/// The members of an object.
pub(super) fn members(schema: &Object<'_>) -> String {
    let Some(all) = schema.get("properties").and_then(Value::as_object) else {
        return String::new();
    };
    let required = |name: &str| match schema.get("required") {
        Some(Value::Array(names)) => names.iter().any(|other| other.as_text() == Some(name)),
        _ => false,
    };
    let each = |(name, member): (&str, &Value<'_>)| {
        let words = member.as_object().map(description).unwrap_or_default();
        row(name, &named(member), required(name), words)
    };
    all.iter().map(each).collect()
}
