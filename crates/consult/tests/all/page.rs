//! The text form of a trail, byte for byte.

use crate::log::{Log, grasp};
use ipse_consult::facts::Filter;

#[test]
fn the_page() {
    let mut log = Log::default();
    for n in 0..12 {
        log.attempt(&format!(
            r#"{{"skill_id":"manipulation.grasp","target_class":"glass_cup","environment":"ward3",
            "params":{{"force_n":{}}},"success":{}}}"#,
            if n < 9 { 25 } else { 15 },
            n < 9
        ));
    }
    let filter = Filter { target: Some("glass_cup".to_owned()), ..Filter::default() };
    let said = log.consult(&filter);
    let intent = log.intent(&grasp("needs_confirmation", Some(&said)));
    log.decide(&intent, "confirmed");
    let attempt = log.attempt(&format!(
        r#"{{"intent":"{intent}","skill_id":"manipulation.grasp","params":{{"force_n":45}},
        "success":false}}"#
    ));
    log.attempt(&format!(r#"{{"intent":"{intent}","note":"\u001b[2J"}}"#));
    log.signed = Some(15);
    let page = log.trail(&attempt).text();
    let golden = include_str!("page.txt");
    assert_eq!(page, golden, "\n{page}");
}

#[test]
fn what_is_not_there_is_said() {
    let mut log = Log::unsigned();
    let intent = log.grasp("denied");
    let page = log.trail(&intent).text();
    assert!(page.contains("Action\n  none: no stored event names this intent\n"), "{page}");
    assert!(!page.contains("Facts consulted"), "{page}");
    assert!(page.contains("1 event under no signed tree head yet"), "{page}");
    let attempt = log.attempt(&format!(r#"{{"intent":"{intent}"}}"#));
    log.forget(&intent);
    let page = log.trail(&attempt).text();
    assert!(page.contains("forgotten: its content was erased"), "{page}");
    let plain = log.attempt("{}");
    let page = log.trail(&plain).text();
    assert!(page.contains("standing   unplanned\n\nIntent\n  none\n"), "{page}");
}
