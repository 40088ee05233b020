//! `key`: keys are made, listed and revoked.
//!
//! **Invariants:** what is printed is public; a private half goes to a file that only its owner can
//! read. Who may sign for an identity is written in the store.

mod list;
mod new;
mod revoke;

use crate::CommandResult;
use crate::context::Context;
use crate::terminal::Terminal;
use crate::vocabulary::Nested;
use anyhow::Context as _;
use ipse::keys::Role;
use ipse_core::Identity;
use ipse_ledger::NoteKey;
use ipse_store::Reader;
use std::path::PathBuf;

const PRODUCER: &str = "producer";
const REGISTERED: &str = "registered";
const REVOKED: &str = "revoked";

pub(crate) type Args = Nested<Action>;

#[derive(clap::Subcommand, Debug)]
pub(crate) enum Action {
    /// Make a key; none is ever overwritten
    #[command(subcommand_required = true)]
    New {
        #[command(subcommand)]
        key: NewKey,
    },

    /// List the keys: those of the store, and of producers that may sign
    ///
    /// Exit 1 if there is none. The key id is the short one that signatures name, beside the name.
    List,

    /// Revoke a key: a producer's by its name, or `log`, or `operator`
    ///
    /// What a producer signs from then on is refused; what came before stays what it is. A key of
    /// the store moves to revoked/ in the key directory, the log's with the tree heads that it
    /// signed, and makes room for `ipse key new`. On a terminal it asks first.
    ///
    /// Example: ipse key revoke arm-7
    Revoke {
        /// Whose
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

#[derive(clap::Subcommand, Debug)]
pub(crate) enum NewKey {
    /// Make the key that signs tree heads, for every identity of the store
    ///
    /// Example: ipse key new log
    Log {
        #[command(flatten)]
        lock: LockArgs,
    },

    /// Make the key that signs certificates and bundles
    ///
    /// Example: ipse key new operator --passphrase
    Operator {
        #[command(flatten)]
        lock: LockArgs,
    },

    /// Make a producer's key and let it sign for an identity
    ///
    /// The public half is registered in the store and printed. The private half is made in the key
    /// directory, or in --out FILE, and belongs on the producer's machine. With --public only the
    /// public half of a key that was made elsewhere is registered. If the command is interrupted,
    /// run it again: it goes on with the private half that is there. The command prints the
    /// verifier key; its first two parts, NAME+ID, are the keyid in envelopes.
    ///
    /// Example: ipse key new producer arm-7 --public arm-7.pem
    Producer {
        /// What the producer is called: letters, digits, . _ and -
        name: String,
        /// Register this public key: a file in PEM, as `openssl pkey -pubout` writes it, or a
        /// verifier key, which is name, id and bytes, joined by +
        #[arg(long, value_name = "FILE|VKEY", conflicts_with_all = ["out", "passphrase"],
              allow_hyphen_values = true)]
        public: Option<String>,
        /// Write the private half to this new file
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        lock: LockArgs,
    },
}

#[derive(clap::Args, Debug)]
pub(crate) struct LockArgs {
    /// Encrypt it: with IPSE_PASSPHRASE, the first line of the file that IPSE_PASSPHRASE_FILE
    /// names, or what is typed on the terminal
    #[arg(long)]
    passphrase: bool,
}

pub(crate) fn run(context: &Context, terminal: &mut Terminal<'_>, args: &Args) -> CommandResult {
    match &args.action {
        Action::New { key: NewKey::Log { lock } } => {
            new::of_store(context, terminal, Role::Log, lock.passphrase)
        }
        Action::New { key: NewKey::Operator { lock } } => {
            new::of_store(context, terminal, Role::Operator, lock.passphrase)
        }
        Action::New { key: NewKey::Producer { name, public: Some(public), .. } } => {
            new::register(context, terminal, name, public)
        }
        Action::New { key: NewKey::Producer { name, out, lock, .. } } => {
            new::producer(context, terminal, name, out.as_deref(), lock.passphrase)
        }
        Action::List => list::run(context, terminal),
        Action::Revoke { name, yes } => revoke::run(context, terminal, name, *yes),
    }
}

/// The keys of the producers of an identity, and whether each is revoked.
fn producers(reader: &Reader, identity: &Identity) -> anyhow::Result<Vec<(NoteKey, bool)>> {
    let damaged = "the store is damaged: a producer's key is none";
    let parsed =
        |(key, revoked): (String, bool)| Ok((NoteKey::parse(&key).context(damaged)?, revoked));
    reader.producers(identity)?.into_iter().map(parsed).collect()
}
