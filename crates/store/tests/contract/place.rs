//! A store of an engine, and the events and rows that tests put into it.

use ipse_core::{Admitted, Fact, FactId, FactKey, FactKind, Identity, Support};
use ipse_door::{Origin, admit};
use ipse_store::{Appended, Location, Reader, Store, Writer};
use tempfile::TempDir;

pub(crate) struct Place {
    pub(crate) store: Store,
    pub(crate) identity: Identity,
    pub(crate) other: Identity,
    location: Location,
    _directory: TempDir,
}

impl Place {
    /// A store in a file.
    pub(crate) fn file() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::file(directory.path().join("store.db"));
        let store = Store::create(&location).unwrap();
        Place::of(store, location, directory)
    }

    /// The same behind the failing wrapper.
    pub(crate) fn failing() -> Self {
        let plain = Place::file();
        let Place { store, location, _directory, .. } = plain;
        let store = store.failing(&ipse_store::Faults::default()).unwrap();
        Place::of(store, location, _directory)
    }

    fn of(store: Store, location: Location, directory: TempDir) -> Self {
        let identity = store.register("{\"agent_id\":\"a\"}").unwrap().identity;
        let other = store.register("{\"agent_id\":\"b\"}").unwrap().identity;
        Place { store, identity, other, location, _directory: directory }
    }

    pub(crate) fn writer(&self) -> Writer {
        self.store.writer(&self.identity).unwrap()
    }

    pub(crate) fn reader(&self) -> Reader {
        self.store.reader().unwrap()
    }

    /// The store as another process opens it.
    pub(crate) fn reopened(&self) -> Store {
        Store::open(&self.location).unwrap()
    }

    /// Appends events and commits.
    pub(crate) fn append(&self, numbers: std::ops::Range<u64>) -> Vec<Appended> {
        let mut writer = self.writer();
        let mut batch = writer.begin().unwrap();
        let events: Vec<Admitted> = numbers.map(event).collect();
        let appended = batch.append_all(&events, |_| None).unwrap();
        batch.commit().unwrap();
        appended
    }
}

/// An event of ordinary size.
pub(crate) fn event(number: u64) -> Admitted {
    event_of(number, "execution_result", "x")
}

pub(crate) fn event_of(number: u64, kind: &str, text: &str) -> Admitted {
    let origin = match ipse_core::is_housekeeping(kind) {
        true => Origin::House,
        false => Origin::Producer,
    };
    let source = if origin == Origin::House { "ipse" } else { "arm" };
    let line = format!(
        "{{\"id\":\"{number}\",\"source\":\"{source}\",\"type\":\"{kind}\",\
         \"time\":\"2026-05-06T10:00:00Z\",\"data\":{{\"skill_id\":\"s\",\"success\":true,\
         \"note\":\"{text}\"}}}}"
    );
    admit(line.as_bytes(), origin, || [7; 16]).unwrap()
}

pub(crate) fn fact(identity: &Identity, name: &str, value: &str) -> (FactId, Fact) {
    let key = FactKey::new(FactKind::ZoneRisk, &[name]);
    let support = event(1);
    let last = Support { time: support.time, event_ref: support.event_ref, worked: true };
    (FactId::new(identity, &key), Fact { key, last, value: value.to_owned() })
}
