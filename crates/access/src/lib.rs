//! Access tokens: the secret text that a program sends, and the role that it grants.
//!
//! **Invariants**
//! - The text of a token is returned once, when it is made. The store keeps only its SHA-256.
//! - The text contains the identity, so that no request has to name one. An observer's token
//!   contains none: it belongs to the store. Tokens of all other roles belong to an identity.
//! - Hashes are compared in constant time, and a match does not end the comparison early.
//! - Clock and randomness are arguments.
//! - This crate accesses the tokens of a store and no other data.
#![forbid(unsafe_code)]

use base64ct::{Base64UrlUnpadded, Encoding};
use ipse_core::sources::{self, SourcesError};
use ipse_core::{Identity, Time, hex, sha256};
use ipse_store::{Error, Reader, Store, TokenRow, TokenWriter, View};
use std::fmt;
use std::ops::Deref;
use subtle::ConstantTimeEq;

pub use ipse_core::sources::MAX_SOURCES;
pub use ipse_store::{MAX_LIVE_TOKENS, Owner};

/// The prefix of every token, so that a token in a log file can be recognised.
pub const TEXT_PREFIX: &str = "ipse_";
/// The prefix of every token id.
pub const ID_PREFIX: &str = "tk_";
/// The second part of an observer's token.
const OBSERVER: &str = "observer_";
/// Hex digits of an identity.
const IDENTITY_DIGITS: usize = 64;

/// The source of composed events if the token does not name exactly one.
const REPORTING_SOURCE: &str = "http";

const MINUTE: i64 = 60_000_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// Maximum bytes of a token's name: it has to fit a column of a table.
pub const MAX_NAME_BYTES: usize = 64;
/// The shortest lifetime of a token, in microseconds: below a minute clocks disagree.
pub const MIN_LIFE: i64 = MINUTE;
/// The longest lifetime of a token that expires, in microseconds: ten years with leap days.
pub const MAX_LIFE: i64 = 3653 * DAY;
/// Microseconds between two recorded uses of a token, so that reads do not cause many writes.
pub const USE_EVERY: i64 = MINUTE;

/// The role of a token: the operations that it permits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// Consult facts and propose intents.
    Planner,
    /// Append events.
    Producer,
    /// Run passes, confirm intents and forget events.
    Operator,
    /// Read tree heads, proofs and bundles.
    Auditor,
    /// Read the metrics of the whole server.
    Observer,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 5] =
        [Role::Planner, Role::Producer, Role::Operator, Role::Auditor, Role::Observer];

    /// The name of the role in JSON and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Role::Planner => "planner",
            Role::Producer => "producer",
            Role::Operator => "operator",
            Role::Auditor => "auditor",
            Role::Observer => "observer",
        }
    }

    /// Reads the name of a role.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Whether a token of this role may belong to this owner.
    fn suits(self, owner: &Owner) -> bool {
        (self == Role::Observer) == (*owner == Owner::Store)
    }
}

/// `tk_` and the first 32 hex digits of SHA-256(hash): the public name of a token. It grants no
/// access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenId(pub [u8; 16]);

impl TokenId {
    /// The id of the token with this hash.
    pub fn of(hash: &[u8; 32]) -> Self {
        let hash = sha256(&[hash]);
        let (short, _) = hash.split_first_chunk().expect("BUG: a hash is longer than its half");
        TokenId(*short)
    }

    /// Reads the prefixed text form.
    pub fn parse(text: &str) -> Option<Self> {
        hex::decode(text.strip_prefix(ID_PREFIX)?).map(TokenId)
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ID_PREFIX}{}", hex::encode(&self.0))
    }
}

impl fmt::Debug for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The properties of a token that is to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewToken {
    /// The operations that it permits.
    pub role: Role,
    /// A name for people.
    pub name: Option<String>,
    /// The sources that a producer may send events of, as in [`sources`]; empty permits all.
    pub sources: Vec<String>,
    /// The time from which on it is expired; `None` if it never expires.
    pub expires: Option<Time>,
}

/// The reason why a token cannot be made.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TokenError {
    /// The name is not valid.
    #[error(
        "a token's name has 1 to {MAX_NAME_BYTES} bytes, no control characters, \
         and begins neither with {TEXT_PREFIX} nor with {ID_PREFIX}"
    )]
    Name,
    /// The role does not fit the owner.
    #[error("the token of an observer belongs to the store, and any other to an identity")]
    Owner,
    /// A token that is not a producer's has sources.
    #[error("only a producer's token can have sources; the role is {}", .0.name())]
    SourcesOf(Role),
    /// The list of sources is not valid.
    #[error(transparent)]
    Sources(#[from] SourcesError),
    /// The lifetime is too short or too long.
    #[error("the lifetime of a token is at least a minute and at most ten years")]
    Life,
}

impl NewToken {
    /// Validates the properties.
    pub fn check(&self, now: Time) -> Result<(), TokenError> {
        if !self.name.as_deref().is_none_or(is_name) {
            return Err(TokenError::Name);
        }
        if !self.sources.is_empty() && self.role != Role::Producer {
            return Err(TokenError::SourcesOf(self.role));
        }
        sources::checked(self.sources.clone())?;
        let life = self.expires.map(|expires| expires.micros() - now.micros());
        let lives = life.is_none_or(|life| (MIN_LIFE..=MAX_LIFE).contains(&life));
        if lives { Ok(()) } else { Err(TokenError::Life) }
    }
}

/// Validates a name. It must not look like an id or a token.
fn is_name(name: &str) -> bool {
    let taken = name.starts_with(ID_PREFIX) || name.starts_with(TEXT_PREFIX);
    (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control) && !taken
}

/// A token without its text: the stored row, with its id and its role parsed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    /// The public name of the token.
    pub id: TokenId,
    /// The operations that it permits.
    pub role: Role,
    /// The stored row.
    pub row: TokenRow,
}

impl Deref for Token {
    type Target = TokenRow;

    /// Gives access to the hash, the name, the sources and the times in the row.
    fn deref(&self) -> &TokenRow {
        &self.row
    }
}

/// Whether a token is valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// The token is valid.
    Live,
    /// The token has expired.
    Expired,
    /// The token was revoked. It may have expired as well.
    Revoked,
}

impl State {
    /// The name of the state.
    pub fn name(self) -> &'static str {
        match self {
            State::Live => "live",
            State::Expired => "expired",
            State::Revoked => "revoked",
        }
    }
}

impl Token {
    /// The state at a time. At exactly `expires` the token is expired.
    pub fn state(&self, now: Time) -> State {
        match self.row {
            TokenRow { revoked: Some(_), .. } => State::Revoked,
            TokenRow { expires: Some(expires), .. } if expires <= now => State::Expired,
            _ => State::Live,
        }
    }

    /// Whether the hash is that of this token, and the token is valid at this time.
    pub fn lets_in(&self, hash: &[u8; 32], now: Time) -> bool {
        bool::from(self.hash.ct_eq(hash)) && self.state(now) == State::Live
    }

    /// Whether it permits events of this source.
    pub fn may_send(&self, source: &str) -> bool {
        let permits = |list: &Vec<String>| sources::permits(list, source);
        self.role == Role::Producer && self.sources.as_ref().is_none_or(permits)
    }

    /// The source of an event that the server composes for a caller with this token: its only
    /// source if its list names one and no more, else `http`. The caller checks
    /// [`Token::may_send`].
    pub fn reporting_source(&self) -> &str {
        match self.sources.as_deref() {
            Some([only]) if sources::is_whole(only) => only,
            _ => REPORTING_SOURCE,
        }
    }

    /// Whether a use should be recorded: the recorded use is at least a minute away. The distance
    /// counts in both directions, since a clock may have been set back.
    pub fn use_is_due(&self, now: Time) -> bool {
        let apart = |last: Time| now.micros().abs_diff(last.micros());
        self.last_used.is_none_or(|last| apart(last) >= USE_EVERY.unsigned_abs())
    }

    fn of_row(owner: &Owner, row: TokenRow) -> Result<Self, Error> {
        let id = TokenId(row.token_id);
        let role = Role::parse(&row.role).filter(|role| role.suits(owner));
        let role = role.filter(|_| TokenId::of(&row.hash) == id);
        let role = role.ok_or_else(|| damaged_token(&id))?;
        Ok(Token { id, role, row })
    }
}

/// The error of a stored token whose id, hash and role do not match.
fn damaged_token(id: &TokenId) -> Error {
    Error::Corrupt(format!("token {id} cannot be read"))
}

/// Makes a token from 32 random bytes. Returns its text, which is shown once, and the token to
/// store.
pub fn make(
    owner: impl Into<Owner>,
    new: NewToken,
    random: [u8; 32],
    now: Time,
) -> Result<(String, Token), TokenError> {
    let owner = owner.into();
    if !new.role.suits(&owner) {
        return Err(TokenError::Owner);
    }
    new.check(now)?;
    let secret = Base64UrlUnpadded::encode_string(&random);
    let text = match owner {
        Owner::Identity(identity) => format!("{TEXT_PREFIX}{identity}_{secret}"),
        Owner::Store => format!("{TEXT_PREFIX}{OBSERVER}{secret}"),
    };
    let hash = sha256(&[text.as_bytes()]);
    let sources = sources::checked(new.sources)?;
    let (id, role) = (TokenId::of(&hash), new.role);
    let row = TokenRow {
        token_id: id.0,
        hash,
        role: role.name().to_string(),
        name: new.name,
        sources: Some(sources).filter(|sources| !sources.is_empty()),
        created: now,
        expires: new.expires,
        revoked: None,
        last_used: None,
    };
    let token = Token { id, role, row };
    Ok((text, token))
}

/// The owner and the hash of a token text; `None` for any text that [`make`] does not return.
pub fn parse(text: &str) -> Option<(Owner, [u8; 32])> {
    let rest = text.strip_prefix(TEXT_PREFIX)?;
    let (owner, secret) = match rest.strip_prefix(OBSERVER) {
        Some(secret) => (Owner::Store, secret),
        None => {
            let (identity, rest) = rest.split_at_checked(IDENTITY_DIGITS)?;
            (Owner::Identity(Identity::parse(identity)?), rest.strip_prefix('_')?)
        }
    };
    let mut bytes = [0; 32];
    let random = Base64UrlUnpadded::decode(secret, &mut bytes).ok()?;
    // A token has exactly one text: no other length, no stray bits at the end.
    let canonical = random.len() == 32 && Base64UrlUnpadded::encode_string(random) == secret;
    canonical.then(|| (owner, sha256(&[text.as_bytes()])))
}

/// The reason why a token is not valid. A response to the sender must not reveal it.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// The token is unknown.
    #[error("the token is unknown")]
    Unknown,
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
    /// The token was revoked.
    #[error("the token was revoked")]
    Revoked,
}

/// Finds the valid token with this text among the tokens of its owner.
pub fn check<'t>(tokens: &'t [Token], text: &str, now: Time) -> Result<&'t Token, Denied> {
    let (_, hash) = parse(text).ok_or(Denied::Unknown)?;
    let mut found = None;
    for token in tokens {
        // No break: the duration must not depend on which hash matches.
        if bool::from(token.hash.ct_eq(&hash)) {
            found = Some(token);
        }
    }
    let token = found.ok_or(Denied::Unknown)?;
    match token.state(now) {
        State::Live => Ok(token),
        State::Expired => Err(Denied::Expired),
        State::Revoked => Err(Denied::Revoked),
    }
}

/// All tokens of an identity, oldest first, including expired and revoked ones.
pub fn tokens(view: View<'_>) -> Result<Vec<Token>, Error> {
    read(&Owner::Identity(view.identity()), view.tokens()?)
}

/// All tokens of the store itself, oldest first.
pub fn store_tokens(reader: &Reader) -> Result<Vec<Token>, Error> {
    read(&Owner::Store, reader.store_tokens()?)
}

fn read(owner: &Owner, rows: Vec<TokenRow>) -> Result<Vec<Token>, Error> {
    rows.into_iter().map(|row| Token::of_row(owner, row)).collect()
}

/// The tokens of an identity, and of the store itself, whose id, hash and role do not match.
pub fn damaged(view: View<'_>) -> Result<Vec<TokenId>, Error> {
    let mut damaged = Vec::new();
    for (owner, rows) in
        [(Owner::Identity(view.identity()), view.tokens()?), (Owner::Store, view.store_tokens()?)]
    {
        let ids = rows.into_iter().map(|row| (TokenId(row.token_id), Token::of_row(&owner, row)));
        damaged.extend(ids.filter_map(|(id, token)| token.is_err().then_some(id)));
    }
    Ok(damaged)
}

/// A handle on the tokens of a store and of all its identities, to store, revoke and look them
/// up.
pub struct Tokens {
    writer: TokenWriter,
}

impl Tokens {
    /// Opens the tokens of a store.
    pub fn open(store: &Store) -> Result<Self, Error> {
        Ok(Tokens { writer: store.tokens()? })
    }

    /// All tokens of an owner, oldest first.
    pub fn of(&self, owner: impl Into<Owner>) -> Result<Vec<Token>, Error> {
        let owner = owner.into();
        read(&owner, self.writer.tokens(owner)?)
    }

    /// Whether the store or any identity has a valid token.
    pub fn any_live(&self, now: Time) -> Result<bool, Error> {
        self.writer.any_live(now)
    }

    /// Stores a new token.
    pub fn put(&mut self, owner: impl Into<Owner>, token: &Token) -> Result<(), Error> {
        self.writer.put(owner, &token.row)
    }

    /// Revokes a token permanently. Returns false if it is unknown or was revoked before.
    pub fn revoke(
        &mut self,
        owner: impl Into<Owner>,
        id: &TokenId,
        now: Time,
    ) -> Result<bool, Error> {
        self.writer.revoke(owner, &id.0, now)
    }

    /// The owner of a text and its token, if the token is valid. The lookup uses the id, a hash of
    /// the hash, so that its duration reveals nothing. [`check`] then compares the hashes.
    pub fn admit(&self, text: &str, now: Time) -> Result<Result<(Owner, Token), Denied>, Error> {
        let Some((owner, hash)) = parse(text) else { return Ok(Err(Denied::Unknown)) };
        let row = match self.writer.token(owner, &TokenId::of(&hash).0) {
            Err(Error::UnknownIdentity(_)) => return Ok(Err(Denied::Unknown)),
            row => row?,
        };
        let found = read(&owner, row.into_iter().collect())?;
        Ok(check(&found, text, now).map(|token| (owner, token.clone())))
    }

    /// Whether a token is still valid.
    pub fn is_live(&self, owner: impl Into<Owner>, id: &TokenId, now: Time) -> Result<bool, Error> {
        let owner = owner.into();
        let row = self.writer.token(owner, &id.0)?;
        let token = row.map(|row| Token::of_row(&owner, row)).transpose()?;
        Ok(token.is_some_and(|token| token.state(now) == State::Live))
    }

    /// Records that a token was used, if that is due and no other process has recorded it
    /// meanwhile. Returns whether it was recorded.
    pub fn note_use(
        &mut self,
        owner: impl Into<Owner>,
        token: &Token,
        now: Time,
    ) -> Result<bool, Error> {
        let due = token.use_is_due(now);
        Ok(due && self.writer.note_use(owner, &token.id.0, token.last_used, now)?)
    }
}
