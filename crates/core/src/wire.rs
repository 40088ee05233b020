//! Building blocks of our binary encodings: variable-length integers and length-prefixed text.
//!
//! **Invariants:** `write` has one encoding per integer; reading never passes the end and trusts no
//! length: damaged bytes give `None`, never a panic or a huge allocation.

use alloc::vec::Vec;

/// Appends an unsigned integer, seven bits per byte, low bits first.
pub fn write_u128(mut value: u128, out: &mut Vec<u8>) {
    // Nearly all values fit into 64 bits, where arithmetic is several times as fast.
    if let Ok(mut short) = u64::try_from(value) {
        while short >= 0x80 {
            out.push((short & 0x7f) as u8 | 0x80);
            short >>= 7;
        }
        out.push(short as u8);
        return;
    }
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a length or a count.
pub fn write_len(value: usize, out: &mut Vec<u8>) {
    write_u128(value as u128, out);
}

/// Appends a signed integer, sign in the lowest bit, so that small magnitudes stay short.
pub fn write_i128(value: i128, out: &mut Vec<u8>) {
    write_u128(((value << 1) ^ (value >> 127)).cast_unsigned(), out);
}

/// Appends the length and the bytes of a text.
pub fn write_text(text: &str, out: &mut Vec<u8>) {
    write_len(text.len(), out);
    out.extend_from_slice(text.as_bytes());
}

/// The part of an encoding that is still unread.
pub struct Wire<'a>(pub &'a [u8]);

impl<'a> Wire<'a> {
    /// Reads one byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    /// Reads an unsigned integer.
    pub fn u128(&mut self) -> Option<u128> {
        let mut short = 0;
        for (place, byte) in self.0.iter().take(9).enumerate() {
            short |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                self.0 = &self.0[place + 1..];
                return Some(short.into());
            }
        }
        let mut value = 0;
        for shift in (0..128).step_by(7) {
            let byte = self.byte()?;
            value |= u128::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// Reads a length or a count.
    #[inline]
    pub fn length(&mut self) -> Option<usize> {
        match self.0.split_first() {
            // Most are small: one byte.
            Some((byte, rest)) if byte & 0x80 == 0 => {
                self.0 = rest;
                Some(usize::from(*byte))
            }
            _ => usize::try_from(self.u128()?).ok(),
        }
    }

    /// Reads a signed integer.
    pub fn i128(&mut self) -> Option<i128> {
        let folded = self.u128()?;
        Some((folded >> 1).cast_signed() ^ -((folded & 1).cast_signed()))
    }

    /// Reads a signed integer that fits into 64 bits.
    pub fn i64(&mut self) -> Option<i64> {
        i64::try_from(self.i128()?).ok()
    }

    /// Reads the next `length` bytes; `None` if fewer are left.
    pub fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Reads a text.
    pub fn text(&mut self) -> Option<&'a str> {
        let length = self.length()?;
        core::str::from_utf8(self.bytes(length)?).ok()
    }

    /// Returns `value` if no bytes are left over.
    pub fn finish<T>(self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(number: i128, small: i64, text in "\\PC{0,9}") {
            let mut bytes = Vec::new();
            write_i128(number, &mut bytes);
            write_i128(small.into(), &mut bytes);
            write_text(&text, &mut bytes);
            let mut wire = Wire(&bytes);
            let read = (wire.i128(), wire.i64(), wire.text());
            prop_assert_eq!(wire.finish(read), Some((Some(number), Some(small), Some(&*text))));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let mut wire = Wire(&bytes);
            let _ = (wire.u128(), wire.text(), wire.i64());
        }
    }
}
