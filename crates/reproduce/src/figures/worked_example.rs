//! A week with a glass cup: from events to a fact to an action, with one identity.
//!
//! **Invariant:** every number comes from the example, which read it from a store.

use super::canvas::{Area, Canvas, Card, Lines, Mark, Side, Stroke};
use super::letters::width;
use super::palette::{
    AGENT, BODY, CODE, Colour, DRIFT, FACTS, FRAME, GREEN, HEAD, Hand, INK, LOG, MUTED, NOTE,
    PURPLE, RED, STEP, TITLE, Tone, WHITE,
};
use super::{Figure, prefix};
use crate::Error;
use crate::example::Example;
use std::collections::BTreeMap;

const WIDTH: f64 = 1180.0;
const HEIGHT: f64 = 622.0;
const SMALL: Hand = NOTE.ink(INK);
/// The first panel, and the distance to the next one.
const PANEL: Area = Area::new(24.0, 54.0, 262.0, 370.0);
const PITCH: f64 = 290.0;
/// The horizontal padding of a panel.
const SIDE: f64 = 16.0;
const BAND: Area = Area::new(24.0, 488.0, WIDTH - 48.0, 110.0);

const PANELS: [(&str, Tone); 4] = [
    ("A week of events", LOG),
    ("f groups and counts", STEP),
    ("One fact", FACTS),
    ("A planner acts", AGENT),
];

fn panel(n: usize) -> Area {
    Area { x: PANEL.x + PITCH * n as f64, ..PANEL }
}

/// Texts that several panels use.
struct SharedText<'e> {
    example: &'e Example,
    /// Skill, object and context.
    key: Vec<&'e str>,
    /// For each force, the numbers of successes and failures.
    forces: BTreeMap<u32, (u32, u32)>,
    held: u32,
    recommended: String,
}

impl<'e> SharedText<'e> {
    fn of(example: &'e Example) -> Self {
        let mut forces = BTreeMap::<u32, (u32, u32)>::new();
        for (force, n, held) in &example.attempts {
            let of = forces.entry(*force).or_default();
            *(if *held { &mut of.0 } else { &mut of.1 }) += n;
        }
        SharedText {
            example,
            key: example.fact_key.split(" + ").collect(),
            held: forces.values().map(|(held, _)| held).sum(),
            forces,
            recommended: example.recommended.to_string(),
        }
    }
}

/// Draws the example.
pub fn worked_example(example: &Example) -> Result<Figure, Error> {
    let reported = SharedText::of(example);
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    let heads =
        [(34.0, "Knowledge from a pass"), (BAND.y - 20.0, "Identity before and after the pass")];
    for (y, head) in heads {
        canvas.text((PANEL.x, y), Side::Left, TITLE, head, 500.0);
    }
    for (n, (head, tone)) in PANELS.into_iter().enumerate() {
        let at = panel(n);
        canvas.frame(at, Tone { line: tone.line, ..FRAME }, Stroke::Solid);
        number(&mut canvas, at, n + 1, tone, head);
        if n > 0 {
            canvas.flow(panel(n - 1).right(), at.left());
        }
    }
    events(&mut canvas, panel(0), &reported);
    grouping(&mut canvas, panel(1), &reported);
    fact(&mut canvas, panel(2), &reported);
    action(&mut canvas, panel(3), &reported);
    identity(&mut canvas, example);
    Figure::new("worked-example", "A week with a glass cup", caption(&reported), canvas)
}

/// Draws the number and the heading of a panel.
fn number(canvas: &mut Canvas, at: Area, n: usize, tone: Tone, head: &str) {
    let (x, y) = (at.x + SIDE + 11.0, at.y + 28.0);
    canvas.mark((x, y), Mark::Dot, 12.0, tone.line, false);
    canvas.label((x, y), Side::Middle, HEAD.ink(WHITE), &n.to_string(), 20.0);
    canvas.label((x + 22.0, y), Side::Left, HEAD, head, at.w - 2.0 * SIDE - 33.0);
}

/// Draws one dot or cross for each attempt, by force.
fn events(canvas: &mut Canvas, at: Area, reported: &SharedText<'_>) {
    let most =
        reported.forces.values().map(|(held, failed)| held + failed).max().unwrap_or(1).max(1);
    let room = at.w - 2.0 * SIDE - 60.0;
    let pitch = (room / f64::from(most)).min(16.0);
    let step = (252.0 / reported.forces.len().max(1) as f64).min(110.0);
    for (n, (force, (held, failed))) in reported.forces.iter().enumerate() {
        let y = at.y + 82.0 + step * n as f64;
        canvas.label((at.x + SIDE, y), Side::Left, HEAD, &format!("{force} N"), 56.0);
        for attempt in 0..held + failed {
            let at = (at.x + SIDE + 60.0 + pitch * (f64::from(attempt) + 0.5), y);
            if attempt < *held {
                canvas.mark(at, Mark::Dot, pitch * 0.3, GREEN, false);
            } else {
                canvas.cross(at, pitch * 0.3, RED, 2.25);
            }
        }
        let words = format!("{held} of {} held", held + failed);
        canvas.label((at.x + SIDE + 60.0, y + 24.0), Side::Left, NOTE, &words, room);
    }
    let y = at.y + at.h - 24.0;
    canvas.mark((at.x + SIDE + 8.0, y), Mark::Dot, 4.75, GREEN, false);
    canvas.label((at.x + SIDE + 22.0, y), Side::Left, NOTE, "held", 60.0);
    canvas.cross((at.x + SIDE + 88.0, y), 4.75, RED, 2.25);
    canvas.label((at.x + SIDE + 102.0, y), Side::Left, NOTE, "failed", 80.0);
}

/// Draws the parts of the key and the counts.
fn grouping(canvas: &mut Canvas, at: Area, reported: &SharedText<'_>) {
    let (x, room) = (at.x + SIDE, at.w - 2.0 * SIDE);
    canvas.label((x, at.y + 72.0), Side::Left, NOTE, "group by skill, object, context", room);
    for (n, part) in reported.key.iter().take(3).enumerate() {
        let chip = Area::new(x, at.y + 90.0 + 42.0 * n as f64, room, 34.0);
        canvas.card(&Card::new(chip, STEP, &[(CODE, part)]));
    }
    canvas.label((x, at.y + 240.0), Side::Left, NOTE, "count and compare", room);
    let example = reported.example;
    let rows = [
        ("events", example.n_observations.to_string()),
        ("held", reported.held.to_string()),
        ("success rate", example.success_rate.to_string()),
        ("confidence", example.confidence.to_string()),
    ];
    table(canvas, Area::new(x, at.y + 254.0, room, 26.0), &rows, INK);
}

/// Draws rows with names at the left and values at the right. `first` is the first row's area.
fn table(canvas: &mut Canvas, first: Area, rows: &[(&str, String)], ink: Colour) {
    for (n, (name, value)) in rows.iter().enumerate() {
        let at = Area { y: first.y + first.h * n as f64, ..first };
        if n > 0 {
            canvas.hair((at.x, at.y), (at.x + at.w, at.y));
        }
        canvas.label(at.left(), Side::Left, SMALL, name, at.w * 0.62);
        let room = at.w - width(name, SMALL.size, SMALL.face) - 8.0;
        canvas.label(at.right(), Side::Right, CODE.ink(ink), value, room);
    }
}

/// Draws the stored fact.
fn fact(canvas: &mut Canvas, at: Area, reported: &SharedText<'_>) {
    let (x, room) = (at.x + SIDE, at.w - 2.0 * SIDE);
    let example = reported.example;
    canvas.label((x, at.y + 72.0), Side::Left, NOTE, "fact key", room);
    let chip = Area::new(x, at.y + 90.0, room, 76.0);
    let more =
        |(n, part): (usize, &&str)| if n == 0 { (*part).to_owned() } else { format!("+ {part}") };
    let key: Vec<String> = reported.key.iter().enumerate().map(more).collect();
    let lines: Vec<_> = key.iter().map(|line| (CODE, line.as_str())).collect();
    canvas.card(&Card::new(chip, FACTS, &lines));
    let rows = [
        ("recommended force", format!("{} N", reported.recommended)),
        ("confidence", example.confidence.to_string()),
        ("observations", example.n_observations.to_string()),
        ("success rate", example.success_rate.to_string()),
        ("last event", prefix(example.last_event, 11)),
    ];
    table(canvas, Area::new(x, at.y + 184.0, room, 32.0), &rows, GREEN);
}

/// Draws the query, the answer and the action.
fn action(canvas: &mut Canvas, at: Area, reported: &SharedText<'_>) {
    let (x, room) = (at.x + SIDE, at.w - 2.0 * SIDE);
    let [skill, object] = [0, 1].map(|n| reported.key.get(n).copied().unwrap_or_default());
    let asked = format!("of {object}?");
    let force = format!("{} N", reported.recommended);
    let sure = format!("confidence {}", reported.example.recommended_confidence);
    let cards: [(f64, f64, Tone, Lines<'_>); 3] = [
        (56.0, 60.0, AGENT, &[(SMALL, "consults the facts"), (CODE, &asked)]),
        (142.0, 60.0, FACTS, &[(HEAD.ink(GREEN), &force), (SMALL, &sure)]),
        (228.0, 106.0, AGENT, &[]),
    ];
    let areas = cards.map(|(y, h, ..)| Area::new(x, at.y + y, room, h));
    for (here, (_, _, tone, lines)) in areas.iter().zip(cards) {
        canvas.card(&Card::new(*here, tone, lines));
    }
    for pair in areas.windows(2) {
        canvas.flow(pair[0].bottom(), pair[1].top());
    }
    let last = areas[2];
    canvas.label((last.middle().0, last.y + 18.0), Side::Middle, SMALL, "structured action", room);
    let rows = [
        ("skill", skill.to_owned()),
        ("target", object.to_owned()),
        ("force_n", reported.recommended.clone()),
    ];
    table(canvas, Area::new(x + 12.0, last.y + 30.0, room - 24.0, 24.0), &rows, INK);
    let y = at.y + at.h - 19.0;
    canvas.label((at.middle().0, y), Side::Middle, NOTE, "the gates judge it before it runs", room);
}

/// Draws the identity before and after the pass, and whether both are equal.
fn identity(canvas: &mut Canvas, example: &Example) {
    canvas.frame(BAND, Tone { line: PURPLE, ..FRAME }, Stroke::Solid);
    number(canvas, Area { y: BAND.middle().1 - 28.0, w: 220.0, ..BAND }, 5, AGENT, "Identity");
    for (y, word, hash) in
        [(36.0, "before the pass", example.before), (74.0, "after the pass", example.after)]
    {
        let y = BAND.y + y;
        canvas.label((BAND.x + 170.0, y), Side::Left, BODY, word, 130.0);
        canvas.label((BAND.x + 306.0, y), Side::Left, CODE, &hash.to_string(), 520.0);
    }
    let equal = example.before == example.after;
    let (tone, words) = if equal {
        (FACTS, ["byte-equal", "facts are not hashed"])
    } else {
        (DRIFT, ["DIFFERENT", "the pass changed the identity"])
    };
    let lines = [(HEAD.ink(tone.line), words[0]), (NOTE.ink(MUTED), words[1])];
    let at = Area::new(BAND.x + BAND.w - 276.0, BAND.y + 22.0, 258.0, BAND.h - 44.0);
    canvas.card(&Card::new(at, tone, &lines));
}

fn caption(reported: &SharedText<'_>) -> String {
    let example = reported.example;
    let force = |(force, (held, failed)): (&u32, &(u32, u32))| {
        format!("{held} of {} at {force} N", held + failed)
    };
    let forces: Vec<String> = reported.forces.iter().map(force).collect();
    let equal = if example.before == example.after { "byte-equal" } else { "DIFFERENT" };
    format!(
        "The worked example, end to end. (1) A week of attempts by force: {} held. (2) f groups \
         the events by skill, object and context and counts them. (3) One fact: {} N recommended, \
         confidence {}, {} observations. (4) A planner acts on it. The recommended force itself \
         has a confidence of {}; the gates judge the action before it runs. (5) The identity, \
         computed before and after the pass, is {equal}: {}.",
        forces.join(", "),
        reported.recommended,
        example.confidence,
        example.n_observations,
        example.recommended_confidence,
        prefix(example.after, 16)
    )
}
