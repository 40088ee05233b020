//! The figures: equal in two runs, well-formed, within their canvas, with the required numbers.
#![allow(missing_docs, clippy::unwrap_used)]

mod laboratory;

use ipse_manifest::{Manifest, ManifestError};
use ipse_reproduce::Error;
use ipse_reproduce::example::{Example, FIGURE, TEXT};
use ipse_reproduce::figures::letters::{Face, width};
use ipse_reproduce::figures::{
    Figure, forest, hash_inputs, pipeline, runtime_scaling, two_stances, worked_example,
};
use ipse_reproduce::runtime::{Point, Runtime};
use ipse_reproduce::v3::{Agents, Control, SEEDS, Setting, Summary};
use laboratory::lab;
use std::collections::BTreeMap;

/// A tag, its attributes, and the text after it; the name of an end tag begins with `/`.
#[derive(Debug)]
struct Tag {
    name: String,
    attributes: BTreeMap<String, String>,
    text: String,
}

impl Tag {
    fn number(&self, attribute: &str) -> Option<f64> {
        self.attributes.get(attribute)?.parse().ok()
    }
}

fn unescaped(text: &str) -> String {
    assert!(!text.contains(['<', '>']), "raw sign in {text:?}");
    let mut plain = String::new();
    for (n, piece) in text.split('&').enumerate() {
        let (entity, rest) = if n == 0 { ("", piece) } else { piece.split_once(';').unwrap() };
        plain += match entity {
            "" => "",
            "amp" => "&",
            "lt" => "<",
            "gt" => ">",
            "quot" => "\"",
            "apos" => "'",
            other => panic!("entity {other}"),
        };
        plain += rest;
    }
    plain
}

/// Parses the inside of a tag: a name, attributes in double quotes, an optional slash at the end.
fn tag(inside: &str, text: &str) -> Tag {
    let inside = inside.trim_end_matches('/').trim_end();
    let (name, mut rest) = inside.split_once(' ').unwrap_or((inside, ""));
    let mut attributes = BTreeMap::new();
    while !rest.trim().is_empty() {
        let (attribute, value) = rest.trim_start().split_once("=\"").unwrap();
        let (value, after) = value.split_once('"').unwrap();
        let before = attributes.insert(attribute.to_owned(), unescaped(value));
        assert_eq!(before, None, "{attribute} twice in <{inside}>");
        assert!(attribute.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{attribute}");
        rest = after;
    }
    Tag { name: name.to_owned(), attributes, text: unescaped(text) }
}

/// Parses an SVG; panics if it is not well-formed.
fn tags(svg: &str) -> Vec<Tag> {
    let mut open = Vec::new();
    let mut tags = Vec::new();
    assert!(svg.starts_with("<svg "), "{}", &svg[..40]);
    for piece in svg.split('<').skip(1).filter(|piece| !piece.starts_with("!--")) {
        let (inside, text) = piece.split_once('>').unwrap();
        let tag = tag(inside, text);
        match tag.name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name)),
            None if !inside.ends_with('/') => open.push(tag.name.clone()),
            None => {}
        }
        tags.push(tag);
        assert!(!open.is_empty() || svg.ends_with("</svg>"), "something follows the root");
    }
    assert_eq!(open, Vec::<String>::new());
    tags
}

/// A text and the area that it covers: left, top, right, bottom.
type Covered = (String, [f64; 4]);

/// The texts of a figure, each in one span or plain.
fn texts(tags: &[Tag]) -> Vec<Covered> {
    let mut covered = Vec::new();
    for (n, tag) in tags.iter().enumerate().filter(|(_, tag)| tag.name == "text") {
        let span = tags.get(n + 1).filter(|span| span.name == "tspan");
        let keys = span.into_iter().flat_map(|span| span.attributes.keys());
        let face = match keys.map(String::as_str).collect::<Vec<_>>()[..] {
            ["font-weight"] => Face::Bold,
            ["font-family"] => Face::Mono,
            ref other => {
                assert!(other.is_empty(), "{other:?}");
                Face::Regular
            }
        };
        let text = span.map_or(&tag.text, |span| &span.text).clone();
        let size: u32 = tag.attributes["font-size"].parse().unwrap();
        let (wide, size) = (width(&text, size, face), f64::from(size));
        let (x, y) = (tag.number("x").unwrap(), tag.number("y").unwrap());
        let left = match tag.attributes["text-anchor"].as_str() {
            "start" => x,
            "middle" => x - wide / 2.0,
            _ => x - wide,
        };
        covered.push((text, [left, y - 0.76 * size, left + wide, y + 0.22 * size]));
    }
    covered
}

/// All points of shapes: attributes, and the numbers in paths, which are absolute.
fn points(tags: &[Tag]) -> Vec<(f64, f64)> {
    let pairs = [("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")];
    let mut points = Vec::new();
    for tag in tags {
        for (x, y) in pairs {
            points.extend(tag.number(x).zip(tag.number(y)));
        }
        let path = tag.attributes.get("d").map_or("", String::as_str);
        assert!(path.chars().all(|c| !c.is_ascii_lowercase()), "relative: {path}");
        let numbers: Vec<f64> =
            path.split([' ', 'M', 'L', 'C', 'Z']).filter_map(|n| n.parse().ok()).collect();
        points.extend(numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])));
    }
    points
}

/// Checks the properties that every figure must have.
fn check(figure: &Figure) {
    let name = figure.name;
    let tags = tags(&figure.svg);
    let root = &tags[0];
    let (w, h) = (root.number("width").unwrap(), root.number("height").unwrap());
    assert_eq!(root.attributes["viewBox"], format!("0 0 {w} {h}"));
    assert_eq!(root.attributes["role"], "img");
    assert_eq!((tags[1].name.as_str(), &tags[1].text), ("title", &root.attributes["aria-label"]));
    assert!((1000.0..=1200.0).contains(&w), "{name} is {w} wide");
    for outside in ["href", "url(", "<style", "<script", "<image", "@import"] {
        assert!(!figure.svg.contains(outside), "{name} has {outside}");
    }
    for (x, y) in points(&tags) {
        assert!((0.0..=w).contains(&x) && (0.0..=h).contains(&y), "{name}: ({x}, {y})");
    }
    let texts = texts(&tags);
    assert!(texts.len() > 5, "{name}: {texts:?}");
    for (n, (text, [l, t, r, b])) in texts.iter().enumerate() {
        let within = *l >= 0.0 && *t >= 0.0 && *r <= w && *b <= h;
        assert!(within, "{name}: {text:?} leaves the canvas: {l} {t} {r} {b}");
        for (other, [l2, t2, r2, b2]) in &texts[..n] {
            let apart = r <= l2 || r2 <= l || b <= t2 || b2 <= t;
            assert!(apart, "{name}: {text:?} lies on {other:?}");
        }
    }
    assert!(figure.png.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
    let side = |at: usize| u32::from_be_bytes(figure.png[at..at + 4].try_into().unwrap());
    assert_eq!([side(16), side(20)].map(f64::from), [2.0 * w, 2.0 * h], "{name}");
    assert!(figure.caption.ends_with('.') && !figure.caption.contains("  "), "{}", figure.caption);
}

/// A manifest of an agent with this name; `change` may replace values.
fn manifest(
    name: &str,
    change: impl Fn(&str) -> Option<String>,
) -> Result<Manifest, ManifestError> {
    Manifest::new(|field| {
        Some(change(field).unwrap_or_else(|| match field {
            "commissioned_at" => "2026-05-01T00:00:00Z".to_owned(),
            hash if hash.ends_with("_hash") => "0".repeat(64),
            _ => name.to_owned(),
        }))
    })
}

fn point(keys: u64, events: u64, nanos: u64) -> Point {
    let pass = (0..9).map(|n| nanos + n * nanos / 20).collect();
    let facts = keys.min(events);
    let (query, choice, lookup, http) = (vec![3000], vec![900], vec![200], vec![75_000]);
    Point { keys, events, pass, facts, grown: 20_480, query, choice, lookup, http, resident: None }
}

fn runtime() -> Runtime {
    let sizes = [100, 1_000, 10_000, 100_000, 1_000_000];
    let points = |keys| sizes.map(|events| point(keys, events, 400_000 + 600 * events));
    Runtime { points: [points(2), points(1000)].concat() }
}

fn planned(seeds: &[i128]) -> Vec<Summary> {
    lab(|lab| {
        let agents = Agents::live(lab, seeds).unwrap();
        Control::ALL.map(|control| agents.plan(Setting::of(control))).to_vec()
    })
}

fn example(name: &str) -> Example {
    let week = if name == "figure" { FIGURE } else { TEXT };
    lab(|lab| Example::live(lab, name, week).unwrap())
}

fn all(controls: &[Summary], example: &Example) -> [Figure; 6] {
    [
        forest(controls).unwrap(),
        runtime_scaling(&runtime()).unwrap(),
        two_stances(&example.before).unwrap(),
        worked_example(example).unwrap(),
        hash_inputs(&manifest("figure", |_| None).unwrap()).unwrap(),
        pipeline().unwrap(),
    ]
}

fn holds(figure: &Figure, wanted: &[&str]) {
    let texts = texts(&tags(&figure.svg));
    for wanted in wanted {
        let found = texts.iter().any(|(text, _)| text.contains(wanted));
        assert!(found, "{}: no {wanted:?} in {texts:#?}", figure.name);
    }
}

#[test]
fn six_figures_with_their_numbers() {
    let controls = planned(&SEEDS);
    let example = example("figure");
    let figures = all(&controls, &example);
    figures.iter().for_each(check);
    assert_eq!(figures, all(&controls, &example), "drawn again, the same bytes");
    let identity = example.before.to_string();
    let [forest, runtime, stances, worked, inputs, pipeline] = &figures;
    let uniform = "−2.57 % [−4.74, 0.39]";
    let seed = "seed 20260506 alone: 74.58 %";
    holds(forest, &["79.82 % [78.02, 81.49]", uniform, seed, "Uniform", "Raw", "Calibrated"]);
    let ours = ["ours, K = 2 keys", "ours, K = 1000 keys", "the paper, K = 2 keys"];
    holds(runtime, &[ours[0], ours[1], ours[2], "200 ms", "10²", "10⁶", "median", "p90"]);
    holds(stances, &[&identity[..24], "h′ ≠ h", "Planner"]);
    let counts = ["5 N", "15 N", "25 N", "0 of 3 held", "0 of 1 held", "12 of 12 held"];
    holds(worked, &counts);
    holds(worked, &["0.8421", "0.75", "16", "12", &identity, "byte-equal", "ev_"]);
    let hashed = manifest("figure", |_| None).unwrap().identity().to_string();
    holds(inputs, &["SHA-256", "not an input", "temperament_hash", &hashed[48..]]);
    holds(pipeline, &["1  read", "5  put", "6  record", "consolidation_run:", "one transaction"]);
    let thin = |tag: &&Tag| tag.name == "line" && tag.attributes["stroke-width"] == "1.5";
    assert_eq!(tags(&forest.svg).iter().filter(thin).count(), 3 * 10 + 1, "all seeds, a legend");
    let end = "ours, K = 2 keys: 720.5 ms at 1000000 events, 2 facts";
    assert!(runtime.caption.contains(end), "the median: {}", runtime.caption);
    let cut = |figure: &Figure| {
        texts(&tags(&figure.svg)).iter().filter(|(text, _)| text.ends_with('…')).count()
    };
    assert_eq!(figures.each_ref().map(cut), [0, 0, 1, 1, 3, 0], "only hashes are shortened");
    let unstable = figures.iter().filter(|figure| !figure.stable).map(|figure| figure.name);
    assert_eq!(unstable.collect::<Vec<_>>(), ["runtime-scaling"]);
}

#[test]
fn on_one_page_no_id_collides() {
    let figures = all(&planned(&SEEDS[..2]), &example("figure"));
    let tags: Vec<Tag> = figures.iter().flat_map(|figure| tags(&figure.svg)).collect();
    let mut ids: Vec<_> = tags.iter().filter_map(|tag| tag.attributes.get("id")).collect();
    let (all, ()) = (ids.len(), ids.sort());
    ids.dedup();
    assert_eq!(ids.len(), all, "{ids:?}");
    let mut names = figures.map(|figure| figure.name);
    names.sort_unstable();
    let want = [
        "consolidation-pipeline",
        "hash-inputs",
        "runtime-scaling",
        "two-stances",
        "v3-forest",
        "worked-example",
    ];
    assert_eq!(names, want);
}

#[test]
fn little_to_draw() {
    let one = planned(&SEEDS[..1]);
    for from in 0..3 {
        let figure = forest(&one[from..]).unwrap();
        check(&figure);
        holds(&figure, &["% (one seed)"]);
    }
    let uniform = forest(&one[..1]).unwrap();
    assert!(!uniform.svg.contains("20260506"), "it was published for a grounded control");
    let other = forest(&planned(&SEEDS[1..2])).unwrap();
    assert!(!other.svg.contains("20260506"), "a seed that was not run is not marked");
    for nothing in [vec![], vec![Summary { runs: vec![], ..one[0].clone() }]] {
        let refused = forest(&nothing).unwrap_err();
        assert!(matches!(refused, Error::Figure { name: "v3-forest", .. }), "{refused}");
    }
    for points in [vec![], vec![point(2, 100, 1)], vec![point(7, 0, 0), point(9, 1, 9 << 40)]] {
        check(&runtime_scaling(&Runtime { points }).unwrap());
    }
    check(&worked_example(&example("text")).unwrap());
}

#[test]
fn an_identity_that_moved_is_not_called_equal() {
    let mut example = example("figure");
    example.after.0[31] ^= 1;
    let figure = worked_example(&example).unwrap();
    check(&figure);
    holds(&figure, &["DIFFERENT"]);
    assert!(!figure.svg.contains("byte-equal") && !figure.caption.contains("byte-equal"));
}

#[test]
fn values_of_strangers_stay_in_their_boxes() {
    let values = ["<b>&\"'\\$x$ $y$", &"W".repeat(1024), &"鋼".repeat(300), "a\u{202e}b"];
    for value in values {
        let change = |field: &str| (!field.contains('_')).then(|| value.to_owned());
        check(&hash_inputs(&manifest(value, change).unwrap()).unwrap());
    }
    let plain = hash_inputs(&manifest(values[0], |_| None).unwrap()).unwrap();
    holds(&plain, &[values[0]]);
}

#[test]
fn the_check_refuses() {
    let good = pipeline().unwrap();
    let refused = |svg: String| {
        assert_ne!(svg, good.svg, "the change changed nothing");
        let bad = Figure { svg, ..good.clone() };
        assert!(std::panic::catch_unwind(|| check(&bad)).is_err());
    };
    check(&good);
    refused(good.svg.replacen("</text>", "", 1));
    refused(good.svg.replacen("<text x=\"", "<text x=\"-", 1));
    refused(good.svg.replace("font-size=\"15\"", "font-size=\"60\""));
    refused(good.svg.replacen("M 904", "M 9904", 1));
    refused(good.svg.replacen("append-only", "a & b", 1));
    refused(good.svg.replacen("<title>", "<title><use href=\"x\" />", 1));
}
