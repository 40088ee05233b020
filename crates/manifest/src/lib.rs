//! The manifest: seven fields whose hash is the identity of the agent.
//!
//! **Invariants**
//! - The identity is SHA-256 of `Manifest::canonical`, and of nothing else.
//! - Fields are private and never change: another value gives another manifest and identity.
//! - No crate that runs a pass depends on this crate.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use ipse_core::{Identity, Time, hex, json, json_parse, sha256};

/// The longest value of a field, in bytes. It is printed, hashed and part of every bundle.
pub const MAX_FIELD_BYTES: usize = 1024;

/// The seven fields, in canonical order.
pub const FIELDS: [&str; 7] = [
    "agent_id",
    "commissioned_at",
    "ecm_registry_hash",
    "embodiment",
    "operator",
    "policy_hash",
    "temperament_hash",
];

/// The text before the hash of the operator's key in the field `operator`.
const KEY_BEGINS: &str = " <sha256:";

/// The value of the field `operator` that names a key: `NAME <sha256:HEX>`.
///
/// ```
/// let named = ipse_manifest::operator_with_key("St. Example", &[0xab; 32]);
/// assert!(named.starts_with("St. Example <sha256:abab") && named.ends_with("ab>"));
/// ```
pub fn operator_with_key(name: &str, key: &[u8; 32]) -> String {
    format!("{name}{KEY_BEGINS}{}>", hex::encode(key))
}

/// The seven fields that define an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    agent_id: String,
    operator: String,
    embodiment: String,
    policy_hash: String,
    ecm_registry_hash: String,
    temperament_hash: String,
    commissioned_at: String,
}

/// The reason why fields do not form a manifest, with the name of the field.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ManifestError {
    /// A field is missing.
    Missing(&'static str),
    /// A field is empty.
    Empty(&'static str),
    /// A field is longer than 1024 bytes.
    TooLong(&'static str),
    /// A field holds a control character.
    ControlCharacter(&'static str),
    /// A hash is not 64 lower-case hex digits.
    NotAHash(&'static str),
    /// The date is not RFC 3339.
    NotADate(&'static str),
    /// The name is not a manifest field.
    Unknown(String),
    /// The field `operator` seems to name a key, but not in the form of [`operator_with_key`].
    OperatorKey,
    /// Stored bytes are not the canonical form of a manifest.
    NotCanonical,
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(field) => write!(f, "field `{field}` is missing"),
            Self::Empty(field) => write!(f, "field `{field}` is empty"),
            Self::TooLong(field) => {
                write!(f, "field `{field}` is longer than {MAX_FIELD_BYTES} bytes")
            }
            Self::ControlCharacter(field) => {
                write!(f, "field `{field}` holds a control character")
            }
            Self::NotAHash(field) => {
                write!(f, "field `{field}` must be 64 lower-case hex digits")
            }
            Self::NotADate(field) => write!(
                f,
                "field `{field}` must be an RFC 3339 date and time such as 2026-05-01T00:00:00Z, \
                 in the years 1970 to 9999 and without a leap second"
            ),
            Self::Unknown(field) => write!(f, "field `{field}` is not a manifest field"),
            Self::OperatorKey => f.write_str(
                "field `operator` has `<sha256:` but is not `NAME <sha256:HEX>` with 64 lower-case \
                 hex digits, so it names no key",
            ),
            Self::NotCanonical => f.write_str("these bytes are not a canonical manifest"),
        }
    }
}

impl core::error::Error for ManifestError {}

impl Manifest {
    /// Reads each of the seven fields from `value` and validates it: `agent_id`, `operator` and
    /// `embodiment` are texts, `policy_hash`, `ecm_registry_hash` and `temperament_hash` are 64
    /// lower-case hex digits, and `commissioned_at` is an RFC 3339 time.
    ///
    /// ```
    /// use ipse_manifest::Manifest;
    ///
    /// // The hash of an empty file, for an agent that does not have these files yet.
    /// let none = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    /// let manifest = Manifest::new(|field| {
    ///     Some(match field {
    ///         "agent_id" => "ward-robot-07".into(),
    ///         "operator" => "St. Example Hospital".into(),
    ///         "embodiment" => "two-arm-mobile/rev-c".into(),
    ///         "commissioned_at" => "2026-04-20T08:00:00Z".into(),
    ///         "policy_hash" | "ecm_registry_hash" | "temperament_hash" => none.into(),
    ///         _ => return None,
    ///     })
    /// })?;
    /// assert_eq!(manifest.field("agent_id"), Some("ward-robot-07"));
    /// # Ok::<(), ipse_manifest::ManifestError>(())
    /// ```
    pub fn new(mut value: impl FnMut(&str) -> Option<String>) -> Result<Self, ManifestError> {
        let mut text = |field| checked_text(field, value(field));
        let manifest = Manifest {
            agent_id: text("agent_id")?,
            operator: text("operator")?,
            embodiment: text("embodiment")?,
            policy_hash: checked_hash("policy_hash", text("policy_hash")?)?,
            ecm_registry_hash: checked_hash("ecm_registry_hash", text("ecm_registry_hash")?)?,
            temperament_hash: checked_hash("temperament_hash", text("temperament_hash")?)?,
            commissioned_at: checked_date("commissioned_at", text("commissioned_at")?)?,
        };
        Ok(manifest)
    }

    /// Parses the canonical bytes of a manifest; any other bytes are an error.
    pub fn from_canonical(bytes: &[u8]) -> Result<Self, ManifestError> {
        let value = json_parse::parse(bytes, 1).map_err(|_| ManifestError::NotCanonical)?;
        let object = value.as_object().ok_or(ManifestError::NotCanonical)?;
        let manifest = Self::new(|field| object.get(field)?.as_text().map(ToString::to_string))?;
        if manifest.canonical().as_bytes() == bytes {
            Ok(manifest)
        } else {
            Err(ManifestError::NotCanonical)
        }
    }

    /// The value of a field; `None` if the name is not one of [`FIELDS`].
    pub fn field(&self, name: &str) -> Option<&str> {
        Some(match name {
            "agent_id" => &self.agent_id,
            "operator" => &self.operator,
            "embodiment" => &self.embodiment,
            "policy_hash" => &self.policy_hash,
            "ecm_registry_hash" => &self.ecm_registry_hash,
            "temperament_hash" => &self.temperament_hash,
            "commissioned_at" => &self.commissioned_at,
            _ => return None,
        })
    }

    /// The bytes that are hashed: RFC 8785 JSON of the seven fields, without a line end.
    ///
    /// Destructured without `..`, so that a new field does not compile until a developer decides
    /// whether it is part of the identity.
    pub fn canonical(&self) -> String {
        let Manifest {
            agent_id,
            operator,
            embodiment,
            policy_hash,
            ecm_registry_hash,
            temperament_hash,
            commissioned_at,
        } = self;
        json::Members::new()
            .text("agent_id", agent_id)
            .text("operator", operator)
            .text("embodiment", embodiment)
            .text("policy_hash", policy_hash)
            .text("ecm_registry_hash", ecm_registry_hash)
            .text("temperament_hash", temperament_hash)
            .text("commissioned_at", commissioned_at)
            .finish()
    }

    /// The SHA-256 of the operator's key (DER, SubjectPublicKeyInfo), if the field `operator` names
    /// one: `NAME <sha256:HEX>`. A text that only resembles this form is an error. It is no error
    /// in the manifest, whose field is any text.
    pub fn operator_key(&self) -> Result<Option<[u8; 32]>, ManifestError> {
        let wrong = ManifestError::OperatorKey;
        let Some((name, key)) = self.operator.split_once(KEY_BEGINS) else {
            let resembles = self.operator.to_ascii_lowercase().contains(KEY_BEGINS.trim_start());
            return if resembles { Err(wrong) } else { Ok(None) };
        };
        let key = key.strip_suffix('>').and_then(hex::decode::<32>);
        key.filter(|_| !name.trim().is_empty()).ok_or(wrong).map(Some)
    }

    /// SHA-256 of the canonical bytes.
    pub fn identity(&self) -> Identity {
        Identity(sha256(&[self.canonical().as_bytes()]))
    }
}

fn checked_text(field: &'static str, value: Option<String>) -> Result<String, ManifestError> {
    let value = value.ok_or(ManifestError::Missing(field))?;
    if value.trim().is_empty() {
        Err(ManifestError::Empty(field))
    } else if value.len() > MAX_FIELD_BYTES {
        Err(ManifestError::TooLong(field))
    } else if value.chars().any(char::is_control) {
        Err(ManifestError::ControlCharacter(field))
    } else {
        Ok(value)
    }
}

fn checked_hash(field: &'static str, value: String) -> Result<String, ManifestError> {
    match hex::decode::<32>(&value) {
        Some(_) => Ok(value),
        None => Err(ManifestError::NotAHash(field)),
    }
}

fn checked_date(field: &'static str, value: String) -> Result<String, ManifestError> {
    match Time::parse(&value) {
        Ok(_) => Ok(value),
        Err(_) => Err(ManifestError::NotADate(field)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASHES: [&str; 3] = ["policy_hash", "ecm_registry_hash", "temperament_hash"];

    fn golden(field: &str) -> Option<String> {
        let value = match field {
            "agent_id" => "ward-robot-01",
            "operator" => "St. Example Hospital",
            "embodiment" => "two-arm-mobile/rev-c",
            "policy_hash" => "1111111111111111111111111111111111111111111111111111111111111111",
            "ecm_registry_hash" => {
                "2222222222222222222222222222222222222222222222222222222222222222"
            }
            "temperament_hash" => {
                "3333333333333333333333333333333333333333333333333333333333333333"
            }
            "commissioned_at" => "2026-05-01T00:00:00Z",
            _ => return None,
        };
        Some(value.to_string())
    }

    fn with(changed: &'static str, value: &str) -> Result<Manifest, ManifestError> {
        Manifest::new(
            |field| {
                if field == changed { Some(value.to_string()) } else { golden(field) }
            },
        )
    }

    #[test]
    fn every_field_can_be_read() {
        let manifest = Manifest::new(golden).unwrap();
        for field in FIELDS {
            assert_eq!(manifest.field(field), golden(field).as_deref(), "{field}");
        }
        assert_eq!(manifest.field("policy"), None);
    }

    /// If this fails, do not edit the literals: a change needs a new manifest version.
    #[test]
    fn golden_identity() {
        let manifest = Manifest::new(golden).unwrap();
        assert_eq!(manifest.canonical(), include_str!("golden.canonical.json"));
        assert_eq!(
            manifest.identity().to_string(),
            "b113b1a485f0f31fc71582f00278878e70a9c23f5af27820ba7d58f5af8d60ff"
        );
    }

    #[test]
    fn each_of_the_seven_inputs_alone_moves_the_identity() {
        let golden_identity = Manifest::new(golden).unwrap().identity();
        for field in FIELDS {
            let value = match field {
                _ if HASHES.contains(&field) => "0".repeat(63) + "1",
                "commissioned_at" => "2026-05-01T00:00:00.0Z".to_string(),
                _ => format!("{}x", golden(field).unwrap()),
            };
            assert_ne!(with(field, &value).unwrap().identity(), golden_identity, "{field}");
        }
    }

    #[test]
    fn bad_fields_are_named() {
        for field in FIELDS {
            let missing = Manifest::new(|f| if f == field { None } else { golden(f) });
            assert_eq!(missing, Err(ManifestError::Missing(field)));
            assert_eq!(with(field, " "), Err(ManifestError::Empty(field)));
            assert_eq!(with(field, "a\nb"), Err(ManifestError::ControlCharacter(field)));
            assert_eq!(with(field, &"a".repeat(1025)), Err(ManifestError::TooLong(field)));
        }
        for field in HASHES {
            assert_eq!(with(field, &"A".repeat(64)), Err(ManifestError::NotAHash(field)));
        }
        let date = with("commissioned_at", "2026-05-01");
        assert_eq!(date, Err(ManifestError::NotADate("commissioned_at")));
    }

    #[test]
    fn only_one_form_names_the_key_of_the_operator() {
        let (hex, key) = ("ab".repeat(32), [0xab; 32]);
        let cases = [
            ("St. Example Hospital".to_string(), Ok(None)),
            ("a > b (sha256)".to_string(), Ok(None)),
            (operator_with_key("St. Example", &key), Ok(Some(key))),
            (format!("A \"B\" <c> <sha256:{hex}>"), Ok(Some(key))),
            (format!("A <sha256:{hex}> "), Err(ManifestError::OperatorKey)),
            (format!("A<sha256:{hex}>"), Err(ManifestError::OperatorKey)),
            (format!(" <sha256:{hex}>"), Err(ManifestError::OperatorKey)),
            (format!("A <SHA256:{hex}>"), Err(ManifestError::OperatorKey)),
            (format!("A <sha256:{}>", hex.to_uppercase()), Err(ManifestError::OperatorKey)),
            (format!("A <sha256:{hex}"), Err(ManifestError::OperatorKey)),
            (format!("A <sha256:{hex}> <sha256:{hex}>"), Err(ManifestError::OperatorKey)),
            ("A <sha256:>".to_string(), Err(ManifestError::OperatorKey)),
        ];
        for (operator, wanted) in cases {
            let manifest = with("operator", &operator).unwrap();
            assert_eq!(manifest.operator_key(), wanted, "{operator}");
        }
    }

    #[test]
    fn only_canonical_bytes_are_read_back() {
        let manifest = Manifest::new(golden).unwrap();
        let bytes = manifest.canonical();
        assert_eq!(Manifest::from_canonical(bytes.as_bytes()), Ok(manifest));
        for other in [
            format!("{bytes}\n"),
            bytes.replacen(':', ": ", 1),
            bytes.replace('}', ",\"x\":\"y\"}"),
        ] {
            assert_eq!(
                Manifest::from_canonical(other.as_bytes()),
                Err(ManifestError::NotCanonical)
            );
        }
    }
}
