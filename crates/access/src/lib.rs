//! Access tokens: what a program shows to be let in, and what it may then do.
//!
//! **Invariants**
//! - The text of a token is made once, handed out, and kept nowhere: a store has its SHA-256.
//! - The text carries its identity, so that no request has to name one. The token of an observer
//!   carries none: it belongs to the store, and no other role does.
//! - Hashes are compared in constant time, and every token is compared, whichever fits.
//! - Clock and randomness are arguments.
//! - This crate sees the tokens of a store and nothing else of it.
#![forbid(unsafe_code)]

use base64ct::{Base64UrlUnpadded, Encoding};
use ipse_core::{HOUSE_SOURCE, Identity, Time, hex, sha256};
use ipse_door::MAX_NAME_BYTES as MAX_SOURCE_BYTES;
use ipse_store::{Error, Reader, Store, TokenRow, TokenWriter, View};
use std::fmt;
use std::ops::Deref;
use subtle::ConstantTimeEq;

pub use ipse_store::{MAX_LIVE_TOKENS, Owner};

/// How every token begins, so that one that turns up in a log file can be recognised.
pub const TEXT_PREFIX: &str = "ipse_";
/// How every token id begins.
pub const ID_PREFIX: &str = "tk_";
/// How the token of an observer goes on.
const OBSERVER: &str = "observer_";
/// Hex digits of an identity.
const IDENTITY_DIGITS: usize = 64;

/// The source of composed events if the token does not name exactly one.
const REPORTING_SOURCE: &str = "http";

const MINUTE: i64 = 60_000_000;
const DAY: i64 = 24 * 60 * MINUTE;

/// Bytes of a token's name at most: it has to fit a column of a table.
pub const MAX_NAME_BYTES: usize = 64;
/// Sources of one token at most; a producer with more of them needs no list.
pub const MAX_SOURCES: usize = 16;
/// The shortest life of a token, in microseconds: below a minute clocks disagree.
pub const MIN_LIFE: i64 = MINUTE;
/// The longest life of a token that expires at all, in microseconds: ten years, leap days included.
pub const MAX_LIFE: i64 = 3653 * DAY;
/// How far apart noted uses of a token are, in microseconds: reading must not become writing.
pub const USE_EVERY: i64 = MINUTE;

/// What the bearer of a token may do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// Consult facts and propose intents.
    Planner,
    /// Append events.
    Producer,
    /// Run passes and forget.
    Operator,
    /// Read tree heads, proofs and bundles.
    Auditor,
    /// Read the measurements of the whole server.
    Observer,
}

impl Role {
    /// All of them.
    pub const ALL: [Role; 5] =
        [Role::Planner, Role::Producer, Role::Operator, Role::Auditor, Role::Observer];

    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Role::Planner => "planner",
            Role::Producer => "producer",
            Role::Operator => "operator",
            Role::Auditor => "auditor",
            Role::Observer => "observer",
        }
    }

    /// What a word means.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// Whether a token of that role may belong to that owner.
    fn suits(self, owner: &Owner) -> bool {
        (self == Role::Observer) == (*owner == Owner::Store)
    }
}

/// `tk_` and the first 32 hex digits of SHA-256(hash): the name of a token, which opens nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenId(pub [u8; 16]);

impl TokenId {
    /// The id of the token with that hash.
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

/// What a token is to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewToken {
    /// What its bearer may do.
    pub role: Role,
    /// What to call it.
    pub name: Option<String>,
    /// The sources that a producer may send under; any if there are none.
    pub sources: Vec<String>,
    /// From when on it is not good any more; never if absent.
    pub expires: Option<Time>,
}

/// Why there can be no such token.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum TokenError {
    /// Its name is none.
    #[error(
        "a token's name has 1 to {MAX_NAME_BYTES} bytes, no control characters, \
         and begins neither with {TEXT_PREFIX} nor with {ID_PREFIX}"
    )]
    Name,
    /// An observer's token belongs to the store, and every other one to an identity.
    #[error("the token of an observer belongs to the store, and any other to an identity")]
    Owner,
    /// Only a producer has sources.
    #[error("only a producer's token has sources, and the role here is {}", .0.name())]
    SourcesOf(Role),
    /// Too many sources.
    #[error("a token has at most {MAX_SOURCES} sources, and these are {0}")]
    Sources(usize),
    /// No event can have such a source.
    #[error(
        "`{}` is no source: 1 to {MAX_SOURCE_BYTES} bytes, no control characters, and not \
         `{HOUSE_SOURCE}`", ipse_door::printable(.0)
    )]
    Source(String),
    /// It would not live, or too long.
    #[error("a token that expires lives for at least a minute and at most ten years")]
    Life,
}

impl NewToken {
    /// Whether there can be such a token.
    pub fn check(&self, now: Time) -> Result<(), TokenError> {
        if !self.name.as_deref().is_none_or(is_name) {
            return Err(TokenError::Name);
        }
        if !self.sources.is_empty() && self.role != Role::Producer {
            return Err(TokenError::SourcesOf(self.role));
        }
        if self.sources.len() > MAX_SOURCES {
            return Err(TokenError::Sources(self.sources.len()));
        }
        if let Some(source) = self.sources.iter().find(|source| !is_source(source)) {
            return Err(TokenError::Source(source.clone()));
        }
        let life = self.expires.map(|expires| expires.micros() - now.micros());
        let lives = life.is_none_or(|life| (MIN_LIFE..=MAX_LIFE).contains(&life));
        if lives { Ok(()) } else { Err(TokenError::Life) }
    }
}

/// A name can be told from an id and from a token.
fn is_name(name: &str) -> bool {
    let taken = name.starts_with(ID_PREFIX) || name.starts_with(TEXT_PREFIX);
    (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control) && !taken
}

/// As the door has it for what producers send.
fn is_source(source: &str) -> bool {
    let fits = (1..=MAX_SOURCE_BYTES).contains(&source.len());
    fits && !source.chars().any(char::is_control) && source != HOUSE_SOURCE
}

/// A token, without its text: the stored row, with its id and its role read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    /// Its name for people and programs.
    pub id: TokenId,
    /// What its bearer may do.
    pub role: Role,
    /// What is stored of it.
    pub row: TokenRow,
}

impl Deref for Token {
    type Target = TokenRow;

    /// Hash, name, sources and times are those of the row.
    fn deref(&self) -> &TokenRow {
        &self.row
    }
}

/// Whether a token is good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It lets in.
    Live,
    /// Its time is over.
    Expired,
    /// It was revoked, whether or not its time is over as well.
    Revoked,
}

impl State {
    /// The word for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            State::Live => "live",
            State::Expired => "expired",
            State::Revoked => "revoked",
        }
    }
}

impl Token {
    /// How it stands at a moment. At the very microsecond of its expiry it is expired.
    pub fn state(&self, now: Time) -> State {
        match self.row {
            TokenRow { revoked: Some(_), .. } => State::Revoked,
            TokenRow { expires: Some(expires), .. } if expires <= now => State::Expired,
            _ => State::Live,
        }
    }

    /// Whether a text of that hash is this token, and it is good at that moment.
    pub fn lets_in(&self, hash: &[u8; 32], now: Time) -> bool {
        bool::from(self.hash.ct_eq(hash)) && self.state(now) == State::Live
    }

    /// Whether its bearer may send events of that source.
    pub fn may_send(&self, source: &str) -> bool {
        let listed = |sources: &Vec<String>| sources.iter().any(|allowed| allowed == source);
        self.role == Role::Producer && self.sources.as_ref().is_none_or(listed)
    }

    /// The source of an event that a server composes for its bearer: the only source that it may
    /// send under, else `http`, which it must be allowed.
    pub fn reporting_source(&self) -> &str {
        match self.sources.as_deref() {
            Some([only]) => only,
            _ => REPORTING_SOURCE,
        }
    }

    /// Whether its use should be noted: not within a minute of the use that is noted already,
    /// before it or after it, as a clock may have been set back.
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

/// The error of a stored token whose id, hash and role do not belong together.
fn damaged_token(id: &TokenId) -> Error {
    Error::Corrupt(format!("token {id} cannot be read"))
}

/// Makes a token of 32 random bytes: its text, which is shown once, and what is kept of it.
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
    let mut sources: Vec<String> = Vec::new();
    for source in new.sources {
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
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

/// Whose token a text is, and its hash; `None` for anything that [`make`] does not write.
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
    // One text for one token: no other length, no stray bits at the end.
    let canonical = random.len() == 32 && Base64UrlUnpadded::encode_string(random) == secret;
    canonical.then(|| (owner, sha256(&[text.as_bytes()])))
}

/// Why a token does not let in. Whoever shows it is to be told no more than that it does not.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// There is no such token.
    #[error("there is no such token")]
    Unknown,
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// It was revoked.
    #[error("the token was revoked")]
    Revoked,
}

/// The valid token of this text, among those of its owner.
pub fn check<'t>(tokens: &'t [Token], text: &str, now: Time) -> Result<&'t Token, Denied> {
    let (_, hash) = parse(text).ok_or(Denied::Unknown)?;
    let mut found = None;
    for token in tokens {
        // No break: how long it takes says nothing about how much of a hash was right.
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

/// All tokens of an identity, oldest first: also those that are expired or revoked.
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

/// The tokens of an identity, and of the store itself, whose id, hash and role do not belong
/// together.
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

/// The tokens of a store and of all its identities, to make, revoke and ask for them.
pub struct Tokens {
    writer: TokenWriter,
}

impl Tokens {
    /// Opens a store for its tokens, and for nothing else.
    pub fn open(store: &Store) -> Result<Self, Error> {
        Ok(Tokens { writer: store.tokens()? })
    }

    /// All tokens of an owner, oldest first.
    pub fn of(&self, owner: impl Into<Owner>) -> Result<Vec<Token>, Error> {
        let owner = owner.into();
        read(&owner, self.writer.tokens(owner)?)
    }

    /// Whether the store or any identity has a token that is live.
    pub fn any_live(&self, now: Time) -> Result<bool, Error> {
        self.writer.any_live(now)
    }

    /// Keeps a token that was just made.
    pub fn put(&mut self, owner: impl Into<Owner>, token: &Token) -> Result<(), Error> {
        self.writer.put(owner, &token.row)
    }

    /// Revokes a token for good; says whether there was one that was not.
    pub fn revoke(
        &mut self,
        owner: impl Into<Owner>,
        id: &TokenId,
        now: Time,
    ) -> Result<bool, Error> {
        self.writer.revoke(owner, &id.0, now)
    }

    /// Whose token a text is, and which, if it lets in. It is looked up by its id, a hash of its
    /// hash, so that looking betrays nothing; the hashes themselves are compared by [`check`].
    pub fn admit(&self, text: &str, now: Time) -> Result<Result<(Owner, Token), Denied>, Error> {
        let Some((owner, hash)) = parse(text) else { return Ok(Err(Denied::Unknown)) };
        let row = match self.writer.token(owner, &TokenId::of(&hash).0) {
            Err(Error::UnknownIdentity(_)) => return Ok(Err(Denied::Unknown)),
            row => row?,
        };
        let found = read(&owner, row.into_iter().collect())?;
        Ok(check(&found, text, now).map(|token| (owner, token.clone())))
    }

    /// Whether a token lets in still.
    pub fn is_live(&self, owner: impl Into<Owner>, id: &TokenId, now: Time) -> Result<bool, Error> {
        let owner = owner.into();
        let row = self.writer.token(owner, &id.0)?;
        let token = row.map(|row| Token::of_row(&owner, row)).transpose()?;
        Ok(token.is_some_and(|token| token.state(now) == State::Live))
    }

    /// Notes that a token was used, if that is due and nobody else has noted it meanwhile; says
    /// whether it was.
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
