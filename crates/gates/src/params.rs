//! Parameters with the types of the registry: exact numbers, booleans, texts.

use crate::toml_file::Literal;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use ipse_core::Micro;
use ipse_core::json::{Members, quoted};

/// The parameters of an intent, requested or admitted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Params(pub(crate) BTreeMap<String, Datum>);

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Datum {
    Number(Micro),
    Boolean(bool),
    Text(String),
}

impl Datum {
    /// Canonical JSON.
    pub(crate) fn json(&self) -> String {
        match self {
            Datum::Number(number) => number.to_string(),
            Datum::Boolean(value) => value.to_string(),
            Datum::Text(text) => quoted(text),
        }
    }

    pub(crate) fn equals(&self, literal: &Literal) -> bool {
        match (self, literal) {
            (Datum::Boolean(value), Literal::Boolean(wanted)) => value == wanted,
            (Datum::Text(text), Literal::Text(wanted)) => text == wanted,
            _ => false,
        }
    }
}

impl Params {
    pub(crate) fn get(&self, name: &str) -> Option<&Datum> {
        self.0.get(name)
    }

    /// The number with this name, if any.
    pub(crate) fn number(&self, name: &str) -> Option<Micro> {
        match self.0.get(name)? {
            Datum::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Canonical JSON.
    pub(crate) fn json(&self) -> String {
        let add = |members: Members, (name, datum): (&String, &Datum)| {
            members.raw(name.as_str(), datum.json())
        };
        self.0.iter().fold(Members::new(), add).finish()
    }
}
