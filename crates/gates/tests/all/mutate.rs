//! Text that was right once: bytes flipped, lines lost and doubled, words where none belong.

use proptest::prelude::*;
use proptest::sample::Index;

/// One slip of the pen.
#[derive(Clone, Debug)]
pub(crate) enum Slip {
    Flip(Index, u8),
    Cut(Index),
    DropLine(Index),
    DoubleLine(Index),
    Swap(Index, Index),
    Splice(Index, &'static str),
    Noise(Index, String),
}

/// What may slip in: of TOML, of JSON, of numbers, of names.
const TOKENS: [&str; 40] = [
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "\"",
    "'''",
    "=",
    ",",
    ".",
    "#",
    "\n",
    "\r\n",
    "\\",
    "\u{0}",
    "\u{7f}",
    "\u{feff}",
    "null",
    "true",
    "false",
    "nan",
    "-inf",
    "1e300",
    "-1",
    "0.0000001",
    "0x7fffffffffffffff",
    "9223372036854775808",
    "2026-05-01T00:00:00Z",
    "min = 3",
    "max = 1",
    "[skills]",
    "[[skills.\"arm.grasp\".clamp]]",
    "[[skills.\"arm.grasp\".forbid]]",
    "[[human_check]]",
    "param = \"force_n\"",
    "target_class = \"cup\"",
    "format = \"ipse-policy/1\"",
    "\"params\":{}",
    "\"force_n\":41",
];

pub(crate) fn slips() -> impl Strategy<Value = Vec<Slip>> {
    let at = any::<Index>;
    let slip = prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Slip::Flip(at, byte)),
        at().prop_map(Slip::Cut),
        at().prop_map(Slip::DropLine),
        at().prop_map(Slip::DoubleLine),
        (at(), at()).prop_map(|(one, other)| Slip::Swap(one, other)),
        (at(), proptest::sample::select(&TOKENS[..])).prop_map(|(at, it)| Slip::Splice(at, it)),
        (at(), "\\PC{0,6}").prop_map(|(at, it)| Slip::Noise(at, it)),
    ];
    proptest::collection::vec(slip, 1..4)
}

/// The text after all slips; bytes, since a flipped one may break UTF-8.
pub(crate) fn slipped(text: &str, slips: &[Slip]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for slip in slips {
        apply(&mut bytes, slip);
    }
    bytes
}

fn apply(bytes: &mut Vec<u8>, slip: &Slip) {
    if bytes.is_empty() {
        return;
    }
    let place = |at: &Index| at.index(bytes.len());
    match slip {
        Slip::Flip(at, byte) => {
            let at = place(at);
            bytes[at] ^= byte;
        }
        Slip::Cut(at) => bytes.truncate(place(at)),
        Slip::Splice(at, token) => insert(bytes, place(at), token),
        Slip::Noise(at, noise) => insert(bytes, place(at), noise),
        Slip::DropLine(_) | Slip::DoubleLine(_) | Slip::Swap(..) => {
            let mut lines: Vec<Vec<u8>> =
                bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            move_lines(&mut lines, slip);
            *bytes = lines.concat();
        }
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, text: &str) {
    bytes.splice(at..at, text.bytes());
}

fn move_lines(lines: &mut Vec<Vec<u8>>, slip: &Slip) {
    match slip {
        Slip::DropLine(at) => {
            lines.remove(at.index(lines.len()));
        }
        Slip::DoubleLine(at) => {
            let at = at.index(lines.len());
            lines.insert(at, lines[at].clone());
        }
        Slip::Swap(one, other) => {
            let (one, other) = (one.index(lines.len()), other.index(lines.len()));
            lines.swap(one, other);
        }
        _ => (),
    }
}
