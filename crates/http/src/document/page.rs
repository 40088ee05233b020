//! `/docs`: the document as one HTML page, generated once.
//!
//! **Invariant:** the page shows exactly the routes of the table, in the order of the document's
//! tags.

use super::html::{escaped, example, line, paragraphs, pretty};
use super::types::{description, members, named, one_of, row};
use crate::routes::{ROUTES, Route};
use axum::http::Method;
use ipse_core::json::{Object, Value};
use ipse_core::json_parse;
use std::sync::LazyLock;

/// Maximum nesting of the document.
const DEPTH: usize = 64;
const STYLE: &str = include_str!("style.css");

/// The page of a document.
pub(super) fn page(document: &str) -> String {
    let parsed = json_parse::parse(document.as_bytes(), DEPTH);
    let Ok(Value::Object(root)) = parsed else { return String::new() };
    let page = Page { root: &root };
    let info = page.at(&root, "info");
    let text = |name: &str| text_of(info, name);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title} {version}</title>\n<link rel=\"icon\" href=\"data:,\">\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n\
         <h1>{title} <small>{version}</small></h1>\n<p class=\"lead\">{summary}</p>\n{words}\n\
         <p>In examples <code>$IPSE</code> is the address of the server, and <code>$TOKEN</code> a \
         token. <a href=\"/openapi.json\">OpenAPI 3.1 document</a></p>\n\
         </header>\n<nav>{nav}</nav>\n<main>\n{operations}{anywhere}{schemas}</main>\n</body>\n\
         </html>\n",
        title = escaped(text("title")),
        version = escaped(text("version")),
        summary = line(text("summary")),
        words = paragraphs(description(info)),
        nav = page.nav(),
        operations = page.operations(),
        anywhere = page.anywhere(),
        schemas = page.schemas(),
    )
}

fn text_of<'v>(object: &'v Object<'_>, name: &str) -> &'v str {
    object.get(name).and_then(Value::as_text).unwrap_or_default()
}

static NOTHING: LazyLock<Object<'static>> = LazyLock::new(Object::default);

struct Page<'d> {
    root: &'d Object<'d>,
}

impl<'d> Page<'d> {
    /// The object in a member; an empty object if the member is missing.
    fn at(&self, object: &'d Object<'d>, name: &str) -> &'d Object<'d> {
        object.get(name).and_then(Value::as_object).unwrap_or(&NOTHING)
    }

    /// The object of a value, with `$ref` resolved.
    fn resolved(&self, value: &'d Value<'d>) -> &'d Object<'d> {
        let Some(object) = value.as_object() else { return &NOTHING };
        let Some(reference) = object.get("$ref").and_then(Value::as_text) else { return object };
        let steps = reference.trim_start_matches("#/").split('/');
        steps.fold(self.root, |object, step| self.at(object, step))
    }

    fn tags(&self) -> impl Iterator<Item = &'d Object<'d>> {
        let all = match self.root.get("tags") {
            Some(Value::Array(all)) => all.as_slice(),
            _ => &[],
        };
        all.iter().filter_map(Value::as_object)
    }

    fn operation(&self, route: &Route) -> &'d Object<'d> {
        let path = self.at(self.at(self.root, "paths"), route.path);
        self.at(path, &route.method.as_str().to_ascii_lowercase())
    }

    /// The routes under a tag.
    fn tagged(&self, tag: &str) -> Vec<(&'static Route, &'d Object<'d>)> {
        let all = ROUTES.iter().map(|route| (route, self.operation(route)));
        let has = |operation: &Object<'_>| match operation.get("tags") {
            Some(Value::Array(tags)) => tags.iter().any(|one| one.as_text() == Some(tag)),
            _ => false,
        };
        all.filter(|(_, operation)| has(operation)).collect()
    }

    fn nav(&self) -> String {
        let mut out = String::new();
        for tag in self.tags() {
            let name = text_of(tag, "name");
            out.push_str(&format!("<h2>{}</h2><ul>", escaped(name)));
            for (route, operation) in self.tagged(name) {
                let id = escaped(text_of(operation, "operationId"));
                let summary = line(text_of(operation, "summary"));
                let method = route.method.as_str();
                out.push_str(&format!(
                    "<li><a href=\"#{id}\"><b class=\"{method}\">{method}</b> {summary}</a></li>"
                ));
            }
            out.push_str("</ul>");
        }
        out + "<h2><a href=\"#schemas\">Schemas</a></h2>"
    }

    fn operations(&self) -> String {
        let mut out = String::new();
        for tag in self.tags() {
            let name = text_of(tag, "name");
            out.push_str(&format!("<section><h2>{}</h2>", escaped(name)));
            out.push_str(&paragraphs(description(tag)));
            for (route, operation) in self.tagged(name) {
                out.push_str(&self.article(route, operation));
            }
            out.push_str("</section>\n");
        }
        out
    }

    fn article(&self, route: &Route, operation: &'d Object<'d>) -> String {
        let method = route.method.as_str();
        format!(
            "<article id=\"{id}\"><h3><b class=\"{method}\">{method}</b> <code>{path}</code></h3>\
             <p class=\"lead\">{summary}</p><p class=\"roles\">{roles}</p>{words}{curl}\
             {parameters}{body}<h4>Answers</h4>{answers}</article>\n",
            id = escaped(text_of(operation, "operationId")),
            path = escaped(route.path),
            summary = line(text_of(operation, "summary")),
            roles = roles(operation),
            words = paragraphs(description(operation)),
            curl = self.curl(route, operation),
            parameters = self.parameters(route, operation),
            body = self.body(operation),
            answers = self.answers(self.at(operation, "responses")),
        )
    }

    /// The parameters of a path and of one of its verbs.
    fn all_parameters(&self, route: &Route, operation: &'d Object<'d>) -> Vec<&'d Object<'d>> {
        let path = self.at(self.at(self.root, "paths"), route.path);
        let lists = [path, operation].into_iter().filter_map(|holder| holder.get("parameters"));
        let lists = lists.filter_map(|list| match list {
            Value::Array(all) => Some(all.as_slice()),
            _ => None,
        });
        lists.flatten().map(|one| self.resolved(one)).collect()
    }

    fn parameters(&self, route: &Route, operation: &'d Object<'d>) -> String {
        let mut out = String::new();
        for parameter in self.all_parameters(route, operation) {
            let schema = parameter.get("schema").map(named).unwrap_or_default();
            let place = escaped(text_of(parameter, "in"));
            let kind = format!("in {place}: {schema}");
            let required = parameter.get("required") == Some(&Value::Bool(true));
            let name = text_of(parameter, "name");
            out.push_str(&row(name, &kind, required, description(parameter)));
        }
        if out.is_empty() { out } else { format!("<h4>Parameters</h4>{out}") }
    }

    /// A request that can be copied into a shell.
    fn curl(&self, route: &Route, operation: &'d Object<'d>) -> String {
        let mut path = route.path.to_owned();
        let mut query = Vec::new();
        for parameter in self.all_parameters(route, operation) {
            let name = text_of(parameter, "name");
            let value = parameter.get("example").and_then(Value::as_text).unwrap_or_default();
            match (text_of(parameter, "in"), parameter.get("required")) {
                ("path", _) => path = path.replace(&format!("{{{name}}}"), value),
                ("query", Some(_)) => query.push(format!("{name}={value}")),
                _ => {}
            }
        }
        let mark = if query.is_empty() { "" } else { "?" };
        let mut parts = vec!["curl".to_owned()];
        if operation.get("security").is_none() {
            parts.push("-H \"Authorization: Bearer $TOKEN\"".to_owned());
        }
        let content = self.at(self.at(operation, "requestBody"), "content");
        if let Some(body) = self.at(content, "application/json").get("example") {
            let mut json = String::new();
            pretty(body, 0, &mut json);
            parts.push("-H 'Content-Type: application/json'".to_owned());
            parts.push(format!("-d '{json}'"));
        } else if route.method != Method::GET {
            parts.push(format!("-X {}", route.method));
        }
        parts.push(format!("\"$IPSE{path}{mark}{}\"", query.join("&")));
        let text = parts.join(" \\\n  ");
        format!("<pre tabindex=\"0\">{}</pre>", escaped(&text))
    }

    fn body(&self, operation: &'d Object<'d>) -> String {
        let body = self.at(operation, "requestBody");
        if body.is_empty() {
            return String::new();
        }
        let content = self.content(self.at(body, "content"));
        format!("<h4>Body</h4>{}{content}", paragraphs(description(body)))
    }

    /// Each media type with its schema, and with collapsed examples.
    fn content(&self, content: &'d Object<'d>) -> String {
        let mut out = String::new();
        for (media, held) in content.iter() {
            let held = held.as_object().unwrap_or(&NOTHING);
            let schema = held.get("schema");
            let kind = schema.map(named).unwrap_or_default();
            let words = schema.and_then(Value::as_object).map(description).unwrap_or_default();
            out.push_str(&row(media, &kind, false, words));
            let reported = self.at(held, "x-ipse-events").iter();
            let reported = reported.map(|(name, data)| row(name, &named(data), false, ""));
            out.push_str(&reported.collect::<String>());
            if let Some(Value::Array(codes)) = self.at(held, "x-ipse-problem").get("codes") {
                out.push_str(&row("code", &one_of(codes), false, "The error code."));
            }
            let single = held.get("example").map(|value| ("Example", value));
            let several = self.at(held, "examples").iter().filter_map(|(_, one)| {
                let one = one.as_object()?;
                Some((text_of(one, "summary"), one.get("value")?))
            });
            for (title, value) in single.into_iter().chain(several) {
                let (title, value) = (line(title), example(value));
                out.push_str(&format!("<details><summary>{title}</summary>{value}</details>"));
            }
        }
        out
    }

    fn answers(&self, responses: &'d Object<'d>) -> String {
        let mut out = String::new();
        for (status, answer) in responses.iter() {
            let answer = self.resolved(answer);
            let mut headers = String::new();
            for (name, header) in self.at(answer, "headers").iter() {
                let header = self.resolved(header);
                let kind = header.get("schema").map(named).unwrap_or_default();
                headers.push_str(&row(name, &kind, false, description(header)));
            }
            let class = escaped(&status[..1]);
            out.push_str(&format!(
                "<details class=\"answer\"><summary><b class=\"status s{class}\">{}</b> {}\
                 </summary>{}<h5>Headers</h5>{headers}</details>",
                escaped(status),
                line(description(answer)),
                self.content(self.at(answer, "content")),
            ));
        }
        out
    }

    fn anywhere(&self) -> String {
        let answers = self.answers(self.at(self.root, "x-ipse-anywhere"));
        format!("<section><h2>On every path</h2>{answers}</section>\n")
    }

    fn schemas(&self) -> String {
        let schemas = self.at(self.at(self.root, "components"), "schemas");
        let mut out = String::from("<section id=\"schemas\"><h2>Schemas</h2>");
        for (name, schema) in schemas.iter() {
            let object = schema.as_object().unwrap_or(&NOTHING);
            let listed = members(object);
            let kind = match listed.is_empty() {
                true => format!("<p class=\"type\">{}</p>", named(schema)),
                false => String::new(),
            };
            let name = escaped(name);
            let words = paragraphs(description(object));
            out.push_str(&format!(
                "<article id=\"{name}\"><h3><code>{name}</code></h3>{words}{kind}{listed}</article>"
            ));
        }
        out + "</section>\n"
    }
}

/// The roles that may use an operation.
fn roles(operation: &Object<'_>) -> String {
    match operation.get("x-ipse-roles") {
        Some(Value::Array(all)) if !all.is_empty() => {
            let all = all.iter().filter_map(Value::as_text);
            let all = all.map(|role| format!("<span>{}</span>", escaped(role)));
            format!("for {}", all.collect::<Vec<_>>().join(" "))
        }
        _ => "no token required".to_owned(),
    }
}
