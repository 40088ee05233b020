//! The paper's six figures and those of an evaluation, drawn from computed results.
//!
//! **Invariants**
//! - A figure shows the numbers that it was given or the paper's, and labels which are which.
//! - The same numbers give the same bytes, as SVG and as PNG, in every run.
//! - An SVG refers to nothing outside itself and has no ids, so several fit on one page.

mod axes;
mod bars;
mod canvas;
mod forest;
mod hash_inputs;
pub mod letters;
mod palette;
mod pipeline;
mod runtime_scaling;
mod two_stances;
mod worked_example;

pub use bars::{Bars, bars};
pub use forest::forest;
pub use hash_inputs::hash_inputs;
pub use pipeline::pipeline;
pub use runtime_scaling::runtime_scaling;
pub use two_stances::two_stances;
pub use worked_example::worked_example;

use crate::Error;
use canvas::Canvas;

/// A finished figure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Figure {
    /// The name of its files, without `.svg` or `.png`.
    pub name: &'static str,
    /// A description of the content, also for readers who do not see the figure.
    pub caption: String,
    /// The figure as SVG.
    pub svg: String,
    /// The figure as PNG, at twice the size of the SVG.
    pub png: Vec<u8>,
    /// Whether every machine draws the same; false if timings are shown.
    pub stable: bool,
}

impl Figure {
    fn new(
        name: &'static str,
        title: &'static str,
        caption: String,
        canvas: Canvas,
    ) -> Result<Self, Error> {
        let (svg, png) = canvas.finish(name, title)?;
        Ok(Figure { name, caption, svg, png, stable: true })
    }
}

/// The first digits of a hash, with an ellipsis.
fn prefix(hash: impl std::fmt::Display, digits: usize) -> String {
    let hash: String = hash.to_string().chars().take(digits).collect();
    hash + "…"
}
