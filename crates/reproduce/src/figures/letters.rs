//! Text widths, so that no text leaves its box or overlaps another.
//!
//! **Invariants:** widths are those of DejaVu Sans, which the PNG uses and the SVG names first. A
//! letter that is not in the tables counts as one em, which is never too small for a letter of the
//! font.

/// Units per em of the font.
const UNITS_PER_EM: f64 = 2048.0;
/// The width of every letter of the monospaced face.
const MONO: u16 = 1233;
/// The first letter of the tables: the space.
const FIRST: u32 = 0x20;

/// The face of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Face {
    /// Proportional, normal weight.
    Regular,
    /// Proportional, bold.
    Bold,
    /// Monospaced, for bytes and names in code.
    Mono,
}

/// The widths of the printable ASCII letters, from the space on.
#[rustfmt::skip]
const REGULAR: [u16; 95] = [
    651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690, 1303,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716, 1087,
    2048, 1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604, 604, 1343, 1141, 1767, 1532,
    1612, 1235, 1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799, 690, 799, 1716,
    1024, 1024, 1255, 1300, 1126, 1300, 1260, 721, 1300, 1298, 569, 569, 1186, 569, 1995, 1298,
    1253, 1300, 1300, 842, 1067, 803, 1298, 1212, 1675, 1212, 1212, 1075, 1303, 690, 1303, 1716,
];

/// The same widths in bold.
#[rustfmt::skip]
const BOLD: [u16; 95] = [
    713, 934, 1067, 1716, 1425, 2052, 1786, 627, 936, 936, 1071, 1716, 778, 850, 778, 748, 1425,
    1425, 1425, 1425, 1425, 1425, 1425, 1425, 1425, 1425, 819, 819, 1716, 1716, 1716, 1188,
    2048, 1585, 1561, 1503, 1700, 1399, 1399, 1681, 1714, 762, 762, 1587, 1305, 2038, 1714,
    1741, 1501, 1741, 1577, 1475, 1397, 1663, 1585, 2259, 1579, 1483, 1485, 936, 748, 936, 1716,
    1024, 1024, 1382, 1466, 1214, 1466, 1389, 891, 1466, 1458, 702, 702, 1362, 702, 2134, 1458,
    1407, 1466, 1466, 1010, 1219, 979, 1458, 1335, 1892, 1321, 1335, 1192, 1458, 748, 1458,
    1716,
];

fn advance(letter: char, face: Face) -> f64 {
    let at = u32::from(letter).checked_sub(FIRST).and_then(|at| usize::try_from(at).ok());
    let of = |table: &[u16; 95]| at.and_then(|at| table.get(at).copied());
    let units = match face {
        Face::Regular => of(&REGULAR),
        Face::Bold => of(&BOLD),
        // The face also has arrows and symbols of this width, but no letters beyond this range.
        Face::Mono => (u32::from(letter) < 0x2E80).then_some(MONO),
    };
    units.map_or(1.0, |units| f64::from(units) / UNITS_PER_EM)
}

/// The width of a line of text at a size in pixels.
pub fn width(text: &str, size: u32, face: Face) -> f64 {
    f64::from(size) * text.chars().map(|letter| advance(letter, face)).sum::<f64>()
}

/// The text, or its longest beginning that fits into `room` with an ellipsis.
pub fn shortened(text: &str, size: u32, face: Face, room: f64) -> String {
    if width(text, size, face) <= room {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        short.push(letter);
        if width(&short, size, face) + width("…", size, face) > room {
            short.pop();
            break;
        }
    }
    short.truncate(short.trim_end().len());
    short + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_and_what_does_not_is_cut() {
        assert_eq!(width("iii", 2048, Face::Regular), 3.0 * 569.0);
        assert_eq!(width("W→", 2048, Face::Bold), 2259.0 + 2048.0);
        assert_eq!(width("…i", 2048, Face::Mono), 2.0 * 1233.0);
        assert_eq!(shortened("abc", 10, Face::Mono, 18.1), "abc");
        assert_eq!(shortened("abcd", 10, Face::Mono, 18.1), "ab…");
        assert_eq!(shortened("abcd", 10, Face::Mono, 18.0), "a…");
        assert_eq!(shortened("a cd", 10, Face::Mono, 18.1), "a…");
        assert_eq!(shortened("a", 10, Face::Mono, 0.0), "…");
    }
}
