//! Hints: what to do about an error of a store, a key or a tree head.
//!
//! **Invariant:** errors state facts; advice about this command line is added here and nowhere
//! below.

use ipse::keys::{KeyError, MAX_NAME_BYTES};
use ipse_engine::Error;
use ipse_exchange::Error as ExchangeError;
use ipse_store::Error as StoreError;
use ipse_store::{Location, Store};
use std::path::Path;

/// The hint that goes with an error, on a store at a path.
pub(crate) fn of(error: &anyhow::Error, store: &Location) -> Option<String> {
    if let Some(error) = error.chain().find_map(key_error) {
        return key_hint(error);
    }
    let engine_hint = |cause| engine_error(cause).and_then(tree_head_hint);
    if let Some(hint) = error.chain().find_map(engine_hint) {
        return Some(hint.to_string());
    }
    let location = store;
    let store = shell_word(&location.to_string());
    if error.chain().any(is_altered) {
        return Some(format!("ipse --store {store} verify tells what else does not fit"));
    }
    if let Some(hint) = error.chain().find_map(exchange_hint) {
        return Some(hint);
    }
    match error.chain().find_map(store_error)? {
        // Commands that read stop at an older store, so there is nothing that works as it is.
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

/// What to do about a bundle that cannot be made, or has no place here.
fn exchange_hint(cause: &(dyn std::error::Error + 'static)) -> Option<String> {
    let sign = "`ipse tree-head --sign` signs a tree head; it needs the log's key";
    let verify = "`ipse verify` tells what else does not fit";
    let hint = match cause.downcast_ref()? {
        ExchangeError::Uncovered { size, .. } => {
            return Some(format!("--to {size} exports what it covers; {sign}"));
        }
        ExchangeError::NoHead | ExchangeError::Forgotten => sign,
        ExchangeError::Damaged(_) | ExchangeError::ForeignManifest => verify,
        ExchangeError::Unregistered(_) => {
            "tar -xOf BUNDLE manifest.json > manifest.json, then ipse init --manifest manifest.json"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// What to do if a head cannot be signed.
pub(crate) fn tree_head_hint(error: &Error) -> Option<&'static str> {
    match error {
        Error::Behind { .. } | Error::Forked { .. } => Some(
            "this store is an older copy, or has lost its end: put the newer one back. If that \
             one is lost for good, stop all servers; `ipse key revoke log` and `ipse key new log` \
             begin a new history, and holders of older tree heads will see the break",
        ),
        Error::NoHead(_) => Some(
            "the note under heads/ among the keys, or the one in the store, is damaged: put back a \
             copy of it (somebody who was given it has one), or begin anew with `ipse key revoke \
             log` and `ipse key new log`",
        ),
        _ => None,
    }
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

/// What to do about a store that cannot be used.
fn store_hint(error: &StoreError, store: &str) -> Option<String> {
    Some(match error {
        StoreError::NotFound(_) => format!(
            "make one: ipse --store {store} init --manifest agent.toml \
                 (ipse manifest new prints a template)"
        ),
        StoreError::Foreign(_) => {
            "name another path with --store; ipse never touches a file it did not make".into()
        }
        StoreError::Newer { .. } => "open it with the ipse that wrote it, or a newer one".into(),
        StoreError::Older { .. } => {
            format!("bring it up to date: ipse --store {store} migrate")
        }
        StoreError::Busy(_) => {
            "wait until it has finished, or end it; nothing was changed here".into()
        }
        StoreError::ReadOnly => {
            format!("let this user write {store} and its directory; reading commands work as it is")
        }
        StoreError::NoDirectory(_) => "make the directory first".into(),
        StoreError::TooManyTokens => {
            "revoke what nobody uses: ipse token list, then ipse token revoke TOKEN_ID".into()
        }
        StoreError::Gone(_) => {
            "stop every process that uses the store, put the file back or begin with `ipse \
                 init`, and run the same command again"
                .into()
        }
        StoreError::CannotOpen { .. } => {
            format!("check that this user may read and write {store} and its directory")
        }
        StoreError::NotDurable { .. } => {
            "let this user read the directory; if that is so already, suspect the disk".into()
        }
        StoreError::Full => {
            "free some space and run the same command again; nothing was half written".into()
        }
        StoreError::Corrupt(_) => {
            "copy the file away before anything else; ipse rebuild compares facts and log".into()
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

/// What to do about a key that cannot be used.
fn key_hint(error: &KeyError) -> Option<String> {
    let shown = |path: &Path| shell_word(&path.to_string_lossy());
    Some(match error {
        error if error.is_of_public_half() => return public_hint(error),
        KeyError::Io { what: "read", path, .. } => format!("let this user read {}", shown(path)),
        KeyError::Missing(path) if path.ends_with("log.key") => missing(path, "log", "log.vkey"),
        KeyError::Missing(path) if path.ends_with("operator.key") => {
            missing(path, "operator", "operator.pub")
        }
        KeyError::Missing(path) => {
            format!("ipse key new producer NAME --out {} makes one", shown(path))
        }
        KeyError::Exists(path) if path.parent().is_some_and(|it| it.ends_with("producers")) => {
            format!(
                "no key is overwritten; to register this one: ipse key new producer NAME --public \
                 \"$(cat {})\"",
                shown(&path.with_extension("vkey"))
            )
        }
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
        KeyError::Weak(_) => "make another; anybody can sign under this one".into(),
        KeyError::Name(_) => format!(
            "1 to {MAX_NAME_BYTES} of A-Z a-z 0-9 . _ - and no dot first; `log` and `operator` \
             are taken"
        ),
        _ => return None,
    })
}

/// What to do about a public half that is damaged, or is another key's.
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
        KeyError::Io { path, .. } => format!("let this user read and write {}", shown(path)),
        _ => return None,
    })
}

/// The command that makes a public half from the private one.
fn completion(public: &Path) -> String {
    let producer = public.parent().is_some_and(|parent| parent.ends_with("producers"));
    match public.file_stem().filter(|_| producer) {
        Some(name) => format!("`ipse key new producer {}`", shell_word(&name.to_string_lossy())),
        None => "`ipse init` with each manifest".into(),
    }
}

/// What to do about a private half that is not there.
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

/// Whether an event is not the one that was appended.
fn is_altered(cause: &(dyn std::error::Error + 'static)) -> bool {
    matches!(engine_error(cause), Some(Error::Altered(_)))
}

/// A path as it can be pasted into a shell.
pub(crate) fn shell_word(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/+:@".contains(c);
    if path.chars().all(plain) {
        path.to_string()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}
