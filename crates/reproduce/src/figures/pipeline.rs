//! The steps of a pass, and its record in the log.

use super::Figure;
use super::canvas::{Area, Arrow, At, Canvas, Card, Side, Stroke};
use super::palette::{BLUE, FACTS, GREEN, HEAD, Hand, INK, LOG, NOTE, STEP, Tone, WHITE};
use crate::Error;

const WIDTH: f64 = 1160.0;
const HEIGHT: f64 = 400.0;
const SMALL: Hand = NOTE.ink(INK);

const THE_LOG: Area = Area::new(24.0, 76.0, 126.0, 92.0);
const STEPS: [f64; 4] = [186.0, 364.0, 542.0, 720.0];
const STEP_WIDTH: f64 = 150.0;
/// The frame around everything that commits together.
const TRANSACTION: Area = Area::new(896.0, 24.0, 240.0, 352.0);
const PUT: Area = Area::new(916.0, 76.0, 200.0, 92.0);
const CHECKPOINT: Area = Area::new(916.0, 184.0, 200.0, 52.0);
const RECORD: Area = Area::new(916.0, 252.0, 200.0, 104.0);

const fn step(n: usize) -> Area {
    Area::new(STEPS[n], 76.0, STEP_WIDTH, 92.0)
}

const CARDS: [Card<'_>; 8] = [
    Card::new(THE_LOG, LOG, &[(HEAD, "Log"), (SMALL, "append-only")]),
    Card::new(
        step(0),
        STEP,
        &[(HEAD, "1  read"), (SMALL, "events after"), (SMALL, "the checkpoint")],
    ),
    Card::new(
        step(1),
        STEP,
        &[(HEAD, "2  extract"), (SMALL, "typed fields"), (SMALL, "of each event")],
    ),
    Card::new(step(2), STEP, &[(HEAD, "3  group"), (SMALL, "by the stable"), (SMALL, "fact key")]),
    Card::new(
        step(3),
        STEP,
        &[(HEAD, "4  aggregate"), (SMALL, "counts and"), (SMALL, "parameter bands")],
    ),
    Card::new(PUT, FACTS, &[(HEAD, "5  put"), (SMALL, "facts whose"), (SMALL, "bytes changed")]),
    Card::new(CHECKPOINT, FACTS, &[(HEAD, "checkpoint"), (SMALL, "moves to the last seq")]),
    Card::new(
        RECORD,
        LOG,
        &[
            (HEAD, "6  record"),
            (SMALL, "consolidation_run:"),
            (SMALL, "rule set, range of seqs,"),
            (SMALL, "facts touched"),
        ],
    ),
];

/// Draws the steps of a pass.
pub fn pipeline() -> Result<Figure, Error> {
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    let around = Tone { line: GREEN, ground: WHITE };
    canvas.frame(TRANSACTION, around, Stroke::Dashed);
    let head = (TRANSACTION.middle().0, 50.0);
    canvas.label(head, Side::Middle, HEAD.ink(GREEN), "one transaction", TRANSACTION.w - 16.0);
    CARDS.iter().for_each(|card| canvas.card(card));
    let row: Vec<Area> = [THE_LOG].into_iter().chain((0..4).map(step)).chain([PUT]).collect();
    for pair in row.windows(2) {
        canvas.flow(pair[0].right(), pair[1].left());
    }
    back_to_the_log(&mut canvas);
    let caption = "One consolidation pass. Steps 1 to 5 read the events after the checkpoint, \
        extract typed fields, group by a stable fact key, aggregate counts and parameter bands, \
        and put the facts. Step 6 closes the audit loop: a consolidation_run record with the rule \
        set, the range of the log and the number of facts touched is appended to the log. Here \
        facts, checkpoint and record commit in one transaction, so no crash can separate them. \
        The same log under the same rule set gives byte-equal facts in every run.";
    Figure::new("consolidation-pipeline", "One consolidation pass", caption.to_owned(), canvas)
}

fn back_to_the_log(canvas: &mut Canvas) {
    let y = RECORD.middle().1;
    let path: [At; 3] = [RECORD.left(), (THE_LOG.middle().0, y), THE_LOG.bottom()];
    canvas.arrow(&Arrow { path: &path, ink: BLUE, stroke: Stroke::Solid });
    let middle = f64::midpoint(THE_LOG.middle().0, RECORD.x);
    let word = "the record is appended to the log that it explains";
    canvas.label((middle, y - 16.0), Side::Middle, HEAD.ink(BLUE), word, 640.0);
    let note = "facts, checkpoint and record: all of them durable, or none";
    canvas.label((middle, y + 20.0), Side::Middle, NOTE, note, 640.0);
}
