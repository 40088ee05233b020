//! The event `ipse.act`: a decision about a log that its operator made, on the record of that log.
//!
//! **Invariants**
//! - An act holds names, public keys and settings. It holds no secret and no content of an event.
//! - Only the bytes that ipse writes are read: one act has one form.
//! - [`crate::governance`] says which settings a sequence of acts gives.

use crate::account::house_parts;
use crate::claim::KeyStatement;
use crate::dsse;
use crate::note::NoteKey;
use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use ipse_core::event::MAX_DEPTH;
use ipse_core::json::{Members, Object, Value, list, quoted};
use ipse_core::{Identity, Seq, Time, hex, json_parse, sources};

/// The writer of an act that was made with a command.
pub const CLI: &str = "cli";
/// The prefix of a token id, before 32 hex digits.
const TOKEN_PREFIX: &str = "tk_";
/// The longest name of a token, in bytes.
const MAX_TOKEN_NAME: usize = 64;
/// The longest retention setting, in bytes.
const MAX_RETENTION: usize = 16;
/// The longest signature of a change of keys, in bytes.
const MAX_SIGNATURE: usize = 4096;
/// The bytes of producers and tokens in one baseline, so that the event stays below the size limit
/// of events. A longer baseline has several parts.
const BASELINE_BYTES: usize = 40_000;

/// The key of a producer, with the sources that it may use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProducerKey {
    /// The verifier key.
    pub key: NoteKey,
    /// The sources of the events that it may sign; any if absent.
    pub sources: Option<Vec<String>>,
}

/// An access token, without its text and its hash.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TokenRecord {
    /// The public id, `tk_` and 32 hex digits.
    pub token_id: String,
    /// The role.
    pub role: String,
    /// The name for people.
    pub name: Option<String>,
    /// The sources that a producer may use; any if absent.
    pub sources: Option<Vec<String>>,
    /// The time of expiry; never if absent.
    pub expires: Option<Time>,
}

/// The settings of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogSettings {
    /// `off`, `record` or `require`.
    pub signatures: String,
    /// How long events are kept, as in `180d`; permanently if absent.
    pub retention: Option<String>,
    /// How many hours ahead of the clock an event may be dated; any number if absent.
    pub max_ahead: Option<u64>,
}

impl Default for LogSettings {
    /// The settings of a new log.
    fn default() -> Self {
        LogSettings { signatures: "record".to_owned(), retention: None, max_ahead: Some(24) }
    }
}

/// The state of a log when acts began to be recorded, or a part of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Baseline {
    /// The settings. Every part has them.
    pub settings: LogSettings,
    /// The registered keys, and whether each is revoked.
    pub producers: Vec<(ProducerKey, bool)>,
    /// The ids of the tokens that are not revoked.
    pub tokens: Vec<String>,
}

/// A key of the store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoreKey {
    /// The key that signs tree heads.
    Log,
    /// The key that signs bundles and approvals.
    Operator,
}

impl StoreKey {
    /// The name in JSON and of the key's files.
    pub fn name(self) -> &'static str {
        match self {
            StoreKey::Log => "log",
            StoreKey::Operator => "operator",
        }
    }

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        [StoreKey::Log, StoreKey::Operator].into_iter().find(|key| key.name() == name)
    }
}

/// A key of the store was replaced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyChange {
    /// Which key.
    pub role: StoreKey,
    /// The id of the key before, 8 hex digits.
    pub old: String,
    /// The key from now on.
    pub new: NoteKey,
    /// The old key's statement about the new one, a DSSE envelope, if the old key was available.
    pub signature: Option<String>,
}

/// The state of the old key's signature in a change of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OldSignature {
    /// There is none.
    Missing,
    /// The old key is not among the given keys.
    Unchecked,
    /// The old key signed this change.
    Valid,
    /// It is not a signature of the old key about this change.
    Wrong,
}

impl KeyChange {
    /// Checks the old key's signature, if the old key is among these.
    pub fn old_signature(&self, identity: &Identity, keys: &[NoteKey]) -> OldSignature {
        let Some(signature) = &self.signature else { return OldSignature::Missing };
        let is_old = |key: &&NoteKey| hex::encode(&key.id()) == self.old;
        let old: Vec<NoteKey> = keys.iter().filter(is_old).cloned().collect();
        if old.is_empty() {
            return OldSignature::Unchecked;
        }
        let expected = KeyStatement {
            identity: *identity,
            role: self.role,
            old: self.old.clone(),
            new: self.new.clone(),
        };
        match dsse::open(signature.as_bytes(), KeyStatement::TYPE, &old) {
            Ok((statement, _)) if statement == expected.statement() => OldSignature::Valid,
            _ => OldSignature::Wrong,
        }
    }
}

/// A decision about a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Act {
    /// The state when acts began to be recorded.
    Baseline(Baseline),
    /// A producer may sign.
    ProducerRegistered(ProducerKey),
    /// A producer may not sign any more.
    ProducerRevoked(ProducerKey),
    /// Another signature requirement: before and after.
    Signatures(String, String),
    /// Another retention: before and after.
    Retention(Option<String>, Option<String>),
    /// Events may be dated this many hours ahead: before and after.
    MaxAhead(Option<u64>, Option<u64>),
    /// Another key of the log or of the operator.
    KeyChanged(KeyChange),
    /// A token was created.
    TokenCreated(TokenRecord),
    /// A token was revoked.
    TokenRevoked(TokenRecord),
    /// Forgotten bytes left the files of the store.
    Erased,
}

impl Act {
    /// The name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Act::Baseline(_) => "baseline",
            Act::ProducerRegistered(_) => "producer_registered",
            Act::ProducerRevoked(_) => "producer_revoked",
            Act::Signatures(..) => "signatures",
            Act::Retention(..) => "retention",
            Act::MaxAhead(..) => "max_ahead",
            Act::KeyChanged(_) => "key_changed",
            Act::TokenCreated(_) => "token_created",
            Act::TokenRevoked(_) => "token_revoked",
            Act::Erased => "erased",
        }
    }

    /// The act as one line of text for people.
    pub fn words(&self) -> String {
        let or_off = |value: Option<String>| value.unwrap_or_else(|| "off".to_owned());
        let hours = |value: &Option<u64>| or_off(value.map(|hours| format!("{hours} h")));
        let change = match self {
            Act::Baseline(Baseline { settings, producers, tokens }) => format!(
                "signatures {}, retention {}, max_ahead {}, {} producers, {} tokens",
                settings.signatures,
                or_off(settings.retention.clone()),
                hours(&settings.max_ahead),
                producers.len(),
                tokens.len()
            ),
            Act::ProducerRegistered(it) | Act::ProducerRevoked(it) => {
                let sources = it.sources.as_ref().map(|list| list.join(", "));
                format!("{} ({})", key_name(&it.key), sources.unwrap_or("any source".to_owned()))
            }
            Act::Signatures(from, to) => format!("{from} -> {to}"),
            Act::Retention(from, to) => {
                format!("{} -> {}", or_off(from.clone()), or_off(to.clone()))
            }
            Act::MaxAhead(from, to) => format!("{} -> {}", hours(from), hours(to)),
            Act::KeyChanged(KeyChange { role, old, new, signature }) => {
                let signed = if signature.is_some() { "" } else { ", not signed by the old key" };
                format!("{} {old} -> {}{signed}", role.name(), hex::encode(&new.id()))
            }
            Act::TokenCreated(it) | Act::TokenRevoked(it) => {
                let name = it.name.as_ref().map(|name| format!(" `{name}`"));
                format!("{} {}{}", it.role, it.token_id, name.unwrap_or_default())
            }
            Act::Erased => return self.name().to_owned(),
        };
        format!("{}: {change}", self.name())
    }

    /// The acts that record the state of a log: one, or several parts if it is large.
    pub fn baseline(
        settings: &LogSettings,
        producers: Vec<(ProducerKey, bool)>,
        tokens: Vec<String>,
    ) -> Vec<Act> {
        let part =
            || Baseline { settings: settings.clone(), producers: Vec::new(), tokens: Vec::new() };
        let (mut parts, mut room) = (alloc::vec![part()], BASELINE_BYTES);
        let mut place = |parts: &mut Vec<Baseline>, bytes: usize| {
            if bytes > room {
                parts.push(part());
                room = BASELINE_BYTES;
            }
            room = room.saturating_sub(bytes);
            parts.len() - 1
        };
        for (producer, revoked) in producers {
            let bytes = producer_members(&producer).finish().len() + 20;
            let at = place(&mut parts, bytes);
            parts[at].producers.push((producer, revoked));
        }
        for token in tokens {
            let at = place(&mut parts, token.len() + 3);
            parts[at].tokens.push(token);
        }
        parts.into_iter().map(Act::Baseline).collect()
    }
}

/// An `ipse.act` event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ActEvent {
    /// The decision.
    pub act: Act,
    /// `cli`, or the id of the token with which it was made.
    pub by: String,
}

impl ActEvent {
    /// The id of such an event at a position.
    pub fn id(seq: Seq) -> String {
        format!("act:{seq}")
    }

    /// The data of the event, as canonical JSON.
    pub fn data(&self) -> String {
        let members = match &self.act {
            Act::Baseline(baseline) => baseline_members(baseline),
            Act::ProducerRegistered(it) | Act::ProducerRevoked(it) => producer_members(it),
            Act::Signatures(from, to) => Members::new().text("from", from).text("to", to),
            Act::Retention(from, to) => {
                Members::new().raw("from", text_or_null(from)).raw("to", text_or_null(to))
            }
            Act::MaxAhead(from, to) => {
                Members::new().raw("from", number_or_null(*from)).raw("to", number_or_null(*to))
            }
            Act::KeyChanged(KeyChange { role, old, new, signature }) => Members::new()
                .text("new_key_id", &hex::encode(&new.id()))
                .text("old_key_id", old)
                .text("public_key", &new.to_string())
                .text("role", role.name())
                .raw("signature", text_or_null(signature)),
            Act::TokenCreated(token) | Act::TokenRevoked(token) => token_members(token),
            Act::Erased => Members::new(),
        };
        members.text("act", self.act.name()).text("by", &self.by).finish()
    }

    /// Reads the canonical bytes of the event at a position.
    pub fn read(seq: Seq, payload: &[u8]) -> Option<Self> {
        let value = json_parse::parse(payload, MAX_DEPTH).ok()?;
        let parts = house_parts(&value).filter(|parts| parts.id == Self::id(seq))?;
        let event = ActEvent { act: act(parts.data)?, by: text(parts.data, "by")? };
        // Only the bytes that ipse writes are accepted.
        let mut stored = String::new();
        parts.data.write(&mut stored);
        let is_known = event.by == CLI || is_token_id(&event.by);
        (is_known && event.data() == stored).then_some(event)
    }
}

/// The name and the id of a key, as in envelopes.
fn key_name(key: &NoteKey) -> String {
    format!("{}+{}", key.name(), hex::encode(&key.id()))
}

fn text_or_null(text: &Option<String>) -> String {
    text.as_deref().map_or_else(|| "null".to_owned(), quoted)
}

fn number_or_null(number: Option<u64>) -> String {
    number.map_or_else(|| "null".to_owned(), |number| number.to_string())
}

fn list_or_null(texts: &Option<Vec<String>>) -> String {
    let json = |texts: &Vec<String>| list(texts.iter().map(|text| quoted(text)));
    texts.as_ref().map_or_else(|| "null".to_owned(), json)
}

fn producer_members(ProducerKey { key, sources }: &ProducerKey) -> Members {
    Members::new()
        .text("key_id", &hex::encode(&key.id()))
        .text("name", key.name())
        .text("public_key", &key.to_string())
        .raw("sources", list_or_null(sources))
}

fn token_members(token: &TokenRecord) -> Members {
    let expires = token.expires.map(|time| time.to_string());
    Members::new()
        .raw("expires", text_or_null(&expires))
        .raw("name", text_or_null(&token.name))
        .text("role", &token.role)
        .raw("sources", list_or_null(&token.sources))
        .text("token_id", &token.token_id)
}

fn baseline_members(Baseline { settings, producers, tokens }: &Baseline) -> Members {
    let producers = producers.iter().map(|(key, revoked)| {
        let members = producer_members(key).raw("revoked", revoked);
        members.finish()
    });
    Members::new()
        .raw("max_ahead", number_or_null(settings.max_ahead))
        .raw("producers", list(producers))
        .raw("retention", text_or_null(&settings.retention))
        .text("signatures", &settings.signatures)
        .raw("tokens", list(tokens.iter().map(|token| quoted(token))))
}

fn act(data: &Object<'_>) -> Option<Act> {
    Some(match text(data, "act")?.as_str() {
        "baseline" => Act::Baseline(baseline(data)?),
        "producer_registered" => Act::ProducerRegistered(producer(data)?),
        "producer_revoked" => Act::ProducerRevoked(producer(data)?),
        "signatures" => Act::Signatures(signatures(data, "from")?, signatures(data, "to")?),
        "retention" => Act::Retention(retention(data, "from")?, retention(data, "to")?),
        "max_ahead" => Act::MaxAhead(number(data, "from")?, number(data, "to")?),
        "key_changed" => Act::KeyChanged(key_change(data)?),
        "token_created" => Act::TokenCreated(token(data)?),
        "token_revoked" => Act::TokenRevoked(token(data)?),
        "erased" => Act::Erased,
        _ => return None,
    })
}

fn text(data: &Object<'_>, name: &str) -> Option<String> {
    Some(data.get(name)?.as_text()?.to_owned())
}

/// A member that is a text or null.
fn optional_text(data: &Object<'_>, name: &str) -> Option<Option<String>> {
    match data.get(name)? {
        Value::Null => Some(None),
        value => value.as_text().map(|text| Some(text.to_owned())),
    }
}

fn number(data: &Object<'_>, name: &str) -> Option<Option<u64>> {
    match data.get(name)? {
        Value::Null => Some(None),
        value => value.as_count().map(Some),
    }
}

fn texts(value: &Value<'_>) -> Option<Vec<String>> {
    let Value::Array(texts) = value else { return None };
    texts.iter().map(|text| text.as_text().map(str::to_owned)).collect()
}

/// A list of sources, or null.
fn source_list(data: &Object<'_>) -> Option<Option<Vec<String>>> {
    let listed = match data.get("sources")? {
        Value::Null => return Some(None),
        value => texts(value)?,
    };
    let checked = sources::checked(listed.clone()).ok()?;
    (!listed.is_empty() && checked == listed).then_some(Some(listed))
}

fn signatures(data: &Object<'_>, name: &str) -> Option<String> {
    text(data, name).filter(|word| matches!(word.as_str(), "off" | "record" | "require"))
}

fn retention(data: &Object<'_>, name: &str) -> Option<Option<String>> {
    let is_span = |text: &String| {
        let (digits, unit) = text.split_at(text.len().saturating_sub(1));
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        text.is_ascii() && text.len() <= MAX_RETENTION && is_number && "hdw".contains(unit)
    };
    optional_text(data, name).filter(|kept| kept.as_ref().is_none_or(is_span))
}

fn producer(data: &Object<'_>) -> Option<ProducerKey> {
    Some(ProducerKey {
        key: NoteKey::parse(&text(data, "public_key")?)?,
        sources: source_list(data)?,
    })
}

fn key_change(data: &Object<'_>) -> Option<KeyChange> {
    let signature = optional_text(data, "signature")?;
    let fits = signature.as_ref().is_none_or(|signature| signature.len() <= MAX_SIGNATURE);
    let old = text(data, "old_key_id").filter(|old| fits && is_lower_hex(old, 8))?;
    let (role, new) = (StoreKey::parse(&text(data, "role")?)?, text(data, "public_key")?);
    Some(KeyChange { role, old, new: NoteKey::parse(&new)?, signature })
}

fn is_lower_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text has the form of a token id.
pub fn is_token_id(text: &str) -> bool {
    text.strip_prefix(TOKEN_PREFIX).is_some_and(|digits| is_lower_hex(digits, 32))
}

fn token(data: &Object<'_>) -> Option<TokenRecord> {
    let role = text(data, "role");
    let role =
        role.filter(|it| matches!(it.as_str(), "planner" | "producer" | "operator" | "auditor"));
    let name = optional_text(data, "name")?;
    let is_name = |name: &String| (1..=MAX_TOKEN_NAME).contains(&name.len());
    let expires = match optional_text(data, "expires")? {
        Some(time) => Some(Time::parse(&time).ok()?),
        None => None,
    };
    Some(TokenRecord {
        token_id: text(data, "token_id").filter(|id| is_token_id(id))?,
        role: role?,
        name: Some(name).filter(|name| name.as_ref().is_none_or(is_name))?,
        sources: source_list(data)?,
        expires,
    })
}

fn baseline(data: &Object<'_>) -> Option<Baseline> {
    let settings = LogSettings {
        signatures: signatures(data, "signatures")?,
        retention: retention(data, "retention")?,
        max_ahead: number(data, "max_ahead")?,
    };
    let Value::Array(producers) = data.get("producers")? else { return None };
    let producers = producers.iter().map(|value| {
        let data = value.as_object()?;
        let Value::Bool(revoked) = data.get("revoked")? else { return None };
        Some((producer(data)?, *revoked))
    });
    let producers = producers.collect::<Option<_>>()?;
    let tokens = texts(data.get("tokens")?)?;
    tokens.iter().all(|id| is_token_id(id)).then_some(Baseline { settings, producers, tokens })
}
