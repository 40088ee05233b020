//! A trail as text for people: short aligned lines.
//!
//! **Invariant:** texts from events are made printable and truncated, so that no event can
//! overwrite the text around it.

use super::Trail;
use super::attempt::Attempt;
use super::intent::{Verdict, data_of, parse};
use super::known::{ConsultationClaim, Facts, KnownFact};
use crate::Basis;
use crate::answer::{clean, counted, written};
use crate::grounding::{body, two_decimals};
use ipse_core::Ruling;
use ipse_core::event::MAX_DEPTH;
use ipse_core::json::{Object, Value};
use ipse_core::{Outcome, json_parse};
use ipse_ledger::{Note, TreeHead};

/// The maximum number of characters that are shown of a text from an event.
const SHOWN: usize = 160;
/// The maximum number of shown findings of a gate, and of shown evidence.
const LISTED: usize = 16;
impl Trail {
    /// The trail as text.
    pub fn text(&self) -> String {
        let mut page = Page::default();
        self.tell_action(&mut page);
        self.tell_intent(&mut page);
        if let Some(verdict) = &self.verdict {
            page.block("Gates");
            tell_verdict(verdict, &mut page);
        }
        if let Some(claimed) = &self.consultation {
            page.block("Facts consulted");
            tell_claim(claimed, &mut page);
            for known in &self.facts.listed {
                tell_fact(known, &mut page);
            }
            tell_place(&self.facts, &mut page);
            for id in &claimed.missing {
                page.line(1, &format!("{id}  not given by the log at that checkpoint"));
            }
        }
        self.tell_proofs(&mut page);
        page.text
    }

    fn tell_action(&self, page: &mut Page) {
        page.block("Action");
        if self.attempts.is_empty() {
            page.line(1, "none: no stored event names this intent");
        }
        for attempt in &self.attempts {
            tell_attempt(attempt, attempt.reported.event_ref == self.asked, page);
        }
        if self.left_out > 0 {
            let more = counted(self.left_out, "attempt");
            page.line(1, &format!("and {more} more that name this intent"));
        }
    }

    fn tell_intent(&self, page: &mut Page) {
        page.block("Intent");
        let Some(intent) = &self.intent else { return page.line(1, "none") };
        page.head(&format!("{} at seq {}, {}", intent.event_ref, intent.seq, intent.time));
        let Some(canonical) = &intent.canonical else {
            return page.line(1, "forgotten: its content was erased");
        };
        let value = parse(canonical);
        let nothing = Object::default();
        let data = value.as_ref().and_then(data_of).unwrap_or(&nothing);
        for (label, name) in [("skill", "skill_id"), ("target", "target_class")] {
            page.optional(label, data.get(name).map(plain));
        }
        page.optional("where", data.get("environment").map(plain));
        page.optional("planner", planner(data));
        page.optional("asked", data.get("params").map(plain));
        if self.verdict.is_none() {
            page.line(1, "unreadable: it has no verdict of the gates");
        }
    }

    fn tell_proofs(&self, page: &mut Page) {
        page.block("Proofs");
        if let Some((_, proof)) = self.proofs.first() {
            let note = Note::parse(&proof.note).ok();
            let head = note.and_then(|note| TreeHead::parse(note.text));
            let size = head.map_or_else(|| "?".to_owned(), |head| head.size.to_string());
            let events = counted(self.proofs.len() as u64, "event");
            page.line(1, &format!("{events} above under the signed tree head of {size} entries"));
        }
        if !self.unproven.is_empty() {
            let events = counted(self.unproven.len() as u64, "event");
            page.line(1, &format!("{events} under no signed tree head yet"));
        }
        for name in self.unproven.iter().take(LISTED) {
            page.line(2, &name.to_string());
        }
    }
}

/// The name and version of the planner, if the intent has them.
fn planner(data: &Object<'_>) -> Option<String> {
    let planner = data.get("planner")?.as_object()?;
    let label = |name: &str| planner.get(name).and_then(Value::as_text);
    Some(shown(&format!("{} {}", label("name")?, label("version")?)))
}

fn tell_attempt(attempt: &Attempt, asked: bool, page: &mut Page) {
    let reported = &attempt.reported;
    let mark = if asked { "  <- asked" } else { "" };
    page.head(&format!("{} at seq {}, {}{mark}", reported.event_ref, reported.seq, reported.time));
    page.field("type", &shown(&reported.event_type));
    page.optional("ended", reported.outcome.map(|outcome| Outcome::name(outcome).to_owned()));
    page.field("standing", attempt.standing.name());
    if reported.canonical.is_none() {
        page.field("content", "forgotten");
    }
    for deviation in &attempt.deviations {
        let admitted = deviation.admitted.as_deref().map_or("nothing".to_owned(), shown);
        let (field, acted) = (shown(&deviation.field), shown(&deviation.acted));
        page.field("deviates", &format!("{field}: admitted {admitted}, acted {acted}"));
    }
}

fn tell_verdict(verdict: &Verdict, page: &mut Page) {
    for gate in &verdict.gates {
        tell_gate(gate, page);
    }
    let standing = verdict.standing();
    let ruling = match verdict.ruling.map(Ruling::name) {
        Some(ruling) if ruling == standing => standing.to_owned(),
        Some(ruling) => format!("{ruling}: {standing}"),
        None => standing.to_owned(),
    };
    page.field("verdict", &ruling);
    page.optional("admitted", verdict.admitted_params.as_deref().map(shown));
    page.optional("planner", verdict.token_id.as_deref().map(shown));
    if let Some(decided) = &verdict.confirmation {
        let by = decided.token_id.as_deref().map_or("?".to_owned(), shown);
        let (word, seq, time) = (decided.decision(), decided.seq, decided.time);
        page.field("person", &format!("{word} at seq {seq}, {time}, by {by}"));
        page.field("", &decided.event_ref.to_string());
    }
}

/// Writes a gate's result and its findings.
fn tell_gate(gate: &str, page: &mut Page) {
    let value = json_parse::parse(gate.as_bytes(), MAX_DEPTH).ok();
    let Some(gate) = value.as_ref().and_then(Value::as_object) else {
        return page.line(1, "the result of a gate cannot be read");
    };
    let text = |name: &str| gate.get(name).map_or("?".to_owned(), plain);
    page.field(&text("gate"), &text("result"));
    let Some(Value::Array(findings)) = gate.get("findings") else { return };
    for finding in findings.iter().take(LISTED).filter_map(Value::as_object) {
        let part = |name: &str, before: &str| {
            finding.get(name).map_or(String::new(), |value| format!("{before}{}", plain(value)))
        };
        let what = part("code", "") + &part("param", " of ") + &part("asked", ": asked ");
        page.field("", &(what + &part("given", ", given ") + &part("rule", ", by ")));
        page.optional("", finding.get("detail").map(plain));
    }
}

fn tell_claim(claimed: &ConsultationClaim, page: &mut Page) {
    let id = claimed.id.as_deref().unwrap_or("unreadable: not a consultation");
    page.field("consulted", id);
    page.optional("at", claimed.checkpoint.map(|seq| format!("checkpoint {seq}")));
    page.optional("basis", claimed.basis.as_deref().map(basis));
    page.field("recorded", &shown(&claimed.recorded));
    page.field("now", claimed.now.name());
}

/// The part of a consultation that the planner gave.
fn basis(name: &str) -> String {
    match Basis::parse(name) {
        Some(Basis::Query) => "query: ipse derived the facts from checkpoint and query".to_owned(),
        None => format!("unknown: {}", shown(name)),
    }
}

/// Writes which of the facts are on this page, unless it has all of them.
fn tell_place(facts: &Facts, page: &mut Page) {
    let (first, last) = (facts.before + 1, facts.before + facts.listed.len());
    if facts.listed.len() == facts.total {
        return;
    }
    let place = match (facts.listed.is_empty(), facts.next_page) {
        (true, _) => format!("no facts on this page, {} in total", facts.total),
        (false, None) => format!("facts {first} to {last} of {}", facts.total),
        (false, Some(next)) => {
            format!("facts {first} to {last} of {}; continued on page {next}", facts.total)
        }
    };
    page.line(1, &place);
}

fn tell_fact(known: &KnownFact, page: &mut Page) {
    let fact = &known.fact;
    page.line(1, &format!("{}  {}", known.id, fact.fact.key.kind()));
    page.line(2, &shown(fact.fact.key.text()));
    let (confidence, n) = (two_decimals(fact.confidence), fact.n_observations);
    page.line(2, &shown(&body(fact)));
    page.line(2, &format!("confidence = {confidence}, n_observations = {n}"));
    for it in known.evidence.iter().take(LISTED) {
        page.line(2, &format!("{} at seq {}, {}", it.event_ref, it.seq, it.time));
    }
    let listed = known.evidence.len().min(LISTED) as u64;
    if listed < n {
        page.line(2, &format!("and {} more", n - listed));
    }
}

/// A text of an event, made printable and short.
fn shown(text: &str) -> String {
    let mut short = clean(&text.chars().take(SHOWN).collect::<String>());
    if text.chars().nth(SHOWN).is_some() {
        short.push('…');
    }
    short
}

/// A value of an event: a text without its quotes, anything else as JSON.
fn plain(value: &Value<'_>) -> String {
    match value {
        Value::Text(text) => shown(text),
        value => shown(&written(value)),
    }
}

/// Lines under headings.
#[derive(Default)]
struct Page {
    text: String,
    /// The indentation of fields.
    depth: usize,
}

impl Page {
    fn block(&mut self, heading: &str) {
        let space = if self.text.is_empty() { "" } else { "\n" };
        self.text.push_str(&format!("{space}{heading}\n"));
        self.depth = 1;
    }

    /// Writes a line as the head of the fields that follow.
    fn head(&mut self, text: &str) {
        self.line(1, text);
        self.depth = 2;
    }

    fn line(&mut self, depth: usize, text: &str) {
        self.text.push_str(&format!("{}{}\n", "  ".repeat(depth), text.trim_end()));
    }

    fn field(&mut self, label: &str, text: &str) {
        self.line(self.depth, &format!("{label:<10} {text}"));
    }

    fn optional(&mut self, label: &str, text: Option<String>) {
        if let Some(text) = text {
            self.field(label, &text);
        }
    }
}
