//! Creates logs and bundles in memory, valid and forged ones.
//!
//! A forgery changes one of three levels: a [`Log`] (events, entries), a [`Draft`] (members), or
//! the bytes of an archive. Everything below is computed again and signed with the true keys, so
//! that only the intended check can detect it.

use ipse_bundle::{Report, Trust, Verdict, key_sha256, pem, verify};
use ipse_consolidate::{RuleSet, Rules, f, snapshot, with_rules};
use ipse_core::json::{Members, list, quoted};
use ipse_core::{Admitted, Digest, Event, EventRef, Identity, Seq, Time, is_housekeeping};
use ipse_core::{hex, sha256};
use ipse_door::{Origin, admit, house_event};
use ipse_ledger::dsse::sign;
use ipse_ledger::{
    Bundled, Certificate, Edge, Entry, NoteSigner, SecretKey, SentStatement, TreeHead,
};
use std::collections::BTreeMap;

pub const MANIFEST: &str = concat!(
    r#"{"agent_id":"ward-robot-01","#,
    r#""commissioned_at":"2026-05-01T00:00:00Z","#,
    r#""ecm_registry_hash":"2222222222222222222222222222222222222222222222222222222222222222","#,
    r#""embodiment":"two-arm-mobile/rev-c","#,
    r#""operator":"St. Example Hospital","#,
    r#""policy_hash":"1111111111111111111111111111111111111111111111111111111111111111","#,
    r#""temperament_hash":"3333333333333333333333333333333333333333333333333333333333333333"}"#,
);

/// The manifest, with an operator that names a key.
pub fn manifest_naming(key: &NoteSigner) -> String {
    let named = format!("<sha256:{}>", hex::encode(&key_sha256(key.public().key())));
    MANIFEST.replace("St. Example Hospital", &format!("St. Example Hospital {named}"))
}

/// The keys that an auditor of a log with another manifest trusts, and these operators' keys.
pub fn trusted_with(manifest: &str, operators: &[NoteSigner]) -> String {
    let pems: String = operators.iter().map(|key| pem(key.public().key())).collect();
    format!("{}\n{pems}", log_key(&identity_of(manifest)).public())
}

pub fn signer(name: &str, seed: u8) -> NoteSigner {
    NoteSigner::new(name, SecretKey::from_seed(&[seed; 32])).unwrap()
}

pub fn operator() -> NoteSigner {
    signer("operator", 2)
}

pub fn robot() -> NoteSigner {
    signer("robot-7", 3)
}

pub fn camera() -> NoteSigner {
    signer("camera/ward3", 4)
}

pub fn log_key(identity: &Identity) -> NoteSigner {
    signer(&TreeHead::origin_of(identity), 1)
}

pub fn identity_of(manifest: &str) -> Identity {
    Identity(sha256(&[manifest.as_bytes()]))
}

/// The keys that an auditor of the true log trusts.
pub fn trusted() -> String {
    let log = log_key(&identity_of(MANIFEST)).public();
    let operator = pem(operator().public().key());
    format!("{log}\n{operator}{}\n{}\n", robot().public(), camera().public())
}

/// Splits keys by owner: those of the operator and the log, and those of producers.
pub fn by_owner(keys: &str) -> (String, String) {
    let mut inside = false;
    let is_producer = |line: &&str| {
        inside = (inside || line.starts_with("-----BEGIN")) && !line.starts_with("-----END");
        let ours = inside || ["-----", "ipse/", "operator+"].iter().any(|s| line.starts_with(s));
        !ours
    };
    let (theirs, ours): (Vec<&str>, Vec<&str>) = keys.lines().partition(is_producer);
    (ours.join("\n"), theirs.join("\n"))
}

pub fn trust_of(keys: &str) -> Result<Trust, ipse_bundle::Error> {
    let (ours, theirs) = by_owner(keys);
    let mut trust = Trust::default();
    for keys in [ours, theirs] {
        if !keys.trim().is_empty() {
            trust.add(&keys)?;
        }
    }
    match trust.keys() {
        [] => Trust::parse(keys),
        _ => Ok(trust),
    }
}

pub fn salt(n: u64) -> [u8; 16] {
    sha256(&[b"salt", &n.to_be_bytes()])[..16].try_into().unwrap()
}

pub fn time(n: u64) -> Time {
    let first = Time::parse("2026-05-06T10:00:00Z").unwrap().micros();
    Time::from_micros(first + n.cast_signed() * 60_000_000).unwrap()
}

/// The time as a JSON text.
pub fn time_text(n: u64) -> String {
    quoted(&time(n).to_string())
}

/// The n-th event of a producer: attempts, incidents, observations and notes in turn.
pub fn event(n: u64) -> Admitted {
    let (event_type, data) = match n % 4 {
        0 => ("note", "{}".to_string()),
        1 => ("incident", format!(r#"{{"zone":"dock","failure_reason":"slip {}"}}"#, n % 3)),
        2 => ("seen", format!(r#"{{"target_class":"cup","object":{{"mass_g":{}}}}}"#, 180 + n % 5)),
        _ => (
            "execution_result",
            format!(
                r#"{{"skill_id":"grasp","target_class":"cup","environment":"ward3",
                "params":{{"force_n":{}}},"success":{},"failure_reason":"slip"}}"#,
                20 + n % 7,
                n % 8 == 3
            ),
        ),
    };
    producer_event(n, "robot-7", event_type, &data)
}

pub fn producer_event(n: u64, source: &str, event_type: &str, data: &str) -> Admitted {
    let bytes = format!(
        r#"{{"id":"{n}","source":"{source}","type":"{event_type}","time":"{}","data":{data}}}"#,
        time(n)
    );
    admit(bytes.as_bytes(), Origin::House, || salt(n)).unwrap()
}

/// An event by ipse with this id.
pub fn house(n: u64, id: &str, event_type: &str, data: &str) -> Admitted {
    let (id, time) = (quoted(id), time(n));
    let bytes = format!(
        r#"{{"id":{id},"source":"ipse","type":"{event_type}","time":"{time}","data":{data}}}"#
    );
    admit(bytes.as_bytes(), Origin::House, || salt(n)).unwrap()
}

/// The results of admission, policy and contract, then that of the audit, as a server writes them.
pub fn gates(results: &[&str]) -> String {
    let gate = |(name, result): (&str, &&str)| {
        let gate = Members::new().text("gate", name).text("result", result);
        if name == "audit" { gate.finish() } else { gate.raw("findings", "[]").finish() }
    };
    let judged = ["admission", "policy", "contract"].into_iter().zip(results).map(gate);
    list(judged.chain([gate(("audit", &"none"))]))
}

/// The data that a server writes for an intent with this verdict.
pub fn intent_data(verdict: &str) -> Members {
    let results: &[&str] = match verdict {
        "admitted" => &["passed", "passed", "passed"],
        "clamped" => &["passed", "clamped", "passed"],
        "needs_confirmation" => &["passed", "passed", "needs_confirmation"],
        _ => &["passed", "denied"],
    };
    let admitted = (verdict != "denied").then_some(r#"{"force_n":24}"#);
    Members::new()
        .text("skill_id", "grasp")
        .text("target_class", "cup")
        .raw("params", r#"{"force_n":60}"#)
        .optional("admitted_params", admitted)
        .text("token_id", "00")
        .text("verdict", verdict)
        .raw("gates", gates(results))
}

/// The n-th intent.
pub fn intent(n: u64, data: Members) -> Admitted {
    house(n, &format!("intent:{n:032x}"), "intent", &data.finish())
}

/// A decision about an intent.
pub fn decision(n: u64, intent: &EventRef, word: &str) -> Admitted {
    let data = format!(r#"{{"decision":"{word}","intent":"{intent}","token_id":"01"}}"#);
    house(n, &format!("confirm:{intent}"), "ipse.confirmation", &data)
}

/// One position of a log.
#[derive(Clone)]
pub struct Row {
    pub entry: Entry,
    pub event: Option<String>,
}

/// The data of a pass record, as the engine writes it.
#[derive(Clone)]
pub struct PassData {
    pub first: u64,
    pub last: u64,
    pub processed: u64,
    pub skipped: BTreeMap<String, BTreeMap<&'static str, u64>>,
    pub skipped_sum: u64,
    pub first_ref: EventRef,
    pub last_ref: EventRef,
    pub rule_version: String,
    pub rule_set: String,
    pub trigger: &'static str,
    pub id: String,
}

impl PassData {
    pub fn json(&self) -> String {
        let reasons = |reasons: &BTreeMap<&'static str, u64>| {
            reasons.iter().fold(Members::new(), |all, (code, n)| all.raw(*code, n)).finish()
        };
        let by_type = self.skipped.iter();
        let skipped = by_type.fold(Members::new(), |all, (name, r)| all.raw(name, reasons(r)));
        Members::new()
            .raw("events_processed", self.processed)
            .raw("events_skipped", self.skipped_sum)
            .text("first_processed_event_id", &self.first_ref.to_string())
            .raw("first_seq", self.first)
            .text("last_processed_event_id", &self.last_ref.to_string())
            .raw("last_seq", self.last)
            .raw("rows_touched", 1)
            .text("rule_set_sha256", &self.rule_set)
            .text("rule_version", &self.rule_version)
            .raw("skipped", skipped.finish())
            .text("trigger", self.trigger)
            .finish()
    }
}

#[derive(Clone)]
pub struct Log {
    pub manifest: String,
    pub rows: Vec<Row>,
    pub statements: Vec<String>,
    pub checkpoint: u64,
    /// The changes of rules: their positions, and the rules in force from there.
    pub rules: Vec<(u64, Rules)>,
}

impl Log {
    pub fn new(manifest: &str) -> Self {
        let (rows, statements, rules) = Default::default();
        Log { manifest: manifest.into(), rows, statements, checkpoint: 0, rules }
    }

    /// The rules in force at a position.
    pub fn rules_at(&self, seq: u64) -> Rules {
        let changed = self.rules.iter().rfind(|(from, _)| *from <= seq.max(1));
        changed.map_or(Rules::default(), |(_, rules)| *rules)
    }

    pub fn identity(&self) -> Identity {
        identity_of(&self.manifest)
    }

    pub fn push(&mut self, event: &Admitted) -> u64 {
        let seq = self.rows.len() as u64 + 1;
        let Admitted { event_ref, event_type, time, digest, canonical, .. } = event.clone();
        let entry = Entry { seq: Seq(seq), event_ref, time, event_type, digest };
        self.rows.push(Row { entry, event: Some(canonical) });
        seq
    }

    pub fn events(&mut self, numbers: std::ops::RangeInclusive<u64>) {
        for n in numbers {
            self.push(&event(n));
        }
    }

    /// The events of a range that are not forgotten.
    fn admitted(&self, first: u64, last: u64) -> Vec<Admitted> {
        let rows = self.rows.iter().filter(|row| (first..=last).contains(&row.entry.seq.0));
        let events = rows.filter_map(|row| row.event.as_ref());
        events.filter_map(|e| admit(e.as_bytes(), Origin::House, || [0; 16]).ok()).collect()
    }

    pub fn pass_data(&self) -> PassData {
        let (first, last) = (self.checkpoint + 1, self.rows.len() as u64);
        let mut skipped: BTreeMap<String, BTreeMap<&'static str, u64>> = BTreeMap::new();
        let (mut processed, rules) = (0, self.rules_at(last));
        for event in self.admitted(first, last) {
            processed += u64::from(!is_housekeeping(&event.event_type));
            let skip = with_rules!(rules, |rules| rules.contributions(&typed(&event)).err());
            if let Some(skip) = skip
                && !is_housekeeping(&event.event_type)
            {
                let reasons = skipped.entry(event.event_type.clone()).or_default();
                *reasons.entry(skip.code()).or_default() += 1;
            }
        }
        let name = |seq: u64| self.rows[seq as usize - 1].entry.event_ref;
        PassData {
            first,
            last,
            processed,
            skipped_sum: skipped.values().flat_map(BTreeMap::values).sum(),
            skipped,
            first_ref: name(first),
            last_ref: name(last),
            rule_version: rules.version().into(),
            rule_set: hex::encode(&rules.hash()),
            trigger: "manual",
            id: format!("pass:{}:{first}-{last}", rules.version()),
        }
    }

    pub fn pass_with(&mut self, change: impl FnOnce(&mut PassData)) -> u64 {
        let mut data = self.pass_data();
        self.checkpoint = data.last;
        change(&mut data);
        let seq = self.rows.len() as u64 + 1;
        self.push(&house_event("consolidation_run", &data.id, time(seq), &data.json(), salt(seq)))
    }

    pub fn pass(&mut self) -> u64 {
        self.pass_with(|_| {})
    }

    /// Appends a `forget` event without erasing anything.
    pub fn say_forgotten(&mut self, names: &[EventRef]) -> u64 {
        let names: Vec<String> = names.iter().map(|name| quoted(&name.to_string())).collect();
        let data = format!("{{\"event_refs\":[{}]}}", names.join(","));
        let seq = self.rows.len() as u64 + 1;
        self.push(&house_event("forget", &format!("forget:{seq}"), time(seq), &data, salt(seq)))
    }

    pub fn name(&self, seq: u64) -> EventRef {
        self.rows[seq as usize - 1].entry.event_ref
    }

    pub fn forget(&mut self, seqs: &[u64]) {
        let names: Vec<EventRef> = seqs.iter().map(|seq| self.name(*seq)).collect();
        self.say_forgotten(&names);
        for seq in seqs {
            self.rows[*seq as usize - 1].event = None;
        }
    }

    pub fn sent(&self, seqs: std::ops::RangeInclusive<u64>) -> SentStatement {
        let event = |seq: u64| {
            let entry = &self.rows[seq as usize - 1].entry;
            (entry.event_ref, entry.digest)
        };
        SentStatement { identity: self.identity(), events: seqs.map(event).collect() }
    }

    pub fn signed_by(&mut self, signer: &NoteSigner, seqs: std::ops::RangeInclusive<u64>) {
        let envelope = sign(&self.sent(seqs).statement(), signer);
        self.statements.push(envelope);
    }

    pub fn head(&self, size: u64) -> TreeHead {
        let mut edge = Edge::default();
        for row in self.rows.iter().take(size as usize) {
            edge.push(row.entry.hash(), |_, _, _| {});
        }
        TreeHead { origin: TreeHead::origin_of(&self.identity()), size, root: edge.root() }
    }

    pub fn note(&self, size: u64) -> String {
        log_key(&self.identity()).sign(&self.head(size).text()).unwrap()
    }

    pub fn facts(&self, checkpoint: u64) -> String {
        let events = self.admitted(1, checkpoint);
        let rules = self.rules_at(checkpoint);
        snapshot(&with_rules!(rules, |rules| f(rules, events.iter().map(typed)).unwrap()))
    }

    pub fn draft(&self) -> Draft {
        self.draft_of(1, self.rows.len() as u64, self.checkpoint)
    }

    pub fn draft_of(&self, from: u64, to: u64, checkpoint: u64) -> Draft {
        let is_in = |row: &&Row| {
            let seq = row.entry.seq.0;
            let event_type = row.entry.event_type.as_str();
            (from..=to).contains(&seq)
                || (seq > to && event_type == "forget")
                || (seq < from && matches!(event_type, "ipse.rules" | "ipse.act"))
        };
        let lines = |line: String| format!("{line}\n");
        let identity = self.identity();
        Draft {
            identity,
            manifest: self.manifest.clone(),
            certificate: {
                let certificate = Certificate { manifest: self.manifest.clone() };
                sign(&certificate.statement(), &operator())
            },
            events: self
                .rows
                .iter()
                .filter(is_in)
                .filter_map(|r| r.event.clone())
                .map(lines)
                .collect(),
            entries: self.rows.iter().map(|r| r.entry.canonical()).map(lines).collect(),
            facts: (from == 1).then(|| self.facts(checkpoint)),
            rule_set: self.rules_at(if from == 1 { checkpoint } else { to }).descriptor(),
            gates: Files::new(),
            head: self.note(self.rows.len() as u64),
            signatures: self.statements.clone(),
            log_vkey: format!("{}\n", log_key(&identity).public()),
            operator_pub: pem(operator().public().key()),
            producers: Some(format!("{}\n{}\n", robot().public(), camera().public())),
            from,
            to,
            size: self.rows.len() as u64,
            checkpoint: (from == 1).then_some(checkpoint),
            sums_signer: operator(),
            sums: None,
            sums_sig: None,
        }
    }
}

pub fn typed(event: &Admitted) -> Event<'_> {
    Event::of_row(event.event_ref, event.time, &event.event_type, &event.columns).unwrap()
}

/// The members of a bundle, and the statements about them.
#[derive(Clone)]
pub struct Draft {
    pub identity: Identity,
    pub manifest: String,
    pub certificate: String,
    pub events: Vec<String>,
    pub entries: Vec<String>,
    pub facts: Option<String>,
    pub rule_set: String,
    /// The files of the gates, by member.
    pub gates: Files,
    pub head: String,
    pub signatures: Vec<String>,
    pub log_vkey: String,
    pub operator_pub: String,
    pub producers: Option<String>,
    pub from: u64,
    pub to: u64,
    pub size: u64,
    pub checkpoint: Option<u64>,
    pub sums_signer: NoteSigner,
    /// Replaces the true list.
    pub sums: Option<String>,
    /// Replaces the true envelope.
    pub sums_sig: Option<String>,
}

pub type Files = Vec<(String, Vec<u8>)>;

impl Draft {
    /// All members before the list of hashes.
    pub fn members(&self) -> Files {
        let mut all: Vec<(String, String)> = vec![
            ("manifest.json".into(), self.manifest.clone()),
            ("certificate.dsse.json".into(), self.certificate.clone()),
            ("events.jsonl".into(), self.events.concat()),
            ("entries.jsonl".into(), self.entries.concat()),
        ];
        all.extend(self.facts.clone().map(|facts| ("facts.jsonl".into(), facts)));
        all.push(("rule-set.json".into(), self.rule_set.clone()));
        all.push(("tree-head.note".into(), self.head.clone()));
        for (n, envelope) in (1..).zip(&self.signatures) {
            all.push((format!("signatures/{n:06}.dsse.json"), envelope.clone()));
        }
        all.push(("keys/log.vkey".into(), self.log_vkey.clone()));
        all.push(("keys/operator.pub".into(), self.operator_pub.clone()));
        all.extend(self.producers.clone().map(|keys| ("keys/producers.vkey".into(), keys)));
        let mut all: Files =
            all.into_iter().map(|(name, text)| (name, text.into_bytes())).collect();
        let after = all.iter().position(|(name, _)| name == "rule-set.json");
        let after = after.map_or(0, |at| at + 1);
        all.splice(after..after, self.gates.clone());
        all
    }

    pub fn bundled(&self, sums: &str) -> Bundled {
        Bundled {
            identity: self.identity,
            sums: Digest(sha256(&[sums.as_bytes()])),
            from: Seq(self.from),
            to: Seq(self.to),
            size: self.size,
            checkpoint: self.checkpoint.map(Seq),
        }
    }

    /// Adds the list of hashes of any members, and its signature.
    pub fn signed(&self, mut members: Files) -> Files {
        let sums = self.sums.clone().unwrap_or_else(|| sums_of(&members));
        let envelope = sign(&self.bundled(&sums).statement(), &self.sums_signer);
        let envelope = self.sums_sig.clone().unwrap_or(envelope);
        members.push(("SHA256SUMS".into(), sums.into_bytes()));
        members.push(("SHA256SUMS.sig".into(), envelope.into_bytes()));
        members
    }

    pub fn pack(&self) -> Vec<u8> {
        archive(&self.signed(self.members()))
    }
}

pub fn sums_of(members: &Files) -> String {
    let line =
        |(name, bytes): &(String, Vec<u8>)| format!("{}  {name}\n", hex::encode(&sha256(&[bytes])));
    members.iter().map(line).collect()
}

/// A tar header, from a second implementation for comparison.
pub fn header(name: &str, size: usize) -> Vec<u8> {
    let mut block = [
        pad(name.as_bytes(), 100),
        b"0000644\x000000000\x000000000\0".to_vec(),
        format!("{size:011o}\x0000000000000\0").into_bytes(),
        b"        0".to_vec(),
        vec![0; 100],
        b"ustar\x0000".to_vec(),
        vec![0; 64],
        b"0000000\x000000000\0".to_vec(),
    ]
    .concat();
    block.resize(512, 0);
    checksum(&mut block);
    block
}

/// Sets the checksum of a header.
pub fn checksum(block: &mut [u8]) {
    block[148..156].copy_from_slice(b"        ");
    let sum: u32 = block[..512].iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

fn pad(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(length, 0);
    bytes
}

pub fn archive(members: &Files) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in members {
        out.extend(header(name, bytes.len()));
        out.extend(pad(bytes, bytes.len().next_multiple_of(512)));
    }
    out.resize(out.len() + 1024, 0);
    out
}

/// Sixty-four events: three passes, three forgotten, two producers' statements, one not folded.
pub fn week() -> Log {
    let mut log = Log::new(MANIFEST);
    log.events(1..=20);
    log.pass();
    log.events(21..=40);
    log.pass();
    log.forget(&[3, 7, 25]);
    log.pass();
    log.events(45..=62);
    log.pass();
    log.events(64..=64);
    assert_eq!(log.rows.len(), 64);
    log.signed_by(&robot(), 1..=10);
    log.signed_by(&camera(), 22..=26);
    log
}

pub fn report(bytes: &[u8], trust: &str, anchors: &[String]) -> Report {
    verify(&bytes, &trust_of(trust).unwrap(), anchors, &mut |_, _| {}).unwrap()
}

pub fn fails(report: &Report) -> Vec<String> {
    let failed = report.lines.iter().filter(|line| line.verdict == Verdict::Fail);
    failed.map(|line| format!("{}: {}", line.place, line.message)).collect()
}

pub fn reported(report: &Report) -> String {
    let line = |line: &ipse_bundle::Line| {
        format!("{:5} {}: {}\n", line.verdict.name(), line.place, line.message)
    };
    report.lines.iter().map(line).collect()
}
