//! Arguments as they are typed. The doc comments are the help texts.

use super::bench_args::BenchArgs;
use super::gates_args::GatesAction;
use super::key_args::{KeyAction, SignArgs};
use super::reproduce_args::ReproduceArgs;
use super::serve_args::ServeArgs;
use super::token_args::TokenAction;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use ipse_core::{FactKind, Outcome, Time};
use std::path::PathBuf;

/// Memory for long-running agents that learn without becoming someone else
///
/// An agent's identity is the SHA-256 of a seven-field manifest. What it lives through goes into an
/// append-only log of events; what it knows is facts, a deterministic function of that log, outside
/// the hash. So it learns, and stays the very same one.
///
/// Start with `ipse demo`.
#[derive(Parser, Debug)]
#[command(
    name = "ipse",
    version,
    disable_help_subcommand = true,
    after_help = "Exit 0: fine. 1: findings, or nothing found. 2: could not run.\n\
                  Results go to standard output, words for people to standard error."
)]
pub(crate) struct Args {
    /// The store: a file that `ipse init` makes
    #[arg(
        long,
        global = true,
        env = "IPSE_STORE",
        default_value = "ipse.db",
        value_name = "PATH",
        help_heading = "Everywhere"
    )]
    pub(crate) store: PathBuf,

    /// The directory of keys; the store's path with .keys behind it if absent
    #[arg(
        long = "key-dir",
        global = true,
        env = "IPSE_KEYS",
        value_name = "PATH",
        help_heading = "Everywhere"
    )]
    pub(crate) key_dir: Option<PathBuf>,

    /// The identity, or the first digits of it; not needed while a store has one
    #[arg(long, global = true, value_name = "PREFIX", help_heading = "Everywhere")]
    pub(crate) identity: Option<String>,

    /// Answer in JSON, for programs
    #[arg(long, global = true, help_heading = "Everywhere")]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Show a week of learning, end to end, in a temporary store
    ///
    /// Fifteen grasps of a glass cup, one pass, the fact it yields, the events behind it, a bundle
    /// that verifies without the store, and the identity before and after: byte-equal.
    Demo,

    /// Write a manifest template
    #[command(subcommand_required = true)]
    Manifest {
        #[command(subcommand)]
        action: ManifestAction,
    },

    /// Check or begin the files that judge what the agent wants to do
    ///
    /// The registry says what the agent can do, the policy what it must never do, the temperament
    /// how bold it is. The manifest holds their hashes, so the same agent is always judged by the
    /// same files; facts inform a planner and never move a verdict.
    #[command(subcommand_required = true)]
    Gates {
        #[command(subcommand)]
        action: GatesAction,
    },

    /// Create or open the store, register a manifest, print the identity
    ///
    /// A manifest that is there already stays as it is. A changed manifest is another identity with
    /// a log of its own, never a silent move.
    ///
    /// Keys are made beside the store, unless they are there: one that signs the log, one that
    /// signs for the operator. Keep them; give their public halves to whoever will check.
    ///
    /// Example: ipse init --manifest agent.toml
    Init {
        /// The manifest, TOML or JSON; `ipse manifest new` prints a template
        #[arg(long, value_name = "FILE")]
        manifest: PathBuf,
        /// Encrypt the keys that are made: with IPSE_PASSPHRASE, the first line of the file that
        /// IPSE_PASSPHRASE_FILE names, or what is typed on the terminal
        #[arg(long)]
        passphrase: bool,
    },

    /// Show who this is: manifest, identity, and that it has not changed
    ///
    /// The identity is computed anew from the stored manifest and compared with the one it was
    /// registered under; exit 1 if they differ. With --manifest it is also compared with a file on
    /// disk, as before a restart.
    ///
    /// Example: ipse identity --canonical | sha256sum
    Identity {
        /// Print exactly the bytes whose SHA-256 is the identity, and nothing else
        #[arg(long, conflicts_with = "json")]
        canonical: bool,
        /// Compare with a manifest file, changing nothing; exit 1 if it is another identity
        #[arg(long, value_name = "FILE", conflicts_with = "canonical")]
        manifest: Option<PathBuf>,
        /// Print the operator's signed word for who this is, as a DSSE envelope on one line
        #[arg(long, conflicts_with_all = ["canonical", "manifest"])]
        certificate: bool,
    },

    /// Append one event from flags, and renew the facts
    ///
    /// Example: ipse record --skill manipulation.grasp --target glass_cup --env ward3 --param
    /// force_n=25 --success
    Record(RecordArgs),

    /// Append events from a JSON Lines file, and renew the facts
    ///
    /// One CloudEvents object a line: id, source, type (or kind), time, data. Good lines are
    /// stored, bad ones are listed with their line number, field and rule. Sending a file again is
    /// safe: what is there already counts as a duplicate. One pass follows at the end.
    ///
    /// A line that teaches:
    /// {"id":"7","source":"arm","type":"execution_result","time":"2026-05-06T10:00:00Z","data":
    /// {"skill_id":"grasp","target_class":"cup","environment":"ward3","params":{"force_n":25},
    /// "success":false,"failure_reason":"slip","zone":"dock","object":{"mass_g":180}}}
    ///
    /// Exit 1 if a line was refused or in conflict with an event in the log.
    ///
    /// Example: zcat week.jsonl.gz | ipse import -
    Import {
        /// The file, plain or gzip; - for standard input
        file: PathBuf,
        /// Store the events but leave the facts as they are
        #[arg(long)]
        no_consolidate: bool,
        /// The file is one that `ipse sign` made: check who signed the events, and keep that
        #[arg(long)]
        signed: bool,
    },

    /// Fold new events into the facts: one pass, or "nothing new"
    Consolidate,

    /// Show what the agent knows
    ///
    /// Facts by confidence, the best first. A filter leaves out kinds of facts whose key has no
    /// such part. The grounding format is one line per fact for a planner's prompt; its bytes
    /// change only when a fact in it changes, so that a prompt cache keeps it.
    ///
    /// Example: ipse facts --skill manipulation.grasp --format grounding
    Facts(FactsArgs),

    /// Show why a fact says what it says, or what an event taught
    ///
    /// A fact: the arithmetic in words, the attempts by value, the events it rests on (latest in
    /// the log first, a hundred at a time) and the passes that folded them. An event: its entry,
    /// its content, and the facts it feeds. An intent, a confirmation, or an outcome that names an
    /// intent: also the walk back from the action to its intent, what the gates said, what the
    /// planner knew then with the evidence behind it, and the proofs. A key that names facts of
    /// several kinds lists them (exit 2). Exit 1 if there is no such thing, or the stored fact is
    /// not what its sum gives.
    ///
    /// Example: ipse explain 'manipulation.grasp + glass_cup + ward3'
    Explain(ExplainArgs),

    /// Print the canonical bytes of all facts
    ///
    /// The same events give the same bytes, in any order, on any machine. Example: ipse snapshot |
    /// sha256sum
    Snapshot {
        /// What the log up to that position gives: what a pass there would have known
        #[arg(long, value_name = "SEQ", allow_negative_numbers = true)]
        as_of: Option<u64>,
    },

    /// Show how the facts moved between two positions of the log
    ///
    /// What was added, what is gone, and every figure that moved and how far. Positions are those
    /// of `ipse log` and `ipse passes`; 0 is before the first event.
    ///
    /// Example: ipse diff 0 15
    Diff {
        /// The position to begin from
        #[arg(value_name = "SEQ", allow_negative_numbers = true)]
        from: u64,
        /// The position to compare it with
        #[arg(value_name = "SEQ", allow_negative_numbers = true)]
        to: u64,
    },

    /// List the events, oldest first
    Log(ListArgs),

    /// List the passes: what each covered and touched, and what fed no fact
    Passes(ListArgs),

    /// Forget events for good: facts become as if they had never been there
    ///
    /// Content, salt, typed columns and what they added to facts leave the store, the write-ahead
    /// log and free pages; ref, type, time and salted digest stay, and sending such an event again
    /// is refused. It is on the record, with a pass of its own. On a terminal it asks first.
    ///
    /// A ref that the log does not have changes nothing (exit 1); one that is forgotten already is
    /// fine. `erase pending` (exit 1): it is forgotten, but somebody who reads the store keeps old
    /// bytes in its files; the next command that writes erases them.
    ///
    /// Example: ipse forget ev_0b1e5a6f2d3c4b5a69788796a5b4c3d2
    Forget(ForgetArgs),

    /// Forget old events: all before a time, or all but the newest
    ///
    /// Works as `ipse forget` on every event and intent in the range; pass records, forget events
    /// and confirmations stay. --before goes by when an event happened, --keep by its place in the
    /// log.
    ///
    /// Example: ipse prune --before 2026-05-01 --dry-run
    Prune(PruneArgs),

    /// Show or change what is set for this store
    ///
    /// `retention`: how long events are kept, in hours, days or weeks, for the whole store. It is
    /// applied by `ipse prune --retention`, never by itself.
    ///
    /// `signatures`: what is done about producers' signatures, for one identity. `record` keeps
    /// them and takes unsigned events too; `require` refuses what is unsigned or wrongly signed;
    /// `off` passes signatures over.
    ///
    /// Example: ipse config retention 180d
    Config {
        /// The setting
        name: Option<String>,
        /// What it is to be; `off` takes it away
        #[arg(allow_hyphen_values = true)]
        value: Option<String>,
    },

    /// Make, list and revoke keys
    #[command(subcommand_required = true)]
    Key {
        #[command(subcommand)]
        action: KeyAction,
    },

    /// Create, list and revoke access tokens
    ///
    /// A token says who its bearer is and what it may do: one identity, one role. No command asks
    /// for one; they are for programs that will reach this store over HTTP.
    #[command(subcommand_required = true)]
    Token {
        #[command(subcommand)]
        action: TokenAction,
    },

    /// Sign events as their producer, away from any store
    ///
    /// Reads JSON Lines as `ipse import` does and writes every event in canonical form, with a salt
    /// if it brings none. After so many events, and at the end, follows an envelope that signs the
    /// digests of the events since the one before. Events that have a salt give the same bytes
    /// every time. Exit 1 if a line was refused; it is not signed and not written.
    ///
    /// A whole identity of 64 digits needs no store; a prefix is looked up in one.
    ///
    /// Example: ipse sign week.jsonl --key arm-7.key --name arm-7 --identity HASH -o signed.jsonl
    Sign(SignArgs),

    /// Print the signed tree head: what the log says about itself, for good
    ///
    /// Size and root of the Merkle tree over the log, signed with the log's key, as a C2SP
    /// checkpoint. Heads are signed after passes and intents, at most one a second. Whoever keeps
    /// one can tell later whether anything before it was changed: ipse-verify --anchors.
    ///
    /// Example: ipse tree-head --sign > anchor.note
    TreeHead {
        /// Sign one over everything that is in the log now
        #[arg(long)]
        sign: bool,
    },

    /// Export the log, its facts and their evidence as one file that verifies offline
    ///
    /// The file holds manifest, events, the whole ledger, facts, signatures and public keys;
    /// `ipse-verify` checks it without this store, and so do tools that we did not write
    /// (docs/guide/audit.md). A tree head over everything is signed first; without the log's key
    /// the newest one must cover what is exported. A range that does not start at 1 carries no
    /// facts. A file that is there is replaced once the new one is whole. Until then the new one is
    /// .new-ipse-* in the same directory, and stays there if the command is killed: delete it.
    ///
    /// Example: ipse export -o ward-robot.ipse
    Export(ExportArgs),

    /// Take a bundle into an empty store, after it has verified
    ///
    /// The identity must be registered here, and its log empty. Positions, facts and passes become
    /// what they were; all of it is taken in, or nothing.
    ///
    /// Example: ipse import-bundle ward-robot.ipse --trust log.vkey --trust operator.pub
    ImportBundle(ImportBundleArgs),

    /// Check everything that is stored: compute it anew and compare; never repairs
    ///
    /// The identity from the manifest's bytes, every event's digest, entry and typed columns, gaps,
    /// chunks, index, passes, facts and sums, and the file itself. Findings are breaches
    /// (exit 1); notes are good to know. docs/guide/operate.md says what to do about each.
    Verify,

    /// Recompute all facts from the log and compare; never repairs
    ///
    /// Reads the typed columns that the door wrote beside each event, sums them anew and publishes
    /// every fact up to the checkpoint. Exit 1 if a single byte differs from the stored facts.
    Rebuild,

    /// Serve the store over HTTP: planners read, producers append
    ///
    /// Every request needs a token (`ipse token create`), and the token says whose log it is about.
    /// Ctrl-C stops it: what was begun is finished first.
    ///
    /// Example: ipse serve --listen 127.0.0.1:7477
    Serve(ServeArgs),

    /// Measure how fast the main jobs are here
    ///
    /// On the store given, or with --events on one that is generated: a stream of grasps with
    /// that many keys. A store that is given is only read: jobs that write work on a copy.
    ///
    /// Example: ipse bench rebuild --events 100000 --keys 2
    Bench(BenchArgs),

    /// Run the paper's experiments, each figure beside the paper's
    ///
    /// Through real stores in a temporary directory; the store of the command line is not touched.
    /// Exit 1 if a figure differs that should be equal. Errata of the paper are listed with their
    /// reasons and never asserted.
    ///
    /// Examples: ipse reproduce v3; ipse reproduce --out report; ipse reproduce real week.jsonl
    Reproduce(ReproduceArgs),

    /// Print the reference of this command line
    #[command(hide = true)]
    Reference,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ManifestAction {
    /// Print a commented template
    ///
    /// Example: ipse manifest new > agent.toml
    New,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct RecordArgs {
    /// What kind of event it is
    #[arg(long = "type", default_value = "execution_result", value_name = "TYPE")]
    pub(crate) event_type: String,
    /// The skill that was tried
    #[arg(long, value_name = "SKILL_ID")]
    pub(crate) skill: Option<String>,
    /// The class of the object it was tried on
    #[arg(long, value_name = "TARGET_CLASS")]
    pub(crate) target: Option<String>,
    /// The environment it was tried in
    #[arg(long, value_name = "ENVIRONMENT")]
    pub(crate) env: Option<String>,
    /// The intent that it goes back to, as the gates named it
    #[arg(long, value_name = "EVENT_REF", value_parser = event_ref)]
    pub(crate) intent: Option<String>,

    /// The zone it happened in
    #[arg(long)]
    pub(crate) zone: Option<String>,
    /// A parameter it was tried with; may be given several times
    #[arg(long, value_name = "NAME=NUMBER")]
    pub(crate) param: Vec<String>,
    /// Why it failed
    #[arg(long, value_name = "REASON")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) outcome: OutcomeArgs,
    /// The event's id within its source; made up if absent
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// Who reports it
    #[arg(long, default_value = "cli")]
    pub(crate) source: String,
    /// When it happened, RFC 3339; now if absent
    #[arg(long)]
    pub(crate) time: Option<String>,
    /// Store the event but leave the facts as they are
    #[arg(long)]
    pub(crate) no_consolidate: bool,
}

#[derive(ClapArgs, Debug)]
#[group(multiple = false)]
pub(crate) struct OutcomeArgs {
    /// It worked
    #[arg(long)]
    pub(crate) success: bool,
    /// It did not
    #[arg(long)]
    pub(crate) failed: bool,
    /// It ended so; only success and failed count for a rate
    #[arg(
        long,
        value_name = "WORD",
        value_parser = words(Outcome::ALL.map(Outcome::name), Outcome::parse)
    )]
    pub(crate) outcome: Option<Outcome>,
}

/// The words of a closed vocabulary, and what they mean.
pub(crate) fn words<T: Clone + Send + Sync + 'static>(
    words: impl IntoIterator<Item = &'static str>,
    parse: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    let unknown = "BUG: a word of the vocabulary has no meaning";
    PossibleValuesParser::new(words).try_map(move |word| parse(&word).ok_or(unknown))
}

#[derive(ClapArgs, Debug)]
pub(crate) struct FactsArgs {
    /// Only facts about this skill
    #[arg(long, value_name = "SKILL_ID")]
    pub(crate) skill: Option<String>,
    /// Only facts about this class of objects
    #[arg(long, value_name = "TARGET_CLASS")]
    pub(crate) target: Option<String>,
    /// Only facts about this environment (patterns of failure have none and stay)
    #[arg(long, value_name = "ENVIRONMENT")]
    pub(crate) env: Option<String>,
    /// Only facts about this zone
    #[arg(long)]
    pub(crate) zone: Option<String>,
    /// Only facts of this kind
    #[arg(long, value_parser = words(FactKind::ALL.map(FactKind::name), FactKind::parse))]
    pub(crate) kind: Option<FactKind>,
    /// At most so many, the most confident ones
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
    /// What the log up to that position gives: what a pass there would have known
    #[arg(long, value_name = "SEQ", allow_negative_numbers = true)]
    pub(crate) as_of: Option<u64>,
    /// How to print them
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    Table,
    Json,
    Grounding,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct ForgetArgs {
    /// Which events
    #[arg(value_name = "EVENT_REF")]
    pub(crate) refs: Vec<String>,
    /// More of them from a file, one a line; - for standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) from_file: Option<PathBuf>,
    /// Show which facts would change or go, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    pub(crate) range: PruneRange,
    /// Show which facts would change or go, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(ClapArgs, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct PruneRange {
    /// All that happened before: RFC 3339, or a date, which begins at midnight UTC
    #[arg(long, value_name = "TIME", value_parser = time_or_date)]
    pub(crate) before: Option<Time>,
    /// All but the newest so many in the log, housekeeping not counted; intents go with them
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<u64>,
    /// All that is older than the store's retention (`ipse config retention`), for all of its
    /// identities unless --identity names one
    #[arg(long)]
    pub(crate) retention: bool,
}

fn time_or_date(text: &str) -> Result<Time, &'static str> {
    Time::parse(text).or_else(|_| Time::parse(&format!("{text}T00:00:00Z"))).map_err(
        |_| "expected RFC 3339, such as 2026-05-06T10:00:00Z, or a date, in the years 1970 to 9999",
    )
}

#[derive(ClapArgs, Debug)]
pub(crate) struct ExportArgs {
    /// The file to write; - for standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// The first event that goes into it
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) from: Option<u64>,
    /// The last one
    #[arg(long, value_name = "SEQ", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) to: Option<u64>,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct ImportBundleArgs {
    /// The bundle
    pub(crate) file: PathBuf,
    /// A key that you trust, or a file of them; may be given several times
    #[arg(long, value_name = "KEY", num_args = 1..)]
    pub(crate) trust: Vec<String>,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct ExplainArgs {
    /// A fact id (fa_…), a fact key, or an event ref (ev_…)
    #[arg(value_name = "FACT_ID|FACT_KEY|EVENT_REF")]
    pub(crate) what: String,

    /// Which hundred events of a fact's evidence, from the end of the log on; of an action, which
    /// fifty facts that the planner knew [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) page: Option<u64>,

    /// All of a fact's evidence; of an action, a hundred events behind each fact instead of ten
    #[arg(long)]
    pub(crate) all: bool,

    /// The proof that an event is in the signed log, as a file: C2SP tlog-proof
    #[arg(long, conflicts_with_all = ["page", "all"])]
    pub(crate) proof: bool,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct ListArgs {
    /// Only the newest so many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: Option<u64>,
}

/// The name of an event.
fn event_ref(text: &str) -> Result<String, &'static str> {
    let name = ipse_core::EventRef::parse(text).map(|name| name.to_string());
    name.ok_or("an event ref is ev_ and 32 hex digits")
}
