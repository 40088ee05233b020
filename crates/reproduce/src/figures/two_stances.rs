//! Figure 1: learning that changes the identity, and learning that does not.

use super::canvas::{Area, Arrow, At, Canvas, Card, Lines, Side, Stroke};
use super::palette::{
    AGENT, BODY, CODE, Colour, DRIFT, FACTS, GREEN, HAIR, HEAD, Hand, INK, LOG, MUTED, NOTE, RED,
    STEP, TITLE,
};
use super::{Figure, prefix};
use crate::Error;
use ipse_core::Identity;

const WIDTH: f64 = 1100.0;
const HEIGHT: f64 = 400.0;
/// The width of each half.
const HALF: f64 = 500.0;
/// The left edges of the halves.
const A: f64 = 26.0;
const B: f64 = 574.0;
/// The left edges of the boxes in a row of three, from the edge of a half, and their width.
const COLUMNS: [f64; 3] = [0.0, 178.0, 356.0];
const BOX: f64 = 144.0;
/// The row of the consolidation steps.
const ROW: f64 = 186.0;
const TALL: f64 = 66.0;

const fn in_row(half: f64, column: usize) -> Area {
    Area::new(half + COLUMNS[column], ROW, BOX, TALL)
}

const SMALL: Hand = NOTE.ink(INK);
const LOG_LINES: Lines<'_> = &[(HEAD, "Log"), (SMALL, "of events")];

const CLASSICAL: [Card<'_>; 4] = [
    Card::new(in_row(A, 0), LOG, LOG_LINES),
    Card::new(in_row(A, 1), STEP, &[(HEAD, "fine-tune"), (SMALL, "reflect, distil")]),
    Card::new(in_row(A, 2), DRIFT, &[(HEAD, "Agent′"), (CODE.ink(RED), "h′ ≠ h")]),
    Card {
        at: Area::new(A + COLUMNS[2], 296.0, BOX, 56.0),
        tone: AGENT,
        stroke: Stroke::Dashed,
        lines: &[(HEAD, "Agent"), (CODE, "h")],
    },
];

const MANIFEST: Area = Area::new(B, 98.0, BOX, 56.0);
const HASH: Area = Area::new(B + COLUMNS[1], 98.0, COLUMNS[2] + BOX - COLUMNS[1], 56.0);
const PLANNER: Area = Area::new(B + COLUMNS[2], 296.0, BOX, 56.0);

const DERIVED: [Card<'_>; 5] = [
    Card::new(MANIFEST, AGENT, &[(HEAD, "Manifest"), (SMALL, "seven fields")]),
    Card::new(in_row(B, 0), LOG, LOG_LINES),
    Card::new(in_row(B, 1), STEP, &[(HEAD, "f"), (SMALL, "deterministic")]),
    Card::new(in_row(B, 2), FACTS, &[(HEAD, "Facts"), (SMALL, "derived")]),
    Card::new(PLANNER, AGENT, &[(HEAD, "Planner")]),
];

const HEADS: [(f64, &str, &str, Colour); 2] = [
    (A, "(a) Classical consolidation", "identity changes with knowledge", RED),
    (B, "(b) Consolidation as a derived layer", "identity byte-equal across updates", GREEN),
];

/// Draws the two stances; `identity` is the unchanged hash.
pub fn two_stances(identity: &Identity) -> Result<Figure, Error> {
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    for (x, head, below, ink) in HEADS {
        let middle = x + HALF / 2.0;
        canvas.text((middle, 38.0), Side::Middle, TITLE, head, HALF);
        canvas.text((middle, 64.0), Side::Middle, BODY.ink(ink), below, HALF);
    }
    let middle = WIDTH / 2.0;
    canvas.line(&[(middle, 22.0), (middle, HEIGHT - 22.0)], HAIR, 1.5, Stroke::Dashed);
    CLASSICAL.iter().chain(&DERIVED).for_each(|card| canvas.card(card));
    let h = format!("h = {}", prefix(identity, 24));
    canvas.card(&Card::new(HASH, AGENT, &[(SMALL, "identity = SHA-256(manifest)"), (CODE, &h)]));
    arrows(&mut canvas);
    notes(&mut canvas);
    let caption = format!(
        "Two stances on memory consolidation. (a) Classical consolidation stores new knowledge in \
         the agent itself: fine-tuning, reflection and distillation change the artefact whose \
         hash is certified, so every pass needs a new certificate. (b) Here the manifest, whose \
         hash is the identity ({}), is separate from the facts, which are derived from the log. \
         Facts are not an input of the hash. A planner reads facts and writes neither.",
        prefix(identity, 16)
    );
    Figure::new("two-stances", "Two stances on memory consolidation", caption, canvas)
}

fn arrows(canvas: &mut Canvas) {
    let between = |half: f64, n: usize| [in_row(half, n).right(), in_row(half, n + 1).left()];
    let [_, _, new, old] = CLASSICAL;
    for [from, to] in [
        between(A, 0),
        between(A, 1),
        between(B, 0),
        between(B, 1),
        [MANIFEST.right(), HASH.left()],
    ] {
        canvas.flow(from, to);
    }
    let dashed: [[At; 2]; 2] =
        [[old.at.top(), new.at.bottom()], [in_row(B, 2).bottom(), PLANNER.top()]];
    for (path, word) in dashed.iter().zip(["replaced", "reads only"]) {
        canvas.arrow(&Arrow { path, ink: MUTED, stroke: Stroke::Dashed });
        let beside = (path[0].0 - 12.0, f64::midpoint(path[0].1, path[1].1));
        canvas.label(beside, Side::Right, NOTE, word, BOX);
    }
}

fn notes(canvas: &mut Canvas) {
    let y = PLANNER.middle().1;
    let room = COLUMNS[2] - 20.0;
    for (half, head, below, ink) in [
        (A, "h → h′", "a new certificate is needed", RED),
        (B, "manifest unchanged ⇒ h = h", "the certificate stays valid", GREEN),
    ] {
        canvas.label((half, y - 11.0), Side::Left, HEAD.ink(ink), head, room);
        canvas.label((half, y + 12.0), Side::Left, BODY.ink(ink), below, room);
    }
}
