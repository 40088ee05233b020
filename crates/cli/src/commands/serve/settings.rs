//! The settings of `serve`: a flag overrides the environment, the environment overrides the file,
//! the file overrides the default.
//!
//! **Invariants:** every setting is one row of [`ALL`]. An unknown setting in the file is an error.
//! The output of `--print-config` is a valid settings file that gives the same settings.

use super::Args;
use crate::context::Context;
use crate::terminal::Terminal;
use crate::{CommandResult, Exit};
use anyhow::{Context as _, anyhow, bail};
use clap::parser::ValueSource;
use ipse_core::json::{Members, quoted};
use ipse_http::Host;
use ipse_store::Location;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::{Table, Value};
use tracing::Level;

/// The largest settings file.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// The longest time without events before a pass: a day.
const MAX_QUIET_MS: u64 = 24 * 60 * 60 * 1000;

/// The highest intent rate per minute: more than ten thousand a second would not limit anything.
const MAX_INTENT_RATE: u64 = 600_000;

/// The expected form of a public URL, for errors.
const PUBLIC_URL: &str = "a URL with a host, such as https://ipse.example.org: http or https, the \
                          host in ASCII, without a user, a query or a fragment";

/// The type of a setting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// Texts, separated by commas.
    Texts,
    Number,
    Path,
}

/// Each setting with its kind and its default.
const ALL: [(&str, Kind, Option<&str>); 14] = [
    ("listen", Kind::Text, Some("127.0.0.1:7477")),
    ("store", Kind::Path, Some("ipse.db")),
    ("key_dir", Kind::Path, None),
    ("pass_every", Kind::Number, Some("64")),
    ("pass_quiet", Kind::Number, Some("1000")),
    ("log_level", Kind::Text, Some("info")),
    ("log_format", Kind::Text, Some("text")),
    ("tls_cert", Kind::Path, None),
    ("tls_key", Kind::Path, None),
    ("ecm_registry", Kind::Path, None),
    ("policy", Kind::Path, None),
    ("temperament", Kind::Path, None),
    ("intent_rate", Kind::Number, Some("600")),
    ("public_url", Kind::Texts, None),
];

/// The validated settings.
pub(super) struct Settings {
    pub(super) listen: SocketAddr,
    /// The hosts of the URLs under which clients reach the server.
    pub(super) public_hosts: Vec<Host>,
    pub(super) store: Location,
    pub(super) key_dir: Option<PathBuf>,
    pub(super) pass_every: u64,
    pub(super) pass_quiet: Duration,
    pub(super) log_level: Level,
    pub(super) log_json: bool,
    /// Certificate and key.
    pub(super) tls: Option<(PathBuf, PathBuf)>,
    /// Registry, policy and temperament.
    pub(super) gates: Option<[PathBuf; 3]>,
    /// Intents per minute of one token.
    pub(super) intent_rate: u64,
    rows: Vec<Row>,
}

/// A setting before validation, and its source.
struct Row {
    name: &'static str,
    kind: Kind,
    value: Option<String>,
    origin: String,
}

impl Settings {
    /// Collects and validates the settings.
    pub(super) fn gather(context: &Context, args: &Args) -> anyhow::Result<Self> {
        let file = args.config.as_deref().map(read).transpose()?;
        let rows = ALL.map(|setting| row(context, args, file.as_ref(), setting));
        let rows = rows.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        let row = |name: &str| rows.iter().find(|row| row.name == name).expect("BUG: a row of ALL");
        let path = |name: &str| row(name).value.as_ref().map(PathBuf::from);
        let tls = match (path("tls_cert"), path("tls_key")) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => bail!("tls_cert and tls_key belong together: give both, or neither"),
        };
        let gates = match (path("ecm_registry"), path("policy"), path("temperament")) {
            (Some(registry), Some(policy), Some(temperament)) => {
                Some([registry, policy, temperament])
            }
            (None, None, None) => None,
            _ => bail!("ecm_registry, policy and temperament belong together: give all, or none"),
        };
        Ok(Settings {
            listen: row("listen")
                .parsed("an address and a port, such as 127.0.0.1:7477", address)?,
            public_hosts: row("public_url").each(PUBLIC_URL, Host::of_url)?,
            store: Location::parse(path("store").expect("BUG: a store has a default"))?,
            key_dir: path("key_dir"),
            pass_every: row("pass_every").parsed("a whole number of at least 1", |text| {
                text.parse().ok().filter(|every| *every > 0)
            })?,
            pass_quiet: row("pass_quiet").parsed(
                "milliseconds, at most 86400000 (a day)",
                |text| {
                    text.parse().ok().filter(|ms| *ms <= MAX_QUIET_MS).map(Duration::from_millis)
                },
            )?,
            log_level: row("log_level").parsed("error, warn, info or debug", level)?,
            log_json: row("log_format").parsed("text or json", |text| match text {
                "text" => Some(false),
                "json" => Some(true),
                _ => None,
            })?,
            tls,
            gates,
            intent_rate: row("intent_rate").parsed("a whole number from 1 to 600000", |text| {
                text.parse().ok().filter(|rate| (1..=MAX_INTENT_RATE).contains(rate))
            })?,
            rows,
        })
    }

    /// Prints the settings, as a settings file or as JSON.
    pub(super) fn print(&self, context: &Context, terminal: &mut Terminal<'_>) -> CommandResult {
        if context.json {
            let rows = self.rows.iter().map(|row| (row.name, row.json()));
            let all = rows.fold(Members::new(), |all, (name, json)| all.raw(name, json));
            terminal.json(&all.finish())?;
            return Ok(Exit::Fine);
        }
        let lines: Vec<(String, &str)> =
            self.rows.iter().map(|row| (row.line(), &*row.origin)).collect();
        let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or_default();
        writeln!(terminal.out, "# ipse serve: a flag overrides the environment, the environment")?;
        writeln!(terminal.out, "# the file, the file the default\n")?;
        for (line, origin) in lines {
            writeln!(terminal.out, "{line:width$}  # {origin}")?;
        }
        Ok(Exit::Fine)
    }
}

impl Row {
    fn parsed<T>(&self, wanted: &str, parse: impl Fn(&str) -> Option<T>) -> anyhow::Result<T> {
        self.one(self.value.as_deref().unwrap_or_default(), wanted, parse)
    }

    /// Parses each of several texts.
    fn each<T>(&self, wanted: &str, parse: impl Fn(&str) -> Option<T>) -> anyhow::Result<Vec<T>> {
        self.texts().map(|text| self.one(text, wanted, &parse)).collect()
    }

    fn one<T>(
        &self,
        text: &str,
        wanted: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> anyhow::Result<T> {
        let shown = ipse_door::printable(text);
        let (name, origin) = (self.name, &self.origin);
        parse(text).ok_or_else(|| anyhow!("{name} must be {wanted}, not `{shown}` ({origin})"))
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        self.value.iter().flat_map(|all| all.split(','))
    }

    /// Formats a value; TOML and JSON agree here.
    fn written(&self, value: &str) -> String {
        match self.kind {
            Kind::Number => value.to_owned(),
            Kind::Texts => format!("[{}]", self.texts().map(quoted).collect::<Vec<_>>().join(", ")),
            // TOML can read the escapes of JSON.
            Kind::Text | Kind::Path => quoted(value),
        }
    }

    /// Formats the setting as TOML; an unset one is a comment.
    fn line(&self) -> String {
        match &self.value {
            None => format!("# {} =", self.name),
            Some(value) => format!("{} = {}", self.name, self.written(value)),
        }
    }

    fn json(&self) -> String {
        let value = self.value.as_ref().map_or("null".to_owned(), |value| self.written(value));
        Members::new().raw("value", value).text("origin", &self.origin).finish()
    }
}

fn address(text: &str) -> Option<SocketAddr> {
    text.strip_prefix("localhost:")
        .map_or_else(|| text.parse().ok(), |port| format!("127.0.0.1:{port}").parse().ok())
}

fn level(text: &str) -> Option<Level> {
    match text {
        "error" => Some(Level::ERROR),
        "warn" => Some(Level::WARN),
        "info" => Some(Level::INFO),
        "debug" => Some(Level::DEBUG),
        _ => None,
    }
}

/// Finds the value of a setting, and its source.
fn row(
    context: &Context,
    args: &Args,
    file: Option<&(PathBuf, Table)>,
    (name, kind, default): (&'static str, Kind, Option<&str>),
) -> anyhow::Result<Row> {
    let row = |value, origin| Ok(Row { name, kind, value, origin });
    let typed = typed(context, args, name);
    match context.given(name) {
        Some(ValueSource::CommandLine) => {
            return row(typed, format!("flag --{}", name.replace('_', "-")));
        }
        Some(ValueSource::EnvVariable) => {
            return row(typed, format!("environment {}", variable(name)));
        }
        _ => {}
    }
    if let Some((path, table)) = file
        && let Some(value) = table.get(name)
    {
        let value = written(path, name, kind, value)?;
        return row(Some(value), format!("file {}", path.display()));
    }
    match default {
        Some(default) => row(Some(default.to_owned()), "default".to_owned()),
        None => row(None, "not set".to_owned()),
    }
}

/// Returns the value of a setting from a flag or the environment.
fn typed(context: &Context, args: &Args, name: &str) -> Option<String> {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    match name {
        "listen" => args.listen.clone(),
        "store" => Some(context.location.to_string()),
        "key_dir" => Some(path(context.keys().path())),
        "pass_every" => args.pass_every.clone(),
        "pass_quiet" => args.pass_quiet.clone(),
        "log_level" => args.log_level.clone(),
        "log_format" => args.log_format.clone(),
        "tls_cert" => args.tls_cert.clone(),
        "tls_key" => args.tls_key.clone(),
        "ecm_registry" => args.ecm_registry.clone(),
        "policy" => args.policy.clone(),
        "temperament" => args.temperament.clone(),
        "intent_rate" => args.intent_rate.clone(),
        "public_url" => Some(args.public_url.join(",")),
        _ => None,
    }
}

/// The environment variable of a setting.
fn variable(name: &str) -> String {
    match name {
        "key_dir" => "IPSE_KEYS".to_owned(),
        name => format!("IPSE_{}", name.to_ascii_uppercase()),
    }
}

fn read(path: &Path) -> anyhow::Result<(PathBuf, Table)> {
    use std::io::Read;
    let attempt = || format!("could not read the settings in {}", path.display());
    let mut text = String::new();
    let file = std::fs::File::open(path).with_context(attempt)?;
    let size = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).with_context(attempt)?;
    if size as u64 > MAX_FILE_BYTES {
        bail!("{} has more than {MAX_FILE_BYTES} bytes: not a settings file", path.display());
    }
    let table: Table = text.parse().with_context(attempt)?;
    let known = ALL.map(|(name, ..)| name);
    if let Some(name) = table.keys().find(|name| !known.contains(&name.as_str())) {
        let (name, known) = (ipse_door::printable(name), known.join(", "));
        bail!("{}: unknown setting `{name}`; the settings are {known}", path.display());
    }
    Ok((path.to_owned(), table))
}

/// Converts a value of the file to its command-line form; a path is relative to the file.
fn written(file: &Path, name: &str, kind: Kind, value: &Value) -> anyhow::Result<String> {
    let wrong = |what: &str| anyhow!("{}: {name} must be {what}", file.display());
    match (kind, value) {
        (Kind::Number, Value::Integer(number)) => Ok(number.to_string()),
        (Kind::Number, _) => Err(wrong("a whole number")),
        (Kind::Text, Value::String(text)) => Ok(text.clone()),
        (Kind::Path, Value::String(text)) => {
            let beside = file.parent().unwrap_or(Path::new(""));
            Ok(beside.join(text).to_string_lossy().into_owned())
        }
        (Kind::Texts, Value::String(text)) => Ok(text.clone()),
        (Kind::Texts, Value::Array(all)) => {
            let texts: Option<Vec<&str>> = all.iter().map(Value::as_str).collect();
            let texts = texts.filter(|texts| !texts.is_empty());
            Ok(texts.ok_or_else(|| wrong("a text in quotes, or a list of such texts"))?.join(","))
        }
        (Kind::Texts, _) => Err(wrong("a text in quotes, or a list of such texts")),
        _ => Err(wrong("a text in quotes")),
    }
}
