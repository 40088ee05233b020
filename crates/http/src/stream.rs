//! `GET /api/agent/stream`: a log as server-sent events.
//!
//! **Invariants**
//! - The stream follows the log as it grows. The id of an event is its position, so a client that
//!   resumes with `Last-Event-ID` misses no event and gets no duplicate.
//! - A client that does not read delays no other client.
//! - The stream ends when the token is revoked or expires. When a client closes its connection, its
//!   place is free at once.

use crate::blocking;
use crate::places::Peer;
use crate::problem::Problem;
use crate::query::{Query, whole_number};
use crate::service::{Caller, Service};
use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use ipse_access::Role;
use ipse_core::Seq;
use ipse_core::event::{ACT, FORGET, PASS_RECORD, RULES};
use ipse_core::intent::{CONFIRMATION, INTENT};
use ipse_core::json::Members;
use ipse_inspect::{DriftReport, LogEntry, SignedHead};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;

/// Entries per read of the log.
const PAGE: u64 = 256;
/// Events that are buffered for a slow client.
const WAITING: usize = 256;
/// The interval at which the token of a stream is checked.
const WELCOME: Duration = Duration::from_secs(1);

/// Headers of a stream. Without the first, nginx would buffer it and deliver nothing for long. No
/// request can follow on the connection, because nothing reads from it while it is watched.
const HEADERS: [(HeaderName, HeaderValue); 2] = [
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    (CONNECTION, HeaderValue::from_static("close")),
];

type Sender = mpsc::Sender<Result<Event, Infallible>>;

pub(crate) async fn stream(
    State(service): State<Arc<Service>>,
    Extension(caller): Extension<Caller>,
    peer: Option<Extension<Arc<Peer>>>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &["after"])?;
    let after = query.seq("after")?;
    let look = caller.agent.look.clone();
    let head = blocking(move || look.head()).await?;
    let last = begin(&headers, after, head)?;
    let full = |_| Problem::too_many("too many streams are open; try again");
    let places = [&caller.agent.streams, &service.streams];
    let places = places.map(|places| places.clone().try_acquire_owned().map_err(full));
    let (sender, receiver) = mpsc::channel(WAITING);
    let [of_agent, of_all] = places;
    let places = [of_agent?, of_all?];
    tokio::spawn(async move {
        follow(service, caller, last, sender).await;
        drop(places);
    });
    if let Some(Extension(peer)) = peer {
        peer.begin_stream();
    }
    let alive = KeepAlive::new().interval(Duration::from_secs(15));
    let events = Sse::new(ReceiverStream::new(receiver)).keep_alive(alive);
    Ok((HEADERS, events).into_response())
}

/// The position after which a stream begins. `Last-Event-ID` overrides `after`: a browser that
/// reconnects sends the header, and the URL with `after` stays the same.
fn begin(headers: &HeaderMap, after: Option<Seq>, head: Seq) -> Result<Seq, Problem> {
    let Some(value) = headers.get("last-event-id") else {
        let detail = "`after` is beyond the last position of this log";
        return match after {
            Some(after) if after > head => Err(Problem::bad_request("bad_last_event_id", detail)),
            after => Ok(after.unwrap_or(head)),
        };
    };
    let seq = value.to_str().ok().and_then(whole_number).map(Seq);
    let detail = "`Last-Event-ID` must be a position in this log";
    seq.filter(|seq| *seq <= head).ok_or_else(|| Problem::bad_request("bad_last_event_id", detail))
}

/// Sends the events after a position until the client is gone or its token is no longer valid.
async fn follow(service: Arc<Service>, caller: Caller, mut last: Seq, sender: Sender) {
    let mut grown = caller.agent.grown.subscribe();
    let mut alarm = caller.agent.alarm.subscribe();
    alarm.mark_unchanged();
    let mut size = 0;
    loop {
        grown.mark_unchanged();
        // A planner may not read the report either.
        let turned = caller.role() != Role::Planner && alarm.has_changed().unwrap_or(false);
        let drift = alarm.borrow_and_update().clone().filter(|_| turned);
        let (look, gate, asking) = (caller.agent.look.clone(), service.clone(), caller.clone());
        let looked = blocking(move || Ok((gate.is_welcome(&asking)?, look.news(last, PAGE)?)));
        let Ok((true, (entries, head))) = looked.await else { return };
        let reached = last.0 + entries.len() as u64;
        let head = head.filter(|head| head.size > size && head.size <= reached);
        let others = head.as_ref().map(signed).into_iter().chain(drift.as_deref().map(drifted));
        for event in entries.iter().map(reported).chain(others) {
            if sender.send(Ok(event)).await.is_err() {
                return;
            }
        }
        (last, size) = (Seq(reached), head.map_or(size, |head| head.size));
        if entries.is_empty() && !waited(&service, &caller, &mut grown, &sender).await {
            return;
        }
    }
}

/// Waits until the log may have grown, or the drift alarm has turned. Returns false if the stream
/// must end: the client is gone, its token is no longer valid, or the server shuts down.
async fn waited(
    service: &Service,
    caller: &Caller,
    grown: &mut watch::Receiver<u64>,
    sender: &Sender,
) -> bool {
    let mut closing = service.closing();
    loop {
        tokio::select! {
            // Check for growth first: a stream that ends has sent all acknowledged events.
            biased;
            _ = grown.changed() => return true,
            () = tokio::time::sleep(WELCOME) => {}
            () = sender.closed() => return false,
            _ = closing.wait_for(|closing| *closing) => return false,
        }
        if !service.is_welcome(caller).unwrap_or(false) {
            return false;
        }
    }
}

/// A tree head. It has no id: it is sent when it is newer than the last one that was sent, and a
/// client that resumes gets the newest.
fn signed(head: &SignedHead) -> Event {
    let data = Members::new().raw("tree_size", head.size).text("note", &head.note);
    Event::default().event("tree_head").data(data.finish())
}

/// A report with which the drift alarm turned on or off. It has no id: it is not in the log.
fn drifted(report: &DriftReport) -> Event {
    Event::default().event("drift").data(report.json())
}

fn reported(entry: &LogEntry) -> Event {
    let name = match entry.event_type.as_str() {
        PASS_RECORD => "consolidation",
        FORGET => "forget",
        RULES => "rules",
        ACT => "act",
        INTENT => "intent",
        CONFIRMATION => "confirmation",
        _ => "appended",
    };
    // An act names keys and tokens, which a planner need not know.
    let content = entry.data.as_ref().filter(|_| entry.event_type != ACT);
    let data = Members::new()
        .raw("seq", entry.seq)
        .text("event_ref", &entry.event_ref.to_string())
        .text("type", &entry.event_type)
        .text("time", &entry.time.to_string())
        .optional("data", content);
    Event::default().id(entry.seq.to_string()).event(name).data(data.finish())
}
