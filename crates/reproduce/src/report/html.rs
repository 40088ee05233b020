//! The page: one file that opens anywhere, prints well, and asks nothing of the network.
//!
//! **Invariant:** every text that comes from a log or a file name is escaped.

use crate::errata::Erratum;
use crate::figures::Figure;
use crate::real::PROTOCOL;
use crate::results::{Results, Verdicts};
use crate::table::Sheet;
use ipse_core::html::escaped;

const STYLE: &str = include_str!("report.css");

/// One part of the page.
struct Section<'r> {
    id: &'static str,
    heading: &'static str,
    words: Vec<String>,
    figures: Vec<&'r Figure>,
    sheets: Vec<&'r Sheet>,
}

/// Each part: its id, its heading, what it is about, the tables and the figures in it. A table
/// belongs to the part whose prefix begins its name.
const SECTIONS: [(&str, &str, &str, &str, &[&str]); 6] = [
    (
        "example",
        "The worked example",
        "A week with a glass cup, lived through in a real store: as the paper tells it, and as it \
         draws it.",
        "worked-example",
        &["worked-example"],
    ),
    (
        "v1",
        "V1: fields, idempotence, order",
        "One pass makes one fact, a second pass writes nothing, and the order of events leaves no \
         trace.",
        "v1",
        &["consolidation-pipeline"],
    ),
    (
        "v2",
        "V2: the identity across passes",
        "What is learned is no input of the hash; each of the seven inputs is.",
        "v2",
        &["two-stances", "hash-inputs"],
    ),
    (
        "v3",
        "V3: grounding against no memory",
        "Planners that consult facts beside one without memory. Each control reads the facts of \
         its agent's store before every decision.",
        "v3",
        &["v3-forest"],
    ),
    (
        "d",
        "D: what V3 hangs on",
        "Threshold, prior and number of decisions, each varied by itself.",
        "d-",
        &[],
    ),
    (
        "g",
        "G: what a pass costs",
        "Wall time on the machine that made this report, the durable commit included.",
        "g-",
        &["runtime-scaling"],
    ),
];

/// The whole page.
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
    sections.extend(real(results, &sheets));
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
    let title = if paper { "The paper, reproduced" } else { "V3's question to real logs" };
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

/// What real logs answered.
fn real<'r>(results: &Results, sheets: &'r [Sheet]) -> Option<Section<'r>> {
    let intro = "The paper has no traffic of a real fleet. Here its question is put to real logs: \
                 facts from the first part of a log, decisions on the rest. Skipping everything \
                 would avoid every failure, so successes lost stand beside failures avoided, and \
                 the lift says how much better than skipping as many at random.";
    (!results.real.is_empty()).then(|| Section {
        id: "real",
        heading: "Beyond the paper: real logs",
        words: vec![intro.to_owned(), PROTOCOL.to_owned()],
        figures: Vec::new(),
        sheets: sheets.iter().filter(|sheet| sheet.name.starts_with("real")).collect(),
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
        "<section id=\"errata\">\n<h2>Errata</h2>\n<p>Where the paper contradicts itself, or the \
         protocol under which its printed reductions come out. None of these is asserted.</p>\n\
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

/// A cell; the number of an erratum leads to it.
fn linked(cell: &str) -> String {
    match cell.strip_prefix("erratum ") {
        Some(number) => format!("<a href=\"#erratum-{0}\">erratum {0}</a>", escaped(number)),
        None => escaped(cell),
    }
}

/// Escaped, with what stands in backticks as code.
fn code(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => escaped(part),
        _ => format!("<code>{}</code>", escaped(part)),
    };
    parts.map(part).collect()
}
