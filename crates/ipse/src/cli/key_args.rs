//! Arguments of `key` and `sign`. The doc comments are the help texts.

use clap::{Args as ClapArgs, Subcommand};
use ipse_ledger::Sent;
use std::path::PathBuf;

#[derive(Subcommand, Debug)]
pub(crate) enum KeyAction {
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

#[derive(Subcommand, Debug)]
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
    /// run it again: it goes on with the private half that is there.
    ///
    /// Example: ipse key new producer arm-7 --out arm-7.key
    Producer {
        /// What the producer is called: letters, digits, . _ and -
        name: String,
        /// Register this verifier key: its name, id and bytes, joined by +
        #[arg(long, value_name = "VKEY", conflicts_with_all = ["out", "passphrase"],
              allow_hyphen_values = true)]
        public: Option<String>,
        /// Write the private half to this new file
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        #[command(flatten)]
        lock: LockArgs,
    },
}

#[derive(ClapArgs, Debug)]
pub(crate) struct LockArgs {
    /// Encrypt it: with IPSE_PASSPHRASE, the first line of the file that IPSE_PASSPHRASE_FILE
    /// names, or what is typed on the terminal
    #[arg(long)]
    pub(crate) passphrase: bool,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct SignArgs {
    /// The events, plain or gzip; - for standard input
    pub(crate) file: PathBuf,
    /// The private key, PKCS#8 PEM
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// The name that the key was registered under
    #[arg(long)]
    pub(crate) name: String,
    /// Events under one signature at most
    #[arg(long, value_name = "N", default_value_t = 1024,
          value_parser = clap::value_parser!(u64).range(1..=Sent::MAX_EVENTS as u64))]
    pub(crate) batch: u64,
    /// Where they go; standard output if absent
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}
