//! V3's reductions for each control: mean, interval and every seed.

use super::Figure;
use super::axes::{Axis, outline, signed};
use super::canvas::{Area, At, Canvas, Mark, Sample, Side, Stroke};
use super::letters::width;
use super::palette::{BLUE, BODY, Colour, GREEN, HEAD, INK, MUTED, NOTE, RED, Tone, WHITE};
use crate::Error;
use crate::v3::{Control, Run, SEEDS, Summary};

const NAME: &str = "v3-forest";
const WIDTH: f64 = 1120.0;
const TOP: f64 = 56.0;
const ROW: f64 = 104.0;
const LEFT: f64 = 216.0;
const PLOT: f64 = 620.0;
/// The left edge of the numbers.
const NUMBERS: f64 = LEFT + PLOT + 24.0;
/// Height of the axis and the legend.
const BELOW: f64 = 118.0;
/// Offsets from the middle of a row to its bar, and to both ends of the ticks below it.
const BAR: f64 = -18.0;
const TICKS: [f64; 2] = [-5.0, 13.0];
/// The seed whose result was published first.
const FIRST_PUBLISHED: i128 = SEEDS[0];

/// The name of a control, how it weighs facts, and its colour.
fn face(control: Control) -> (&'static str, &'static str, Colour) {
    match control {
        Control::Uniform => ("Uniform", "every known fact counts 1", MUTED),
        Control::Raw => ("Raw", "the fact's success rate", BLUE),
        Control::Calibrated { .. } => ("Calibrated", "rate shrunk to a prior", GREEN),
    }
}

/// Draws a row for each control.
pub fn forest(controls: &[Summary]) -> Result<Figure, Error> {
    let Some(first) = controls.first().filter(|first| !first.runs.is_empty()) else {
        return Err(Error::Figure { name: NAME, reason: "no run to draw".to_owned() });
    };
    let plot = Area::new(LEFT, TOP, PLOT, ROW * controls.len() as f64);
    let mut canvas = Canvas::new(WIDTH, TOP + plot.h + BELOW);
    let ends = |summary: &Summary| summary.interval.into_iter().flatten().collect::<Vec<_>>();
    let seeds = controls.iter().flat_map(|summary| summary.runs.iter().map(Run::reduction));
    let values = seeds.chain(controls.iter().flat_map(ends)).chain([0.0]);
    let axis = Axis::linear("reduction of unproductive attempts, %", values);
    axis.draw_below(&mut canvas, plot);
    outline(&mut canvas, plot);
    let zero = axis.across(plot, 0.0);
    canvas.line(&[(zero, plot.y), (zero, plot.y + plot.h)], INK, 1.75, Stroke::Dashed);
    for (x, head) in [(24.0, "control"), (NUMBERS, "mean [95 % BCa interval]")] {
        canvas.label((x, TOP - 22.0), Side::Left, NOTE, head, 236.0);
    }
    for (n, summary) in controls.iter().enumerate() {
        let row = Area { y: TOP + ROW * n as f64, h: ROW, ..plot };
        draw_row(&mut canvas, &axis, row, summary);
    }
    let marked = controls.iter().enumerate().rev().find_map(|(n, summary)| {
        let run = summary.runs.iter().find(|run| run.seed == FIRST_PUBLISHED)?;
        (summary.setting.control != Control::Uniform).then_some((n, run.reduction()))
    });
    if let Some((n, reduction)) = marked {
        let y = TOP + ROW * (n as f64 + 0.5);
        first_published(&mut canvas, plot, (axis.across(plot, reduction), y), reduction);
    }
    legend(&mut canvas, plot);
    let title = "V3: reduction of unproductive attempts, by control";
    Figure::new(NAME, title, caption(first, controls), canvas)
}

/// The mean with its interval, as printed in the right column.
fn numbers(summary: &Summary) -> String {
    let mean = signed(summary.reduction(), 2);
    match (summary.interval, summary.runs.len()) {
        (Some([low, high]), _) => format!("{mean} % [{}, {}]", signed(low, 2), signed(high, 2)),
        (None, 1) => format!("{mean} % (one seed)"),
        (None, _) => format!("{mean} % (no interval)"),
    }
}

fn draw_row(canvas: &mut Canvas, axis: &Axis, row: Area, summary: &Summary) {
    let (name, weighs, ink) = face(summary.setting.control);
    let y = row.middle().1;
    let room = row.x - 24.0 - 12.0;
    canvas.label((24.0, y - 11.0), Side::Left, HEAD.ink(ink), name, room);
    canvas.label((24.0, y + 11.0), Side::Left, NOTE, weighs, room);
    if row.y > TOP {
        canvas.hair((24.0, row.y), (WIDTH - 24.0, row.y));
    }
    for run in &summary.runs {
        let x = axis.across(row, run.reduction());
        canvas.line(&TICKS.map(|end| (x, y + end)), ink, 1.5, Stroke::Solid);
    }
    if let Some(interval) = summary.interval {
        bar(canvas, interval.map(|end| axis.across(row, end)), y + BAR, ink);
    }
    let mean = (axis.across(row, summary.reduction()), y + BAR);
    canvas.mark(mean, Mark::Dot, 5.5, ink, false);
    canvas.label((NUMBERS, y), Side::Left, BODY, &numbers(summary), WIDTH - 16.0 - NUMBERS);
}

fn bar(canvas: &mut Canvas, ends: [f64; 2], y: f64, ink: Colour) {
    canvas.line(&[(ends[0], y), (ends[1], y)], ink, 2.5, Stroke::Solid);
    for x in ends {
        canvas.line(&[(x, y - 5.0), (x, y + 5.0)], ink, 2.5, Stroke::Solid);
    }
}

/// Marks the seed that was published first, below its tick.
fn first_published(canvas: &mut Canvas, plot: Area, (x, y): At, reduction: f64) {
    let tip = y + TICKS[1] + 3.0;
    canvas.polygon(&[(x, tip), (x + 5.0, tip + 8.0), (x - 5.0, tip + 8.0)], RED, RED);
    let text = format!("seed {FIRST_PUBLISHED} alone: {} %", signed(reduction, 2));
    let half = width(&text, NOTE.size, NOTE.face) / 2.0 + 6.0;
    let edge = half + 4.0;
    let middle = x.clamp(plot.x + edge, plot.x + plot.w - edge);
    let plate = Area::new(middle - half, tip + 10.0, 2.0 * half, 18.0);
    canvas.frame(plate, Tone { line: WHITE, ground: WHITE }, Stroke::Solid);
    canvas.label((middle, tip + 19.0), Side::Middle, NOTE.ink(RED), &text, 2.0 * half);
}

fn legend(canvas: &mut Canvas, plot: Area) {
    let entries: [(&str, Sample<'_>); 4] = [
        ("mean", Box::new(|canvas, at| canvas.mark(at, Mark::Dot, 5.5, INK, false))),
        ("95 % BCa interval", Box::new(|canvas, (x, y)| bar(canvas, [x - 16.0, x + 16.0], y, INK))),
        (
            "one seed",
            Box::new(|canvas, (x, y)| {
                canvas.line(&[(x, y - 9.0), (x, y + 9.0)], INK, 1.5, Stroke::Solid);
            }),
        ),
        (
            "no memory: no reduction",
            Box::new(|canvas, (x, y)| {
                canvas.line(&[(x, y - 11.0), (x, y + 11.0)], INK, 1.75, Stroke::Dashed);
            }),
        ),
    ];
    let entries = entries.map(|(text, sample)| (text.to_owned(), sample));
    canvas.legend((WIDTH / 2.0, plot.y + plot.h + 88.0), NOTE, &entries);
}

fn caption(first: &Summary, controls: &[Summary]) -> String {
    let seeds = match first.runs.len() {
        1 => "1 seed".to_owned(),
        n => format!("{n} seeds"),
    };
    let each =
        |summary: &Summary| format!("{} {}", face(summary.setting.control).0, numbers(summary));
    format!(
        "V3 over {seeds}, {} decisions each: mean reduction of unproductive attempts against no \
         memory (dot), 95 % BCa interval of 10 000 resamples (bar) and the reduction of each seed \
         (ticks). {}.",
        first.setting.decisions,
        controls.iter().map(each).collect::<Vec<_>>().join("; ")
    )
}
