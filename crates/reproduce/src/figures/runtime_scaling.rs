//! G: the cost of a pass as the log grows, and the number of facts after it.
//!
//! **Invariant:** the paper's measurements are shown next to ours and never mixed with them.

use super::Figure;
use super::axes::{Axis, outline};
use super::canvas::{Area, At, Canvas, Mark, Sample, Side, Stroke};
use super::palette::{BLUE, BODY, Colour, GREEN, INK, MUTED, NOTE, ORANGE, PURPLE, RED, TITLE};
use crate::Error;
use crate::printed::power_of_ten;
use crate::runtime::{BUDGET_MS, PAPER, PAPER_FACTS, Point, Runtime, nearest_rank};
use std::collections::BTreeMap;

const NAME: &str = "runtime-scaling";
const WIDTH: f64 = 1160.0;
const HEIGHT: f64 = 556.0;
const LATENCY: Area = Area::new(88.0, 94.0, 430.0, 316.0);
const FACTS: Area = Area::new(702.0, 94.0, 430.0, 316.0);

/// Shapes and colours of our series, by keys.
const LOOKS: [(Mark, Colour); 3] =
    [(Mark::Dot, BLUE), (Mark::Square, GREEN), (Mark::Diamond, PURPLE)];

/// The measurements at one log size.
struct Size {
    events: f64,
    median: f64,
    p90: f64,
    facts: f64,
}

/// The measurements of one line in the plot.
struct Series {
    name: String,
    mark: Mark,
    ink: Colour,
    /// The paper's points are larger and hollow, so that ours stay visible on top of them.
    paper: bool,
    sizes: Vec<Size>,
}

/// The values of a point, as in the table.
fn size(point: &Point) -> Size {
    let ms = |percent| nearest_rank(&point.pass, percent) as f64 / 1e6;
    Size { events: point.events as f64, median: ms(50), p90: ms(90), facts: point.facts as f64 }
}

/// The paper's series, then ours, by keys.
fn series(runtime: &Runtime) -> Vec<Series> {
    let number = |printed: &str| printed.parse().expect("BUG: the paper prints numbers");
    let paper = |(events, median, p90): (u64, &str, &str)| Size {
        events: events as f64,
        median: number(median),
        p90: number(p90),
        facts: number(PAPER_FACTS),
    };
    let mut all = vec![Series {
        name: "the paper, K = 2 keys".to_owned(),
        mark: Mark::Diamond,
        ink: ORANGE,
        paper: true,
        sizes: PAPER.map(paper).into(),
    }];
    let mut by_keys = BTreeMap::<u64, Vec<Size>>::new();
    for point in &runtime.points {
        by_keys.entry(point.keys).or_default().push(size(point));
    }
    for ((keys, sizes), (mark, ink)) in by_keys.into_iter().zip(LOOKS.into_iter().cycle()) {
        all.push(Series { name: format!("ours, K = {keys} keys"), mark, ink, paper: false, sizes });
    }
    all
}

/// Draws latency and facts over the events of the log.
pub fn runtime_scaling(runtime: &Runtime) -> Result<Figure, Error> {
    let series = series(runtime);
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    let every = || series.iter().flat_map(|series| &series.sizes);
    let events = Axis::powers("events in the log", every().map(|size| size.events), power_of_ten);
    let budget_ms = BUDGET_MS as f64;
    let times = every().flat_map(|size| [size.median, size.p90]).chain([budget_ms]);
    let latency = Axis::powers("wall time of a pass, ms", times, plain);
    let facts = every().map(|size| size.facts).chain([1.0, 10.0]);
    let facts = Axis::powers("facts after the pass", facts, plain);
    for (plot, axis, head) in
        [(LATENCY, &latency, "(a) Cost of a pass"), (FACTS, &facts, "(b) Facts after it")]
    {
        canvas.label((plot.middle().0, 32.0), Side::Middle, TITLE, head, plot.w);
        events.draw_below(&mut canvas, plot);
        axis.draw_beside(&mut canvas, plot);
        outline(&mut canvas, plot);
    }
    budget(&mut canvas, latency.up(LATENCY, budget_ms));
    for one in &series {
        let place = |plot: Area, axis: &Axis, value: &dyn Fn(&Size) -> f64| -> Vec<At> {
            let at = |size: &Size| (events.across(plot, size.events), axis.up(plot, value(size)));
            one.sizes.iter().map(at).collect()
        };
        draw(&mut canvas, one, &place(LATENCY, &latency, &|size| size.p90), true);
        draw(&mut canvas, one, &place(LATENCY, &latency, &|size| size.median), false);
        draw(&mut canvas, one, &place(FACTS, &facts, &|size| size.facts), false);
    }
    legend(&mut canvas, &series);
    let title = "Cost of a consolidation pass and facts after it";
    let figure = Figure::new(NAME, title, caption(&series), canvas)?;
    Ok(Figure { stable: false, ..figure })
}

fn radius(series: &Series) -> f64 {
    if series.paper { 6.5 } else { 4.5 }
}

fn draw(canvas: &mut Canvas, series: &Series, path: &[At], p90: bool) {
    let stroke = if p90 { Stroke::Dashed } else { Stroke::Solid };
    canvas.line(path, series.ink, if p90 { 1.5 } else { 2.0 }, stroke);
    // Marks on the p90 line would hide those of the median, which is close below.
    if !p90 {
        for at in path {
            canvas.mark(*at, series.mark, radius(series), series.ink, series.paper);
        }
    }
}

/// Draws the budget line. Its label is outside the plot, where no data can be.
fn budget(canvas: &mut Canvas, y: f64) {
    let right = LATENCY.x + LATENCY.w;
    canvas.line(&[(LATENCY.x, y), (right, y)], RED, 1.75, Stroke::Dotted);
    for (n, line) in ["200 ms", "planner", "budget"].iter().enumerate() {
        let at = (right + 10.0, y + 17.0 * (n as f64 - 1.0));
        canvas.label(at, Side::Left, NOTE.ink(RED), line, 70.0);
    }
}

fn legend(canvas: &mut Canvas, series: &[Series]) {
    let middle = WIDTH / 2.0;
    let name = |one| -> (String, Sample<'_>) {
        let series: &Series = one;
        let sample = |canvas: &mut Canvas, (x, y): At| {
            canvas.line(&[(x - 17.0, y), (x + 17.0, y)], series.ink, 2.0, Stroke::Solid);
            canvas.mark((x, y), series.mark, radius(series), series.ink, series.paper);
        };
        (series.name.clone(), Box::new(sample))
    };
    // Ours in the order of the table, then the paper's.
    let (paper, ours) = series.split_at(1);
    let names: Vec<_> = ours.iter().chain(paper).map(name).collect();
    canvas.legend((middle, HEIGHT - 64.0), BODY, &names);
    let strokes = [("median of the trials", Stroke::Solid), ("p90", Stroke::Dashed)];
    let strokes = strokes.map(|(text, stroke)| -> (String, Sample<'_>) {
        let sample = move |canvas: &mut Canvas, (x, y): At| {
            canvas.line(&[(x - 17.0, y), (x + 17.0, y)], INK, 2.0, stroke);
        };
        (text.to_owned(), Box::new(sample))
    });
    canvas.legend((middle, HEIGHT - 30.0), NOTE.ink(MUTED), &strokes);
}

/// A power of ten as a plain number.
fn plain(power: i32) -> String {
    let zeros = |n: u32| "0".repeat(n as usize);
    match power {
        0.. => format!("1{}", zeros(power.unsigned_abs())),
        _ => format!("0.{}1", zeros(power.unsigned_abs() - 1)),
    }
}

fn caption(series: &[Series]) -> String {
    let last = |one: &Series| {
        let size = one.sizes.last()?;
        let (name, events, facts) = (&one.name, size.events, size.facts);
        Some(format!("{name}: {:.1} ms at {events} events, {facts} facts", size.median))
    };
    let ends: Vec<String> = series.iter().filter_map(last).collect();
    format!(
        "Cost of a pass as the log grows. (a) Median and p90 wall time of a pass over all \
         events, with the paper's budget of 200 ms for a planner's loop (dotted). (b) Facts after \
         the pass grow with the distinct keys K, not with the events. The largest size of each: \
         {}. Timings are those of this machine.",
        ends.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_in_words() {
        assert_eq!([-2, -1, 0, 3].map(plain), ["0.01", "0.1", "1", "1000"]);
    }
}
