//! Intents as planners and operators see them: what was asked, what the gates said, and where each
//! stands.
//!
//! **Invariants:** what is shown is what stands in the log; nothing is judged again.

use crate::Error;
use ipse_consult::answer::written;
use ipse_core::json::{Members, Object, Value, list};
use ipse_core::{EventRef, HOUSE_SOURCE, Seq, Time, json_parse};
use ipse_store::Stored;
use ipse_store::sqlite::View;

/// Nesting of an event at most.
const DEPTH: usize = 32;

/// Where an intent stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntentStanding {
    /// It may be acted on as it was asked.
    Admitted,
    /// It may be acted on with what the gates made of it.
    Clamped,
    /// A person has to decide.
    Waiting,
    /// A person let it through.
    Confirmed,
    /// A person did not.
    Declined,
    /// The gates did not let it through.
    Denied,
}

impl IntentStanding {
    /// All of them.
    pub const ALL: [IntentStanding; 6] = [
        IntentStanding::Admitted,
        IntentStanding::Clamped,
        IntentStanding::Waiting,
        IntentStanding::Confirmed,
        IntentStanding::Declined,
        IntentStanding::Denied,
    ];

    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            IntentStanding::Admitted => "admitted",
            IntentStanding::Clamped => "clamped",
            IntentStanding::Waiting => "waiting",
            IntentStanding::Confirmed => "confirmed",
            IntentStanding::Declined => "declined",
            IntentStanding::Denied => "denied",
        }
    }

    /// The standing that a word names.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|standing| standing.name() == name)
    }
}

/// An intent of the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Proposed {
    standing: IntentStanding,
    confirm_by: Option<Time>,
    json: String,
}

impl Proposed {
    /// Where it stands.
    pub fn standing(&self) -> IntentStanding {
        self.standing
    }

    /// Until when it may be confirmed, if that is bounded.
    pub fn confirm_by(&self) -> Option<Time> {
        self.confirm_by
    }

    /// For programs.
    pub fn json(self) -> String {
        self.json
    }

    /// The intent of that name; `None` if there is none, or if it was forgotten.
    pub(crate) fn named(view: View<'_>, name: &EventRef) -> Result<Option<Self>, Error> {
        let Some(seq) = view.find(name)? else { return Ok(None) };
        let stored = view.stored(seq)?.filter(|stored| stored.event_type == "intent");
        stored.map_or(Ok(None), |stored| Proposed::of(view, &stored))
    }

    fn of(view: View<'_>, stored: &Stored) -> Result<Option<Self>, Error> {
        let decided = EventRef::new(HOUSE_SOURCE, &format!("confirm:{}", stored.event_ref));
        let decided = view.find(&decided)?.map(|seq| view.stored(seq)).transpose()?.flatten();
        Ok(Proposed::read(stored, decided.as_ref()))
    }

    fn read(stored: &Stored, decided: Option<&Stored>) -> Option<Self> {
        let value = json_parse::parse(stored.canonical.as_bytes(), DEPTH).ok()?;
        let data = value.as_object()?.get("data")?.as_object()?;
        let decision = decided.and_then(decision);
        let standing = standing(data, decided)?;
        let confirm_by = data.get("confirm_by").and_then(Value::as_text);
        let members = Members::new()
            .text("event_ref", &stored.event_ref.to_string())
            .raw("seq", stored.seq)
            .text("time", &stored.time.to_string())
            .text("standing", standing.name())
            .raw("confirmation", decision.unwrap_or_else(|| "null".to_owned()));
        let members = data.iter().fold(members, |all, (name, value)| all.raw(name, written(value)));
        let confirm_by = confirm_by.and_then(|text| Time::parse(text).ok());
        Some(Proposed { standing, confirm_by, json: members.finish() })
    }
}

fn standing(data: &Object<'_>, decided: Option<&Stored>) -> Option<IntentStanding> {
    Some(match data.get("verdict")?.as_text()? {
        "admitted" => IntentStanding::Admitted,
        "clamped" => IntentStanding::Clamped,
        "denied" => IntentStanding::Denied,
        "needs_confirmation" => match decided.map(|it| it.canonical.contains("\"confirmed\"")) {
            None => IntentStanding::Waiting,
            Some(true) => IntentStanding::Confirmed,
            Some(false) => IntentStanding::Declined,
        },
        _ => return None,
    })
}

fn decision(stored: &Stored) -> Option<String> {
    let value = json_parse::parse(stored.canonical.as_bytes(), DEPTH).ok()?;
    let data = value.as_object()?.get("data")?.as_object()?;
    let copied = |name: &str| data.get(name).map(written);
    Some(
        Members::new()
            .text("event_ref", &stored.event_ref.to_string())
            .raw("seq", stored.seq)
            .text("time", &stored.time.to_string())
            .optional("decision", copied("decision"))
            .optional("token_id", copied("token_id"))
            .finish(),
    )
}

/// Intents before a position, newest first, at most so many that stand so; and the position to go
/// on before, if there are more.
pub(crate) fn page(
    view: View<'_>,
    before: Seq,
    limit: u64,
    standing: Option<IntentStanding>,
) -> Result<String, Error> {
    let mut end = Seq(before.0.saturating_sub(1)).min(view.head()?);
    let mut intents = Vec::new();
    let mut next = None;
    while let Some(stored) = view.last_of_type("intent", Seq(1)..=end)? {
        if intents.len() as u64 == limit {
            next = Some(end.next());
            break;
        }
        let proposed = Proposed::of(view, &stored)?;
        let wanted = |it: &Proposed| standing.is_none_or(|standing| it.standing == standing);
        intents.extend(proposed.filter(wanted).map(Proposed::json));
        end = Seq(stored.seq.0 - 1);
    }
    Ok(Members::new().raw("intents", list(intents)).optional("next_before", next).finish())
}
