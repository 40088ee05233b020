//! Lemma 1: the inputs of the identity hash.

use super::Figure;
use super::canvas::{Area, Canvas, Card, Mark, Side, Stroke};
use super::palette::{
    AGENT, CODE, DRIFT, FACTS, FRAME, HEAD, Hand, INK, LOG, MUTED, NOTE, PURPLE, RED, STEP, Tone,
    WHITE,
};
use crate::Error;
use ipse_core::json_parse;
use ipse_manifest::{FIELDS, Manifest};

const WIDTH: f64 = 1100.0;
const HEIGHT: f64 = 560.0;
const SMALL: Hand = NOTE.ink(INK);

const MANIFEST: Area = Area::new(24.0, 22.0, 500.0, 374.0);
/// The first field, and the distance to the next one.
const FIELD: Area = Area::new(42.0, 66.0, 464.0, 38.0);
const PITCH: f64 = 45.0;
/// The line at which the seven fields meet.
const BUS: f64 = 560.0;
const MIDDLE: f64 = FIELD.y + 3.0 * PITCH + FIELD.h / 2.0;
const HASH: Area = Area::new(610.0, MIDDLE - 46.0, 150.0, 92.0);
const IDENTITY: Area = Area::new(816.0, MIDDLE - 72.0, 260.0, 144.0);
/// Nothing below this line is hashed.
const BOUNDARY: f64 = 424.0;
const THE_LOG: Area = Area::new(124.0, 468.0, 190.0, 62.0);
const F: Area = Area::new(375.0, 468.0, 160.0, 62.0);
const THE_FACTS: Area = Area::new(595.0, 468.0, 180.0, 62.0);

const CARDS: [Card<'_>; 4] = [
    Card::new(
        HASH,
        STEP,
        &[(HEAD, "SHA-256"), (SMALL, "over canonical"), (SMALL, "JSON, RFC 8785")],
    ),
    Card::new(THE_LOG, LOG, &[(HEAD, "Log"), (SMALL, "all events")]),
    Card::new(F, STEP, &[(HEAD, "f"), (SMALL, "writes facts only")]),
    Card::new(THE_FACTS, FACTS, &[(HEAD, "Facts"), (SMALL, "derived from the log")]),
];

/// Draws the inputs from which the identity of a manifest is computed.
pub fn hash_inputs(manifest: &Manifest) -> Result<Figure, Error> {
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    canvas.frame(MANIFEST, FRAME, Stroke::Solid);
    let head = (FIELD.x, 44.0);
    canvas.label(head, Side::Left, HEAD, "Manifest: seven fields, and no other", FIELD.w);
    fields(&mut canvas, manifest)?;
    CARDS.iter().for_each(|card| canvas.card(card));
    let identity = manifest.identity().to_string();
    let mut lines = vec![(HEAD, "identity")];
    // The identity has 64 ASCII digits, so every slice is at a character boundary.
    lines.extend((0..4).map(|n| (CODE, &identity[16 * n..16 * (n + 1)])));
    canvas.card(&Card::new(IDENTITY, AGENT, &lines));
    for (from, to) in [
        ((BUS, MIDDLE), HASH.left()),
        (HASH.right(), IDENTITY.left()),
        (THE_LOG.right(), F.left()),
        (F.right(), THE_FACTS.left()),
    ] {
        canvas.flow(from, to);
    }
    outside(&mut canvas);
    let caption = format!(
        "Lemma 1. The seven manifest fields are the inputs of the SHA-256 digest that is the \
         identity, {identity}. Log and facts are outside: neither is a field, so the canonical \
         form of a manifest never contains a byte of them. No write of a pass can change a hashed \
         byte."
    );
    Figure::new("hash-inputs", "Inputs of the identity hash", caption, canvas)
}

fn fields(canvas: &mut Canvas, manifest: &Manifest) -> Result<(), Error> {
    let broken = |_| Error::Figure { name: "hash-inputs", reason: "no manifest".to_owned() };
    let canonical = manifest.canonical();
    let value = json_parse::parse(canonical.as_bytes(), 1).map_err(broken)?;
    let text = |field: &str| Some(value.as_object()?.get(field)?.as_text()?.to_string());
    for (n, field) in FIELDS.iter().enumerate() {
        let at = Area { y: FIELD.y + PITCH * n as f64, ..FIELD };
        canvas.frame(at, Tone { line: PURPLE, ground: WHITE }, Stroke::Solid);
        canvas.label((at.x + 14.0, at.left().1), Side::Left, CODE, field, 160.0);
        let value = text(field).unwrap_or_default();
        let right = (at.x + at.w - 14.0, at.left().1);
        canvas.label(right, Side::Right, CODE.ink(MUTED), &value, 200.0);
        canvas.line(&[at.right(), (BUS, at.right().1)], INK, 1.75, Stroke::Solid);
    }
    let ends = [FIELD.left().1, FIELD.left().1 + 6.0 * PITCH];
    canvas.line(&[(BUS, ends[0]), (BUS, ends[1])], INK, 1.75, Stroke::Solid);
    Ok(())
}

/// Draws log and facts, without a line into the hash.
fn outside(canvas: &mut Canvas) {
    canvas.line(&[(24.0, BOUNDARY), (WIDTH - 24.0, BOUNDARY)], RED, 1.75, Stroke::Dashed);
    let words = [(BOUNDARY - 16.0, "inputs of the hash"), (BOUNDARY + 18.0, "outside")];
    for (y, word) in words {
        canvas.label((WIDTH - 24.0, y), Side::Right, NOTE, word, 200.0);
    }
    for (at, up_to) in [(THE_LOG, MANIFEST.y + MANIFEST.h), (THE_FACTS, HASH.y + HASH.h)] {
        let (x, top) = at.top();
        canvas.line(&[(x, top), (x, up_to)], DRIFT.line, 1.5, Stroke::Dotted);
        canvas.mark((x, BOUNDARY), Mark::Dot, 11.0, WHITE, false);
        canvas.cross((x, BOUNDARY), 7.0, RED, 3.0);
        canvas.label((x + 20.0, BOUNDARY + 20.0), Side::Left, HEAD.ink(RED), "not an input", 130.0);
    }
    let note = Area::new(THE_FACTS.x + THE_FACTS.w + 20.0, THE_FACTS.y, 281.0, THE_FACTS.h);
    let lines = ["neither is a manifest field, so no", "byte of them is ever hashed"];
    canvas.lines(note, &lines.map(|line| (NOTE, line)));
}
