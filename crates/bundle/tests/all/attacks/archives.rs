//! Attacks on the archive: members that other programs would unpack, and data between members.

use super::{Attack, Case, bytes, listed, refused};
use crate::forge::{archive, checksum, header, week};

/// The offset of the header of a member.
fn at(bytes: &[u8], name: &str) -> usize {
    let mut wanted = name.as_bytes().to_vec();
    wanted.push(0);
    (0..bytes.len()).step_by(512).find(|at| bytes[*at..].starts_with(&wanted)).unwrap()
}

/// Writes into the header of `facts.jsonl`, with a correct checksum.
fn in_header(offset: usize, text: &[u8]) -> Case {
    let mut bytes = week().draft().pack();
    let begin = at(&bytes, "facts.jsonl");
    bytes[begin + offset..begin + offset + text.len()].copy_from_slice(text);
    checksum(&mut bytes[begin..begin + 512]);
    Case::of(bytes)
}

/// Renames `facts.jsonl`.
fn renamed(name: &[u8]) -> Case {
    let mut field = name.to_vec();
    field.resize(100, 0);
    in_header(0, &field)
}

pub const ATTACKS: &[Attack] = &[
    refused("path escape", "archive, byte", "`../x` leads out", || renamed(b"../x")),
    refused("path escape inside", "archive, byte", "leads out", || renamed(b"keys/../../x")),
    refused("absolute path", "archive, byte", "leads out", || renamed(b"/etc/passwd")),
    refused("name in other case", "archive, byte", "is not a member", || renamed(b"FACTS.JSONL")),
    refused("name with a dot before", "archive, byte", "is not a member", || {
        renamed(b"./facts.jsonl")
    }),
    refused("name that is no text", "archive, byte", "is not a member", || renamed(b"\xff\xfe")),
    refused("name of a hundred bytes", "archive, byte", "is not a member", || {
        renamed(&[b'x'; 100])
    }),
    refused("no name", "archive, byte", "is not a member", || renamed(b"")),
    refused("text behind the name", "archive, byte", "the name of", || in_header(50, b"hidden")),
    refused("symbolic link", "archive, byte", "a symbolic link", || in_header(156, b"2/etc")),
    refused("hard link", "archive, byte", "a hard link", || in_header(156, b"1manifest.json")),
    refused("character device", "archive, byte", "a device", || in_header(156, b"3")),
    refused("block device", "archive, byte", "a device", || in_header(156, b"4")),
    refused("directory", "archive, byte", "a directory", || in_header(156, b"5")),
    refused("named pipe", "archive, byte", "a named pipe", || in_header(156, b"6")),
    refused("pax header", "archive, byte", "a pax header", || in_header(156, b"x")),
    refused("global pax header", "archive, byte", "a pax header", || in_header(156, b"g")),
    refused("GNU long name", "archive, byte", "a GNU header", || in_header(156, b"L")),
    refused("file from before ustar", "archive, byte", "before ustar", || in_header(156, b"\0")),
    refused("contiguous file", "archive, byte", "unknown type", || in_header(156, b"7")),
    refused("link of a plain file", "archive, byte", "the link of", || in_header(157, b"/etc")),
    refused("huge declared size", "archive, byte", "declares 8589934591 bytes", || {
        in_header(124, b"77777777777")
    }),
    refused("size beyond the file", "archive, byte", "the file ends earlier", || {
        in_header(124, b"00007777777")
    }),
    refused("size in base 256", "archive, byte", "in base 256", || {
        in_header(124, b"\x80\0\0\0\0\0\0\0\0\0\x02\0")
    }),
    refused("negative size in base 256", "archive, byte", "in base 256", || {
        in_header(124, &[0xff; 12])
    }),
    refused("negative size", "archive, byte", "11 octal digits", || in_header(124, b"-0000000001")),
    refused("size with spaces", "archive, byte", "11 octal digits", || {
        in_header(124, b"       1000 ")
    }),
    refused("bad checksum", "archive, byte", "the checksum does not match", || {
        bytes(|bytes| bytes[148] ^= 1)
    }),
    refused("checksum in another form", "archive, byte", "the checksum does not match", || {
        bytes(|bytes| bytes[154..156].copy_from_slice(b" \0"))
    }),
    refused("time of change", "archive, byte", "the time of change", || {
        in_header(136, b"15000000000")
    }),
    refused("user id", "archive, byte", "the user id", || in_header(108, b"0001750")),
    refused("group id", "archive, byte", "the group id", || in_header(116, b"0001750")),
    refused("executable mode", "archive, byte", "the mode", || in_header(100, b"0000755")),
    refused("user name", "archive, byte", "the user name", || in_header(265, b"root")),
    refused("group name", "archive, byte", "the group name", || in_header(297, b"root")),
    refused("device number", "archive, byte", "the major device", || in_header(329, b"0000001")),
    refused("prefix", "archive, byte", "the prefix", || in_header(345, b"other")),
    refused("text behind the header", "archive, byte", "the rest", || in_header(500, b"hidden")),
    refused("GNU magic", "archive, byte", "the magic", || in_header(257, b"ustar  \0")),
    refused("data after the end", "archive, byte", "512 bytes follow the end", || {
        bytes(|bytes| bytes.extend([b'x'; 512]))
    }),
    refused("second archive after the end", "archive, byte", "follow the end", || {
        bytes(|bytes| bytes.extend(bytes.clone()))
    }),
    refused("one end block only", "archive, byte", "the second block", || {
        bytes(|bytes| bytes.truncate(bytes.len() - 512))
    }),
    refused("no end", "archive, byte", "ends without the two blocks", || {
        bytes(|bytes| bytes.truncate(bytes.len() - 1024))
    }),
    refused("text in the last block", "archive, byte", "the archive is not zero", || {
        bytes(|bytes| *bytes.last_mut().unwrap() = 1)
    }),
    refused("text in the padding", "archive, byte", "the padding of `manifest.json`", || {
        bytes(|bytes| bytes[1023] = 1)
    }),
    refused("empty file", "archive, byte 0", "ends without", || Case::of(Vec::new())),
    refused("no archive at all", "archive, byte", "unknown type", || Case::of(vec![b'P'; 4096])),
    refused("only zeros", "archive, byte", "`manifest.json` is missing", || {
        Case::of(vec![0; 1024])
    }),
    refused("member twice", "archive, byte", "`events.jsonl` is a duplicate", || {
        listed(|files| files.insert(3, files[2].clone()))
    }),
    refused("member twice, not beside", "archive, byte", "out of order or duplicate", || {
        listed(|files| files.insert(5, files[2].clone()))
    }),
    refused("members in another order", "archive, byte", "out of order or duplicate", || {
        listed(|files| files.swap(3, 4))
    }),
    refused("unknown member", "archive, byte", "`notes.txt` is not a member", || {
        listed(|files| files.insert(4, ("notes.txt".into(), b"x".to_vec())))
    }),
    refused("statement without a number before it", "archive, byte", "one is missing", || {
        listed(|files| files[8].0 = "signatures/000003.dsse.json".into())
    }),
    refused("statements from 0 on", "archive, byte", "is not a member", || {
        listed(|files| files[7].0 = "signatures/000000.dsse.json".into())
    }),
    refused("no certificate", "archive, byte", "`certificate.dsse.json` is missing", || {
        listed(|files| drop(files.remove(1)))
    }),
    refused("no tree head", "archive, byte", "`tree-head.note` is missing", || {
        listed(|files| drop(files.remove(6)))
    }),
    refused("no list of hashes", "archive, byte", "`SHA256SUMS` is missing", || {
        let draft = week().draft();
        let mut files = draft.signed(draft.members());
        files.remove(files.len() - 2);
        Case::of(archive(&files))
    }),
    refused("member behind the signature", "archive, byte", "out of order or duplicate", || {
        let draft = week().draft();
        let mut files = draft.signed(draft.members());
        files.push(("facts.jsonl".into(), Vec::new()));
        Case::of(archive(&files))
    }),
    refused("header without a body", "archive, byte", "declares 9 bytes", || {
        Case::of([header("manifest.json", 9), vec![0; 8]].concat())
    }),
];
