//! Random numbers and intervals against those of CPython, NumPy and SciPy.
#![allow(missing_docs, clippy::unwrap_used)]

mod laboratory;

use ipse_reproduce::bca::{RANDOM_STATE, bca};
use ipse_reproduce::random::{Legacy, Python};
use laboratory::vector;
use serde_json::Value;

/// A number; a string in the vectors keeps all its digits.
fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().unwrap().parse().unwrap())
}

fn near(ours: f64, theirs: &Value, what: &str) {
    assert!((ours - number(theirs)).abs() <= 1e-9, "{what}: {ours} is not {theirs}");
}

#[test]
fn seeded_draws_are_cpythons() {
    let checks = vector("v3_expected.json");
    for check in checks["python_random_check"].as_array().unwrap() {
        let mut random = Python::new(check["seed"].as_i64().unwrap().into());
        for want in check["first_random"].as_array().unwrap() {
            assert_eq!(random.random(), number(want));
        }
        for want in check["then_choice2"].as_array().unwrap() {
            assert_eq!(u64::from(random.below(2)), want.as_u64().unwrap());
        }
        assert_eq!(random.fork().random(), number(&check["then_random"]));
        assert_eq!(random.random(), number(&check["then_random"]));
    }
}

#[test]
fn legacy_draws_are_numpys() {
    let want = &vector("bca.json")["legacy_randomstate_20260524_first20_randint_0_10"];
    let mut random = Legacy::new(RANDOM_STATE);
    for want in want.as_array().unwrap() {
        assert_eq!(u64::from(random.below(10)), want.as_u64().unwrap());
    }
}

#[test]
fn intervals_are_scipys() {
    for (name, case) in vector("bca.json")["vectors"].as_object().unwrap() {
        let values: Vec<f64> = case["vector"].as_array().unwrap().iter().map(number).collect();
        let ours = bca(&values).unwrap();
        for end in 0..2 {
            near(ours.interval[end], &case["scipy_10000_seed20260524"][end], name);
        }
        let steps = &case["emul_10000_seed20260524"];
        near(ours.share, &steps["pct"], name);
        near(ours.z0, &steps["z0"], name);
        near(ours.a, &steps["a"], name);
        near(ours.ends[0], &steps["a1"], name);
        near(ours.ends[1], &steps["a2"], name);
    }
}
