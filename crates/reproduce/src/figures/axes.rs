//! Axes: map values to pixels and draw ticks.
//!
//! **Invariant:** a logarithmic axis begins and ends at powers of ten; values that are not positive
//! are drawn at its beginning.

use super::canvas::{Area, Canvas, Side, Stroke};
use super::palette::{BODY, HAIR, MUTED, NOTE};
use libm::log10;

/// Padding between the frame and the first value, in pixels.
const MARGIN: f64 = 18.0;

/// One axis of a plot.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Values and their labels.
    ticks: Vec<(f64, String)>,
    name: String,
}

impl Axis {
    /// A linear axis that covers the values, with round ticks.
    pub(super) fn linear(name: &str, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = bounds(values);
        let steps = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0];
        let step = steps.into_iter().find(|step| high - low <= 12.0 * step).unwrap_or(5000.0);
        let [from, mut to] = [(low / step).floor(), (high / step).ceil()].map(|n| n as i64);
        to = to.max(from + 1);
        let tick = |n: i64| (n as f64 * step, signed(n as f64 * step, 0));
        let [low, high] = [from, to].map(|n| n as f64 * step);
        let ticks = (from..=to).map(tick).collect();
        Axis { low, high, logarithmic: false, ticks, name: name.to_owned() }
    }

    /// A logarithmic axis that covers the values, with a tick at each power of ten.
    pub(super) fn powers(
        name: &str,
        values: impl Iterator<Item = f64>,
        word: impl Fn(i32) -> String,
    ) -> Self {
        let (low, high) = bounds(values.filter(|value| *value > 0.0).map(log10));
        let [from, mut to] = [low.floor(), high.ceil()].map(|n| n as i32);
        to = to.max(from + 1);
        let ticks = (from..=to).map(|n| (f64::from(n), word(n))).collect();
        let [low, high] = [from, to].map(f64::from);
        Axis { low, high, logarithmic: true, ticks, name: name.to_owned() }
    }

    /// The position of a value along the axis, from 0 to 1.
    fn share(&self, value: f64) -> f64 {
        let value = match (self.logarithmic, value > 0.0) {
            (false, _) => value,
            (true, true) => log10(value),
            (true, false) => self.low,
        };
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// The horizontal pixel of a value.
    pub(super) fn across(&self, plot: Area, value: f64) -> f64 {
        plot.x + MARGIN + self.share(value) * (plot.w - 2.0 * MARGIN)
    }

    /// The vertical pixel of a value.
    pub(super) fn up(&self, plot: Area, value: f64) -> f64 {
        plot.y + plot.h - MARGIN - self.share(value) * (plot.h - 2.0 * MARGIN)
    }

    fn value(&self, tick: f64) -> f64 {
        if self.logarithmic { libm::exp10(tick) } else { tick }
    }

    /// Draws grid, ticks and name below a plot.
    pub(super) fn draw_below(&self, canvas: &mut Canvas, plot: Area) {
        let bottom = plot.y + plot.h;
        let room = plot.w / self.ticks.len() as f64;
        for (tick, word) in &self.ticks {
            let x = self.across(plot, self.value(*tick));
            canvas.hair((x, plot.y), (x, bottom));
            canvas.line(&[(x, bottom), (x, bottom + 5.0)], MUTED, 1.0, Stroke::Solid);
            canvas.label((x, bottom + 18.0), Side::Middle, NOTE, word, room);
        }
        let name = (plot.middle().0, bottom + 45.0);
        canvas.label(name, Side::Middle, BODY, &self.name, plot.w);
    }

    /// Draws grid and ticks left of a plot, and the name above them.
    pub(super) fn draw_beside(&self, canvas: &mut Canvas, plot: Area) {
        for (tick, word) in &self.ticks {
            let y = self.up(plot, self.value(*tick));
            canvas.hair((plot.x, y), (plot.x + plot.w, y));
            canvas.line(&[(plot.x - 5.0, y), (plot.x, y)], MUTED, 1.0, Stroke::Solid);
            canvas.label((plot.x - 10.0, y), Side::Right, NOTE, word, 48.0);
        }
        // The name is above the plot, not rotated along it, so that it reads without turning.
        canvas.label((plot.x - 58.0, plot.y - 20.0), Side::Left, BODY, &self.name, plot.w);
    }
}

/// The outline of a plot.
pub(super) fn outline(canvas: &mut Canvas, plot: Area) {
    let (l, t, r, b) = (plot.x, plot.y, plot.x + plot.w, plot.y + plot.h);
    canvas.line(&[(l, t), (r, t), (r, b)], HAIR, 1.0, Stroke::Solid);
    canvas.line(&[(l, t), (l, b), (r, b)], MUTED, 1.25, Stroke::Solid);
}

fn bounds(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let wider = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), wider);
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// A number with a typographic minus sign; none if it rounds to zero.
pub(super) fn signed(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    let zero = text.chars().all(|letter| matches!(letter, '0' | '.'));
    if value < 0.0 && !zero { format!("−{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_between_the_margins() {
        let plot = Area::new(100.0, 50.0, 436.0, 236.0);
        let axis = Axis::linear("x", [-4.7, 0.0, 81.0].into_iter());
        assert_eq!((axis.low, axis.high, axis.ticks.len()), (-10.0, 90.0, 11));
        assert_eq!(axis.across(plot, -10.0), 118.0);
        assert_eq!(axis.across(plot, 40.0), 318.0);
        let axis = Axis::powers("y", [0.0, 3.0, 1000.0].into_iter(), |n| n.to_string());
        assert_eq!((axis.low, axis.high), (0.0, 3.0));
        assert_eq!(axis.up(plot, 0.0), 268.0);
        assert_eq!(axis.up(plot, 1000.0), 68.0);
        let alone = Axis::powers("y", [100.0].into_iter(), |n| n.to_string());
        assert_eq!((alone.low, alone.high), (2.0, 3.0), "one value has an axis too");
        assert_eq!(Axis::linear("x", [].into_iter()).ticks.len(), 2);
    }

    #[test]
    fn minus_is_a_minus() {
        assert_eq!(signed(-2.571, 2), "−2.57");
        assert_eq!(signed(-0.001, 2), "0.00");
        assert_eq!(signed(79.816, 2), "79.82");
    }
}
