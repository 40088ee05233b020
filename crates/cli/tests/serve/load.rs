//! Producers that send without pause, and keep a record of acknowledgements outside the server.

use super::chance::Chance;
use super::client::{Answer, Connection, Request};
use super::events::{BATCH, LINES, ONE, batch, digest, event, lines, ref_of};
use super::server::{Agent, Server};
use super::store::Store;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// One request: its events, and the acknowledged positions, if a response came back.
#[derive(Clone)]
pub(crate) struct SentRequest {
    pub(crate) events: Vec<String>,
    pub(crate) seqs: Option<Vec<u64>>,
}

/// A producer with its own source.
pub(crate) struct Producer {
    source: String,
    token: String,
    chance: Chance,
    next: u64,
    /// The request without a response, to be sent again.
    pending: Option<Vec<String>>,
}

impl Producer {
    pub(crate) fn new(source: &str, token: &str, chance: Chance) -> Self {
        let (source, token) = (source.to_string(), token.to_string());
        Producer { source, token, chance, next: 0, pending: None }
    }

    /// Sends until the connection breaks or the load must stop.
    pub(crate) fn send(&mut self, address: SocketAddr, stop: &AtomicBool) -> Vec<SentRequest> {
        let mut all = Vec::new();
        let Ok(mut connection) = Connection::open(address) else { return all };
        while !stop.load(Ordering::Relaxed) {
            let again = self.pending.take();
            let events = again.unwrap_or_else(|| self.fresh());
            let request = self.request(&events);
            match connection.ask(&request).ok().map(|answer| seqs(&answer, &events)) {
                Some(seqs) => all.push(SentRequest { events, seqs: Some(seqs) }),
                None => {
                    self.pending = Some(events.clone());
                    all.push(SentRequest { events, seqs: None });
                    return all;
                }
            }
            std::thread::sleep(Duration::from_micros(self.chance.below(3000)));
        }
        all
    }

    fn fresh(&mut self) -> Vec<String> {
        let count = [1, 1, 2, 7][usize::try_from(self.chance.below(4)).unwrap()];
        let mut events = Vec::new();
        for _ in 0..count {
            self.next += 1;
            let skill = format!("skill{}", self.chance.below(20));
            let success = self.chance.below(3) > 0;
            events.push(event(&self.source, &self.next.to_string(), &skill, success));
        }
        events
    }

    fn request(&mut self, events: &[String]) -> Request {
        let request = match (events, self.chance.below(2)) {
            ([one], 0) => Request::events(ONE, one.clone()),
            (_, 0) => Request::events(BATCH, batch(events)),
            _ => Request::events(LINES, lines(events)),
        };
        request.token(&self.token)
    }
}

/// The positions in a response, which must be a success.
#[track_caller]
fn seqs(answer: &Answer, events: &[String]) -> Vec<u64> {
    let json = answer.json();
    let results = match json.get("results") {
        Some(results) => results.as_array().unwrap().clone(),
        None => vec![json],
    };
    assert_eq!(results.len(), events.len(), "{results:?}");
    let seq = |(result, event): (&Value, &String)| {
        let known = ["appended", "duplicate"].map(Value::from).contains(&result["result"]);
        assert!(known && matches!(answer.status, 200 | 201), "{answer:?}");
        assert_eq!(result["event_ref"], ref_of(event).as_str());
        result["seq"].as_u64().unwrap()
    };
    results.iter().zip(events).map(seq).collect()
}

/// Everything that was sent and acknowledged, and the position up to which the log was compared.
#[derive(Default)]
pub(crate) struct Outside {
    sent: BTreeMap<String, String>,
    pub(crate) acknowledged: BTreeMap<u64, String>,
    pub(crate) unanswered: usize,
    compared: u64,
}

impl Outside {
    pub(crate) fn note(&mut self, all: Vec<SentRequest>) {
        for one in all {
            for event in &one.events {
                self.sent.insert(ref_of(event), event.clone());
            }
            let Some(seqs) = &one.seqs else {
                self.unanswered += 1;
                continue;
            };
            for (seq, event) in seqs.iter().zip(&one.events) {
                let before = self.acknowledged.insert(*seq, ref_of(event));
                assert!(before.is_none_or(|before| before == ref_of(event)), "seq {seq} is two");
            }
        }
    }

    /// Reads the log from the server, from the last compared position on.
    pub(crate) fn compare(&mut self, server: &Server, agent: &Agent) {
        loop {
            let path = format!("/api/agent/log?limit=1000&after={}", self.compared);
            let page = server.get(&path, &agent.operator).ok().json();
            for entry in page["events"].as_array().unwrap() {
                let text = |name: &str| entry[name].as_str().unwrap();
                self.one(entry["seq"].as_u64().unwrap(), text("event_ref"), text("digest"));
            }
            if page.get("next_after").is_none() {
                break;
            }
        }
        let beyond = self.acknowledged.range(self.compared + 1..).next();
        assert!(
            beyond.is_none(),
            "acknowledged and lost: {beyond:?}, the log ends at {}",
            self.compared
        );
    }

    /// Checks one entry: the next one, as sent, at its acknowledged position.
    fn one(&mut self, seq: u64, event_ref: &str, found: &str) {
        self.compared += 1;
        assert_eq!(seq, self.compared, "the log is dense");
        if let Some(acknowledged) = self.acknowledged.get(&seq) {
            assert_eq!(acknowledged, event_ref, "acknowledged as seq {seq}");
        }
        if let Some(sent) = self.sent.get(event_ref) {
            assert_eq!(found, digest(sent), "seq {seq} is as it was sent");
        }
    }

    /// Checks the rows: each stored event is there once and byte for byte.
    pub(crate) fn compare_rows(&self, store: &Store) {
        let db = rusqlite::Connection::open(&store.path).unwrap();
        let sql = "SELECT seq, event_ref, type, payload_json FROM episodic_events ORDER BY seq";
        let mut statement = db.prepare(sql).unwrap();
        let mut rows = statement.query([]).unwrap();
        let mut found = BTreeMap::new();
        while let Some(row) = rows.next().unwrap() {
            let (seq, name): (i64, String) = (row.get(0).unwrap(), row.get(1).unwrap());
            let seq = u64::try_from(seq).unwrap();
            let (kind, payload): (String, String) = (row.get(2).unwrap(), row.get(3).unwrap());
            assert_eq!(seq, found.len() as u64 + 1, "the log is dense");
            if kind == "execution_result" {
                assert_eq!(Some(&payload), self.sent.get(&name), "seq {seq}");
            }
            assert_eq!(found.insert(name.clone(), seq), None, "{name} is there twice");
        }
        for (seq, name) in &self.acknowledged {
            assert_eq!(found.get(name), Some(seq), "acknowledged and not there: {name}");
        }
    }
}
