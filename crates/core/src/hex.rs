//! Lower-case hexadecimal, the only text form of bytes in ipse.

use alloc::string::String;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Writes `bytes` as lower-case hex.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    write(bytes, &mut text);
    text
}

/// Appends `bytes` as lower-case hex.
pub fn write(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Reads exactly `N` bytes of lower-case hex; anything else is `None`.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(bytes)
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_refusals() {
        assert_eq!(encode(&[0, 0xab, 0xff]), "00abff");
        assert_eq!(decode::<3>("00abff"), Some([0, 0xab, 0xff]));
        assert_eq!(decode::<3>("00ABff"), None, "upper case is another text");
        assert_eq!(decode::<3>("00abf"), None);
        assert_eq!(decode::<3>("00abfg"), None);
    }
}
