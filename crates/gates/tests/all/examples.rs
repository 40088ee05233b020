//! The teaching files under `examples/gates`: they fit each other, and do what their comments say.

use ipse_gates::{Code, GateFile, Gates, Intent, Past, Policy, Registry, Temperament};

const REGISTRY: &str = include_str!("../../../../examples/gates/ecm-registry.toml");
const POLICY: &str = include_str!("../../../../examples/gates/policy.toml");
const TEMPERAMENT: &str = include_str!("../../../../examples/gates/temperament.toml");

fn grasp(target: &str, params: &str) -> String {
    format!(
        "{{\"skill_id\":\"manipulation.grasp\",\"target_class\":\"{target}\",\
         \"environment\":\"ward3\",\"params\":{params}}}"
    )
}

#[test]
fn they_pass_together() {
    assert!(Gates::new(REGISTRY, POLICY, TEMPERAMENT).is_ok());
    let kinds = [REGISTRY, POLICY, TEMPERAMENT].map(GateFile::of);
    assert_eq!(kinds, GateFile::ALL.map(Some));
    assert_eq!(Registry::parse(REGISTRY).unwrap().holds(), "4 skills, 7 parameters");
    let holds = "4 skills, 3 clamps, 3 prohibitions, 1 rate limit";
    assert_eq!(Policy::parse(POLICY).unwrap().holds(), holds);
    let holds = "risk appetite 0.5, ethical floor 0.4, 3 human checks";
    assert_eq!(Temperament::parse(TEMPERAMENT).unwrap().holds(), holds);
}

#[test]
fn they_do_what_their_comments_say() {
    let gates = Gates::new(REGISTRY, POLICY, TEMPERAMENT).unwrap();
    let move_to = |place: &str, speed: &str| {
        format!(
            "{{\"skill_id\":\"navigation.move_to\",\"environment\":\"{place}\",\
             \"params\":{{\"place\":\"sink\",\"speed_m_s\":{speed}}}}}"
        )
    };
    for (body, want) in [
        (grasp("glass_cup", r#"{"force_n":25}"#), r#"admitted {"force_n":25}"#),
        (grasp("glass_cup", r#"{"force_n":2}"#), r#"clamped {"force_n":5}"#),
        (grasp("glass_cup", r#"{"force_n":55}"#), r#"needs_confirmation {"force_n":40}"#),
        (grasp("glass_cup", r#"{"force_n":60}"#), "denied glass breaks"),
        (
            grasp("glass_cup", r#"{"force_n":20,"grip":"pinch"}"#),
            "denied a rim that is pinched chips",
        ),
        (grasp("steel_cup", r#"{"force_n":120}"#), r#"clamped {"force_n":100}"#),
        (move_to("ward3", "1.5"), r#"clamped {"place":"sink","speed_m_s":0.8}"#),
        (move_to("corridor", "1.5"), r#"admitted {"place":"sink","speed_m_s":1.5}"#),
        (move_to("stairwel", "0.1"), "denied stairwel"),
        (move_to("stairwell", "0.1"), "denied it has wheels"),
        (move_to("kitchen", "0.1"), r#"needs_confirmation {"place":"sink","speed_m_s":0.1}"#),
        (r#"{"skill_id":"navigation.tow_bed"}"#.into(), "denied below the floor of 0.4"),
    ] {
        let verdict = gates.judge(&Intent::read(body.as_bytes()).unwrap(), &Past::counted(29));
        let (ruling, rest) = want.split_once(' ').unwrap();
        assert_eq!(verdict.ruling.name(), ruling, "{body}");
        match verdict.admitted_params() {
            Some(params) => assert_eq!(params, rest, "{body}"),
            None => assert!(verdict.summary().join(" ").contains(rest), "{:?}", verdict.summary()),
        }
    }
}

#[test]
fn a_verdict_is_told_in_sentences_and_in_json() {
    let gates = Gates::new(REGISTRY, POLICY, TEMPERAMENT).unwrap();
    let body = grasp("glass_cup", r#"{"force_n":55}"#);
    let verdict = gates.judge(&Intent::read(body.as_bytes()).unwrap(), &Past::default());
    assert_eq!(
        verdict.summary(),
        [
            "Needs a person's confirmation before it is acted on.",
            "policy: force_n is lowered from 55 to 40 for glass_cup.",
            "contract: a person must confirm force_n above 30 for glass_cup: near what glass \
             stands.",
        ]
    );
    assert_eq!(
        verdict.gates().collect::<Vec<_>>(),
        [
            r#"{"findings":[],"gate":"admission","result":"passed"}"#,
            concat!(
                r#"{"findings":[{"asked":55,"code":"above_maximum","#,
                r#""detail":"force_n is lowered from 55 to 40 for glass_cup","given":40,"#,
                r#""param":"force_n","rule":"skills.\"manipulation.grasp\".clamp[0]"}],"#,
                r#""gate":"policy","result":"clamped"}"#
            ),
            concat!(
                r#"{"findings":[{"asked":55,"code":"human_check","detail":"a person must confirm "#,
                r#"force_n above 30 for glass_cup: near what glass stands","given":40,"#,
                r#""param":"force_n","rule":"human_check[0]"}],"#,
                r#""gate":"contract","result":"needs_confirmation"}"#
            ),
        ]
    );
}

/// Every code stands on the page of the file that it comes from.
#[test]
fn every_code_is_documented() {
    let pages = [
        include_str!("../../../../docs/formats/ecm-registry.md"),
        include_str!("../../../../docs/formats/policy.md"),
        include_str!("../../../../docs/formats/temperament.md"),
    ];
    let missing: Vec<_> = Code::ALL
        .iter()
        .map(|code| code.name())
        .filter(|code| !pages.iter().any(|page| page.contains(&format!("| `{code}` |"))))
        .collect();
    assert!(missing.is_empty(), "say what these mean, in a table: {missing:?}");
}

/// The contract that the example shows in a comment can be used as it is.
#[test]
fn the_contract_of_the_example_is_judged() {
    let registry = REGISTRY.replace("\n#[", "\n[").replace("\n#after", "\nafter");
    assert_eq!(Registry::parse(REGISTRY).unwrap().holds(), "4 skills, 7 parameters");
    assert_eq!(Registry::parse(&registry).unwrap().holds(), "4 skills, 7 parameters, 1 contract");
    let [policy, temperament] = [GateFile::Policy, GateFile::Temperament].map(GateFile::example);
    let gates = Gates::new(&registry, policy, temperament).unwrap();
    let body =
        br#"{"skill_id":"manipulation.place","environment":"ward3","params":{"height_m":1}}"#;
    let intent = Intent::read(body).unwrap();
    for (holds, codes) in
        [(&[true][..], &[][..]), (&[false], &["not_after"]), (&[], &["not_after"])]
    {
        let verdict = gates.judge(&intent, &Past { recent: 0, holds });
        let findings = verdict.ran().iter().flat_map(|gate| &gate.findings);
        assert_eq!(findings.map(|it| it.code.name()).collect::<Vec<_>>(), codes);
        for finding in verdict.ran().iter().flat_map(|gate| &gate.findings) {
            let rule = "skills.\"manipulation.place\".contract.after[0]";
            assert_eq!(finding.rule.as_deref(), Some(rule));
        }
    }
    // With another version of the words, intents of this one would be compared by their codes.
    assert_eq!(ipse_core::judge::GATES_VERSION, 2);
}
