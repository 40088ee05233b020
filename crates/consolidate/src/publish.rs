//! Turns a sum into a value: the canonical JSON of each kind of fact.
//!
//! **Invariant:** members are written in canonical order, directly into one text; a debug build
//! checks the order.

use crate::confidence::{self, BASE, wilson};
use crate::histogram::{Histogram, write_integer};
use crate::recommend::{Recommended, UsedDays};
use crate::v1::{Observed, PROPERTY};
use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use ipse_core::decimal::{SCALE, rounded, write_digits, write_micro};
use ipse_core::json::{utf16_order, write_text};
use ipse_core::{FactKind, Outcome, Support, hex};

/// Parameters with fewer usable values do not count as competitors.
pub(crate) const COMPETING_FROM: i64 = 3;

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
        // `v1` has no facts of this kind.
        FactKind::SkillAdvice => 0,
    }
}

/// The value of a sum with at least one observation.
pub(crate) fn value(kind: FactKind, tally: &Observed, last: &Support, version: &str) -> String {
    let mut out = Object::new();
    let n = observations(kind, tally);
    match kind {
        FactKind::SkillSuccessRate => skill_success_rate(tally, n, last, version, &mut out),
        FactKind::ZoneRisk => zone_risk(tally, n, last, version, &mut out),
        FactKind::InteractionPattern | FactKind::ObjectProperty | FactKind::SkillAdvice => {
            undated(kind, tally, last, version, &mut out);
        }
    }
    out.finish()
}

/// Writes the value of a kind that is the same in all rule sets.
pub(crate) fn undated(
    kind: FactKind,
    tally: &Observed,
    last: &Support,
    version: &str,
    out: &mut Object,
) {
    let n = observations(kind, tally);
    match kind {
        FactKind::InteractionPattern => interaction_pattern(tally, n, last, version, out),
        _ => object_property(tally, n, last, version, out),
    }
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
        let recommended = recommended.map(|recommended| (recommended, None));
        params.push(Param { name, histogram: Cow::Borrowed(histogram), recommended });
    }
    out.confidence(confidence);
    out.integer("failures", t.failures);
    out.support(last, n);
    write_params(params, out);
    out.text("rule_version", version);
    out.rate("success_rate", t.successes, n);
    out.integer("successes", t.successes);
    out.top("top_failure_reason", "reason", &t.texts);
    out.uncounted(&t.uncounted);
}

fn interaction_pattern(t: &Observed, n: i64, last: &Support, version: &str, out: &mut Object) {
    out.confidence(wilson(n, n, BASE));
    out.support(last, n);
    write_params(t.numbers.iter().map(|(name, h)| Param::plain(name, h)).collect(), out);
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

/// A parameter as it is published.
pub(crate) struct Param<'t> {
    pub(crate) name: &'t str,
    pub(crate) histogram: Cow<'t, Histogram>,
    /// The recommendation; under `v2` also the days that it uses.
    pub(crate) recommended: Option<(Recommended, Option<UsedDays>)>,
}

impl<'t> Param<'t> {
    fn plain(name: &'t str, histogram: &'t Histogram) -> Self {
        Param { name, histogram: Cow::Borrowed(histogram), recommended: None }
    }
}

pub(crate) fn write_params(mut params: Vec<Param<'_>>, out: &mut Object) {
    if params.is_empty() {
        return;
    }
    params.sort_by(|a, b| utf16_order(a.name, b.name));
    let mut inner = Object::new();
    for Param { name, histogram, recommended } in params {
        inner.name(name);
        histogram.write(&mut inner.text, |out| {
            if let Some((recommended, used)) = recommended {
                recommended.write(used.as_ref(), out);
            }
        });
    }
    out.raw("params", &inner.finish());
}

/// The most common text: highest count, then smallest by UTF-8 bytes.
fn most(texts: &BTreeMap<String, i64>) -> (&str, i64) {
    most_of(texts.iter().map(|(text, n)| (text.as_str(), *n)))
}

/// The same for texts in ascending order.
pub(crate) fn most_of<'t>(texts: impl Iterator<Item = (&'t str, i64)>) -> (&'t str, i64) {
    texts.fold(("", 0), |best, (text, n)| if n > best.1 { (text, n) } else { best })
}

/// A JSON object that is written member by member in canonical order.
pub(crate) struct Object {
    text: String,
    #[cfg(debug_assertions)]
    last: String,
}

impl Object {
    pub(crate) fn new() -> Self {
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

    pub(crate) fn raw(&mut self, name: &str, json: &str) {
        self.name(name);
        self.text.push_str(json);
    }

    pub(crate) fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        write_text(text, &mut self.text);
    }

    pub(crate) fn integer(&mut self, name: &str, n: i64) {
        self.name(name);
        write_integer("", n, &mut self.text);
    }

    pub(crate) fn count(&mut self, name: &str, n: usize) {
        self.name(name);
        write_digits(n as u64, 1, &mut self.text);
    }

    pub(crate) fn rate(&mut self, name: &str, part: i64, n: i64) {
        self.name(name);
        write_micro(rounded(i128::from(part) * i128::from(SCALE), n), &mut self.text);
    }

    pub(crate) fn confidence(&mut self, steps: i64) {
        self.steps("confidence", steps);
    }

    /// A number in steps of 1/10⁴.
    pub(crate) fn steps(&mut self, name: &str, steps: i64) {
        self.name(name);
        confidence::write(steps, &mut self.text);
    }

    pub(crate) fn object(&mut self, name: &str, fill: impl FnOnce(&mut Object)) {
        let mut inner = Object::new();
        fill(&mut inner);
        self.raw(name, &inner.finish());
    }

    fn support(&mut self, last: &Support, n: i64) {
        self.support_id(last);
        self.integer("n_observations", n);
    }

    pub(crate) fn support_id(&mut self, last: &Support) {
        self.name("last_supporting_event_id");
        self.text.push_str("\"ev_");
        hex::write(&last.event_ref.0, &mut self.text);
        self.text.push('"');
    }

    /// The attempts with another outcome, if there are any.
    pub(crate) fn uncounted(&mut self, uncounted: &BTreeMap<Outcome, i64>) {
        if uncounted.is_empty() {
            return;
        }
        let mut counts: Vec<(&str, i64)> =
            uncounted.iter().map(|(outcome, n)| (outcome.name(), *n)).collect();
        counts.sort_unstable();
        self.object("uncounted", |inner| {
            counts.iter().for_each(|(name, n)| inner.integer(name, *n));
        });
    }

    pub(crate) fn top(&mut self, name: &str, what: &str, texts: &BTreeMap<String, i64>) {
        self.most_common(name, what, most(texts));
    }

    /// The most common text and its count, if there is one.
    pub(crate) fn most_common(&mut self, name: &str, what: &str, (text, n): (&str, i64)) {
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

    pub(crate) fn finish(mut self) -> String {
        if self.text.is_empty() {
            self.text.push('{');
        }
        self.text.push('}');
        self.text
    }
}
