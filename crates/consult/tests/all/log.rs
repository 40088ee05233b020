//! A log in memory, with a signed tree head over all or a part of it.

use ipse_consolidate::{RuleSet, Rules, f, with_rules};
use ipse_consult::facts::{Filter, ScoredFact};
use ipse_consult::trail::{
    EventRecord, EvidenceQuery, Found, Listing, Record, Trail, names_intent,
};
use ipse_consult::{Consultation, Damaged};
use ipse_core::{
    Admitted, Columns, Event, EventRef, EvidenceKey, Fact, FactKey, Identity, Seq, Time,
};
use ipse_core::{is_housekeeping, json::Members};
use ipse_door::{Origin, admit};
use ipse_ledger::tree::{Edge, Hash, Nodes, inclusion};
use ipse_ledger::{Entry, NoteSigner, ProofFile, SecretKey, TreeHead};
use serde_json::Value;
use std::cell::RefCell;
use std::sync::Arc;

pub const ME: Identity = Identity([7; 32]);

/// One position.
struct Row {
    event: Admitted,
    gone: bool,
}

#[derive(Default)]
pub struct Log {
    rows: Vec<Row>,
    /// The positions of a forgotten event and of its `forget` event.
    forgets: Vec<(u64, u64)>,
    /// The number of events under the signed tree head; `None` for all.
    pub signed: Option<u64>,
    /// The recorded method calls.
    pub asked: RefCell<Vec<&'static str>>,
}

pub fn time(n: u64) -> Time {
    let first = Time::parse("2026-05-06T10:00:00Z").unwrap().micros();
    Time::from_micros(first + n.cast_signed() * 60_000_000).unwrap()
}

pub fn signer() -> NoteSigner {
    NoteSigner::new(&TreeHead::origin_of(&ME), SecretKey::from_seed(&[1; 32])).unwrap()
}

impl Log {
    /// A log without a signed tree head.
    pub fn unsigned() -> Self {
        Log { signed: Some(0), ..Log::default() }
    }

    pub fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    pub fn push(&mut self, source: &str, id: &str, event_type: &str, data: &str) -> EventRef {
        let n = self.len() + 1;
        let bytes = format!(
            r#"{{"id":"{id}","source":"{source}","type":"{event_type}","time":"{}",
            "data":{data}}}"#,
            time(n)
        );
        let event = admit(bytes.as_bytes(), Origin::House, || [n as u8; 16]).unwrap();
        let name = event.event_ref;
        self.rows.push(Row { event, gone: false });
        name
    }

    /// An attempt of a producer.
    pub fn attempt(&mut self, data: &str) -> EventRef {
        let id = format!("{}", self.len() + 1);
        self.push("arm", &id, "execution_result", data)
    }

    pub fn intent(&mut self, data: &str) -> EventRef {
        let id = format!("intent:{:032x}", self.len() + 1);
        self.push("ipse", &id, "intent", data)
    }

    /// An intent to grasp with this verdict, and 40 N admitted.
    pub fn grasp(&mut self, verdict: &str) -> EventRef {
        self.intent(&grasp(verdict, None))
    }

    pub fn decide(&mut self, intent: &EventRef, decision: &str) -> EventRef {
        let data = format!(
            r#"{{"intent":"{intent}","decision":"{decision}","token_id":"{}"}}"#,
            "ab".repeat(16)
        );
        self.push("ipse", &format!("confirm:{intent}"), "ipse.confirmation", &data)
    }

    pub fn forget(&mut self, name: &EventRef) -> EventRef {
        let seq = self.find(name).unwrap().unwrap();
        self.rows[seq.0 as usize - 1].gone = true;
        let n = self.len() + 1;
        self.forgets.push((seq.0, n));
        let data = format!(r#"{{"event_refs":["{name}"]}}"#);
        self.push("ipse", &format!("forget:{n}"), "forget", &data)
    }

    /// The consultation of a planner at the end of the log.
    pub fn consult(&self, filter: &Filter) -> Consultation {
        let facts =
            filter.choose(self.facts_at(Seq(self.len()), Rules::default()).unwrap()).unwrap();
        Consultation::of(&ME, Seq(self.len()), "v1", filter, &facts)
    }

    pub fn facts(&self) -> Vec<Arc<ScoredFact>> {
        Filter::default().choose(self.facts_at(Seq(self.len()), Rules::default()).unwrap()).unwrap()
    }

    pub fn trail(&self, name: &EventRef) -> Box<Trail> {
        match Trail::of(self, &ME, name, Listing::default()).unwrap() {
            Found::Action(trail) => trail,
            other => panic!("{other:?}"),
        }
    }

    pub fn json(&self, name: &EventRef) -> Value {
        serde_json::from_str(&self.trail(name).json()).unwrap()
    }

    fn entry(&self, seq: Seq) -> Entry {
        let Admitted { event_ref, event_type, time, digest, .. } =
            self.rows[seq.0 as usize - 1].event.clone();
        Entry { seq, event_ref, time, event_type, digest }
    }

    fn typed(&self, up_to: Seq) -> Vec<(Seq, &Admitted)> {
        let rows = (1..).map(Seq).zip(&self.rows).take(up_to.0 as usize);
        rows.filter(|(_, row)| !row.gone).map(|(seq, row)| (seq, &row.event)).collect()
    }
}

/// The data of such an intent.
pub fn grasp(verdict: &str, consultation: Option<&Consultation>) -> String {
    let admitted = r#"{"force_n":40,"soft":true,"tool":"pad"}"#;
    let (id, json) = (consultation.map(Consultation::id), consultation.map(|it| &it.json));
    Members::new()
        .text("skill_id", "manipulation.grasp")
        .text("target_class", "glass_cup")
        .text("environment", "ward3")
        .raw("params", r#"{"force_n":60,"soft":true,"tool":"pad"}"#)
        .text("token_id", &"cd".repeat(16))
        .text("verdict", verdict)
        .optional("admitted_params", (verdict != "denied").then_some(admitted))
        .raw(
            "gates",
            r#"[{"findings":[],"gate":"admission","result":"passed"},
            {"findings":[{"asked":60,"code":"above_maximum","detail":"force_n is lowered to 40",
            "given":40,"param":"force_n","rule":"skills.\"manipulation.grasp\".clamp[0]"}],
            "gate":"policy","result":"clamped"},
            {"findings":[],"gate":"contract","result":"passed"},
            {"gate":"audit","result":"verified"}]"#,
        )
        .optional("consultation", json)
        .optional("consultation_id", id.map(|id| format!("\"{id}\"")))
        .finish()
}

impl Nodes for Log {
    type Error = Damaged;

    fn node(&self, level: u32, index: u64) -> Result<Hash, Damaged> {
        let mut edge = Edge::default();
        for n in index << level..(index + 1) << level {
            edge.push(self.entry(Seq(n + 1)).hash(), |_, _, _| {});
        }
        Ok(edge.root())
    }
}

impl Record for Log {
    type Error = Damaged;

    fn find(&self, name: &EventRef) -> Result<Option<Seq>, Damaged> {
        let place = self.rows.iter().position(|row| row.event.event_ref == *name);
        Ok(place.map(|place| Seq(place as u64 + 1)))
    }

    fn event(&self, seq: Seq) -> Result<Option<EventRecord>, Damaged> {
        let Some(row) = self.rows.get(seq.0 as usize - 1) else { return Ok(None) };
        let Admitted { event_ref, event_type, time, canonical, columns, .. } = row.event.clone();
        let outcome = Columns::decode(&columns).unwrap().outcome.filter(|_| !row.gone);
        let canonical = (!row.gone).then_some(canonical);
        Ok(Some(EventRecord { seq, event_ref, event_type, time, outcome, canonical }))
    }

    fn rules_at(&self, _: Seq) -> Result<Option<Rules>, Damaged> {
        Ok(Some(Rules::default()))
    }

    fn facts_at(&self, seq: Seq, rules: Rules) -> Result<Vec<Fact>, Damaged> {
        self.asked.borrow_mut().push("facts_at");
        let events = self.typed(seq);
        let typed = events.iter().map(|(_, event)| {
            Event::of_row(event.event_ref, event.time, &event.event_type, &event.columns).unwrap()
        });
        Ok(with_rules!(rules, |rules| f(rules, typed)).unwrap())
    }

    fn evidence(&self, behind: &EvidenceQuery<'_>) -> Result<Vec<Vec<Seq>>, Damaged> {
        let EvidenceQuery { rules, facts, up_to, wanted } = *behind;
        let supports = |event: &Admitted, fact: &EvidenceKey| {
            let Admitted { event_ref, time, event_type, columns, .. } = event;
            let event = Event::of_row(*event_ref, *time, event_type, columns).unwrap();
            let supported = |key: &FactKey, supports: bool| supports && *key == fact.key;
            fact.counts(*time)
                && with_rules!(rules, |rules| {
                    let parts = rules.contributions(&event).unwrap_or_default();
                    parts.iter().any(|part| supported(&part.key, part.supports))
                })
        };
        let newest = |fact: &EvidenceKey| {
            let all = self.typed(up_to).into_iter().rev();
            all.filter(|(_, event)| supports(event, fact)).map(|it| it.0).take(wanted).collect()
        };
        Ok(facts.iter().map(newest).collect())
    }

    fn naming(&self, intent: &EventRef, after: Seq) -> Result<Vec<Seq>, Damaged> {
        self.asked.borrow_mut().push("naming");
        let all = self.typed(Seq(self.len())).into_iter();
        let named =
            all.filter(|(seq, event)| *seq > after && names_intent(&event.canonical, intent));
        Ok(named.map(|it| it.0).collect())
    }

    fn forgotten_since(&self, seq: Seq) -> Result<bool, Damaged> {
        let of_facts = |seq: u64| !is_housekeeping(&self.rows[seq as usize - 1].event.event_type);
        Ok(self.forgets.iter().any(|(of, by)| *of <= seq.0 && *by > seq.0 && of_facts(*of)))
    }

    fn proof(&self, seq: Seq) -> Result<Option<(Entry, ProofFile)>, Damaged> {
        let size = self.signed.unwrap_or(self.len());
        let Some(hashes) = inclusion(self, seq.0 - 1, size)? else { return Ok(None) };
        let root = ipse_ledger::tree::root(self, size)?;
        let head = TreeHead { origin: TreeHead::origin_of(&ME), size, root };
        let note = signer().sign(&head.text()).unwrap();
        Ok(Some((self.entry(seq), ProofFile { index: seq.0 - 1, hashes, note })))
    }
}
