//! `GET /api/agent/semantic`: the facts that a planner grounds its next intent in.
//!
//! **Invariants:** an answer is of one checkpoint, from a table that never changes; reading writes
//! nothing and waits for no writer.

use crate::answers::Answer;
use crate::blocking;
use crate::problem::Problem;
use crate::query::Query;
use crate::service::{Agent, Caller, Service};
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ipse_core::{FactKind, Seq};
use ipse_engine::facts::{Consulted, Filter};
use ipse_engine::grounding::grounding;
use ipse_engine::{Known, answer};
use std::sync::Arc;

const KNOWN: [&str; 8] =
    ["skill_id", "target_class", "env", "zone", "kind", "limit", "as_of", "format"];
/// Facts of an answer if nobody says how many, and at most.
const LIMIT: u64 = 20;
const MAX_LIMIT: u64 = 1000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Grounding,
}

struct Asked {
    filter: Filter,
    as_of: Option<Seq>,
    format: Format,
}

impl Asked {
    fn read(question: &str) -> Result<Self, Problem> {
        let query = Query::read(Some(question), &KNOWN)?;
        let text = |name: &str| query.text(name).map(str::to_owned);
        let limit = query.number("limit", 1..=MAX_LIMIT)?.unwrap_or(LIMIT);
        let kind = query.text("kind").map(|name| FactKind::parse(name).ok_or_else(bad_kind));
        let format = match query.text("format") {
            None | Some("json") => Format::Json,
            Some("grounding") => Format::Grounding,
            Some(_) => {
                let detail = "`format` must be json or grounding";
                return Err(Problem::bad_request("bad_parameter", detail));
            }
        };
        let filter = Filter {
            skill: text("skill_id"),
            target: text("target_class"),
            environment: text("env"),
            zone: text("zone"),
            kind: kind.transpose()?,
            limit: Some(usize::try_from(limit).unwrap_or(usize::MAX)),
        };
        Ok(Asked { filter, as_of: query.seq("as_of")?, format })
    }
}

fn bad_kind() -> Problem {
    let kinds = FactKind::ALL.map(FactKind::name).join(", ");
    Problem::bad_request("bad_parameter", format!("`kind` must be one of {kinds}"))
}

pub(crate) async fn semantic(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response, Problem> {
    let (head, _) = request.into_parts();
    let caller = head.extensions.get::<Caller>().expect("BUG: whoever is let in is a caller");
    let (agent, question) = (&caller.agent, head.uri.query().unwrap_or_default());
    let asked = Asked::read(question)?;
    let known = agent.memory.known();
    let etag = etag(&service, &agent.name, &known, asked.as_of);
    let matches = |value: &HeaderValue| value.to_str().is_ok_and(|text| names(text, &etag));
    if head.headers.get_all(IF_NONE_MATCH).iter().any(matches) {
        return Ok((StatusCode::NOT_MODIFIED, fresh(&etag)).into_response());
    }
    let kept = if asked.as_of.is_none() { agent.answers.get(&known, question) } else { None };
    let (kind, body) = match (kept, asked.as_of) {
        (Some(kept), _) => kept,
        (None, None) => {
            let facts = known.choose(&asked.filter);
            let answer = written(agent, &known, known.checkpoint(), &asked, &facts);
            agent.answers.keep(&known, question, &answer);
            answer
        }
        (None, Some(seq)) => {
            let (look, filter) = (agent.look.clone(), asked.filter.clone());
            let _turn = service.turn().await;
            let facts = blocking(move || look.as_of(seq, &filter)).await?;
            let beyond = || Problem::not_found(format!("the log does not reach seq {seq} yet"));
            written(agent, &known, seq, &asked, &facts.ok_or_else(beyond)?)
        }
    };
    Ok(([(CONTENT_TYPE, HeaderValue::from_static(kind))], fresh(&etag), body).into_response())
}

fn written(
    agent: &Agent,
    known: &Known,
    checkpoint: Seq,
    asked: &Asked,
    facts: &[Arc<Consulted>],
) -> Answer {
    let (identity, version) = (&agent.identity, answer::rule_version(known.rule_version()));
    match asked.format {
        Format::Grounding => {
            ("text/plain; charset=utf-8", grounding(identity, version, facts).into())
        }
        Format::Json => {
            let body = answer::consulted(identity, checkpoint, version, &asked.filter, facts);
            ("application/json", body.into())
        }
    }
}

/// What tells two answers of one address apart: whose facts, by which rules, as of which pass, as
/// of which position; and since a restored store counts again from where it was, by which process.
fn etag(service: &Service, name: &str, known: &Known, as_of: Option<Seq>) -> String {
    let (version, checkpoint) = (answer::rule_version(known.rule_version()), known.checkpoint());
    let as_of = as_of.map(|seq| format!("-{seq}")).unwrap_or_default();
    format!("\"{}-{}-{version}-{checkpoint}{as_of}\"", service.session(), &name[..16])
}

/// Whether a list of tags has this one, or any.
pub(crate) fn names(list: &str, etag: &str) -> bool {
    let mut tags = list.split(',').map(|tag| tag.trim().trim_start_matches("W/"));
    tags.any(|tag| tag == "*" || tag == etag)
}

/// A planner asks again each time, and is told at once if nothing changed.
fn fresh(etag: &str) -> [(HeaderName, HeaderValue); 3] {
    let tag = HeaderValue::from_str(etag).unwrap_or(HeaderValue::from_static("\"\""));
    [
        (ETAG, tag),
        (CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
        (VARY, HeaderValue::from_static("authorization")),
    ]
}
