//! Horizontal bars of percentages: a group for each row, a bar for each series.

use super::Figure;
use super::canvas::{Canvas, Side, Stroke};
use super::palette::{BLUE, BODY, Colour, GREEN, HAIR, MUTED, NOTE, ORANGE, PURPLE, RED, TITLE};
use crate::Error;

const WIDTH: f64 = 900.0;
/// The left edge of the bars; the names of the rows are before it.
const LEFT: f64 = 250.0;
/// The length of a bar of 100 percent.
const FULL: f64 = 520.0;
const TOP: f64 = 104.0;
const BAR: f64 = 16.0;
const GAP: f64 = 14.0;
const INKS: [Colour; 5] = [BLUE, RED, GREEN, ORANGE, PURPLE];

/// The content of the figure.
pub struct Bars {
    /// The name of its files.
    pub name: &'static str,
    /// The title above it.
    pub title: String,
    /// The text below the title.
    pub caption: String,
    /// The names of the series.
    pub series: Vec<String>,
    /// Each row with its name and a percentage for each series.
    pub rows: Vec<(String, Vec<f64>)>,
}

/// Draws the bars.
pub fn bars(content: &Bars) -> Result<Figure, Error> {
    let group = BAR * content.series.len() as f64 + GAP;
    let height = TOP + group * content.rows.len() as f64 + 24.0;
    let mut canvas = Canvas::new(WIDTH, height);
    canvas.text((24.0, 36.0), Side::Left, TITLE, &content.title, WIDTH - 48.0);
    canvas.text((24.0, 60.0), Side::Left, NOTE, &content.caption, WIDTH - 48.0);
    // The legend takes the whole width, so that a name of one series is not cut.
    let room = (WIDTH - 48.0) / content.series.len().max(1) as f64;
    for (place, name) in content.series.iter().enumerate() {
        let (x, ink) = (24.0 + room * place as f64, INKS[place % INKS.len()]);
        canvas.line(&[(x, 84.0), (x + 18.0, 84.0)], ink, 10.0, Stroke::Solid);
        canvas.label((x + 26.0, 84.0), Side::Left, NOTE, name, room - 30.0);
    }
    for percent in [0.0, 25.0, 50.0, 75.0, 100.0] {
        let x = LEFT + FULL * percent / 100.0;
        canvas.line(&[(x, TOP - 6.0), (x, height - 24.0)], HAIR, 1.0, Stroke::Solid);
    }
    for (row, (name, values)) in content.rows.iter().enumerate() {
        let top = TOP + group * row as f64;
        let middle = top + BAR * content.series.len() as f64 / 2.0;
        canvas.label((LEFT - 14.0, middle), Side::Right, BODY, name, LEFT - 38.0);
        for (place, value) in values.iter().enumerate() {
            let y = top + BAR * (place as f64 + 0.5);
            let end = LEFT + FULL * value.clamp(0.0, 100.0) / 100.0;
            let ink = INKS[place % INKS.len()];
            canvas.line(&[(LEFT, y), (end, y)], ink, BAR - 5.0, Stroke::Solid);
            let words = format!("{value:.1}");
            canvas.label((end + 8.0, y), Side::Left, NOTE.ink(MUTED), &words, 60.0);
        }
    }
    Figure::new(content.name, "Bars of percentages", content.caption.clone(), canvas)
}
