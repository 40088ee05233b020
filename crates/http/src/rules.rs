//! Reads about the rules of an agent: the list, one rule set, and the report on a change.
//!
//! **Invariant:** no route changes rules. That is a command where the store and the keys are.

use crate::problem::Problem;
use crate::queries::NameInPath;
use crate::query::Query;
use crate::service::Caller;
use crate::{blocking, json};
use axum::Extension;
use axum::extract::{Path, RawQuery};
use axum::http::StatusCode;
use axum::response::Response;
use ipse_inspect::Moment;
use ipse_ledger::RuleSetName;

pub(crate) async fn rules(
    Extension(caller): Extension<Caller>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let look = caller.agent.look.clone();
    let (list, _turn) = caller.look(move || look.rules()).await?;
    Ok(json(StatusCode::OK, list.json()))
}

pub(crate) async fn rule_set(
    Extension(caller): Extension<Caller>,
    name: NameInPath,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    Query::read(raw.as_deref(), &[])?;
    let (look, hash) = (caller.agent.look.clone(), hash(name)?);
    let (list, _turn) = caller.look(move || look.rule_sets()).await?;
    let rules = list.find(&hash).ok_or_else(no_rules)?;
    Ok(json(StatusCode::OK, list.shown(&rules).json()))
}

pub(crate) async fn report(
    Extension(caller): Extension<Caller>,
    name: NameInPath,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), &["as_of"])?;
    let (as_of, hash) = (query.moment("as_of")?, hash(name)?);
    let (look, head) = (caller.agent.look.clone(), caller.agent.look.clone());
    let head = blocking(move || head.head()).await?;
    if matches!(as_of, Some(Moment::Position(seq)) if seq > head) {
        return Err(Problem::not_found(format!("the log ends at seq {head}")));
    }
    let compute = move || {
        let Some(rules) = look.rule_sets()?.find(&hash) else { return Ok(None) };
        look.rules_report(&rules, as_of)
    };
    let (report, _turn) = caller.look(compute).await?;
    Ok(json(StatusCode::OK, report.ok_or_else(no_rules)?.json()))
}

/// The hash in a path, as hex digits. Only hashes name rule sets here: a version is a label.
fn hash(name: NameInPath) -> Result<String, Problem> {
    let hash = name.ok().map(|Path(text)| text).filter(|text| RuleSetName::is_hash(text));
    hash.ok_or_else(no_rules)
}

fn no_rules() -> Problem {
    Problem::not_found("neither this log nor this server has a rule set with this SHA-256")
}
