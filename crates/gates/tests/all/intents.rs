//! Bodies of requests: what is read, and the field and rule of what is refused.

use ipse_gates::{Intent, MAX_INTENT_BYTES, MAX_PARAMS, MAX_PARAMS_BYTES};

#[test]
fn what_is_read_is_what_was_sent() {
    let body = br#" {"params":{"b":1,"a":"x"},"environment":"w\u0061rd","skill_id":"grasp",
        "target_class":"cup","consultation":{"checkpoint":7},
        "planner":{"version":"2.1","name":"ward planner"}} "#;
    let intent = Intent::read(body).unwrap();
    assert_eq!(intent.skill_id, "grasp");
    assert_eq!(intent.target_class.as_deref(), Some("cup"));
    assert_eq!(intent.environment.as_deref(), Some("ward"));
    assert_eq!(intent.params.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
    let planner = intent.planner.unwrap();
    assert_eq!((&*planner.name, &*planner.version), ("ward planner", "2.1"));
    assert_eq!(intent.consultation.unwrap().get("checkpoint").unwrap().as_count(), Some(7));

    let least = Intent::read(br#"{"skill_id":"a"}"#).unwrap();
    assert!(least.target_class.is_none() && least.environment.is_none());
    assert!(least.params.is_empty() && least.consultation.is_none());
    assert!(least.planner.is_none());
}

/// A body, and field and rule of its refusal.
const REFUSED: [(&str, &str, &str); 52] = [
    ("", "", "invalid_json"),
    ("skill_id=grasp", "", "invalid_json"),
    (r#"{"skill_id":"a"} x"#, "", "trailing_data"),
    (r#"{"skill_id":"a","skill_id":"b"}"#, "skill_id", "duplicate_key"),
    (r#"{"skill_id":"a","params":{"f":1,"f":1}}"#, "params.f", "duplicate_key"),
    (r#"{"skill_id":"\ud800"}"#, "skill_id", "lone_surrogate"),
    (r#"{"skill_id":"\u0000"}"#, "skill_id", "nul"),
    (r#"{"skill_id":"a","params":{"f":9007199254740993}}"#, "params.f", "unsafe_integer"),
    (r#"{"skill_id":"a","params":{"f":1234567890123456789012}}"#, "params.f", "unsafe_integer"),
    (r#"{"skill_id":"a","params":{"f":1e400}}"#, "params.f", "number_overflow"),
    (r#"{"skill_id":"a","params":{"f":[[[[[[[]]]]]]]}}"#, "params.f[0][0][0][0][0][0]", "too_deep"),
    ("[]", "", "not_an_object"),
    ("null", "", "not_an_object"),
    ("\"a\"", "", "not_an_object"),
    ("{}", "skill_id", "missing"),
    (r#"{"params":{}}"#, "skill_id", "missing"),
    (r#"{"skill_id":"a","Params":{}}"#, "Params", "unknown_member"),
    (r#"{"skill_id":"a","verdict":"admitted"}"#, "verdict", "unknown_member"),
    (r#"{"skill_id":"a","":1}"#, "", "unknown_member"),
    (r#"{"skill_id":"a","\u0007":1}"#, "\u{fffd}", "unknown_member"),
    (r#"{"skill_id":null}"#, "skill_id", "not_text"),
    (r#"{"skill_id":5}"#, "skill_id", "not_text"),
    (r#"{"skill_id":["a"]}"#, "skill_id", "not_text"),
    (r#"{"skill_id":""}"#, "skill_id", "empty"),
    (r#"{"skill_id":"a\nb"}"#, "skill_id", "control_character"),
    (r#"{"skill_id":"a\u0085b"}"#, "skill_id", "control_character"),
    (r#"{"skill_id":"a","target_class":null}"#, "target_class", "not_text"),
    (r#"{"skill_id":"a","target_class":{}}"#, "target_class", "not_text"),
    (r#"{"skill_id":"a","target_class":""}"#, "target_class", "empty"),
    (r#"{"skill_id":"a","environment":null}"#, "environment", "not_text"),
    (r#"{"skill_id":"a","environment":true}"#, "environment", "not_text"),
    (r#"{"skill_id":"a","environment":"\t"}"#, "environment", "control_character"),
    (r#"{"skill_id":"a","params":null}"#, "params", "not_an_object"),
    (r#"{"skill_id":"a","params":[]}"#, "params", "not_an_object"),
    (r#"{"skill_id":"a","params":"f=1"}"#, "params", "not_an_object"),
    (r#"{"skill_id":"a","params":{"":1}}"#, "params.", "empty"),
    (r#"{"skill_id":"a","params":{"\u001b":1}}"#, "params.\u{fffd}", "control_character"),
    (r#"{"skill_id":"a","params":{"f":""}}"#, "params.f", "empty"),
    (r#"{"skill_id":"a","params":{"f":"a\rb"}}"#, "params.f", "control_character"),
    (r#"{"skill_id":"a","consultation":null}"#, "consultation", "not_an_object"),
    (r#"{"skill_id":"a","consultation":[]}"#, "consultation", "not_an_object"),
    (r#"{"skill_id":"a","consultation":"co_1"}"#, "consultation", "not_an_object"),
    (r#"{"skill_id":"a","params":{"f":nan}}"#, "params.f", "invalid_json"),
    (r#"{"skill_id":"a","planner":null}"#, "planner", "not_an_object"),
    (r#"{"skill_id":"a","planner":"p 1"}"#, "planner", "not_an_object"),
    (r#"{"skill_id":"a","planner":{}}"#, "planner.name", "missing"),
    (r#"{"skill_id":"a","planner":{"name":"p"}}"#, "planner.version", "missing"),
    (r#"{"skill_id":"a","planner":{"version":"1"}}"#, "planner.name", "missing"),
    (r#"{"skill_id":"a","planner":{"name":"p","version":1}}"#, "planner.version", "not_text"),
    (r#"{"skill_id":"a","planner":{"name":"","version":"1"}}"#, "planner.name", "empty"),
    (
        r#"{"skill_id":"a","planner":{"name":"a\nb","version":"1"}}"#,
        "planner.name",
        "control_character",
    ),
    (
        r#"{"skill_id":"a","planner":{"name":"p","version":"1","by":"x"}}"#,
        "planner.by",
        "unknown_member",
    ),
];

#[test]
fn what_is_refused_names_field_and_rule() {
    for (body, field, rule) in REFUSED {
        let bad = Intent::read(body.as_bytes()).expect_err(body);
        assert_eq!((&*bad.field, bad.rule), (field, rule), "{body}: {bad}");
        assert!(!bad.message.is_empty() && bad.to_string().ends_with(&format!("[{rule}]")));
    }
    let bad = Intent::read(b"{\"skill_id\":\"\xff\"}").unwrap_err();
    assert_eq!((&*bad.field, bad.rule), ("", "invalid_utf8"));
    assert_eq!(
        Intent::read(br#"{"skill":"a"}"#).unwrap_err().to_string(),
        "`skill`: no such member; there are skill_id, target_class, environment, params, \
         consultation, planner [unknown_member]"
    );
}

/// A rule that is broken beyond a length, and not at it.
#[track_caller]
fn limit(most: usize, rule: &str, body: impl Fn(usize) -> String) {
    assert!(
        Intent::read(body(most).as_bytes()).is_ok(),
        "{:?}",
        Intent::read(body(most).as_bytes())
    );
    let beyond = body(most + 1);
    let bad = Intent::read(beyond.as_bytes()).unwrap_err();
    assert_eq!(bad.rule, rule, "{bad}");
    assert!(bad.message.contains(&most.to_string()), "the limit is named: {bad}");
}

#[test]
fn the_limits_are_named() {
    let least = r#"{"skill_id":"a"}"#;
    limit(MAX_INTENT_BYTES, "too_large", |n| least.to_string() + &" ".repeat(n - least.len()));
    for name in ["skill_id", "target_class", "environment"] {
        limit(256, "too_long", |n| {
            let other = if name == "skill_id" { "" } else { r#""skill_id":"a","# };
            format!("{{{other}\"{name}\":\"{}\"}}", "x".repeat(n))
        });
    }
    limit(64, "too_long", |n| format!(r#"{{"skill_id":"a","params":{{"{}":1}}}}"#, "x".repeat(n)));
    for (name, version) in [(1, 0), (0, 1)] {
        limit(64, "too_long", |n| {
            let [name, version] = [name, version].map(|it| "x".repeat(1 + it * (n - 1)));
            let planner = format!(r#"{{"name":"{name}","version":"{version}"}}"#);
            format!(r#"{{"skill_id":"a","planner":{planner}}}"#)
        });
    }
    limit(1024, "too_long", |n| {
        format!(r#"{{"skill_id":"a","params":{{"f":"{}"}}}}"#, "x".repeat(n))
    });
    limit(MAX_PARAMS, "too_many_params", |n| {
        let params: Vec<String> = (0..n).map(|n| format!("\"p{n}\":1")).collect();
        format!(r#"{{"skill_id":"a","params":{{{}}}}}"#, params.join(","))
    });
    // A list of ones: `{"f":[1,1,…,1]}`, or `…,11]}` for an odd length.
    limit(MAX_PARAMS_BYTES, "too_large", |n| {
        let ones = "1,".repeat((n - 9) / 2) + if n % 2 == 0 { "11" } else { "1" };
        let params = format!("{{\"f\":[{ones}]}}");
        assert_eq!(params.len(), n);
        format!("{{\"skill_id\":\"a\",\"params\":{params}}}")
    });
}
