//! Claims: consultations that planners echo, checked against the log.
//!
//! A planner that reads JSON echoes the whole consultation. A planner that reads text has the
//! checkpoint and its own query; the rest is derived from the log.
//!
//! **Invariants**
//! - A claim that can be read has the bytes, and so the id, of the consultation that it echoes.
//! - A claim is verified only if its query, run again on the log up to its checkpoint, chooses
//!   exactly its facts, in their order. Its own statements are not trusted.

use crate::consultation::{Parts, id_of};
use crate::facts::{Filter, ScoredFact};

use ipse_core::json::{Object, Value, quoted};
use ipse_core::{FactId, FactKind, Identity, Seq};
use std::sync::Arc;

/// The maximum number of facts of a consultation, as in an answer.
pub const MAX_FACTS: usize = 1000;

const MEMBERS: [&str; 4] = ["checkpoint", "fact_ids", "query", "rule_version"];
/// The consultation in errors.
const PLACE: &str = "the consultation";
const QUESTIONS: [&str; 6] = ["env", "kind", "limit", "skill_id", "target_class", "zone"];

/// A consultation in an intent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Echo {
    /// The whole consultation of a JSON answer.
    Whole(Claim),
    /// The checkpoint and the query of a text answer.
    Query {
        /// The claimed checkpoint.
        checkpoint: Seq,
        /// The claimed query.
        filter: Filter,
    },
}

impl Echo {
    /// Reads the consultation of an intent. Without rule version and fact ids it is a query.
    pub fn read(object: &Object<'_>) -> Result<Self, String> {
        if object.get("rule_version").or(object.get("fact_ids")).is_some() {
            return Claim::read(object).map(Echo::Whole);
        }
        known(object, &MEMBERS, PLACE)?;
        let (checkpoint, filter) = checkpoint_and_query(object)?;
        Ok(Echo::Query { checkpoint, filter })
    }
}

/// The part of a consultation that the planner gave; ipse derived the rest. A consultation that
/// was echoed whole has no basis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Basis {
    /// The checkpoint and the query.
    Query,
}

impl Basis {
    /// All bases.
    pub const ALL: [Basis; 1] = [Basis::Query];

    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Query => "query",
        }
    }

    /// Parses the name of a basis.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|basis| basis.name() == name)
    }
}

/// A whole consultation, echoed or derived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    checkpoint: Seq,
    rule_version: String,
    filter: Filter,
    fact_ids: Vec<FactId>,
}

/// The result of checking a claim against the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// The log confirms the claim.
    Verified,
    /// The log does not confirm the claim.
    Unverified,
    /// It cannot be checked: an event behind the facts may have been forgotten since.
    ForgottenSince,
}

impl Status {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Status::Verified => "verified",
            Status::Unverified => "unverified",
            Status::ForgottenSince => "forgotten since",
        }
    }
}

impl Claim {
    /// Reads an echoed consultation: exactly its four members, each of the right form.
    pub fn read(object: &Object<'_>) -> Result<Self, String> {
        known(object, &MEMBERS, PLACE)?;
        let (checkpoint, filter) = checkpoint_and_query(object)?;
        let rule_version = member(object, "rule_version")?.as_text().map(str::to_owned);
        let Value::Array(ids) = member(object, "fact_ids")? else {
            return Err("`fact_ids` must be a list of fact ids (fa_…)".to_owned());
        };
        if ids.len() > MAX_FACTS {
            return Err(format!("`fact_ids` names more than {MAX_FACTS} facts"));
        }
        let id = |id: &Value<'_>| id.as_text().and_then(FactId::parse);
        let fact_ids: Option<Vec<FactId>> = ids.iter().map(id).collect();
        Ok(Claim {
            checkpoint,
            rule_version: rule_version.ok_or("`rule_version` must be a string")?,
            filter,
            fact_ids: fact_ids.ok_or("`fact_ids` must hold fact ids (fa_…) and nothing else")?,
        })
    }

    /// The consultation of facts that a query chooses at a checkpoint. `None` if there are more
    /// than [`MAX_FACTS`].
    pub fn derived(
        identity: &Identity,
        checkpoint: Seq,
        rule_version: &str,
        filter: &Filter,
        facts: &[Arc<ScoredFact>],
    ) -> Option<Self> {
        let ids = facts.iter().map(|fact| FactId::new(identity, &fact.fact.key));
        let claim = Claim {
            checkpoint,
            rule_version: rule_version.to_owned(),
            filter: filter.clone(),
            fact_ids: ids.collect(),
        };
        (facts.len() <= MAX_FACTS).then_some(claim)
    }

    /// The claimed checkpoint of the facts.
    pub fn checkpoint(&self) -> Seq {
        self.checkpoint
    }

    /// The claimed rule version.
    pub fn rule_version(&self) -> &str {
        &self.rule_version
    }

    /// The claimed query.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// The claimed fact ids, in the order of the answer.
    pub fn fact_ids(&self) -> &[FactId] {
        &self.fact_ids
    }

    /// The canonical bytes.
    pub fn json(&self) -> String {
        let Claim { checkpoint, rule_version, filter, fact_ids } = self;
        let ids = fact_ids.iter().map(|id| quoted(&id.to_string()));
        Parts { checkpoint: *checkpoint, rule_version, filter }.json(ids)
    }

    /// The id of the consultation that it echoes.
    pub fn id(&self) -> String {
        id_of(&self.json())
    }

    /// Whether these facts are the claimed ones, in the same order.
    pub fn is_answered_by(&self, identity: &Identity, facts: &[Arc<ScoredFact>]) -> bool {
        let ids = facts.iter().map(|fact| FactId::new(identity, &fact.fact.key));
        ids.eq(self.fact_ids.iter().copied())
    }

    /// Whether a planner that could read up to `latest` can have read this: the checkpoint is not
    /// later, and the rules are those in force at the checkpoint.
    pub fn is_possible(&self, latest: Seq, in_force: &str) -> bool {
        self.checkpoint <= latest && self.rule_version == in_force
    }

    /// Checks the claim of a planner that could read up to `latest`. `facts` are the facts that its
    /// query chooses at its checkpoint under the rules in force there. `forgotten` says whether an
    /// event up to the checkpoint was forgotten after it.
    pub fn status<E>(
        &self,
        identity: &Identity,
        facts: &[Arc<ScoredFact>],
        latest: Seq,
        in_force: &str,
        forgotten: impl FnOnce() -> Result<bool, E>,
    ) -> Result<Status, E> {
        if !self.is_possible(latest, in_force) {
            return Ok(Status::Unverified);
        }
        // The facts may have had other values then, even if the query chooses the same ones now.
        if forgotten()? {
            return Ok(Status::ForgottenSince);
        }
        let answered = self.is_answered_by(identity, facts);
        Ok(if answered { Status::Verified } else { Status::Unverified })
    }
}

fn member<'o>(object: &'o Object<'_>, name: &str) -> Result<&'o Value<'o>, String> {
    object.get(name).ok_or_else(|| format!("`{name}` is missing in {PLACE}"))
}

fn checkpoint_and_query(object: &Object<'_>) -> Result<(Seq, Filter), String> {
    let checkpoint = member(object, "checkpoint")?.as_count().map(Seq);
    let query = member(object, "query")?.as_object().ok_or("`query` must be an object")?;
    let checkpoint = checkpoint.ok_or("`checkpoint` must be a position of the log, 0 or more")?;
    Ok((checkpoint, filter(query)?))
}

/// Rejects unknown members.
fn known(object: &Object<'_>, names: &[&str], place: &str) -> Result<(), String> {
    match object.iter().find(|(name, _)| !names.contains(name)) {
        Some((name, _)) => {
            let (name, known) = (crate::answer::clean(&shortened(name)), names.join(", "));
            Err(format!("{place} has an unknown member `{name}`; known: {known}"))
        }
        None => Ok(()),
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(64).collect()
}

/// Reads a query with the parameter names of the HTTP interface.
fn filter(query: &Object<'_>) -> Result<Filter, String> {
    known(query, &QUESTIONS, "`query`")?;
    let text = |name: &str| match query.get(name) {
        None => Ok(None),
        Some(Value::Text(text)) => Ok(Some(text.to_string())),
        Some(_) => Err(format!("`query.{name}` must be a string")),
    };
    let kind = match text("kind")? {
        None => None,
        Some(name) => {
            let kinds = || FactKind::ALL.map(FactKind::name).join(", ");
            let bad = || format!("`query.kind` must be one of {}", kinds());
            Some(FactKind::parse(&name).ok_or_else(bad)?)
        }
    };
    let limit = query.get("limit").map(|limit| {
        let limit = limit.as_count().and_then(|limit| usize::try_from(limit).ok());
        limit.filter(|limit| *limit > 0).ok_or("`query.limit` must be a whole number of at least 1")
    });
    Ok(Filter {
        skill: text("skill_id")?,
        target: text("target_class")?,
        environment: text("env")?,
        zone: text("zone")?,
        kind,
        limit: limit.transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Consultation;
    use ipse_core::{EventRef, Fact, FactKey, Support, Time, json_parse};
    use proptest::prelude::*;

    const ME: Identity = Identity([7; 32]);

    fn fact(zone: &str) -> Fact {
        Fact {
            key: FactKey::new(FactKind::ZoneRisk, &[zone]),
            last: Support {
                time: Time::from_micros(0).unwrap(),
                event_ref: EventRef::new("s", "i"),
                worked: false,
            },
            value: "{\"confidence\":0.5,\"n_observations\":3}".to_owned(),
        }
    }

    fn read(json: &str) -> Result<Claim, String> {
        match json_parse::parse(json.as_bytes(), 8).unwrap() {
            Value::Object(object) => Claim::read(&object),
            _ => panic!("BUG: no object"),
        }
    }

    fn facts(zones: &[&str]) -> Vec<Arc<ScoredFact>> {
        Filter::default().choose(zones.iter().map(|zone| fact(zone)).collect()).unwrap()
    }

    fn part() -> impl Strategy<Value = Option<String>> {
        proptest::option::of("[a-c \"\\\\\n]{0,3}")
    }

    fn any_filter() -> impl Strategy<Value = Filter> {
        let kind = proptest::option::of(proptest::sample::select(&FactKind::ALL[..]));
        let limit = proptest::option::of(1_usize..2000);
        (part(), part(), part(), part(), kind, limit).prop_map(
            |(skill, target, environment, zone, kind, limit)| Filter {
                skill,
                target,
                environment,
                zone,
                kind,
                limit,
            },
        )
    }

    proptest! {
        #[test]
        fn a_claim_has_the_bytes_of_what_it_echoes(
            filter in any_filter(),
            checkpoint in 0_u64..1 << 40,
            n in 0_usize..4,
        ) {
            let facts = facts(&["a", "b", "c"][..n.min(3)]);
            let said = Consultation::of(&ME, Seq(checkpoint), "v1", &filter, &facts);
            let claim = read(&said.json).unwrap();
            prop_assert_eq!(claim.json(), &said.json[..]);
            prop_assert_eq!(claim.id(), said.id());
            prop_assert_eq!(claim.checkpoint(), Seq(checkpoint));
            prop_assert_eq!(claim.filter(), &filter);
            prop_assert!(claim.is_answered_by(&ME, &facts));
        }
    }

    #[test]
    fn what_is_no_consultation_is_refused_with_its_reason() {
        let good = r#"{"checkpoint":9,"fact_ids":[],"query":{},"rule_version":"v1"}"#;
        assert!(read(good).is_ok());
        let swap = |from: &str, to: &str| good.replace(from, to);
        let id = "\"fa_00000000000000000000000000000000\"";
        for (json, want) in [
            (swap("\"checkpoint\":9,", ""), "`checkpoint` is missing"),
            (swap(",\"rule_version\":\"v1\"", ""), "`rule_version` is missing"),
            (swap("{\"ch", "{\"by\":1,\"ch"), "has an unknown member `by`; known: checkpoint"),
            (swap("9", "-1"), "`checkpoint` must be a position"),
            (swap("9", "\"9\""), "`checkpoint` must be a position"),
            (swap("\"v1\"", "null"), "`rule_version` must be a string"),
            (swap("{},", "[],"), "`query` must be an object"),
            (swap("{},", "{\"as_of\":3},"), "`query` has an unknown member `as_of`; known: env"),
            (swap("{},", "{\"env\":3},"), "`query.env` must be a string"),
            (swap("{},", "{\"zone\":null},"), "`query.zone` must be a string"),
            (swap("{},", "{\"kind\":\"risk\"},"), "`query.kind` must be one of"),
            (swap("{},", "{\"limit\":0},"), "`query.limit` must be a whole number"),
            (swap("{},", "{\"limit\":1.5},"), "`query.limit` must be a whole number"),
            (swap("[]", "{}"), "`fact_ids` must be a list"),
            (swap("[]", "[\"fa_1\"]"), "`fact_ids` must hold fact ids"),
            (swap("[]", "[null]"), "`fact_ids` must hold fact ids"),
            (swap("[]", &format!("[{}]", [id; 1001].join(","))), "more than 1000 facts"),
        ] {
            let refused = read(&json).unwrap_err();
            assert!(refused.contains(want), "{json}: {refused}");
        }
        assert!(read(&swap("[]", &format!("[{}]", [id; 1000].join(",")))).is_ok());
        let hidden = read(&swap("{\"ch", "{\"\\u001b[2J\":1,\"ch")).unwrap_err();
        assert!(!hidden.contains('\u{1b}'), "{hidden}");
    }

    #[test]
    fn only_what_the_log_gives_is_verified() {
        let both = facts(&["a", "b"]);
        let said = Consultation::of(&ME, Seq(9), "v1", &Filter::default(), &both);
        let claim = read(&said.json).unwrap();
        let other = read(&said.json.replace("\"v1\"", "\"v9\"")).unwrap();
        let turned = vec![both[1].clone(), both[0].clone()];
        let status = |claim: &Claim, identity: Identity, facts: &[_], latest: u64, gone: bool| {
            let status = claim.status(&identity, facts, Seq(latest), "v1", || Ok::<_, ()>(gone));
            status.unwrap().name()
        };
        assert_eq!(status(&claim, ME, &both, 9, false), "verified");
        assert_eq!(status(&claim, ME, &both, 9, true), "forgotten since", "values may be others");
        assert_eq!(
            status(&claim, ME, &both, 8, true),
            "unverified",
            "later than what could be read"
        );
        assert_eq!(status(&other, ME, &both, 9, true), "unverified", "other rules");
        assert_eq!(status(&claim, ME, &turned, 9, false), "unverified", "another order");
        assert_eq!(status(&claim, ME, &both[..1], 9, false), "unverified", "one fact fewer");
        assert_eq!(status(&claim, ME, &both[..1], 9, true), "forgotten since");
        assert_eq!(status(&claim, Identity([8; 32]), &both, 9, false), "unverified", "another's");
    }
}
