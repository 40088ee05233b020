//! `GET /api/agent/semantic`: facts for a planner. `GET /api/agent/grounding`: the same facts as
//! lines of text.
//!
//! **Invariants:** a response is from one checkpoint and one immutable table. A read writes nothing
//! and does not wait for a writer.

use crate::answers::Answer;
use crate::problem::Problem;
use crate::query::Query;
use crate::service::{Agent, Caller, Service};
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ipse_core::{FactKind, Seq};
use ipse_engine::facts::{Chosen, Filter};
use ipse_engine::grounding::grounding;
use ipse_engine::{Consultation, FactTable};
use ipse_inspect::{Moment, Position, answer};
use std::borrow::Cow;
use std::sync::Arc;

const KNOWN: [&str; 8] =
    ["skill_id", "target_class", "environment", "zone", "kind", "limit", "as_of", "format"];
/// The parameters of `/api/agent/grounding`: all but `format`, which is fixed there.
const KNOWN_OF_GROUNDING: &[&str] = KNOWN.split_at(KNOWN.len() - 1).0;
/// The headers of a text: its checkpoint and the id of its consultation. An intent echoes the
/// checkpoint with the query.
const CONSULTED: [HeaderName; 2] =
    [HeaderName::from_static("ipse-checkpoint"), HeaderName::from_static("ipse-consultation-id")];
/// The default and the maximum number of facts in a response.
const LIMIT: u64 = 20;
const MAX_LIMIT: u64 = 1000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Grounding,
}

/// The two paths of facts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Path {
    /// JSON, or text with `format=grounding`.
    Semantic,
    /// Text only: a generated client expects one media type for one status.
    Grounding,
}

impl Path {
    fn known(self) -> &'static [&'static str] {
        match self {
            Path::Semantic => &KNOWN,
            Path::Grounding => KNOWN_OF_GROUNDING,
        }
    }

    /// The cache key of a query. Both paths share the cache: `grounding?Q` is
    /// `semantic?Q&format=grounding`. A `Q` that already has a `format` is never cached under that
    /// key, since a repeated parameter is an error.
    fn question(self, query: &str) -> Cow<'_, str> {
        match self {
            Path::Semantic => Cow::Borrowed(query),
            Path::Grounding if query.is_empty() => Cow::Borrowed("format=grounding"),
            Path::Grounding => Cow::Owned(format!("{query}&format=grounding")),
        }
    }
}

struct FactsQuery {
    filter: Filter,
    as_of: Option<Moment>,
    format: Format,
}

impl FactsQuery {
    fn read(question: &str, path: Path) -> Result<Self, Problem> {
        let query = Query::read(Some(question), path.known())?;
        let text = |name: &str| query.text(name).map(str::to_owned);
        let limit = query.number("limit", 1..=MAX_LIMIT)?.unwrap_or(LIMIT);
        let kind = query.text("kind").map(|name| FactKind::parse(name).ok_or_else(bad_kind));
        let format = match (path, query.text("format")) {
            (Path::Grounding, _) | (_, Some("grounding")) => Format::Grounding,
            (Path::Semantic, None | Some("json")) => Format::Json,
            (Path::Semantic, Some(_)) => {
                let detail = "`format` must be json or grounding";
                return Err(Problem::bad_request("bad_parameter", detail));
            }
        };
        let filter = Filter {
            skill: text("skill_id"),
            target: text("target_class"),
            environment: text("environment"),
            zone: text("zone"),
            kind: kind.transpose()?,
            limit: Some(usize::try_from(limit).unwrap_or(usize::MAX)),
        };
        Ok(FactsQuery { filter, as_of: query.moment("as_of")?, format })
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
    consulted(&service, request, Path::Semantic).await
}

pub(crate) async fn grounding_text(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response, Problem> {
    consulted(&service, request, Path::Grounding).await
}

async fn consulted(service: &Service, request: Request, path: Path) -> Result<Response, Problem> {
    let (head, _) = request.into_parts();
    let caller = head.extensions.get::<Caller>().expect("BUG: an admitted request has a caller");
    let (agent, query) = (&caller.agent, head.uri.query().unwrap_or_default());
    let question = &*path.question(query);
    let known = agent.memory.known();
    // A cached query was validated before, and its response is from this table.
    if let Some(kept) = agent.answers.get(&known, question) {
        return Ok(kept.sent_to(&head.headers));
    }
    let asked = FactsQuery::read(query, path)?;
    let Some(moment) = asked.as_of else {
        let tag = tag(service, &agent.name, &known, None);
        let chosen = known.chosen(&asked.filter);
        let at = (known.checkpoint(), known.rule_version());
        let answer = written(agent, at, &asked, &chosen, tag);
        agent.answers.keep(&known, question, &answer);
        return Ok(answer.sent_to(&head.headers));
    };
    let position = resolved(caller, moment).await?;
    let tag = tag(service, &agent.name, &known, Some(position.seq));
    if has(&head.headers, &tag) {
        let known = Answer { kind: "", body: Bytes::new(), tag, consulted: None };
        return Ok(known.sent_to(&head.headers));
    }
    let (look, filter, now) = (agent.look.clone(), asked.filter.clone(), known.clone());
    let at = Moment::Position(position.seq);
    let (past, _turn) = caller.look(move || look.as_of(at, &filter, Some(&now))).await?;
    let past = past.ok_or_else(|| beyond(moment))?;
    let mut answer = written(agent, (position.seq, &past.rule_version), &asked, &past.chosen, tag);
    if asked.format == Format::Json && position.time.is_some() {
        let body = String::from_utf8(answer.body.to_vec()).expect("BUG: the answer is no text");
        answer.body = position.added_to(body).into();
    }
    Ok(answer.sent_to(&head.headers))
}

/// The position of a moment. A time is looked up in the log; whether a position exists is found out
/// with the facts.
async fn resolved(caller: &Caller, moment: Moment) -> Result<Position, Problem> {
    if let Moment::Position(seq) = moment {
        return Ok(Position { seq, time: None, recorded: None });
    }
    let look = caller.agent.look.clone();
    let (position, _turn) = caller.look(move || look.position(moment)).await?;
    position.ok_or_else(|| beyond(moment))
}

fn beyond(moment: Moment) -> Problem {
    Problem::not_found(format!("the log does not reach {moment} yet"))
}

fn written(
    agent: &Agent,
    (checkpoint, version): (Seq, &str),
    asked: &FactsQuery,
    chosen: &Chosen,
    tag: HeaderValue,
) -> Answer {
    let identity = &agent.identity;
    match asked.format {
        Format::Grounding => {
            let body = grounding(identity, version, chosen).into();
            let (filter, facts) = (&asked.filter, &chosen.facts);
            let id = Consultation::of(identity, checkpoint, version, filter, facts).id();
            let id = HeaderValue::from_str(&id).expect("BUG: the id is not printable ASCII");
            let consulted = Some([HeaderValue::from(checkpoint.0), id]);
            Answer { kind: "text/plain; charset=utf-8", body, tag, consulted }
        }
        Format::Json => {
            let body = answer::consulted(identity, checkpoint, version, &asked.filter, chosen);
            Answer { kind: "application/json", body: body.into(), tag, consulted: None }
        }
    }
}

/// The `ETag`: identity, rule set, checkpoint, `as_of`, and the process, since a restored store may
/// reach the same checkpoint again with other events.
fn tag(service: &Service, name: &str, known: &FactTable, as_of: Option<Seq>) -> HeaderValue {
    let (version, checkpoint) = (known.rule_version(), known.checkpoint());
    let as_of = as_of.map(|seq| format!("-{seq}")).unwrap_or_default();
    let tag = format!("\"{}-{}-{version}-{checkpoint}{as_of}\"", service.session(), &name[..16]);
    HeaderValue::from_str(&tag).unwrap_or(HeaderValue::from_static("\"\""))
}

impl Answer {
    /// The response, or 304 if the client has it already. Clients must revalidate each time.
    fn sent_to(self, asked: &HeaderMap) -> Response {
        let same = has(asked, &self.tag);
        let fresh = [
            (ETAG, self.tag),
            (CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
            (VARY, HeaderValue::from_static("authorization")),
        ];
        match same {
            true => (StatusCode::NOT_MODIFIED, fresh).into_response(),
            false => {
                let kind = [(CONTENT_TYPE, HeaderValue::from_static(self.kind))];
                let mut response = (kind, fresh, self.body).into_response();
                let consulted = CONSULTED.into_iter().zip(self.consulted.into_iter().flatten());
                response.headers_mut().extend(consulted);
                response
            }
        }
    }
}

/// Whether `If-None-Match` contains this tag.
pub(crate) fn has(asked: &HeaderMap, tag: &HeaderValue) -> bool {
    let tag = tag.to_str().unwrap_or_default();
    let named = |value: &HeaderValue| value.to_str().is_ok_and(|list| names(list, tag));
    asked.get_all(IF_NONE_MATCH).iter().any(named)
}

/// Whether a list of tags contains this one, or is `*`.
fn names(list: &str, etag: &str) -> bool {
    let mut tags = list.split(',').map(|tag| tag.trim().trim_start_matches("W/"));
    tags.any(|tag| tag == "*" || tag == etag)
}
