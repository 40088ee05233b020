//! V2: passes leave the identity byte-equal, and a change of any of its seven inputs changes it.

use crate::Error;
use crate::attempt::four_of_five;
use crate::lab::Lab;
use crate::table::{Row, Table, Verdict};
use ipse_core::Identity;
use ipse_core::json::Members;
use ipse_manifest::{FIELDS, Manifest, ManifestError};

/// The number of events in the paper, for each of two passes.
pub const EVENTS: u32 = 100;
/// The number of hash digits that the paper prints.
const PRINTED: usize = 24;

/// The result of V2.
#[derive(Clone, PartialEq, Debug)]
pub struct V2 {
    /// The identity at registration, after one pass, and after a second. The latter two are
    /// recomputed from the manifest in the store.
    pub identities: [Identity; 3],
    /// The number of facts after the passes.
    pub facts: usize,
    /// For each field, the identity of a manifest in which only that field is changed.
    pub changed: Vec<(&'static str, Identity)>,
}

/// The manifest of V2's agent: a service robot. A test pins its identity.
pub fn manifest() -> Result<Manifest, ManifestError> {
    with(|_| None)
}

/// The same manifest with some fields changed.
fn with(change: impl Fn(&str) -> Option<&'static str>) -> Result<Manifest, ManifestError> {
    let digits = |digit: &str| digit.repeat(64);
    Manifest::new(|field| {
        let value = match field {
            "agent_id" => "ward-robot-7".to_owned(),
            "operator" => "St. Elsewhere Hospital".to_owned(),
            "embodiment" => "mobile manipulator, two arms".to_owned(),
            "policy_hash" => digits("a"),
            "ecm_registry_hash" => digits("b"),
            "temperament_hash" => digits("c"),
            _ => "2026-05-01T00:00:00Z".to_owned(),
        };
        Some(change(field).map_or(value, str::to_owned))
    })
}

/// Another valid value for a field.
fn other(field: &str) -> &'static str {
    match field {
        "commissioned_at" => "2026-05-02T00:00:00Z",
        hash if hash.ends_with("_hash") => {
            "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
        }
        _ => "another",
    }
}

impl V2 {
    /// Runs the experiment.
    pub fn run(lab: &Lab<'_>) -> Result<Self, Error> {
        let mut agent = lab.agent_of(&lab.store("v2"), &manifest()?)?;
        let before = agent.identity;
        let mut learn = |lines: Vec<String>| {
            agent.learn(&lines)?;
            Ok::<_, Error>((agent.recomputed_identity()?, agent.known().len()))
        };
        let (once, _) = learn(four_of_five(1..=EVENTS))?;
        let (twice, facts) = learn(four_of_five(EVENTS + 1..=2 * EVENTS))?;
        let changed = FIELDS.map(|field| {
            let manifest = with(|name| (name == field).then(|| other(field)));
            Ok((field, manifest?.identity()))
        });
        let changed = changed.into_iter().collect::<Result<_, ManifestError>>()?;
        Ok(V2 { identities: [before, once, twice], facts, changed })
    }

    /// Whether no pass changed the identity.
    pub fn unchanged(&self) -> bool {
        self.identities.iter().all(|identity| *identity == self.identities[0])
    }

    /// The table with the identities after passes and after each change of a field.
    pub fn table(&self) -> Table {
        let [before, once, twice] = self.identities;
        let short = |identity: &Identity| format!("{}…", &identity.to_string()[..PRINTED]);
        let equal = |other| if before == other { "byte-equal" } else { "moved" };
        let mut rows = vec![
            Row::with(
                Verdict::Erratum(14),
                "identity",
                "5f6c5afc6b3924ba4a328138…",
                short(&before),
            ),
            Row::compared("facts after the passes", "1", self.facts.to_string()),
            Row::compared("identity after one pass", "byte-equal", equal(once)),
            Row::compared("identity after a second pass", "byte-equal", equal(twice)),
        ];
        for (field, identity) in &self.changed {
            let (what, ours) = (
                format!("{field} changed"),
                if *identity == before { "byte-equal" } else { "moved" },
            );
            rows.push(match *field {
                "ecm_registry_hash" => Row::compared(what, "moved", ours),
                _ => Row::with(Verdict::Ours, what, "", ours),
            });
        }
        let title = format!("V2: the identity across two passes over {EVENTS} events each");
        let note = "Each of the seven inputs is changed alone. The paper tries one of them, and \
                    prints hashes of a fixture that is not published.";
        Table { name: "v2", title, rows, note: note.to_owned(), errata: &[10], timed: false }
    }

    /// The result as JSON.
    pub fn json(&self) -> String {
        let text = |identity: &Identity| identity.to_string();
        let [before, once, twice] = self.identities.each_ref().map(text);
        let changed = self.changed.iter().fold(Members::new(), |changed, (field, identity)| {
            changed.text(*field, &identity.to_string())
        });
        Members::new()
            .text("identity_before", &before)
            .text("identity_after_one_pass", &once)
            .text("identity_after_two_passes", &twice)
            .raw("byte_equal", self.unchanged())
            .raw("facts", self.facts)
            .raw("identity_with_one_field_changed", changed.finish())
            .finish()
    }
}
