//! Bundles that verify, and their contents.

use crate::forge::{
    Draft, Log, MANIFEST, archive, fails, report, reported, trust_of, trusted, week,
};
use crate::forge::{decision, intent, intent_data, time_text};
use crate::forge::{manifest_naming, operator, signer, trusted_with};
use ipse_bundle::{Source, Verdict, Writer, open};
use ipse_ledger::dsse::sign;
use std::cell::Cell;
use std::io;

/// Verifies a bundle with all keys and these anchors; returns the report as text.
fn good(bytes: &[u8], anchors: &[String]) -> String {
    let report = report(bytes, &trusted(), anchors);
    assert!(report.passed(), "{}", reported(&report));
    assert_eq!(report.fails(), 0);
    reported(&report)
}

fn has(text: &str, wanted: &str) {
    assert!(text.contains(wanted), "`{wanted}` is not in\n{text}");
}

#[test]
fn a_week_verifies() {
    let log = week();
    let anchors = [0, 1, 42, 64].map(|size| log.note(size));
    let text = good(&log.draft().pack(), &anchors);
    has(&text, "PASS  archive: 14 members in canonical form");
    has(&text, "PASS  events.jsonl: 61 events in canonical form");
    has(&text, "LIMIT events.jsonl: 3 events forgotten");
    has(&text, "PASS  passes: 4 pass records");
    has(&text, "facts re-derived from the events up to seq 62: equal, byte for byte");
    has(&text, "PASS  signatures: 15 events signed by 2 producers");
    has(&text, "LIMIT signatures: 44 events not signed by a trusted producer");
    has(&text, "PASS  anchor 3: this log continues those 42 entries");
    assert!(!text.contains("LIMIT anchors"), "{text}");
}

#[test]
fn a_manifest_may_name_the_key_of_its_operator() {
    let named = manifest_naming(&operator());
    let cases = [
        (MANIFEST.to_string(), "LIMIT operator: the manifest names no operator key"),
        (named.clone(), "PASS  operator: the manifest names operator+"),
        (named.replace(" <sha256:", "<sha256:"), "LIMIT operator: the manifest: field `operator`"),
    ];
    for (manifest, wanted) in cases {
        let keys = trusted_with(&manifest, &[operator(), signer("operator", 66)]);
        let report = report(&Log::new(&manifest).draft().pack(), &keys, &[]);
        assert!(report.passed(), "{}", reported(&report));
        has(&reported(&report), wanted);
    }
}

#[test]
fn an_empty_log_verifies() {
    let text = good(&Log::new(MANIFEST).draft().pack(), &[]);
    has(&text, "0 facts re-derived");
    has(&text, "LIMIT anchors: no earlier tree head was given");
}

#[test]
fn a_log_without_a_pass_has_no_facts() {
    let mut log = Log::new(MANIFEST);
    log.events(1..=3);
    has(&good(&log.draft().pack(), &[]), "0 facts re-derived");
}

#[test]
fn ranges_verify() {
    let log = week();
    for (from, to) in [(22, 44), (21, 64), (43, 43), (64, 64), (65, 64), (10, 12)] {
        let text = good(&log.draft_of(from, to, 0).pack(), &[]);
        has(&text, &format!("begins at seq {from}: it holds no facts"));
    }
    let text = good(&log.draft_of(22, 44, 0).pack(), &[]);
    has(&text, "ends at seq 44: 20 events after it not included");
    has(&text, "PASS  passes: 2 pass records");
    has(&good(&log.draft_of(10, 42, 0).pack(), &[]), "for passes that began before the range: 1");
}

#[test]
fn a_beginning_has_facts_of_what_is_left() {
    let log = week();
    for (to, checkpoint) in [(21, 20), (41, 20), (42, 41), (62, 43), (20, 0), (0, 0)] {
        let text = good(&log.draft_of(1, to, checkpoint).pack(), &[]);
        has(&text, &format!("from the events up to seq {checkpoint}"));
    }
}

#[test]
fn many_skipped_types_are_summed() {
    let mut log = Log::new(MANIFEST);
    for n in 1..=70 {
        log.push(&crate::forge::producer_event(n, "s", &format!("type {n}"), "{}"));
    }
    log.pass_with(|data| {
        let others = data.skipped.split_off("type 64");
        assert_eq!((data.skipped.len(), others.len()), (60, 10));
        let mut others = others.into_iter();
        data.skipped.extend(others.by_ref().take(4));
        let sum = others.flat_map(|(_, reasons)| reasons.into_values()).sum();
        data.skipped.insert("ipse.other".into(), [("no_object", sum)].into());
    });
    good(&log.draft().pack(), &[]);
}

#[test]
fn numbers_in_exponent_form_stay_valid() {
    // Earlier versions stored an integer of 30 digits in this form.
    let mut log = Log::new(MANIFEST);
    let data = r#"{"serial":1.2345678901234568e+29,"x":1e+22}"#;
    log.push(&crate::forge::producer_event(1, "s", "note", data));
    assert!(log.rows[0].event.as_ref().unwrap().contains(data));
    log.pass();
    good(&log.draft().pack(), &[]);
}

/// A week with intents of every verdict and decisions about those that wait.
fn planned() -> Log {
    let mut log = week();
    for (n, verdict) in (65..).zip(["admitted", "clamped", "denied"]) {
        let planner = (n == 66).then_some(r#"{"name":"ward planner","version":"2.1"}"#);
        log.push(&intent(n, intent_data(verdict).optional("planner", planner)));
    }
    for n in [68, 69, 70, 71] {
        let bounded = (n < 70).then(|| time_text(n + 10));
        let data = intent_data("needs_confirmation").optional("confirm_by", bounded);
        log.push(&intent(n, data));
    }
    log.push(&decision(78, &log.name(68), "confirmed"));
    // A person may decline at any time.
    log.push(&decision(99_000, &log.name(69), "declined"));
    log.push(&decision(99_001, &log.name(70), "confirmed"));
    log
}

#[test]
fn intents_and_decisions_verify() {
    let mut log = planned();
    let text = good(&log.draft().pack(), &[]);
    has(&text, "PASS  intents: 7 intents, 3 decisions");
    has(&text, "LIMIT gates: no files of the gates: 7 verdicts are as recorded");
    // Forgotten intents: one with a decision, one without, and one with a later decision.
    log.forget(&[66, 68, 71]);
    log.pass();
    log.push(&decision(99_002, &log.name(71), "confirmed"));
    let text = good(&log.draft().pack(), &[]);
    has(&text, "PASS  intents: 4 intents, 4 decisions");
    assert!(!text.contains("LIMIT intents"), "{text}");
}

#[test]
fn decisions_about_intents_before_the_range_are_a_limit() {
    let log = planned();
    let text = good(&log.draft_of(70, 74, 0).pack(), &[]);
    has(&text, "PASS  intents: 2 intents, 3 decisions");
    has(&text, "LIMIT intents: 2 decisions about intents before the range");
    let text = good(&log.draft_of(1, 71, 62).pack(), &[]);
    has(&text, "PASS  intents: 7 intents, 0 decisions");
    let without = good(&week().draft().pack(), &[]);
    assert!(!without.contains("intents") && !without.contains("gates"), "{without}");
}

#[test]
fn rules_may_begin_from_the_start_again() {
    let mut log = Log::new(MANIFEST);
    log.events(1..=5);
    log.pass();
    log.events(7..=9);
    log.checkpoint = 0;
    log.pass();
    has(&good(&log.draft().pack(), &[]), "up to seq 9");
}

#[test]
fn keys_that_are_not_trusted_are_limits_for_producers() {
    let trust: String = trusted()
        .lines()
        .filter(|line| !line.starts_with("robot"))
        .fold(String::new(), |all, line| format!("{all}{line}\n"));
    let report = report(&week().draft().pack(), &trust, &[]);
    assert!(report.passed(), "{}", reported(&report));
    has(&reported(&report), "LIMIT signatures: 1 statement by robot-7+");
    has(&reported(&report), "LIMIT keys/producers.vkey: robot-7+");
}

/// Writes the members of a draft with the production writer.
fn written(draft: &Draft) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    for (name, bytes) in draft.members() {
        writer.member(&name, bytes.len() as u64, |out| out.write_all(&bytes)).unwrap();
    }
    let sign_it = |sums| {
        let mut bundled = draft.bundled("");
        bundled.sums = sums;
        sign(&bundled.statement(), &draft.sums_signer)
    };
    writer.finish(sign_it).unwrap()
}

#[test]
fn the_writer_gives_the_same_bytes_for_the_same_content() {
    for draft in [week().draft(), Log::new(MANIFEST).draft(), week().draft_of(22, 44, 0)] {
        assert_eq!(written(&draft), draft.pack());
    }
}

#[test]
fn the_writer_refuses_what_is_not_canonical() {
    let mut writer = Writer::new(Vec::new());
    for name in ["../x", "/etc/passwd", "x", "", "SHA256SUMS", "signatures/000002.dsse.json"] {
        assert!(writer.bytes(name, b"x").is_err(), "{name}");
    }
    writer.bytes("manifest.json", b"x").unwrap();
    assert!(writer.bytes("manifest.json", b"x").is_err(), "twice");
    assert!(writer.member("events.jsonl", 1 << 33, |_| Ok(())).is_err(), "too long");
    assert!(writer.finish(|_| String::new()).is_err(), "incomplete");
    for (promised, given) in [(2, "x"), (0, "x")] {
        let mut writer = Writer::new(Vec::new());
        let wrote = writer.member("manifest.json", promised, |out| out.write_all(given.as_bytes()));
        assert!(wrote.is_err_and(|error| error.to_string().contains("declared")), "{promised}");
    }
}

#[test]
fn an_opened_bundle_hands_out_what_it_holds() {
    let (log, trust) = (week(), trust_of(&trusted()).unwrap());
    let bytes = log.draft().pack();
    let opened = open(&bytes, &trust, &[], &mut |_, _| {}).unwrap().unwrap_or_else(|_| panic!());
    assert!(opened.is_whole());
    assert_eq!((opened.identity, opened.manifest.as_str()), (log.identity(), MANIFEST));
    assert_eq!(opened.head, log.head(64));
    let rows: Vec<_> = opened.log().map(Result::unwrap).collect();
    let expected: Vec<_> = log.rows.iter().cloned().map(|row| (row.entry, row.event)).collect();
    assert_eq!(rows, expected);
    assert_eq!(opened.facts().unwrap(), Some(log.facts(62)));
    assert_eq!(opened.statements().map(Result::unwrap).collect::<Vec<_>>(), log.statements);
    assert_eq!(opened.passes.iter().map(|pass| pass.last.0).collect::<Vec<_>>(), [20, 41, 43, 62]);
    assert_eq!((opened.head_note().unwrap(), opened.producers.len()), (log.note(64), 2));
}

#[test]
fn what_does_not_pass_is_not_opened() {
    let mut draft = week().draft();
    draft.facts = Some(String::new());
    let (bytes, trust) = (draft.pack(), trust_of(&trusted()).unwrap());
    let report = open(&bytes, &trust, &[], &mut |_, _| {}).unwrap().err().unwrap();
    assert!(!report.passed() && !fails(&report).is_empty());
}

#[test]
fn progress_never_goes_beyond_its_end() {
    let trust = trust_of(&trusted()).unwrap();
    let bytes = archive(&week().draft().signed(week().draft().members()));
    let mut reported = Vec::new();
    let report =
        ipse_bundle::verify(&bytes, &trust, &[], &mut |done, of| reported.push((done, of)))
            .unwrap();
    assert!(report.lines.iter().all(|line| line.verdict != Verdict::Fail));
    assert!(reported.iter().all(|(done, of)| done <= of));
}

/// A source that fails, or ends, after this many reads.
struct Failing {
    bytes: Vec<u8>,
    left: Cell<u64>,
    error: bool,
}

impl Source for Failing {
    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.left.get().checked_sub(1), self.error) {
            (Some(left), _) => {
                self.left.set(left);
                self.bytes.read_at(offset, buffer)
            }
            (None, true) => Err(io::Error::other("the disk is broken")),
            (None, false) => Ok(0),
        }
    }
}

#[test]
fn what_cannot_be_read_is_an_error_and_no_verdict() {
    let (trust, bytes) = (trust_of(&trusted()).unwrap(), week().draft().pack());
    let mut reads = 0;
    loop {
        let failing = [true, false].map(|error| {
            let source = Failing { bytes: bytes.clone(), left: Cell::new(reads), error };
            ipse_bundle::verify(&source, &trust, &[], &mut |_, _| {}).is_err()
        });
        match failing {
            [true, true] => reads += 1,
            [false, false] => break,
            _ => panic!("a broken disk and a shorter file differ at read {reads}"),
        }
    }
    assert!(reads > 40, "{reads}");
}
