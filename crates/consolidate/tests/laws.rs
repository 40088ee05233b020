//! The laws of tallies, for every implementor; and windows against a literal reading of the rule.
#![allow(missing_docs)]

use ipse_consolidate::days::{Days, Rate};
use ipse_consolidate::histogram::Histogram;
use ipse_consolidate::v1::Observed;
use ipse_consolidate::v2::{Advice, Dated, Values};
use ipse_consolidate::{Tally, confidence};
use ipse_core::wire::Wire;
use ipse_core::{Micro, Outcome};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Debug;

fn sum<T: Tally>(a: &T, b: &T) -> T {
    let mut sum = a.clone();
    sum.add(b);
    sum
}

fn laws<T: Tally + Debug>(a: &T, b: &T, c: &T) -> Result<(), TestCaseError> {
    prop_assert_eq!(sum(a, b), sum(b, a), "commutative");
    prop_assert_eq!(sum(&sum(a, b), c), sum(a, &sum(b, c)), "associative");
    prop_assert_eq!(&sum(a, &T::default()), a, "identity");
    prop_assert!(sum(a, &a.negated()).is_zero(), "inverse");
    prop_assert_eq!(&sum(&sum(a, b), &b.negated()), a, "what leaves, leaves no trace");
    let mut bytes = Vec::new();
    a.encode(&mut bytes);
    let mut wire = Wire(&bytes);
    let read = T::decode(&mut wire);
    prop_assert_eq!(wire.finish(read), Some(Some(a.clone())), "one encoding");
    Ok(())
}

fn outcome() -> impl Strategy<Value = Outcome> {
    (0..Outcome::ALL.len()).prop_map(|index| Outcome::ALL[index])
}

fn histogram() -> impl Strategy<Value = Histogram> {
    vec((-30_i64..30, outcome()), 0..12).prop_map(|observations| {
        let mut histogram = Histogram::default();
        for (value, outcome) in observations {
            let micro = Micro::new(value * 1_000_003).unwrap_or_default();
            histogram.add(&Histogram::of(micro, outcome == Outcome::Success));
        }
        histogram
    })
}

fn counts() -> impl Strategy<Value = BTreeMap<String, i64>> {
    btree_map("[abc]", prop_oneof![-3_i64..0, 1_i64..4], 0..4)
}

fn observed() -> impl Strategy<Value = Observed> {
    let numbers = btree_map("[xyz]", histogram(), 0..3)
        .prop_map(|map| map.into_iter().filter(|(_, sum)| !sum.is_zero()).collect());
    let uncounted = btree_map(outcome(), 1_i64..4, 0..3);
    (-5_i64..5, -5_i64..5, -5_i64..5, uncounted, numbers, counts()).prop_map(
        |(successes, failures, incidents, uncounted, numbers, texts)| Observed {
            successes,
            failures,
            incidents,
            uncounted,
            numbers,
            texts,
        },
    )
}

fn days<T: Tally + Debug>(sum: impl Strategy<Value = T>) -> impl Strategy<Value = Days<T>> {
    vec((-3_i64..9, sum), 0..6).prop_map(|sums| {
        let mut days = Days::default();
        for (day, sum) in sums.iter().filter(|(_, sum)| !sum.is_zero()) {
            days.put(*day, sum);
        }
        days
    })
}

fn by_name<T: Tally + Debug>(
    sum: impl Strategy<Value = T>,
) -> impl Strategy<Value = BTreeMap<String, T>> {
    btree_map("[abc]", sum, 0..3)
        .prop_map(|map| map.into_iter().filter(|(_, sum)| !sum.is_zero()).collect())
}

fn rate() -> impl Strategy<Value = Rate> {
    (-4_i64..5, -4_i64..5).prop_map(|(n, s)| Rate { n, s })
}

fn dated() -> impl Strategy<Value = Dated> {
    let sources = by_name(days(rate()));
    let reasons = by_name(days(-3_i64..4));
    let params = by_name(days(histogram()).prop_map(Values::of));
    (sources, days(-3_i64..4), reasons, params, observed(), rate()).prop_map(
        |(sources, incidents, reasons, params, undated, rate)| Dated {
            sources,
            incidents,
            reasons,
            params,
            undated,
            advice: Advice::of(Rate { n: rate.n.abs() + rate.s.abs(), s: rate.s.abs() }),
        },
    )
}

proptest! {
    #[test]
    fn sums_by_day_obey(a in days(rate()), b in days(rate()), c in days(rate())) {
        laws(&a, &b, &c)?;
    }

    #[test]
    fn what_v2_keeps_obeys(a in dated(), b in dated(), c in dated()) {
        laws(&a, &b, &c)?;
    }

    #[test]
    fn counts_obey(a: i32, b: i32, c: i32) {
        laws(&i64::from(a), &i64::from(b), &i64::from(c))?;
    }

    #[test]
    fn sparse_sums_obey(a in counts(), b in counts(), c in counts()) {
        laws(&a, &b, &c)?;
    }

    #[test]
    fn histograms_obey(a in histogram(), b in histogram(), c in histogram()) {
        laws(&a, &b, &c)?;
    }

    #[test]
    fn what_v1_keeps_obeys(a in observed(), b in observed(), c in observed()) {
        laws(&a, &b, &c)?;
    }

    #[test]
    fn coarse_cells_are_fine_cells_rounded_again(
        values in vec(prop_oneof![-2_000_000_000_i64..2_000_000_000, -1500_i64..1500], 1..60)
    ) {
        let mut histogram = Histogram::default();
        let mut want: BTreeMap<i64, i64> = BTreeMap::new();
        for value in values {
            let micro = Micro::new(value).unwrap_or_default();
            histogram.add(&Histogram::of(micro, true));
            *want.entry(micro.cell(4).cell(2).get()).or_default() += 1;
        }
        let got: Vec<(i64, i64)> =
            histogram.coarse().into_iter().map(|(value, cell)| (value, cell.n)).collect();
        prop_assert_eq!(got, want.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn damaged_tallies_are_refused_not_believed(bytes: Vec<u8>) {
        let _ = Observed::decode(&mut Wire(&bytes));
        let _ = Dated::decode(&mut Wire(&bytes));
    }

    #[test]
    fn wilson_is_the_greatest_step_that_holds(
        n in 1_i64..5000,
        part in 0_i64..=1000,
        k in 3_i128..40,
    ) {
        let agreeing = n * part / 1000;
        let holds = |t: i64| {
            let (a, n, t) = (i128::from(agreeing), i128::from(n), i128::from(t));
            let y = 10_000 * (2 * a + k) - 2 * (n + k) * t;
            y >= 0 && y * y * n >= (k * k * n + 4 * k * a * (n - a)) * 100_000_000
        };
        let t = confidence::wilson(agreeing, n, k);
        prop_assert!(holds(t) && !holds(t + 1) && (0..10_000).contains(&t));
    }

    #[test]
    fn significant_means_at_least_one_half(a in 0_i64..400, b in 0_i64..400, k in 3_i128..20) {
        prop_assume!(a + b > 0);
        prop_assert_eq!(
            confidence::significant(a, b, k),
            confidence::wilson(a, a + b, k) >= 5000 && a > b
        );
    }
}
