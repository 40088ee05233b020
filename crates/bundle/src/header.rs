//! The header of a member: 512 bytes of ustar that follow from its name and size alone.
//!
//! **Invariant:** [`header`] is the only form. A block that differs from it in one bit is rejected,
//! and [`difference`] names the field.

use crate::name::Name;

/// The size of a block. All parts of an archive are padded to it.
pub const BLOCK: usize = 512;

pub(crate) type Block = [u8; BLOCK];

const NAME: std::ops::Range<usize> = 0..100;
const SIZE: std::ops::Range<usize> = 124..136;
const CHECKSUM: usize = 148;
const TYPE: usize = 156;
const LINK: usize = 157;
const MAGIC: usize = 257;

/// The offsets and names of the fields.
const FIELDS: [(usize, &str); 17] = [
    (0, "name"),
    (100, "mode"),
    (108, "user id"),
    (116, "group id"),
    (124, "size"),
    (136, "time of change"),
    (CHECKSUM, "checksum"),
    (TYPE, "type"),
    (LINK, "link"),
    (MAGIC, "magic"),
    (263, "version"),
    (265, "user name"),
    (297, "group name"),
    (329, "major device number"),
    (337, "minor device number"),
    (345, "prefix"),
    (500, "rest"),
];

/// The header of a member.
pub(crate) fn header(name: &str, size: u64) -> Block {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(SIZE.start, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    // The checksum is computed with spaces in its field.
    put(CHECKSUM, b"        ");
    put(TYPE, b"0");
    put(MAGIC, b"ustar\x0000");
    put(329, b"0000000\0");
    put(337, b"0000000\0");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[CHECKSUM..CHECKSUM + 8].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// Reads a header. An error has the offset of the wrong byte and the reason.
pub(crate) fn read(block: &Block) -> Result<(Name, u64), (usize, String)> {
    if let Some(what) = other_type(block[TYPE]) {
        return Err((TYPE, format!("this is {what}; a bundle holds plain files only")));
    }
    let size = size(block).map_err(|what| (SIZE.start, what.to_string()))?;
    let text = name_text(block);
    let Some(name) = Name::parse(&text) else { return Err((0, unknown(&text))) };
    match difference(block, &header(&text, size)) {
        Some((at, "checksum")) => Err((at, "the checksum does not match the header".to_string())),
        Some((at, field)) => {
            Err((at, format!("the {field} of `{name}` is not the fixed value of a bundle")))
        }
        None => Ok((name, size)),
    }
}

/// Whether a file begins like a bundle, or like a tar file that was made from one: its first member
/// is the manifest. `None` if more bytes are needed, up to [`BLOCK`].
pub fn is_bundle(beginning: &[u8]) -> Option<bool> {
    let parts: [(usize, &[u8]); 2] = [(0, b"manifest.json\0"), (MAGIC, b"ustar")];
    let differs = |(at, part): &(usize, &[u8])| {
        let there = beginning.get(*at..).unwrap_or_default();
        there.iter().zip(*part).any(|(one, other)| one != other)
    };
    match parts.iter().any(differs) {
        true => Some(false),
        false => (beginning.len() >= BLOCK).then_some(true),
    }
}

fn difference(block: &Block, canonical: &Block) -> Option<(usize, &'static str)> {
    // Another wrong field makes the checksum wrong too, so the checksum comes last.
    let differs = |at: &usize| block[*at] != canonical[*at];
    let is_checksum = |at: &usize| (CHECKSUM..TYPE).contains(at);
    let at = (0..BLOCK).filter(differs).min_by_key(|at| (is_checksum(at), *at))?;
    let field = FIELDS.iter().rev().find(|(begin, _)| *begin <= at);
    Some((at, field.map_or("", |(_, field)| *field)))
}

fn name_text(block: &Block) -> String {
    let name = &block[NAME];
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..length]).into_owned()
}

fn unknown(text: &str) -> String {
    let escapes = text.starts_with('/') || text.split('/').any(|part| part == "..");
    match escapes {
        true => format!("the name `{text}` leads out of the archive"),
        false => format!("`{text}` is not a member of a bundle"),
    }
}

fn size(block: &Block) -> Result<u64, &'static str> {
    let field = &block[SIZE];
    if field[0] & 0x80 != 0 {
        return Err("the size is written in base 256, not as 11 octal digits");
    }
    let digits = &field[..11];
    if field[11] != 0 || !digits.iter().all(|digit| (b'0'..=b'7').contains(digit)) {
        return Err("the size is not written as 11 octal digits");
    }
    Ok(digits.iter().fold(0, |size, digit| size * 8 + u64::from(digit - b'0')))
}

/// The kind of member that a header with this type flag has; `None` for a plain file.
fn other_type(flag: u8) -> Option<&'static str> {
    match flag {
        b'0' => None,
        0 => Some("a file in the format before ustar"),
        b'1' => Some("a hard link"),
        b'2' => Some("a symbolic link"),
        b'3' | b'4' => Some("a device"),
        b'5' => Some("a directory"),
        b'6' => Some("a named pipe"),
        b'x' | b'g' => Some("a pax header"),
        b'L' | b'K' => Some("a GNU header for long names"),
        _ => Some("a member of an unknown type"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_recognized_by_its_first_header() {
        let block = header("manifest.json", 300);
        assert_eq!(is_bundle(&[&block[..], b"{}"].concat()), Some(true));
        for length in 0..BLOCK {
            assert_eq!(is_bundle(&block[..length]), None, "{length}");
        }
        for other in [&b"{"[..], b"m{", b"manifest.json\n", b"\x1f\x8b", &header("a.json", 1)] {
            assert_eq!(is_bundle(other), Some(false), "{other:?}");
        }
        let mut old = block;
        old[MAGIC] = 0;
        assert_eq!(is_bundle(&old), Some(false), "no ustar");
    }

    #[test]
    fn a_header_is_read_back_and_every_bit_of_it_counts() {
        let block = header("facts.jsonl", 0o1234);
        assert_eq!(read(&block), Ok((Name::Facts, 0o1234)));
        for bit in 0..BLOCK * 8 {
            let mut other = block;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&other).is_err(), "bit {bit}");
        }
    }
}
