//! Key files that lie where others may write: none of them signs.

use super::store::{Ran, Store, attempt};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

fn cup() -> Store {
    Store::with("facts/glass_cup.events.jsonl")
}

fn keys(store: &Store, name: &str) -> PathBuf {
    store.path.with_extension("db.keys").join(name)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn export(store: &Store) -> (PathBuf, Ran) {
    let file = store.directory.path().join("bundle.ipse");
    let ran = store.run(&["export", "-o", file.to_str().unwrap()]);
    (file, ran)
}

#[test]
fn keys_are_not_used_from_a_directory_that_others_may_write_to() {
    let store = cup();
    store.run(&["key", "new", "producer", "arm"]).fine();
    let directory = keys(&store, "");
    let words = ["others may write to the directory", "chmod go-w"];
    for mode in [0o720, 0o702, 0o777] {
        set_mode(&directory, mode);
        store.run(&["identity", "--certificate"]).ended(2, &words);
        store.run(&["tree-head", "--sign"]).ended(2, &words);
        let (file, ran) = export(&store);
        ran.ended(2, &words);
        assert!(!file.exists());
    }
    set_mode(&directory, 0o755);
    store.run(&["identity", "--certificate"]).fine();
    let sign = |key: &Path| {
        let args = ["sign", "-", "--key", key.to_str().unwrap(), "--name", "arm"];
        store.fed(&args, attempt("1", true))
    };
    let key = keys(&store, "producers/arm.key");
    sign(&key).fine();
    let link = store.directory.path().join("link.key");
    symlink(&key, &link).unwrap();
    sign(&link).fine();
    set_mode(&keys(&store, "producers"), 0o770);
    for path in [&key, &link] {
        sign(path).ended(2, &words);
    }
    set_mode(&keys(&store, "producers"), 0o700);
    set_mode(store.directory.path(), 0o770);
    sign(&link).ended(2, &words);
    sign(&key).fine();
}
