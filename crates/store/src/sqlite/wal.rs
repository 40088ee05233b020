//! The file of the write-ahead log: rewritten after a crash, and checked for damage.
//!
//! **Invariants**
//! - A rewrite writes the same bytes at the same offsets, while no other connection of any process
//!   has the store open.
//! - A damage check only reads. It holds one frame in memory, however long the log is.

use super::files::wal_of;
use super::{check_ours, has_wal, open_file};
use crate::Error;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

/// Bytes per write of a rewrite.
const PIECE: usize = 1 << 20;

/// Rewrites and syncs a log that is not empty, if no other connection has the store open.
///
/// A process may die after a failed sync. Its frames are then in the page cache, marked as clean,
/// though they may not be on the disk. The next process reads them from the cache and appends after
/// them. Its own syncs write only new pages. After a power cut the log would then end at the first
/// missing frame, before events that were acknowledged. The rewrite marks the pages as dirty, so
/// that the sync writes them.
///
/// Copying the log into the main file instead (what SQLite calls a checkpoint) would not be safe:
/// during the copy the main file is complete only together with the log, and the log may be lost.
///
/// Only a process that opens the store alone reads the log from its beginning. Otherwise the
/// processes share the index of the log in memory, and that index ends before a failed commit.
pub(super) fn write_again(path: &Path) -> Result<(), Error> {
    if !has_wal(path) {
        return Ok(());
    }
    // If the file is no store or cannot be opened, the next connection reports the error.
    let Ok(connection) = open_file(path, OpenFlags::SQLITE_OPEN_READ_WRITE) else { return Ok(()) };
    let attempt = Error::while_trying("configure the connection");
    connection.busy_timeout(Duration::ZERO).map_err(&attempt)?;
    // Without this, closing the connection would copy the log into the main file.
    let keep = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    connection.set_db_config(keep, true).map_err(&attempt)?;
    // In this mode the first read takes an exclusive lock, and fails if another connection has the
    // store open. The mode must be set before that read.
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE").map_err(&attempt)?;
    if check_ours(path, &connection).is_err() {
        return Ok(());
    }
    let wal = wal_of(path);
    rewrite(&wal).map_err(|source| Error::NotDurable { path: wal, source })
}

fn rewrite(path: &Path) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    let (mut piece, mut at) = (vec![0; PIECE], 0);
    loop {
        let read = match file.read_at(&mut piece, at) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read == 0 {
            return file.sync_all();
        }
        file.write_all_at(&piece[..read], at)?;
        at += read as u64;
    }
}

/// The number of intact frames before the first damaged one, if the write-ahead log is damaged.
/// SQLite stops reading there: later frames are not in the store.
pub(super) fn journal_damage(connection: &Connection) -> Result<Option<u64>, Error> {
    let Some(path) = connection.path() else { return Ok(None) };
    let path = wal_of(Path::new(path));
    let looked = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened.and_then(|file| damage(BufReader::new(file))),
    };
    looked.map_err(|source| Error::Unreadable { path, source })
}

/// Bytes of the log header, and of a frame header.
const LOG_HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The first bytes of a log. The last bit gives the byte order of the checksums: 1 is big-endian.
pub(super) const MAGIC: u32 = 0x377f_0682;

/// The number of intact frames before the first damaged one, if a log is damaged. A damaged frame
/// has the salts of this log, and a wrong checksum or a missing end. Frames with other salts are
/// left over from before the log last restarted at its first frame.
fn damage(mut log: impl Read) -> io::Result<Option<u64>> {
    let mut header = [0; LOG_HEADER];
    if fill(&mut log, &mut header)? < LOG_HEADER {
        return Ok(None);
    }
    let Some((mut sums, page)) = Sums::of_log(&header) else { return Ok(Some(0)) };
    let salts = &header[16..24];
    let mut frame = vec![0; FRAME_HEADER + page];
    let (mut whole, mut ended) = (0, false);
    loop {
        let read = fill(&mut log, &mut frame)?;
        let ours = read >= 16 && &frame[8..16] == salts;
        if read == frame.len() && ours && !ended && sums.fits(&frame) {
            whole += 1;
        } else if ours {
            return Ok(Some(whole));
        } else if read < frame.len() {
            return Ok(None);
        } else {
            ended = true;
        }
    }
}

/// Reads until the buffer is full or the input ends. Returns the number of bytes read.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The running checksums of a log.
struct Sums {
    big_end_first: bool,
    sums: (u32, u32),
}

impl Sums {
    /// The checksums after the header, and the page size; `None` if the header is invalid.
    fn of_log(header: &[u8; LOG_HEADER]) -> Option<(Self, usize)> {
        let magic = word(&header[..4]);
        let mut sums = Sums { big_end_first: magic & 1 == 1, sums: (0, 0) };
        sums.add(&header[..24]);
        let page = usize::try_from(word(&header[8..12])).ok()?;
        let sound = magic & !1 == MAGIC
            && sums.sums == (word(&header[24..28]), word(&header[28..]))
            && (512..=65536).contains(&page)
            && page.is_power_of_two();
        sound.then_some((sums, page))
    }

    /// Adds a frame. Returns whether its stored checksums match.
    fn fits(&mut self, frame: &[u8]) -> bool {
        self.add(&frame[..8]);
        self.add(&frame[FRAME_HEADER..]);
        self.sums == (word(&frame[16..20]), word(&frame[20..24])) && word(&frame[..4]) > 0
    }

    fn add(&mut self, bytes: &[u8]) {
        let (words, _) = bytes.as_chunks::<4>();
        let (pairs, _) = words.as_chunks::<2>();
        let read = if self.big_end_first { u32::from_be_bytes } else { u32::from_le_bytes };
        for [first, second] in pairs {
            self.sums.0 = self.sums.0.wrapping_add(read(*first)).wrapping_add(self.sums.1);
            self.sums.1 = self.sums.1.wrapping_add(read(*second)).wrapping_add(self.sums.0);
        }
    }
}

/// Four bytes as a big-endian number.
fn word(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte))
}
