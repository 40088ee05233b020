//! `key`: creates, lists and revokes keys.
//!
//! **Invariants:** only public halves are printed. A private half goes to a file that only its
//! owner can read. The store holds the public halves that may sign for an identity.

mod list;
mod new;
mod revoke;

use crate::CommandResult;
use crate::context::Context;
use crate::sources::SourceArgs;
use crate::terminal::Terminal;
use crate::vocabulary::Nested;
use anyhow::Context as _;
use ipse::keys::Role;
use ipse_core::Identity;
use ipse_ledger::NoteKey;
use ipse_store::{Producer, Reader};
use std::path::PathBuf;

const PRODUCER: &str = "producer";
const REGISTERED: &str = "registered";
const REVOKED: &str = "revoked";

pub(crate) type Args = Nested<Action>;

#[derive(clap::Subcommand, Debug)]
pub(crate) enum Action {
    /// Create a key; never overwrite one
    #[command(subcommand_required = true)]
    New {
        #[command(subcommand)]
        key: NewKey,
    },

    /// List the keys of the store and of its producers
    ///
    /// Exit 1 if there are no keys. The key id is the short id that signatures name in addition to
    /// the name.
    List,

    /// Revoke a key: a producer's by its name, or `log`, or `operator`
    ///
    /// Later signatures of a producer are rejected; earlier ones stay valid. A key of the store
    /// moves to revoked/ in the key directory, the log's with the tree heads that it signed; then
    /// `ipse key new` can create another. On a terminal it asks first.
    ///
    /// Example: ipse key revoke arm-7
    Revoke {
        /// Revoke the key of this producer, or `log`, or `operator`
        name: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

#[derive(clap::Subcommand, Debug)]
pub(crate) enum NewKey {
    /// Create the key that signs tree heads, for every identity of the store
    ///
    /// Example: ipse key new log
    Log {
        #[command(flatten)]
        lock: LockArgs,
    },

    /// Create the key that signs certificates and bundles
    ///
    /// With --key-dir it needs no store. `ipse manifest new --operator-key` names the key in a
    /// manifest, and `ipse init` with the same --key-dir keeps it.
    ///
    /// Example: ipse key new operator --key-dir keys
    Operator {
        #[command(flatten)]
        lock: LockArgs,
    },

    /// Create a producer's key and allow it to sign for an identity
    ///
    /// The public half is registered in the store and printed. The private half is written to the
    /// key directory, or to --out FILE; move it to the producer's machine. With --public only the
    /// public half of a key that was made elsewhere is registered. If the command is interrupted,
    /// run it again: it continues with the private half that it left. The command prints the
    /// verifier key; its first two parts, NAME+ID, are the keyid in envelopes.
    ///
    /// The key may sign only events of the sources that are given here. A signed batch with an
    /// event of another source is refused.
    ///
    /// Example: ipse key new producer arm-7 --source arm-7 --public arm-7.pem
    Producer {
        /// Give the producer this name: letters, digits, . _ and -
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
        sources: SourceArgs,
        #[command(flatten)]
        lock: LockArgs,
    },
}

#[derive(clap::Args, Debug)]
pub(crate) struct LockArgs {
    /// Encrypt the key with a passphrase: from IPSE_PASSPHRASE, from the first line of the file
    /// that IPSE_PASSPHRASE_FILE names, or typed on the terminal
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
        Action::New { key: NewKey::Producer { name, public: Some(public), sources, .. } } => {
            new::register(context, terminal, name, public, sources)
        }
        Action::New { key: NewKey::Producer { name, out, lock, sources, .. } } => {
            let (out, encrypt) = (out.as_deref(), lock.passphrase);
            let sources = sources.of_producer()?;
            let new = new::NewProducer { context, name, out, encrypt, sources };
            new::producer(terminal, &new)
        }
        Action::List => list::run(context, terminal),
        Action::Revoke { name, yes } => revoke::run(context, terminal, name, *yes),
    }
}

/// The keys of the producers of an identity, each with its row in the store.
fn producers(reader: &Reader, identity: &Identity) -> anyhow::Result<Vec<(NoteKey, Producer)>> {
    let damaged = "the store is damaged: a producer's key is not a verifier key";
    let parsed = |row: Producer| Ok((NoteKey::parse(&row.key).context(damaged)?, row));
    reader.producers(identity)?.into_iter().map(parsed).collect()
}
