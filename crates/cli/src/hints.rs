//! Hints: the next command after an error of a store, a key or a tree head.
//!
//! **Invariant:** errors of lower crates state facts. Advice about the command line is added here.

use ipse::keys::{KeyError, MAX_NAME_BYTES};
use ipse_engine::Error;
use ipse_exchange::Error as ExchangeError;
use ipse_store::Error as StoreError;
use ipse_store::{Location, Store};
use std::path::{Path, PathBuf};

/// The hint that goes with an error, on a store at a path.
pub(crate) fn of(error: &anyhow::Error, store: &Location) -> Option<String> {
    if let Some(error) = error.chain().find_map(key_error) {
        return key_hint(error);
    }
    let engine_hint = |cause| engine_error(cause).and_then(tree_head_hint);
    if let Some(hint) = error.chain().find_map(engine_hint) {
        return Some(hint.to_string());
    }
    if let Some(hint) = error.chain().find_map(|cause| rules_hint(engine_error(cause)?)) {
        return Some(hint.to_string());
    }
    let location = store;
    let store = shell_word(&location.to_string());
    if error.chain().any(is_address_in_use) {
        let hint = "another program listens there, perhaps another `ipse serve`: stop it, or \
                    choose another port with --listen 127.0.0.1:PORT";
        return Some(hint.into());
    }
    if error.chain().any(is_altered) {
        return Some(format!("`ipse --store {store} verify` lists all mismatches"));
    }
    if let Some(hint) = error.chain().find_map(exchange_hint) {
        return Some(hint);
    }
    match error.chain().find_map(store_error)? {
        StoreError::ReadOnly if leftover(location).is_some() => {
            let files = leftover(location).unwrap_or_default();
            Some(format!(
                "this user may not write {files}, which another user's process left: stop all \
                 processes that use the store, then delete it if {store}-wal is empty, or let this \
                 user write it"
            ))
        }
        // Commands that read stop at an older store, so no command works on it without migration.
        StoreError::ReadOnly if is_older(location) => Some(format!(
            "let this user write {store} and its directory, or copy the store to a place where \
             this user may write and migrate the copy"
        )),
        error => store_hint(error, &store),
    }
}

/// Whether a store has a schema that this program has to migrate first.
fn is_older(location: &Location) -> bool {
    matches!(Store::open(location), Err(StoreError::Older { .. }))
}

/// The hint for a bundle that cannot be exported or imported.
fn exchange_hint(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    let sign = "`ipse tree-head --sign` signs a tree head; it needs the log's key";
    let verify = "`ipse verify` lists all mismatches";
    let hint = match cause.downcast_ref()? {
        ExchangeError::Uncovered { size, .. } => {
            return Some(format!("--to {size} exports what it covers; {sign}"));
        }
        ExchangeError::NoHead | ExchangeError::Forgotten => sign,
        ExchangeError::NotCosigned | ExchangeError::ForgottenSince(_) => {
            "`ipse witness request` asks a witness to cosign the newest tree head, and `ipse \
             witness add` stores its answer"
        }
        ExchangeError::Damaged(_) | ExchangeError::ForeignManifest => verify,
        ExchangeError::Unregistered(_) => {
            "tar -xOf BUNDLE manifest.json > manifest.json, then ipse init --manifest manifest.json"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The hint for a tree head that cannot be signed.
pub(crate) fn tree_head_hint(error: &Error) -> Option<&'static str> {
    match error {
        Error::Behind { .. } | Error::Forked { .. } => Some(
            "this store is an older copy, or its newest events were removed: restore the newer \
             store. If it is lost, stop all servers, then run `ipse key revoke log` and `ipse key \
             new log` to begin a new history. Holders of older tree heads will see the break",
        ),
        Error::NoHead(_) => Some(
            "the note under heads/ in the key directory, or the one in the store, is damaged: \
             restore a copy of it (an auditor may have one), or begin a new history with `ipse key \
             revoke log` and `ipse key new log`",
        ),
        _ => None,
    }
}

/// The hint for a change of rules that was rejected.
fn rules_hint(error: &Error) -> Option<&'static str> {
    let Error::Rules(error) = error else { return None };
    Some(match error.code() {
        "not_proposed" => "`ipse rules propose VERSION` proposes it",
        "not_signed" => {
            "the operator signs a report: `ipse rules report VERSION -o report.json`, then `ipse \
             rules approve VERSION --report report.json -o approval.json`"
        }
        "report_moved" => "`ipse rules report VERSION -o report.json` makes another report",
        "not_first" => {
            "a log that has events changes its rules with the operator's approval: begin with \
             `ipse rules propose VERSION`"
        }
        "already" | "nothing_to_go_back_to" => "`ipse rules list` shows what is in force",
        _ => return None,
    })
}

/// The error of a store, also inside one of the engine.
fn store_error<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e StoreError> {
    match (engine_error(cause), cause.downcast_ref()) {
        (Some(Error::Store(error)), _) | (_, Some(ExchangeError::Store(error))) => Some(error),
        _ => cause.downcast_ref(),
    }
}

/// The error of the engine, also inside one of an import or export.
fn engine_error<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e Error> {
    match cause.downcast_ref::<ExchangeError>() {
        Some(ExchangeError::Engine(error)) => Some(error),
        _ => cause.downcast_ref(),
    }
}

/// The hint for a store that cannot be used.
fn store_hint(error: &StoreError, store: &str) -> Option<String> {
    Some(match error {
        StoreError::NotFound(_) => format!(
            "create one: ipse --store {store} init --manifest agent.toml \
                 (`ipse manifest new` prints a template)"
        ),
        StoreError::Foreign(_) => {
            "name another path with --store; ipse never changes a file that it did not create"
                .into()
        }
        StoreError::Directory(_) => {
            "name the file in it, as in --store DIRECTORY/ipse.db, or set IPSE_STORE".into()
        }
        StoreError::Unreadable { .. } => format!("let this user read {store} and its directory"),
        StoreError::Newer { .. } => "open it with the ipse that wrote it, or a newer one".into(),
        StoreError::Older { .. } => {
            format!("bring it up to date: ipse --store {store} migrate")
        }
        StoreError::Busy(_) => {
            "wait until it has finished, or end it; this command changed nothing".into()
        }
        StoreError::ReadOnly => {
            format!("let this user write {store} and its directory; reading commands work as it is")
        }
        StoreError::NoDirectory(_) => "create the directory first".into(),
        StoreError::TooManyTokens => {
            "revoke unused tokens: ipse token list, then ipse token revoke TOKEN_ID".into()
        }
        StoreError::Gone(_) => {
            "stop every process that uses the store, restore the file or create a store with \
                 `ipse init`, and run the same command again"
                .into()
        }
        StoreError::CannotOpen { .. } => {
            format!("check that this user may read and write {store} and its directory")
        }
        StoreError::NotDurable { .. } => {
            "let this user read the directory; if this user may already, check the disk".into()
        }
        StoreError::Full => {
            "free some space and run the same command again; no partial write remains".into()
        }
        StoreError::Corrupt(_) => {
            "copy the file to a safe place first; then `ipse verify` lists what is damaged".into()
        }
        _ => return None,
    })
}

/// The error of a key, also inside an I/O error of a notary.
fn key_error<'e>(cause: &'e (dyn std::error::Error + 'static)) -> Option<&'e KeyError> {
    cause.downcast_ref().or_else(|| {
        let inner = cause.downcast_ref::<std::io::Error>()?.get_ref()?;
        inner.downcast_ref()
    })
}

/// The hint for a key that cannot be used.
fn key_hint(error: &KeyError) -> Option<String> {
    let shown = |path: &Path| shell_word(&path.to_string_lossy());
    Some(match error {
        error if error.is_of_public_half() => return public_hint(error),
        KeyError::Io { what: "read", path, .. } => format!("let this user read {}", shown(path)),
        KeyError::Missing(path) if path.ends_with("log.key") => missing(path, "log", "log.vkey"),
        KeyError::Missing(path) if path.ends_with("operator.key") => {
            missing(path, "operator", "operator.pub")
        }
        KeyError::Missing(path) if path.ends_with("operator.pub") => format!(
            "copy the operator's operator.pub to {}; `ipse init` creates missing keys",
            shown(path)
        ),
        KeyError::Missing(path) => {
            format!("ipse key new producer NAME --source SOURCE --out {} makes one", shown(path))
        }
        KeyError::Exists(path) if path.parent().is_some_and(|it| it.ends_with("producers")) => {
            format!(
                "no key is overwritten; to register this one: ipse key new producer NAME --source \
                 SOURCE --public \"$(cat {})\"",
                shown(&path.with_extension("vkey"))
            )
        }
        KeyError::OtherOperator { path, .. } => format!(
            "copy operator.key or operator.pub of that key to {}; a new key needs a manifest that \
             names it",
            shown(path.parent().unwrap_or(Path::new(".")))
        ),
        KeyError::Exists(_) => {
            "no key is overwritten: name another file, or revoke it first (ipse key revoke)".into()
        }
        KeyError::NoPassphrase(_) => {
            "name a file with the passphrase in IPSE_PASSPHRASE_FILE, or run this on a terminal"
                .into()
        }
        KeyError::WrongPassphrase(_) => {
            "it was taken from IPSE_PASSPHRASE, IPSE_PASSPHRASE_FILE or the terminal".into()
        }
        KeyError::UnsafeDirectory(path) => format!(
            "chmod go-w {}, or move the key to a directory that only you may write to",
            shown(path)
        ),
        KeyError::Unsafe(path) => format!(
            "chmod 600 {}; if others may have read it, revoke it and make another",
            shown(path)
        ),
        KeyError::Malformed { .. } => {
            "put back a copy of it; a private key is PKCS#8 PEM, as `openssl genpkey -algorithm \
             ed25519` makes it"
                .into()
        }
        KeyError::Weak(_) => "create another key: a signature under this one proves nothing".into(),
        KeyError::Name(_) => format!(
            "1 to {MAX_NAME_BYTES} of A-Z a-z 0-9 . _ - and no dot first; `log` and `operator` \
             are taken"
        ),
        _ => return None,
    })
}

/// The hint for a public half that is damaged or belongs to another key.
fn public_hint(error: &KeyError) -> Option<String> {
    let shown = |path: &Path| shell_word(&path.to_string_lossy());
    Some(match error {
        KeyError::Mismatch { private, public } => format!(
            "one of them was changed: put back a copy of it. If {} is the right one, delete {} and \
             run {}; if it is lost, revoke the key and make another (ipse key revoke)",
            shown(private),
            shown(public),
            completion(public)
        ),
        KeyError::Malformed { path, .. } | KeyError::Weak(path) => format!(
            "put back a copy of it, or delete it and run {}, which makes it from the private half",
            completion(path)
        ),
        KeyError::Io { path, .. } => {
            format!("let this user read {} and enter its directory", shown(path))
        }
        _ => return None,
    })
}

/// The command that creates a public half from the private one.
fn completion(public: &Path) -> String {
    let producer = public.parent().is_some_and(|parent| parent.ends_with("producers"));
    match public.file_stem().filter(|_| producer) {
        Some(name) => {
            let name = shell_word(&name.to_string_lossy());
            format!("`ipse key new producer {name} --source SOURCE`")
        }
        None => "`ipse init` with each manifest".into(),
    }
}

/// The hint for a missing private half.
fn missing(path: &Path, role: &str, public: &str) -> String {
    match path.with_file_name(public).exists() {
        true => format!(
            "put it back, or name its directory with --key-dir; if it is lost: ipse key revoke \
             {role}, then ipse key new {role}"
        ),
        false => format!(
            "ipse key new {role} makes it; if it is elsewhere, name its directory with --key-dir"
        ),
    }
}

/// Whether a server could not listen because its port is taken.
fn is_address_in_use(cause: &(dyn std::error::Error + 'static)) -> bool {
    let error = cause.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == std::io::ErrorKind::AddrInUse)
}

/// Whether this user may write a file.
pub(crate) fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// The SQLite file next to a writable store that this user cannot write.
fn leftover(location: &Location) -> Option<String> {
    let store = location.path()?;
    let beside = |suffix: &str| {
        let mut path = store.as_os_str().to_owned();
        path.push(suffix);
        PathBuf::from(path)
    };
    let locked =
        ["-shm", "-wal"].map(beside).into_iter().find(|it| it.exists() && !is_writable(it));
    locked.filter(|_| is_writable(store)).map(|it| shell_word(&it.to_string_lossy()))
}

/// Whether an event was changed after it was stored.
fn is_altered(cause: &(dyn std::error::Error + 'static)) -> bool {
    matches!(engine_error(cause), Some(Error::Altered(_)))
}

/// A path, quoted for a shell if necessary.
pub(crate) fn shell_word(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/+:@".contains(c);
    if path.chars().all(plain) {
        path.to_string()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}
