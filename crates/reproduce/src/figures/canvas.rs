//! Drawing: boxes, arrows, texts and marks, once for the SVG and once for the PNG.
//!
//! **Invariants**
//! - Both pictures come from one list of shapes. It has no clips, gradients or definitions, so
//!   an SVG has no ids that could collide with those of other figures on a page.
//! - Every text has a maximal width and is shortened to it.
//! - Coordinates are rounded to quarters of a pixel, which have a short exact decimal form.

use super::letters::{Face, shortened, width};
use super::palette::{Colour, HAIR, Hand, INK, Tone, WHITE};
use crate::Error;
use kuva::PngBackend;
use kuva::backend::svg::SvgBackend;
use kuva::render::color::Color;
use kuva::render::render::{PathData, Primitive, Scene, TextAnchor, TextSpan};

/// The font of the PNG, then one with nearly the same widths.
const FONTS: &str = "DejaVu Sans, Verdana, sans-serif";
/// The distance between two base lines, in font sizes.
const LEADING: f64 = 1.4;
/// The distance from a base line to the middle of capitals, in font sizes.
const HALF_CAPITAL: f64 = 0.365;
const CORNER: f64 = 8.0;
const DASHES: &str = "6 4";
const DASHES_OF_PNG: &str = "12 8";
const DOTS: &str = "2 4";
const DOTS_OF_PNG: &str = "4 8";

/// A point: pixels to the right, then pixels down.
pub(super) type At = (f64, f64);

/// A rectangle.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) w: f64,
    pub(super) h: f64,
}

impl Area {
    pub(super) const fn new(x: f64, y: f64, w: f64, h: f64) -> Self {
        Area { x, y, w, h }
    }

    pub(super) fn middle(self) -> At {
        (self.x + self.w / 2.0, self.y + self.h / 2.0)
    }

    pub(super) fn left(self) -> At {
        (self.x, self.middle().1)
    }

    pub(super) fn right(self) -> At {
        (self.x + self.w, self.middle().1)
    }

    pub(super) fn top(self) -> At {
        (self.middle().0, self.y)
    }

    pub(super) fn bottom(self) -> At {
        (self.middle().0, self.y + self.h)
    }
}

/// The point of a text that is placed at its position.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Side {
    Left,
    Middle,
    Right,
}

/// The style of a line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Stroke {
    Solid,
    Dashed,
    Dotted,
}

/// The shape of a data point.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Mark {
    Dot,
    Square,
    Diamond,
}

/// Lines of text from top to bottom, each with its style.
pub(super) type Lines<'a> = &'a [(Hand, &'a str)];

/// A box with centred lines of text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Card<'a> {
    pub(super) at: Area,
    pub(super) tone: Tone,
    pub(super) stroke: Stroke,
    pub(super) lines: Lines<'a>,
}

impl<'a> Card<'a> {
    /// A box with a solid outline.
    pub(super) const fn new(at: Area, tone: Tone, lines: Lines<'a>) -> Self {
        Card { at, tone, stroke: Stroke::Solid, lines }
    }
}

/// A line with an arrow head at its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrow<'a> {
    pub(super) path: &'a [At],
    pub(super) ink: Colour,
    pub(super) stroke: Stroke,
}

/// A picture that is being drawn.
pub(super) struct Canvas(Scene);

fn quarter(value: f64) -> f64 {
    (value * 4.0).round() / 4.0
}

fn colour((r, g, b): Colour) -> Color {
    Color::Rgb(r, g, b)
}

fn dashes(stroke: Stroke) -> Option<String> {
    match stroke {
        Stroke::Solid => None,
        Stroke::Dashed => Some(DASHES.to_owned()),
        Stroke::Dotted => Some(DOTS.to_owned()),
    }
}

impl Canvas {
    /// A white canvas.
    pub(super) fn new(width: f64, height: f64) -> Self {
        let mut scene = Scene::new(width, height);
        scene.background_color = Some("#ffffff".to_owned());
        scene.text_color = Some(Color::to_svg_string(&colour(INK)));
        scene.font_family = Some(FONTS.to_owned());
        Canvas(scene)
    }

    /// Draws a text on its base line, shortened to `room`.
    pub(super) fn text(&mut self, at: At, side: Side, hand: Hand, text: &str, room: f64) {
        let mut span = TextSpan::plain(shortened(text, hand.size, hand.face, room));
        span.bold = hand.face == Face::Bold;
        span.code = hand.face == Face::Mono;
        let anchor = match side {
            Side::Left => TextAnchor::Start,
            Side::Middle => TextAnchor::Middle,
            Side::Right => TextAnchor::End,
        };
        self.0.elements.push(Primitive::RichText {
            x: quarter(at.0),
            y: quarter(at.1),
            spans: vec![span],
            size: hand.size,
            anchor,
            color: Some(colour(hand.ink)),
        });
    }

    /// Draws a text whose capitals are vertically centred on a point.
    pub(super) fn label(&mut self, at: At, side: Side, hand: Hand, text: &str, room: f64) {
        let base = at.1 + f64::from(hand.size) * HALF_CAPITAL;
        self.text((at.0, base), side, hand, text, room);
    }

    /// Draws lines of text in the middle of an area.
    pub(super) fn lines(&mut self, at: Area, lines: Lines<'_>) {
        let leading = |hand: &Hand| f64::from(hand.size) * LEADING;
        let height: f64 = lines.iter().map(|(hand, _)| leading(hand)).sum();
        let (x, mut y) = (at.middle().0, at.middle().1 - height / 2.0);
        for (hand, text) in lines {
            self.label((x, y + leading(hand) / 2.0), Side::Middle, *hand, text, at.w - 12.0);
            y += leading(hand);
        }
    }

    /// Draws a box with rounded corners.
    pub(super) fn frame(&mut self, at: Area, tone: Tone, stroke: Stroke) {
        let (l, t, r, b) = (at.x, at.y, at.x + at.w, at.y + at.h);
        // Each side ends where its corner begins. A corner is a quarter circle, drawn as a curve.
        let c = CORNER;
        let k = CORNER * 0.45;
        let d = [
            format!("M {} {t} L {} {t}", l + c, r - c),
            format!("C {} {t} {r} {} {r} {} L {r} {}", r - k, t + k, t + c, b - c),
            format!("C {r} {} {} {b} {} {b} L {} {b}", b - k, r - k, r - c, l + c),
            format!("C {} {b} {l} {} {l} {} L {l} {}", l + k, b - k, b - c, t + c),
            format!("C {l} {} {} {t} {} {t} Z", t + k, l + k, l + c),
        ];
        self.shape(d.join(" "), Some(tone.ground), tone.line, 1.5, stroke);
    }

    fn shape(&mut self, d: String, ground: Option<Colour>, line: Colour, w: f64, stroke: Stroke) {
        self.0.elements.push(Primitive::Path(Box::new(PathData {
            d,
            fill: ground.map(colour),
            stroke: colour(line),
            stroke_width: w,
            opacity: None,
            stroke_dasharray: dashes(stroke),
        })));
    }

    /// Draws a box with its text.
    pub(super) fn card(&mut self, card: &Card<'_>) {
        self.frame(card.at, card.tone, card.stroke);
        self.lines(card.at, card.lines);
    }

    /// Draws a line through points.
    pub(super) fn line(&mut self, path: &[At], ink: Colour, thick: f64, stroke: Stroke) {
        for ends in path.windows(2) {
            let [from, to] = [ends[0], ends[1]].map(|(x, y)| (quarter(x), quarter(y)));
            self.0.elements.push(Primitive::Line {
                x1: from.0,
                y1: from.1,
                x2: to.0,
                y2: to.1,
                stroke: colour(ink),
                stroke_width: thick,
                stroke_dasharray: dashes(stroke),
            });
        }
    }

    /// Draws a line with an arrow head.
    pub(super) fn arrow(&mut self, arrow: &Arrow<'_>) {
        let [.., (x0, y0), (x1, y1)] = *arrow.path else { return };
        let length = libm::hypot(x1 - x0, y1 - y0).max(1.0);
        let (dx, dy) = ((x1 - x0) / length, (y1 - y0) / length);
        let (x1, y1) = (x1 - dx * 2.0, y1 - dy * 2.0);
        let neck = (x1 - dx * 9.0, y1 - dy * 9.0);
        let mut path = arrow.path.to_vec();
        path.pop();
        path.push(neck);
        self.line(&path, arrow.ink, 1.75, arrow.stroke);
        let wing = |way: f64| (neck.0 - way * dy * 4.5, neck.1 + way * dx * 4.5);
        self.polygon(&[(x1, y1), wing(1.0), wing(-1.0)], arrow.ink, arrow.ink);
    }

    /// Draws a plain arrow.
    pub(super) fn flow(&mut self, from: At, to: At) {
        self.arrow(&Arrow { path: &[from, to], ink: INK, stroke: Stroke::Solid });
    }

    /// Draws a filled polygon.
    pub(super) fn polygon(&mut self, points: &[At], ground: Colour, line: Colour) {
        let point = |(x, y): &At| format!("{} {}", quarter(*x), quarter(*y));
        let d = points.iter().map(point).collect::<Vec<_>>().join(" L ");
        self.shape(format!("M {d} Z"), Some(ground), line, 1.5, Stroke::Solid);
    }

    /// Draws a data point with a radius; a hollow one is filled with white.
    pub(super) fn mark(&mut self, at: At, mark: Mark, r: f64, ink: Colour, hollow: bool) {
        let ground = if hollow { WHITE } else { ink };
        let (x, y) = at;
        match mark {
            Mark::Dot => self.0.elements.push(Primitive::Circle {
                cx: quarter(x),
                cy: quarter(y),
                r,
                fill: colour(ground),
                fill_opacity: None,
                stroke: Some(colour(ink)),
                stroke_width: Some(1.5),
            }),
            Mark::Square => {
                let (l, t, r, b) = (x - r, y - r, x + r, y + r);
                self.polygon(&[(l, t), (r, t), (r, b), (l, b)], ground, ink);
            }
            Mark::Diamond => {
                let r = r * 1.3;
                self.polygon(&[(x, y - r), (x + r, y), (x, y + r), (x - r, y)], ground, ink);
            }
        }
    }

    /// Draws a cross, for a failure or a forbidden link.
    pub(super) fn cross(&mut self, (x, y): At, r: f64, ink: Colour, thick: f64) {
        self.line(&[(x - r, y - r), (x + r, y + r)], ink, thick, Stroke::Solid);
        self.line(&[(x - r, y + r), (x + r, y - r)], ink, thick, Stroke::Solid);
    }

    /// Draws a hairline.
    pub(super) fn hair(&mut self, from: At, to: At) {
        self.line(&[from, to], HAIR, 1.0, Stroke::Solid);
    }

    /// Draws a legend centred on a point; each entry draws its sample in 34 pixels.
    pub(super) fn legend(&mut self, middle: At, hand: Hand, entries: &[(String, Sample<'_>)]) {
        let wide = |text: &str| 42.0 + width(text, hand.size, hand.face);
        let gap = 26.0;
        let all: f64 = entries.iter().map(|(text, _)| wide(text) + gap).sum::<f64>() - gap;
        let mut x = middle.0 - all / 2.0;
        for (text, sample) in entries {
            sample(self, (x + 17.0, middle.1));
            self.label((x + 42.0, middle.1), Side::Left, hand, text, wide(text));
            x += wide(text) + gap;
        }
    }

    /// Renders the SVG and the PNG. The title must not contain characters that XML escapes.
    pub(super) fn finish(
        mut self,
        name: &'static str,
        title: &'static str,
    ) -> Result<(String, Vec<u8>), Error> {
        let (w, h) = (self.0.width, self.0.height);
        let root = format!("<svg viewBox=\"0 0 {w} {h}\" role=\"img\" aria-label=\"{title}\" ");
        let svg = SvgBackend::new().render_scene(&self.0).replacen("<svg ", &root, 1);
        let svg = svg.replacen('>', &format!("><title>{title}</title>"), 1);
        self.0.elements.iter_mut().for_each(stretch_dashes);
        let png = PngBackend::new().with_scale(2.0).render_scene(&self.0);
        Ok((svg, png.map_err(|reason| Error::Figure { name, reason })?))
    }
}

/// Doubles the dashes, because the PNG is drawn at twice the size except for its dashes.
fn stretch_dashes(element: &mut Primitive) {
    let dashes = match element {
        Primitive::Line { stroke_dasharray, .. } => stroke_dasharray,
        Primitive::Path(path) => &mut path.stroke_dasharray,
        _ => return,
    };
    *dashes = dashes.take().map(|dashes| match dashes.as_str() {
        DASHES => DASHES_OF_PNG.to_owned(),
        _ => DOTS_OF_PNG.to_owned(),
    });
}

/// Draws the sample of a legend entry around a point.
pub(super) type Sample<'s> = Box<dyn Fn(&mut Canvas, At) + 's>;
