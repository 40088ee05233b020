//! Turns a sum into a value: the canonical JSON of each kind of fact.
//!
//! **Invariant:** members are written in canonical order, directly into one text; a debug build
//! checks the order.

use crate::confidence::{self, BASE, wilson};
use crate::histogram::{Histogram, write_integer};
use crate::recommend::Recommended;
use crate::v1::{Observed, PROPERTY};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::decimal::{SCALE, rounded, write_micro};
use ipse_core::json::{utf16_order, write_text};
use ipse_core::{FactKind, Support, hex};

/// Parameters with fewer usable values do not count as competitors.
const COMPETING_FROM: i64 = 3;

/// The number of observations behind a sum of this kind.
pub(crate) fn observations(kind: FactKind, tally: &Observed) -> i64 {
    match kind {
        FactKind::SkillSuccessRate => tally.successes + tally.failures,
        FactKind::InteractionPattern => tally.failures,
        FactKind::ZoneRisk => tally.successes + tally.failures + tally.incidents,
        FactKind::ObjectProperty => {
            let texts: i64 = tally.texts.values().sum();
            tally.numbers.get(PROPERTY).map_or(0, Histogram::n) + texts
        }
    }
}

/// The value of a sum with at least one observation.
pub(crate) fn value(kind: FactKind, tally: &Observed, last: &Support, version: &str) -> String {
    let mut out = Object::new();
    let n = observations(kind, tally);
    match kind {
        FactKind::SkillSuccessRate => skill_success_rate(tally, n, last, version, &mut out),
        FactKind::InteractionPattern => interaction_pattern(tally, n, last, version, &mut out),
        FactKind::ZoneRisk => zone_risk(tally, n, last, version, &mut out),
        FactKind::ObjectProperty => object_property(tally, n, last, version, &mut out),
    }
    out.finish()
}

fn skill_success_rate(t: &Observed, n: i64, last: &Support, version: &str, out: &mut Object) {
    let competitors = t.numbers.values().filter(|h| h.n() >= COMPETING_FROM).count();
    let mut confidence = wilson(t.successes.max(t.failures), n, BASE);
    let mut params = Vec::with_capacity(t.numbers.len());
    for (name, histogram) in &t.numbers {
        let recommended = Recommended::search(histogram, competitors);
        if let (Some(recommended), true) = (&recommended, histogram.n() == n) {
            confidence = confidence.max(recommended.agreement(t.failures, n, competitors));
        }
        params.push((name.as_str(), histogram, recommended));
    }
    out.confidence(confidence);
    out.integer("failures", t.failures);
    out.support(last, n);
    write_params(params, out);
    out.text("rule_version", version);
    out.rate("success_rate", t.successes, n);
    out.integer("successes", t.successes);
    out.top("top_failure_reason", "reason", &t.texts);
    if !t.uncounted.is_empty() {
        let mut counts: Vec<(&str, i64)> =
            t.uncounted.iter().map(|(outcome, n)| (outcome.name(), *n)).collect();
        counts.sort_unstable();
        let mut inner = Object::new();
        counts.iter().for_each(|(name, n)| inner.integer(name, *n));
        out.raw("uncounted", &inner.finish());
    }
}

fn interaction_pattern(t: &Observed, n: i64, last: &Support, version: &str, out: &mut Object) {
    out.confidence(wilson(n, n, BASE));
    out.support(last, n);
    write_params(t.numbers.iter().map(|(name, h)| (name.as_str(), h, None)).collect(), out);
    out.text("rule_version", version);
}

fn zone_risk(t: &Observed, n: i64, last: &Support, version: &str, out: &mut Object) {
    let adverse = t.failures + t.incidents;
    out.integer("adverse", adverse);
    out.confidence(wilson(adverse.max(n - adverse), n, BASE));
    out.integer("failures", t.failures);
    out.integer("incidents", t.incidents);
    out.support(last, n);
    out.rate("risk", adverse, n);
    out.text("rule_version", version);
    out.top("top_reason", "reason", &t.texts);
}

fn object_property(t: &Observed, n: i64, last: &Support, version: &str, out: &mut Object) {
    let numeric = t.numbers.get(PROPERTY);
    let agreeing = numeric.map_or(0, Histogram::near_median).max(most(&t.texts).1);
    if !t.texts.is_empty() {
        let mut inner = Object::new();
        inner.integer("n", t.texts.values().sum());
        inner.top("top", "value", &t.texts);
        out.raw("categorical", &inner.finish());
    }
    out.confidence(wilson(agreeing, n, BASE));
    out.support(last, n);
    if let Some(histogram) = numeric {
        out.name("numeric");
        histogram.write(&mut out.text, |_| {});
    }
    out.text("rule_version", version);
}

fn write_params(mut params: Vec<(&str, &Histogram, Option<Recommended>)>, out: &mut Object) {
    if params.is_empty() {
        return;
    }
    params.sort_by(|a, b| utf16_order(a.0, b.0));
    let mut inner = Object::new();
    for (name, histogram, recommended) in params {
        inner.name(name);
        histogram.write(&mut inner.text, |out| {
            if let Some(recommended) = recommended {
                recommended.write(out);
            }
        });
    }
    out.raw("params", &inner.finish());
}

/// The most common text: highest count, then smallest by UTF-8 bytes.
fn most(texts: &BTreeMap<String, i64>) -> (&str, i64) {
    texts.iter().fold(
        ("", 0),
        |best, (text, n)| {
            if *n > best.1 { (text.as_str(), *n) } else { best }
        },
    )
}

/// A JSON object that is written member by member in canonical order.
struct Object {
    text: String,
    #[cfg(debug_assertions)]
    last: String,
}

impl Object {
    fn new() -> Self {
        Object {
            text: String::with_capacity(256),
            #[cfg(debug_assertions)]
            last: String::new(),
        }
    }

    fn name(&mut self, name: &str) {
        #[cfg(debug_assertions)]
        {
            assert!(
                self.text.is_empty() || utf16_order(&self.last, name).is_lt(),
                "BUG: `{name}` after `{}`",
                self.last
            );
            self.last = String::from(name);
        }
        self.text.push(if self.text.is_empty() { '{' } else { ',' });
        write_text(name, &mut self.text);
        self.text.push(':');
    }

    fn raw(&mut self, name: &str, json: &str) {
        self.name(name);
        self.text.push_str(json);
    }

    fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        write_text(text, &mut self.text);
    }

    fn integer(&mut self, name: &str, n: i64) {
        self.name(name);
        write_integer("", n, &mut self.text);
    }

    fn rate(&mut self, name: &str, part: i64, n: i64) {
        self.name(name);
        write_micro(rounded(i128::from(part) * i128::from(SCALE), n), &mut self.text);
    }

    fn confidence(&mut self, steps: i64) {
        self.name("confidence");
        confidence::write(steps, &mut self.text);
    }

    fn support(&mut self, last: &Support, n: i64) {
        self.name("last_supporting_event_id");
        self.text.push_str("\"ev_");
        hex::write(&last.event_ref.0, &mut self.text);
        self.text.push('"');
        self.integer("n_observations", n);
    }

    fn top(&mut self, name: &str, what: &str, texts: &BTreeMap<String, i64>) {
        let (text, n) = most(texts);
        if n > 0 {
            let mut inner = Object::new();
            if what < "n" {
                inner.text(what, text);
            }
            inner.integer("n", n);
            if what > "n" {
                inner.text(what, text);
            }
            self.raw(name, &inner.finish());
        }
    }

    fn finish(mut self) -> String {
        if self.text.is_empty() {
            self.text.push('{');
        }
        self.text.push('}');
        self.text
    }
}
