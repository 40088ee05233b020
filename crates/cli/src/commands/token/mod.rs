//! `token`: creates, lists and revokes access tokens.
//!
//! **Invariants:** a token is printed once, after it is durable, on standard output and nowhere
//! else. A rejected command changes nothing.

mod expiry;

use crate::context::Context;
use crate::sources::{SourceArgs, sources_cell, sources_json};
use crate::terminal::{Terminal, counted, to_seconds};
use crate::vocabulary::{Nested, words};
use crate::{CommandResult, Exit};
use anyhow::bail;
use expiry::{Expiry, expires, expiry};
use ipse::SystemHost;
use ipse_access::{self, NewToken, Owner, Role, State, Token, TokenId, Tokens};
use ipse_core::Time;
use ipse_core::json::list as json_list;
use ipse_core::json::{Members, quoted};
use ipse_inspect::answer::clean;

pub(crate) type Args = Nested<Action>;

#[derive(clap::Subcommand, Debug)]
pub(crate) enum Action {
    /// Create a token for an identity and print it once
    ///
    /// The token of an observer belongs to the store: it needs no identity, and reads only the
    /// metrics of the whole server.
    ///
    /// The token of a producer names the event sources that it may send. Events of other sources
    /// are refused.
    ///
    /// Only the token goes to standard output. The store keeps its SHA-256, from which it cannot
    /// be recovered: if it is lost, revoke it and create another.
    ///
    /// Example: TOKEN=$(ipse token create --role producer --name arm-7 --source arm-7)
    Create(CreateArgs),

    /// List the tokens of an identity and of the observers of the store, without their secrets
    ///
    /// Exit 1 if there are no tokens.
    List {
        /// List also revoked and expired tokens
        #[arg(long)]
        all: bool,
        /// List only the tokens of observers; needs no identity
        #[arg(long)]
        observers: bool,
    },

    /// Revoke a token by its id or its name, permanently and at once
    ///
    /// The secret text of a token works too. If several live tokens have the name, give the id.
    /// Exit 0 if the token is already revoked, exit 1 if there is no such token.
    ///
    /// Example: ipse token revoke arm-7
    Revoke {
        /// Revoke this token
        #[arg(value_name = "TOKEN_ID|NAME", allow_hyphen_values = true)]
        which: String,
    },
}

#[derive(clap::Args, Debug)]
pub(crate) struct CreateArgs {
    /// Give its bearer this role
    #[arg(long, value_parser = words(Role::ALL.map(Role::name), Role::parse))]
    role: Role,
    /// Set the expiry: after seconds, minutes, hours, days or weeks (90s, 15m, 12h, 30d, 2w), at a
    /// time in RFC 3339, or never. A minute at least, ten years at most
    #[arg(long, value_name = "WHEN", default_value = "90d", value_parser = expiry,
          allow_hyphen_values = true)]
    expires: Expiry,
    /// Give it a name of up to 64 bytes
    #[arg(long, allow_hyphen_values = true)]
    name: Option<String>,
    #[command(flatten)]
    sources: SourceArgs,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    match &args.action {
        Action::Create(args) => create(context, terminal, args),
        Action::List { all, observers } => list(context, terminal, *all, *observers),
        Action::Revoke { which } => revoke(context, terminal, which),
    }
}

fn create(context: &Context, terminal: &mut Terminal<'_>, args: &CreateArgs) -> CommandResult {
    let now = context.now();
    let expires = expires(args.expires, now)?;
    let (role, name) = (args.role, args.name.clone());
    let sources = match role {
        Role::Producer => args.sources.of_producer()?.unwrap_or_default(),
        _ if args.sources.any_source => bail!("--any-source is for the token of a producer"),
        _ => args.sources.source.clone(),
    };
    let new = NewToken { role, name, sources, expires };
    // Checked first, so that a rejected command does not migrate an older store.
    new.check(now)?;
    let owner = match role {
        Role::Observer if context.names_identity() => {
            bail!("the token of an observer belongs to the store: leave out --identity")
        }
        Role::Observer => Owner::Store,
        _ => Owner::Identity(context.read_to_write(terminal)?.1),
    };
    let (text, token) = ipse_access::make(owner, new, SystemHost::random(), now)?;
    let mut governor = match owner {
        Owner::Identity(identity) => {
            let mut governor = context.token_governor(terminal, identity)?;
            governor.put_token(&token.row)?;
            Some(governor)
        }
        // The token of an observer belongs to no log, so no log records it.
        Owner::Store => {
            Tokens::open(context.store_to_write(terminal)?)?.put(owner, &token)?;
            None
        }
    };
    match context.json {
        true => terminal.json(&created_json(owner, &text, &token))?,
        false => writeln!(terminal.out, "{text}")?,
    }
    if let Some(governor) = &mut governor {
        context.tell_act_head(terminal, governor)?;
    }
    let until = match token.expires {
        Some(expires) => format!("until {}", to_seconds(expires)),
        None => "until it is revoked".into(),
    };
    writeln!(
        terminal.err,
        "{} token {} for {}, valid {until}\nshown once, stored as a hash: put it where only its \
         bearer can read it",
        role.name(),
        token.id,
        whose(owner)
    )?;
    Ok(Exit::Fine)
}

fn whose(owner: Owner) -> String {
    match owner {
        Owner::Identity(identity) => identity.to_string(),
        Owner::Store => "the store".into(),
    }
}

fn created_json(owner: Owner, text: &str, token: &Token) -> String {
    let identity = match owner {
        Owner::Identity(identity) => Some(quoted(&identity.to_string())),
        Owner::Store => None,
    };
    Members::new()
        .text("token", text)
        .text("token_id", &token.id.to_string())
        .text("role", token.role.name())
        .optional("identity_hash", identity)
        .optional("expires", token.expires.map(quoted_time))
        .optional("name", token.name.as_deref().map(quoted))
        .optional("sources", token.sources.as_deref().map(sources_json))
        .finish()
}

fn quoted_time(time: Time) -> String {
    quoted(&time.to_string())
}

fn list(
    context: &Context,
    terminal: &mut Terminal<'_>,
    all: bool,
    observers: bool,
) -> CommandResult {
    let now = context.now();
    let mut tokens = Vec::new();
    if !observers {
        let (reader, identity) = context.read()?;
        tokens = ipse_access::tokens(reader.view(&identity)?.view())?;
    }
    tokens.extend(ipse_access::store_tokens(&context.store()?.reader()?)?);
    let shown = |token: &&Token| all || token.state(now) == State::Live;
    let rows: Vec<&Token> = tokens.iter().filter(shown).collect();
    if context.json {
        terminal.json(&json_list(rows.iter().map(|token| listed_json(token, now))))?;
    } else if !rows.is_empty() {
        let cells: Vec<_> = rows.iter().map(|token| cells(token, now)).collect();
        let header =
            ["TOKEN ID", "ROLE", "NAME", "SOURCES", "CREATED", "EXPIRES", "LAST USED", "STATE"];
        terminal.table(&header, &cells)?;
    }
    if rows.is_empty() {
        let more = match tokens.len() as u64 {
            0 => "run `ipse token create`".to_string(),
            n => format!("--all lists {} that are revoked or expired", counted(n, "token")),
        };
        writeln!(terminal.err, "no live tokens; {more}")?;
    }
    Ok(Exit::fine_if(!rows.is_empty()))
}

fn cells(token: &Token, now: Time) -> Vec<String> {
    let none = || String::from("-");
    let sources = match token.role {
        Role::Producer => sources_cell(token.sources.as_deref()),
        _ => none(),
    };
    vec![
        token.id.to_string(),
        token.role.name().to_string(),
        token.name.as_deref().map_or_else(none, clean),
        sources,
        to_seconds(token.created),
        token.expires.map_or_else(|| "never".into(), to_seconds),
        token.last_used.map_or_else(|| "never".into(), to_seconds),
        token.state(now).name().to_string(),
    ]
}

fn listed_json(token: &Token, now: Time) -> String {
    Members::new()
        .text("token_id", &token.id.to_string())
        .text("role", token.role.name())
        .text("created", &token.created.to_string())
        .text("state", token.state(now).name())
        .optional("name", token.name.as_deref().map(quoted))
        .optional("sources", token.sources.as_deref().map(sources_json))
        .optional("expires", token.expires.map(quoted_time))
        .optional("revoked", token.revoked.map(quoted_time))
        .optional("last_used", token.last_used.map(quoted_time))
        .finish()
}

fn revoke(context: &Context, terminal: &mut Terminal<'_>, which: &str) -> CommandResult {
    let now = context.now();
    let observers = ipse_access::store_tokens(&context.store_to_write(terminal)?.reader()?)?;
    // The identity is not needed to revoke the token of an observer.
    let known = match context.read() {
        Err(_) if choose(&observers, which, now)?.is_some() => (Owner::Store, Vec::new()),
        read => {
            let (reader, identity) = read?;
            let tokens = ipse_access::tokens(reader.view(&identity)?.view())?;
            (Owner::Identity(identity), tokens)
        }
    };
    let (identity, of_identity) = known;
    let tokens = [of_identity, observers].concat();
    let Some(token) = choose(&tokens, which, now)? else {
        // The argument is not printed if it may be a secret: another user's, or mistyped.
        let which = match which.starts_with(ipse_access::TEXT_PREFIX) {
            true => "no such token".to_string(),
            false => format!("no token `{}`", ipse_door::printable(which)),
        };
        let hint = "`ipse token list --all` lists all tokens";
        let identity = whose(identity);
        writeln!(terminal.err, "{which} of {identity}; nothing was changed. {hint}")?;
        return Ok(Exit::Found);
    };
    let owner = if token.role == Role::Observer { Owner::Store } else { identity };
    let changed = match owner {
        Owner::Identity(identity) => {
            let mut governor = context.token_governor(terminal, identity)?;
            let changed = governor.revoke_token(&token.id.0)?;
            context.tell_act_head(terminal, &mut governor)?;
            changed
        }
        Owner::Store => {
            Tokens::open(context.store_to_write(terminal)?)?.revoke(owner, &token.id, now)?
        }
    };
    // If it is neither changed nor revoked before, another process has revoked it since the read.
    let revoked = token.revoked.filter(|_| !changed).unwrap_or(now);
    if context.json {
        let json = Members::new().text("token_id", &token.id.to_string());
        terminal
            .json(&json.text("revoked", &revoked.to_string()).raw("changed", changed).finish())?;
    } else {
        writeln!(terminal.out, "revoked {}", token.id)?;
    }
    if !changed {
        writeln!(terminal.err, "it was revoked at {}", to_seconds(revoked))?;
    }
    Ok(Exit::Fine)
}

/// Finds a token by its id, by its text, or by its name. Of several with the name it prefers a live
/// one, then the newest expired one, then the newest revoked one.
fn choose<'t>(tokens: &'t [Token], which: &str, now: Time) -> anyhow::Result<Option<&'t Token>> {
    let itself = || ipse_access::parse(which).map(|(_, hash)| TokenId::of(&hash));
    if let Some(id) = TokenId::parse(which).or_else(itself) {
        return Ok(tokens.iter().find(|token| token.id == id));
    }
    let named = || tokens.iter().filter(|token| token.name.as_deref() == Some(which));
    let of = |state| named().filter(|token| token.state(now) == state).collect::<Vec<_>>();
    match of(State::Live).as_slice() {
        [one] => Ok(Some(one)),
        [] => Ok(of(State::Expired).pop().or_else(|| of(State::Revoked).pop())),
        many => {
            let ids: Vec<String> = many.iter().map(|token| format!("  {}", token.id)).collect();
            bail!(
                "{} live tokens have the name `{}`; nothing was changed. Give one of the ids:\n{}",
                many.len(),
                ipse_door::printable(which),
                ids.join("\n")
            )
        }
    }
}
