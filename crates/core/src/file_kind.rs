//! Kinds of files that ipse does not read, recognised by their first bytes.
//!
//! **Invariant:** the kind is a function of the bytes. No JSON text and no bundle has one.

/// A file of another program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FileKind {
    /// Compressed with bzip2.
    Bzip2,
    /// A robot bag of Foxglove or ROS 2.
    Mcap,
    /// A column file.
    Parquet,
    /// A robot bag of ROS 1.
    RosBag,
    /// An SQLite database: a store of ipse, or a ROS 2 bag.
    Sqlite,
    /// Text in UTF-16.
    Utf16,
    /// Compressed with xz.
    Xz,
    /// A zip archive.
    Zip,
    /// Compressed with zstd.
    Zstd,
}

/// The first bytes of each kind.
const MAGIC: [(&[u8], FileKind); 10] = [
    (b"BZh", FileKind::Bzip2),
    (b"\x89MCAP0\r\n", FileKind::Mcap),
    (b"PAR1", FileKind::Parquet),
    (b"#ROSBAG V", FileKind::RosBag),
    (b"SQLite format 3\0", FileKind::Sqlite),
    (b"\xff\xfe", FileKind::Utf16),
    (b"\xfe\xff", FileKind::Utf16),
    (b"\xfd7zXZ\0", FileKind::Xz),
    (b"PK\x03\x04", FileKind::Zip),
    (b"\x28\xb5\x2f\xfd", FileKind::Zstd),
];

impl FileKind {
    /// The kind of a file that begins with these bytes.
    pub fn of(beginning: &[u8]) -> Option<Self> {
        let known = MAGIC.iter().find(|(magic, _)| beginning.starts_with(magic));
        known.map(|(_, kind)| *kind)
    }

    /// Whether a file that begins with these bytes may turn out to have a kind.
    pub fn is_possible(beginning: &[u8]) -> bool {
        MAGIC.iter().any(|(magic, _)| magic.starts_with(beginning))
    }

    /// The kind in words, with an article.
    pub fn name(self) -> &'static str {
        match self {
            FileKind::Bzip2 => "a file compressed with bzip2",
            FileKind::Mcap => "an MCAP robot bag",
            FileKind::Parquet => "a Parquet file",
            FileKind::RosBag => "a ROS 1 bag",
            FileKind::Sqlite => "an SQLite database",
            FileKind::Utf16 => "text in UTF-16",
            FileKind::Xz => "a file compressed with xz",
            FileKind::Zip => "a zip archive",
            FileKind::Zstd => "a file compressed with zstd",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_needs_all_its_bytes() {
        for (magic, kind) in MAGIC {
            assert_eq!(FileKind::of(magic), Some(kind));
            for length in 0..magic.len() {
                assert_eq!(FileKind::of(&magic[..length]), None, "{kind:?}");
                assert!(FileKind::is_possible(&magic[..length]), "{kind:?}");
            }
        }
        assert_eq!(FileKind::of(b"{\"id\":\"1\"}"), None);
        assert!(!FileKind::is_possible(b"{"));
    }
}
