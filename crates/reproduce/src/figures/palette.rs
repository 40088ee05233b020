//! The colours and text styles of all figures.
//!
//! **Invariant:** colours are those of Okabe and Ito, which colour-blind readers can distinguish.
//! Where a colour has a meaning, a shape or a word shows it too.

use super::letters::Face;

/// Red, green and blue.
pub(super) type Colour = (u8, u8, u8);

pub(super) const INK: Colour = (0x1f, 0x29, 0x33);
pub(super) const MUTED: Colour = (0x5a, 0x66, 0x72);
pub(super) const HAIR: Colour = (0xd5, 0xdb, 0xe1);
pub(super) const WHITE: Colour = (0xff, 0xff, 0xff);
pub(super) const BLUE: Colour = (0x00, 0x72, 0xb2);
pub(super) const GREEN: Colour = (0x00, 0x80, 0x5e);
pub(super) const RED: Colour = (0xc2, 0x4e, 0x00);
pub(super) const ORANGE: Colour = (0xd0, 0x8a, 0x00);
pub(super) const PURPLE: Colour = (0xa8, 0x4f, 0x80);

/// The line and the background of a box.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tone {
    pub(super) line: Colour,
    pub(super) ground: Colour,
}

const fn tone(line: Colour, ground: Colour) -> Tone {
    Tone { line, ground }
}

/// The log.
pub(super) const LOG: Tone = tone(BLUE, (0xe8, 0xf2, 0xf9));
/// Derived data: facts.
pub(super) const FACTS: Tone = tone(GREEN, (0xe6, 0xf5, 0xf0));
/// A step that derives data.
pub(super) const STEP: Tone = tone(ORANGE, (0xfe, 0xf7, 0xe6));
/// The agent and its planner.
pub(super) const AGENT: Tone = tone(PURPLE, (0xf9, 0xef, 0xf5));
/// A change of the identity, which must not happen.
pub(super) const DRIFT: Tone = tone(RED, (0xfd, 0xf0, 0xe7));
/// A frame around other boxes.
pub(super) const FRAME: Tone = tone(HAIR, (0xfa, 0xfb, 0xfc));

/// The style of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hand {
    pub(super) size: u32,
    pub(super) face: Face,
    pub(super) ink: Colour,
}

impl Hand {
    /// The same style in another colour.
    pub(super) const fn ink(self, ink: Colour) -> Self {
        Hand { ink, ..self }
    }
}

const fn hand(size: u32, face: Face, ink: Colour) -> Hand {
    Hand { size, face, ink }
}

pub(super) const TITLE: Hand = hand(18, Face::Bold, INK);
pub(super) const HEAD: Hand = hand(15, Face::Bold, INK);
pub(super) const BODY: Hand = hand(14, Face::Regular, INK);
pub(super) const NOTE: Hand = hand(13, Face::Regular, MUTED);
pub(super) const CODE: Hand = hand(13, Face::Mono, INK);
