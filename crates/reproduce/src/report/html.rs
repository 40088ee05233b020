//! The HTML page of the report: one file that needs no network and can be printed.
//!
//! **Invariant:** every text that comes from a log or a file name is escaped.

use crate::errata::Erratum;
use crate::evaluate::PROTOCOL;
use crate::figures::Figure;
use crate::results::{Results, Verdicts};
use crate::table::Sheet;
use ipse_core::html::escaped;

const STYLE: &str = include_str!("report.css");

/// One section of the page.
struct Section<'r> {
    id: &'static str,
    heading: &'static str,
    words: Vec<String>,
    figures: Vec<&'r Figure>,
    sheets: Vec<&'r Sheet>,
}

/// The sections: id, heading, introduction, prefix of the names of its tables, and figures. A table
/// belongs to the section whose prefix its name starts with.
const SECTIONS: [(&str, &str, &str, &str, &[&str]); 6] = [
    (
        "example",
        "The worked example",
        "A week with a glass cup, recorded in a real store: once as in the paper's text, once as \
         in its figure.",
        "worked-example",
        &["worked-example"],
    ),
    (
        "v1",
        "V1: fields, idempotence, order",
        "One pass produces one fact, a second pass writes nothing, and the order of events does \
         not change the facts.",
        "v1",
        &["consolidation-pipeline"],
    ),
    (
        "v2",
        "V2: the identity across passes",
        "Facts are not an input of the hash. Each of the seven manifest fields is.",
        "v2",
        &["two-stances", "hash-inputs"],
    ),
    (
        "v3",
        "V3: grounding against no memory",
        "Planners that consult facts, compared with one without memory. Each control reads the \
         facts of its agent's store before every decision.",
        "v3",
        &["v3-forest"],
    ),
    (
        "d",
        "D: sensitivity of V3",
        "Threshold, prior and number of decisions, each varied alone.",
        "d-",
        &[],
    ),
    (
        "g",
        "G: cost of a pass",
        "Wall time on the machine that made this report, including the durable commit.",
        "g-",
        &["runtime-scaling"],
    ),
];

/// The complete page.
pub(super) fn page(results: &Results, figures: &[Figure]) -> String {
    let sheets = results.sheets();
    let mut sections: Vec<Section<'_>> = SECTIONS
        .iter()
        .map(|(id, heading, words, prefix, names)| Section {
            id,
            heading,
            words: vec![(*words).to_owned()],
            figures: figures.iter().filter(|figure| names.contains(&figure.name)).collect(),
            sheets: sheets.iter().filter(|sheet| sheet.name.starts_with(prefix)).collect(),
        })
        .filter(|section| !section.sheets.is_empty() || !section.figures.is_empty())
        .collect();
    sections.extend(evaluations(results, &sheets));
    let listed = results.errata();
    let link = |(id, heading): (&str, &str)| format!("<a href=\"#{id}\">{heading}</a>\n");
    let mut contents: String =
        sections.iter().map(|section| link((section.id, &escaped(section.heading)))).collect();
    let mut body: String = sections.iter().map(Section::html).collect();
    if !listed.is_empty() {
        contents += &link(("errata", "Errata"));
        body += &errata(&listed);
    }
    let paper = !results.tables().is_empty();
    let title = if paper { "The paper, reproduced" } else { "What facts would have spared you" };
    let summary = if paper { summary(results.verdicts()) } else { String::new() };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n{summary}\n</header>\n\
         <nav>\n{contents}</nav>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

fn summary(verdicts: Verdicts) -> String {
    let Verdicts { equal, different, errata, measured } = verdicts;
    format!(
        "<p><cite>Episodic-to-Semantic Consolidation Without Identity Drift</cite>, its \
         experiments run through a real store by ipse {}.</p>\n\
         <ul class=\"verdicts\">\n\
         <li class=\"equal\"><b>{equal}</b> figures equal as printed</li>\n\
         <li class=\"{}\"><b>{different}</b> differ</li>\n\
         <li><b>{errata}</b> cells are errata</li>\n\
         <li><b>{measured}</b> measured</li>\n</ul>",
        env!("CARGO_PKG_VERSION"),
        if different > 0 { "differs" } else { "equal" },
    )
}

/// The section about evaluated logs.
fn evaluations<'r>(results: &Results, sheets: &'r [Sheet]) -> Option<Section<'r>> {
    let intro = "The paper has no traffic of a real fleet. This section asks its question of real \
                 logs: what would facts have spared you? Skipping everything would avoid every \
                 failure, so successes lost are shown next to failures avoided. The lift compares \
                 with skipping as many at random.";
    (!results.evaluations.is_empty()).then(|| Section {
        id: "evaluate",
        heading: "Beyond the paper: real logs",
        words: vec![intro.to_owned(), PROTOCOL.to_owned()],
        figures: Vec::new(),
        sheets: sheets.iter().filter(|sheet| sheet.name.starts_with("evaluate-")).collect(),
    })
}

fn errata(listed: &[&Erratum]) -> String {
    let one = |erratum: &&Erratum| {
        let (title, reason) = (code(erratum.title), code(erratum.reason));
        let number = erratum.number;
        format!("<li id=\"erratum-{number}\" value=\"{number}\"><b>{title}</b>: {reason}</li>\n")
    };
    let all: String = listed.iter().map(one).collect();
    format!(
        "<section id=\"errata\">\n<h2>Errata</h2>\n<p>Places where the paper contradicts itself, \
         or the protocol that yields its printed reductions. None of these is asserted.</p>\n\
         <ol>\n{all}</ol>\n</section>\n"
    )
}

impl Section<'_> {
    fn html(&self) -> String {
        let words: String =
            self.words.iter().map(|words| format!("<p>{}</p>\n", escaped(words))).collect();
        let figures: String = self.figures.iter().map(|figure| figure_html(figure)).collect();
        let sheets: String = self.sheets.iter().map(|sheet| sheet_html(sheet)).collect();
        let (id, heading) = (self.id, escaped(self.heading));
        format!("<section id=\"{id}\">\n<h2>{heading}</h2>\n{words}{figures}{sheets}</section>\n")
    }
}

fn figure_html(figure: &Figure) -> String {
    let caption = escaped(&figure.caption);
    format!("<figure>\n{}\n<figcaption>{caption}</figcaption>\n</figure>\n", figure.svg.trim())
}

fn sheet_html(sheet: &Sheet) -> String {
    let head: String =
        sheet.head.iter().map(|head| format!("<th scope=\"col\">{}</th>", escaped(head))).collect();
    let row = |cells: &Vec<String>| {
        let class = match cells.last().map(String::as_str) {
            Some("equal") => " class=\"equal\"",
            Some("DIFFERS") => " class=\"differs\"",
            Some(verdict) if verdict.starts_with("erratum") => " class=\"erratum\"",
            _ => "",
        };
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", linked(cell))).collect();
        format!("<tr{class}>{cells}</tr>\n")
    };
    let rows: String = sheet.rows.iter().map(row).collect();
    let note = match sheet.note.as_str() {
        "" => String::new(),
        note => format!("<p class=\"note\">{}</p>\n", escaped(note)),
    };
    format!(
        "<div class=\"sheet\">\n<table>\n<caption>{}</caption>\n<thead><tr>{head}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n{note}</div>\n",
        escaped(&sheet.title)
    )
}

/// A cell as HTML; an erratum number becomes a link.
fn linked(cell: &str) -> String {
    match cell.strip_prefix("erratum ") {
        Some(number) => format!("<a href=\"#erratum-{0}\">erratum {0}</a>", escaped(number)),
        None => escaped(cell),
    }
}

/// Escapes a text; text in backticks becomes code.
fn code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => escaped(part),
        _ => format!("<code>{}</code>", escaped(part)),
    };
    parts.map(part).collect()
}
