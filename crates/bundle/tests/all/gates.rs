//! Verdicts judged again with the files of the gates: valid ones, and forged ones that are sealed
//! again with the true keys.

use crate::forge::{Draft, archive, log_key, operator};
use crate::forge::{Log, fails, house, identity_of, producer_event, reported, sums_of, time};
use ipse_bundle::{Again, GatesInput, Report, Trust, Verdict, pem, verify_judged};
use ipse_core::json::{Members, list, quoted};
use ipse_core::judge::{GATES_VERSION, Judge, Past};
use ipse_core::{Admitted, EventRef, hex, sha256};
use ipse_gates::read_gates;

const REGISTRY: &str = r#"format = "ipse-ecm-registry/2"
[skills.grasp]
risk = 0.3
ethics = 0.9
requires = ["target_class"]
[skills.grasp.params.force_n]
type = "number"
unit = "N"
min = 0
max = 140
[skills.place]
risk = 0
ethics = 1
requires = ["target_class"]
[skills.place.contract]
after = [{ skill = "grasp", within_s = 600, same_target = true }]
"#;
const POLICY: &str = r#"format = "ipse-policy/1"
unlisted_skills = "admit"
[skills.grasp]
rate_limit = { intents = 2, seconds = 600 }
clamp = [{ param = "force_n", max = 40, target_class = "glass" }]
forbid = [{ param = "force_n", from = 60, target_class = "glass" }]
"#;
const TEMPERAMENT: &str = r#"format = "ipse-temperament/1"
risk_appetite = 0.5
ethical_floor = 0.4
confirm_within_s = 300
human_check = [{ skill_id = "grasp", param = "force_n", above = 30 }]
"#;
const FILES: [&str; 3] = [REGISTRY, POLICY, TEMPERAMENT];
const NAMES: [&str; 3] = ["gates/ecm-registry.toml", "gates/policy.toml", "gates/temperament.toml"];

/// A manifest that names the files.
fn manifest() -> String {
    let [registry, policy, temperament] =
        FILES.map(|file| hex::encode(&sha256(&[file.as_bytes()])));
    let field = |name: &str, value: &str| format!("{}:{}", quoted(name), quoted(value));
    let fields = [
        field("agent_id", "a"),
        field("commissioned_at", "2026-05-01T00:00:00Z"),
        field("ecm_registry_hash", &registry),
        field("embodiment", "e"),
        field("operator", "o"),
        field("policy_hash", &policy),
        field("temperament_hash", &temperament),
    ];
    format!("{{{}}}", fields.join(","))
}

fn judge() -> Box<dyn Judge> {
    read_gates(FILES.map(str::as_bytes)).unwrap()
}

/// What an intent was judged with.
#[derive(Clone, Copy, Default)]
struct Basis<'b> {
    recent: Option<u64>,
    contract: Option<(Option<EventRef>, bool)>,
    detail: Option<&'b str>,
}

/// The data that a server writes for a request about glass at minute `n`.
fn data(n: u64, skill: &str, force: Option<u64>, basis: Basis<'_>) -> Members {
    let params = force.map_or("{}".to_owned(), |force| format!(r#"{{"force_n":{force}}}"#));
    let request = Members::new().raw("params", &params).text("skill_id", skill);
    let request = request.text("target_class", "glass");
    let holds = basis.contract.map(|(_, holds)| holds);
    let past = Past { recent: basis.recent.unwrap_or_default(), holds: holds.as_slice() };
    let judged = judge().judge(request.finish().as_bytes(), &past).unwrap();
    let waits = judged.ruling.name() == "needs_confirmation";
    let name = |name: Option<EventRef>| name.map_or("null".into(), |it| quoted(&it.to_string()));
    let audit = r#"{"gate":"audit","result":"none"}"#.to_owned();
    let mut gates = list(judged.gates.into_iter().chain([audit]));
    if let Some(detail) = basis.detail {
        gates = gates.replacen("is lowered", detail, 1);
    }
    Members::new()
        .raw("params", params)
        .text("skill_id", skill)
        .text("target_class", "glass")
        .text("token_id", "00")
        .text("verdict", judged.ruling.name())
        .optional("admitted_params", judged.admitted_params)
        .optional("confirm_by", waits.then(|| quoted(&time(n + 5).to_string())))
        .optional("recent", basis.recent)
        .optional("contract", basis.contract.map(|(it, _)| list([name(it)])))
        .raw("gates", gates)
        .optional("gates_version", basis.detail.is_none().then_some(GATES_VERSION))
}

fn intent(n: u64, data: &str) -> Admitted {
    house(n, &format!("intent:{n:032x}"), "intent", data)
}

fn grasp(n: u64, force: u64, recent: u64) -> Admitted {
    intent(
        n,
        &data(n, "grasp", Some(force), Basis { recent: Some(recent), ..Basis::default() }).finish(),
    )
}

fn place(n: u64, after: Option<EventRef>, holds: bool) -> Admitted {
    let basis = Basis { contract: Some((after, holds)), ..Basis::default() };
    intent(n, &data(n, "place", None, basis).finish())
}

fn attempt(n: u64, target: &str, success: bool) -> Admitted {
    let data = format!(r#"{{"skill_id":"grasp","target_class":"{target}","success":{success}}}"#);
    producer_event(n, "arm", "execution_result", &data)
}

fn log(events: &[Admitted]) -> Log {
    let mut log = Log::new(&manifest());
    for event in events {
        log.push(event);
    }
    log
}

/// A log in which each kind of verdict occurs: admitted, waiting, clamped, denied by each gate.
fn day() -> Log {
    let (first, other) = (attempt(2, "glass", true), attempt(5, "cup", false));
    let name = first.event_ref;
    log(&[
        grasp(1, 20, 0),
        first,
        place(3, Some(name), true),
        grasp(4, 50, 1),
        other,
        place(6, Some(name), true),
        grasp(7, 30, 2),
        grasp(8, 500, 2),
        grasp(9, 80, 2),
        attempt(10, "glass", true),
        grasp(30, 40, 0),
        place(31, Some(attempt(10, "glass", true).event_ref), false),
        intent(32, &data(32, "fly", None, Basis::default()).finish()),
    ])
}

fn with_files(draft: &Draft) -> Draft {
    let gates = NAMES.iter().zip(FILES);
    let gates = gates.map(|(name, file)| ((*name).to_owned(), file.as_bytes().to_vec()));
    Draft { gates: gates.collect(), ..draft.clone() }
}

fn trust() -> Trust {
    let mut trust = Trust::default();
    let keys = log_key(&identity_of(&manifest())).public().to_string();
    trust.add(&format!("{keys}\n{}", pem(operator().public().key()))).unwrap();
    trust
}

fn verified(draft: &Draft, given: [Option<Vec<u8>>; 3]) -> Report {
    let gates = GatesInput { read: Some(&read_gates), files: given };
    verify_judged(&draft.pack(), &trust(), &[], &gates, &mut |_, _| {}).unwrap()
}

/// Verifies a log with the files in its bundle.
fn judged(log: &Log) -> Report {
    verified(&with_files(&log.draft()), Default::default())
}

#[track_caller]
fn has(report: &Report, wanted: &str) {
    let text = reported(report);
    assert!(text.contains(wanted), "`{wanted}` is not in\n{text}");
}

/// Asserts that a forged log fails in this check alone.
#[track_caller]
fn refused(log: &Log, wanted: &str) {
    let found = fails(&judged(log));
    assert!(found.len() == 1 && found[0].contains(wanted), "`{wanted}` is not {found:#?}");
}

#[test]
fn true_verdicts_follow() {
    let report = judged(&day());
    assert!(report.passed(), "{}", reported(&report));
    has(&report, "PASS  gates: 10 intents judged again: every verdict follows");
    NAMES.iter().for_each(|name| has(&report, &format!("PASS  {name}: is the file")));
    assert!(!reported(&report).contains("LIMIT gates"), "{}", reported(&report));
    let log = day();
    assert_eq!(report.judged_again(&log.name(1)), Some(Again::Equal));
    assert_eq!(report.judged_again(&log.name(2)), None, "an attempt");
}

#[test]
fn the_forged_admission_of_500_newtons_is_named_with_its_gate() {
    let forged = data(1, "grasp", Some(20), Basis { recent: Some(0), ..Basis::default() }).finish();
    let forged = log(&[intent(1, &forged.replace(":20", ":500"))]);
    let report = judged(&forged);
    has(
        &report,
        "FAIL  intent at seq 1: recorded admitted, the files say denied (admission: out_of_range \
         force_n)",
    );
    assert_eq!(fails(&report).len(), 1);
    assert_eq!(report.judged_again(&forged.name(1)), Some(Again::Different));
}

/// A change of the data of the n-th event of the day, and the failure.
fn forged(n: usize, from: &str, to: &str, wanted: &str) {
    let mut events = Vec::new();
    for (index, row) in day().rows.iter().enumerate() {
        let text = row.event.clone().unwrap();
        let text = if index + 1 == n { text.replacen(from, to, 1) } else { text.clone() };
        assert!(index + 1 != n || Some(&text) != row.event.as_ref(), "{from} is not in {text}");
        let origin = ipse_door::Origin::House;
        events.push(ipse_door::admit(text.as_bytes(), origin, || [0; 16]).unwrap());
    }
    refused(&log(&events), &format!("intent at seq {n}: {wanted}"));
}

#[test]
fn every_recorded_part_must_follow() {
    forged(1, r#"_params":{"force_n":20}"#, r#"_params":{"force_n":21}"#, "its admitted_params");
    forged(4, r#"_params":{"force_n":40}"#, r#"_params":{"force_n":50}"#, "its admitted_params");
    forged(4, r#""given":40"#, r#""given":41"#, "its line of the gate policy");
    forged(4, "is lowered", "was lowered", "its line of the gate policy");
    forged(4, ":09:00", ":10:00", "its confirm_by is not the one that the files give: 2026-");
    forged(4, r#""confirm_by":"2026-05-06T10:09:00Z","#, "", "its confirm_by");
    forged(8, r#""asked":500"#, r#""asked":501"#, "its line of the gate admission");
    forged(7, r#""recent":2"#, r#""recent":1"#, "recorded recent 1, the log gives 2");
    forged(7, r#","recent":2"#, "", "does not record recent");
    forged(3, r#","params":"#, r#","recent":0,"params":"#, "records recent, but");
    forged(13, r#","params":"#, r#","contract":[null],"params":"#, "records 1 attempts for its");
    forged(3, r#""gates_version":2,"#, "", "records no gates_version, but the intent at seq 1");
}

#[test]
fn the_attempts_of_a_contract_are_looked_up_again() {
    let (old, new) = (attempt(1, "glass", true), attempt(2, "glass", false));
    let names = [old.event_ref, new.event_ref];
    let with = |intent: Admitted| log(&[old.clone(), new.clone(), intent]);
    assert!(judged(&with(place(3, Some(names[1]), false))).passed());
    let older =
        "its contract[0] is not the newest attempt at grasp: the log gives the event at seq 2";
    refused(&with(place(3, Some(names[0]), true)), older);
    refused(&with(place(3, None, false)), older);
    refused(&with(place(3, Some(EventRef([7; 16])), true)), older);
    let says = "recorded admitted, the files say denied (contract: not_after skills.place.contract";
    refused(&with(place(3, Some(names[1]), true)), says);
    refused(&log(&[place(1, Some(names[0]), true), old.clone()]), "the log gives none");
    assert!(judged(&log(&[old.clone(), place(11, Some(names[0]), true)])).passed());
    refused(&log(&[old.clone(), place(12, Some(names[0]), true)]), says);
    assert!(judged(&log(&[old.clone(), place(12, Some(names[0]), false)])).passed());
}

#[test]
fn a_forgotten_attempt_of_a_contract_is_a_limit() {
    let (first, name) = (attempt(1, "glass", true), attempt(1, "glass", true).event_ref);
    for (n, holds, passes) in
        [(3, true, true), (3, false, true), (20, false, true), (20, true, false)]
    {
        let mut log = log(&[first.clone(), place(n, Some(name), holds)]);
        log.forget(&[1]);
        log.pass();
        let report = judged(&log);
        assert_eq!(report.passed(), passes, "{n} {holds}\n{}", reported(&report));
        if passes {
            has(&report, "LIMIT gates: 1 intent with a contract that rests on missing attempts");
        }
    }
    // An attempt that was forgotten before a server started does not count.
    let mut late = log(&[first.clone(), attempt(2, "glass", false)]);
    late.forget(&[2]);
    late.pass();
    late.push(&place(5, Some(name), true));
    assert!(judged(&late).passed());
    late.push(&place(6, None, false));
    refused(&late, "its contract[0]");
}

#[test]
fn a_forgotten_intent_and_times_that_run_backwards_leave_the_count_open() {
    let limit = "LIMIT gates: 1 intent with a count of recent intents that rests on missing";
    for (recent, passes) in [(0, true), (1, true), (2, false)] {
        let mut log = log(&[grasp(1, 20, 0), grasp(2, 20, recent)]);
        log.forget(&[1]);
        log.pass();
        let report = judged(&log);
        assert_eq!(report.passed(), passes, "{recent}\n{}", reported(&report));
        has(&report, if passes { limit } else { "recorded recent 2, the log gives 0 to 1" });
    }
    let report = judged(&log(&[grasp(5, 20, 0), grasp(3, 20, 0)]));
    assert!(report.passed(), "{}", reported(&report));
    has(&report, limit);
    // Steps back before the window do not matter.
    let steps = [grasp(5, 20, 0), grasp(3, 20, 1), grasp(40, 20, 0)];
    has(&judged(&log(&steps)), limit);
    let wrong = [grasp(5, 20, 0), grasp(3, 20, 1), grasp(40, 20, 1)];
    refused(&log(&wrong), "intent at seq 3: recorded recent 1, the log gives 0");
}

#[test]
fn a_range_judges_what_it_can() {
    let mut log = day();
    log.pass();
    let report = verified(&with_files(&log.draft_of(3, 14, 0)), Default::default());
    assert!(report.passed(), "{}", reported(&report));
    has(&report, "PASS  gates: 9 intents judged again");
    has(&report, "LIMIT gates: 2 intents with a contract that rests on missing attempts");
}

#[test]
fn intents_of_an_earlier_version_are_compared_by_their_codes() {
    let older = |n, force, recent| {
        let basis = Basis { detail: Some("was put down"), ..Basis::default() };
        let basis = Basis { recent, ..basis };
        intent(n, &data(n, "grasp", Some(force), basis).finish())
    };
    let report = judged(&log(&[older(1, 50, None), older(2, 20, None)]));
    assert!(report.passed(), "{}", reported(&report));
    has(&report, "LIMIT gates: 2 intents judged by another version of ipse: their codes were");
    let text = older(1, 50, None).canonical.replace("above_maximum", "below_minimum");
    let origin = ipse_door::Origin::House;
    let wrong = ipse_door::admit(text.as_bytes(), origin, || [0; 16]).unwrap();
    refused(&log(&[wrong]), "its line of the gate policy");
}

#[test]
fn without_files_verdicts_are_as_recorded() {
    let log = day();
    let none = verified(&log.draft(), Default::default());
    assert!(none.passed(), "{}", reported(&none));
    has(&none, "LIMIT gates: no files of the gates: 10 verdicts are as recorded");
    for missing in 0..3 {
        let mut draft = with_files(&log.draft());
        let (name, file) = draft.gates.remove(missing);
        let report = verified(&draft, Default::default());
        assert!(report.passed());
        has(&report, &format!("LIMIT gates: without {name}: 10 verdicts are as recorded"));
        let mut given: [Option<Vec<u8>>; 3] = Default::default();
        given[missing] = Some(file.clone());
        has(&verified(&draft, given.clone()), "PASS  gates: 10 intents judged again");
        given[missing] = Some([&file[..], b"\n"].concat());
        let report = verified(&draft, given);
        has(&report, &format!("LIMIT {name}: the given file is not the one that the manifest"));
        has(&report, "10 verdicts are as recorded");
    }
    let given = FILES.map(|file| Some(file.as_bytes().to_vec()));
    has(&verified(&log.draft(), given), "PASS  gates: 10 intents judged again");
    let report =
        ipse_bundle::verify(&with_files(&log.draft()).pack(), &trust(), &[], &mut |_, _| {});
    has(
        &report.unwrap(),
        "LIMIT gates: this program judges no intent: 10 verdicts are as recorded",
    );
}

/// Each flipped bit of a file is noticed, although the bundle is sealed again.
#[test]
fn every_flipped_bit_of_a_file_is_a_failure() {
    let draft = with_files(&log(&[grasp(1, 20, 0)]).draft());
    for (index, name) in NAMES.iter().enumerate() {
        for bit in 0..FILES[index].len() * 8 {
            let mut flipped = draft.clone();
            flipped.gates[index].1[bit / 8] ^= 1 << (bit % 8);
            let found = fails(&verified(&flipped, Default::default()));
            assert_eq!(found.len(), 1, "bit {bit} of {name}: {found:?}");
            assert!(found[0].starts_with(&format!("{name}: is not the file that")), "{found:?}");
        }
    }
}

#[test]
fn the_files_have_one_place() {
    let draft = with_files(&day().draft());
    let members = draft.members();
    let at = members.iter().position(|(name, _)| name == "rule-set.json").unwrap();
    let names: Vec<&str> = members[at + 1..at + 4].iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, NAMES);
    let mut moved = members.clone();
    moved.swap(at + 1, at + 2);
    let bytes = archive(&draft.signed(moved.clone()));
    assert!(!sums_of(&moved).is_empty());
    let report = ipse_bundle::verify(&bytes, &trust(), &[], &mut |_, _| {}).unwrap();
    assert_eq!(report.lines[0].verdict, Verdict::Fail);
}
