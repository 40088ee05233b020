//! Files that commands write: no link is followed to a file that is not named, no store, key or
//! input is replaced or removed, and a killed command leaves the existing file unchanged.

use super::store::{CommandResult, Store, attempt, binary, ran, root, vector};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

const WHOM: &str = "b113b1a485f0f31fc71582f00278878e70a9c23f5af27820ba7d58f5af8d60ff";

fn cup() -> Store {
    Store::with("facts/glass_cup.events.jsonl")
}

fn place(store: &Store, name: &str) -> PathBuf {
    store.directory.path().join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn export(store: &Store, name: &str) -> CommandResult {
    store.run(&["export", "-o", text(&place(store, name))])
}

/// A producer's key that is not registered.
fn key(store: &Store, name: &str) -> String {
    let path = place(store, name);
    ran(assert_cmd::Command::new("openssl")
        .args(["genpkey", "-algorithm", "ed25519"])
        .args(["-out", text(&path)]))
    .fine();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    text(&path).to_string()
}

fn sign(store: &Store, file: &str, key: &str, out: &str) -> CommandResult {
    let args = ["sign", file, "--key", key, "--name", "arm", "--identity", WHOM, "-o", out];
    ran(store.command().args(args))
}

/// All files of a directory with their bytes, links as links.
fn tree(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let there = path.symlink_metadata().unwrap();
        if there.is_dir() {
            all.extend(tree(&path));
        } else if there.is_symlink() {
            all.insert(path.clone(), text(&fs::read_link(&path).unwrap()).into());
        } else {
            all.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    all
}

/// Checks that a command changes nothing, except SQLite's index of its write-ahead log.
#[track_caller]
fn changes_nothing(store: &Store, run: impl FnOnce() -> CommandResult, words: &[&str]) {
    let files = |store: &Store| {
        let mut all = tree(store.directory.path());
        all.retain(|path, _| !text(path).ends_with("-shm") && !text(path).ends_with("-wal"));
        all
    };
    let before = files(store);
    run().ended(2, words);
    assert!(files(store) == before, "a file was changed, added or removed");
}

#[test]
fn links_next_to_the_destination_are_not_followed() {
    let store = cup();
    let events = store.write("week.jsonl", attempt("1", true));
    let key = key(&store, "arm.key");
    let victims = [text(&store.path), &key, &format!("{}.keys/log.key", text(&store.path))];
    for (n, victim) in victims.iter().enumerate() {
        for suffix in [".part", ".tmp", ".new"] {
            let name = format!("out{n}");
            symlink(victim, place(&store, &format!("{name}{suffix}"))).unwrap();
            let before = fs::read(victim).unwrap();
            export(&store, &name).fine();
            fs::remove_file(place(&store, &name)).unwrap();
            sign(&store, &events, &key, text(&place(&store, &name))).fine();
            fs::remove_file(place(&store, &name)).unwrap();
            assert!(fs::read(victim).unwrap() == before, "{victim} through {name}{suffix}");
        }
    }
    store.run(&["verify"]).fine();
}

#[test]
fn names_that_differ_by_a_suffix_are_names_of_others() {
    let store = cup();
    let [part, keys] = ["week.part", "keys"].map(|name| place(&store, name));
    store.run(&["consolidate"]).fine();
    rusqlite::Connection::open(&store.path)
        .unwrap()
        .execute("VACUUM INTO ?1", [text(&part)])
        .unwrap();
    fs::rename(store.path.with_extension("db.keys"), &keys).unwrap();
    let args = ["--store", text(&part), "--key-dir", text(&keys)];
    let out = place(&store, "week");
    ran(binary().args(args).args(["export", "-o", text(&out)])).fine();
    ran(binary().args(args).arg("verify")).fine();
    assert!(out.is_file());
    let events = store.write("x.part", attempt("1", true));
    let key = key(&store, "kk.part");
    let (before, private) = (fs::read(&events).unwrap(), fs::read(&key).unwrap());
    sign(&store, &events, &key, text(&place(&store, "x"))).fine();
    sign(&store, &events, &key, text(&place(&store, "kk"))).fine();
    assert_eq!((fs::read(&events).unwrap(), fs::read(&key).unwrap()), (before, private));
    for name in ["x", "kk"] {
        assert_eq!(fs::read_to_string(place(&store, name)).unwrap().lines().count(), 2, "{name}");
    }
}

/// A destination is compared with protected files by its resolved path, whether or not it exists.
#[test]
fn no_name_of_a_store_a_key_or_an_input_is_written_to() {
    let store = cup();
    let keys = store.path.with_extension("db.keys");
    let refused = |path: &Path, why: &str| {
        changes_nothing(&store, || store.run(&["export", "-o", text(path)]), &[why]);
    };
    for suffix in ["-wal", "-shm", "-journal"] {
        let file = place(&store, &format!("ipse.db{suffix}"));
        refused(&file, "it is the store");
        let link = place(&store, &format!("link{suffix}"));
        // A dangling link, by a relative path.
        symlink(format!("ipse.db{suffix}"), &link).unwrap();
        refused(&link, "it is the store");
    }
    let again = place(&store, "again");
    symlink("link-journal", &again).unwrap();
    refused(&again, "it is the store");
    let other = place(&store, "other");
    fs::hard_link(&store.path, &other).unwrap();
    refused(&other, "it is the store");
    let heads = place(&store, "heads");
    symlink(keys.join("heads"), &heads).unwrap();
    refused(&heads.join("new"), "in the key directory");
    let link = place(&store, "link.key");
    symlink(keys.join("producers.ipse"), &link).unwrap();
    refused(&link, "in the key directory");
    let hard = place(&store, "hard.key");
    fs::hard_link(keys.join("operator.key"), &hard).unwrap();
    refused(&hard, "in the key directory");
    // A key that is kept elsewhere, and linked from the key directory.
    let elsewhere = place(&store, "elsewhere.key");
    fs::rename(keys.join("log.key"), &elsewhere).unwrap();
    symlink(&elsewhere, keys.join("log.key")).unwrap();
    refused(&elsewhere, "in the key directory");
    let word = store.write("word", "a word\n");
    let mut with_word = store.command();
    with_word.env("IPSE_PASSPHRASE_FILE", &word).args(["export", "-o", &word]);
    changes_nothing(&store, || ran(&mut with_word), &["this command reads"]);
}

#[test]
fn a_key_that_signs_is_not_written_to() {
    let store = cup();
    let events = store.write("week.jsonl", attempt("1", true));
    let key = key(&store, "arm.key");
    let link = place(&store, "link");
    symlink("arm.key", &link).unwrap();
    for out in [&key, text(&link)] {
        let run = || sign(&store, &events, &key, out);
        changes_nothing(&store, run, &["it is a file that this command reads"]);
    }
    let run = || sign(&store, &events, &key, text(&store.path));
    changes_nothing(&store, run, &["it is the store"]);
    let journal = format!("{}-journal", text(&store.path));
    let make = ["key", "new", "producer", "arm", "--any-source", "--out", &journal];
    changes_nothing(&store, || store.run(&make), &["it is the store"]);
}

#[cfg(feature = "experiments")]
#[test]
fn a_report_removes_and_replaces_nothing_that_is_needed() {
    let store = Store::new();
    let out = place(&store, "out");
    fs::create_dir(&out).unwrap();
    let [stored, log] = ["results.json", "evaluate-week.csv"].map(|name| out.join(name));
    fs::copy(&store.path, &stored).unwrap();
    let args = ["--store", text(&stored), "reproduce", "v1", "--out", text(&out)];
    changes_nothing(&store, || ran(binary().args(args)), &["it is the store"]);
    fs::remove_file(&stored).unwrap();
    fs::copy(super::store::vector("facts/glass_cup.events.jsonl"), &log).unwrap();
    let args = ["reproduce", "real", text(&log), "--out", text(&out)];
    changes_nothing(&store, || store.run(&args), &["it is a file that this command reads"]);
    fs::remove_file(&log).unwrap();
    // A file of a killed report is no obstacle.
    fs::write(out.join(".new-ipse-abc"), "half").unwrap();
    store.run(&["reproduce", "v1", "--out", text(&out)]).fine();
    assert!(!out.join(".new-ipse-abc").exists() && out.join("report.html").is_file());
    let keys = store.path.with_extension("db.keys").join("heads");
    let args = ["reproduce", "v1", "--out", text(&keys)];
    store.run(&args).ended(2, &["in the key directory"]);
}

#[test]
fn links_lead_to_the_file_that_is_written() {
    let store = cup();
    let [link, file] = ["link", "file"].map(|name| place(&store, name));
    symlink("file", &link).unwrap();
    for _ in 0..2 {
        export(&store, "link").fine();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert!(file.symlink_metadata().unwrap().is_file());
    }
    symlink("loop", place(&store, "loop")).unwrap();
    export(&store, "loop").ended(2, &["could not write"]);
    let piped = ran(store
        .command()
        .args(["sign", "-", "--key", &key(&store, "arm.key")])
        .args(["--name", "arm", "--identity", WHOM, "-o", "/dev/stdout"])
        .write_stdin(attempt("1", true)));
    assert_eq!(piped.fine().out.lines().count(), 2, "a pipe is written to");
}

/// Nothing else is printed after a file that is written to standard output, whatever its name.
#[test]
fn standard_output_takes_the_file_alone() {
    let store = cup();
    let bundle = store.run(&["export", "-o", "-"]).fine().out;
    let key = key(&store, "arm.key");
    let events = store.write("week.jsonl", attempt("1", true));
    for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        for json in [&[][..], &["--json"]] {
            let args = [&["export", "-o", name][..], json].concat();
            let ran = store.run(&args).ended(0, &["exported to standard output"]);
            assert!(ran.out == bundle, "{name}: {} bytes", ran.out.len());
            let ran = self::ran(
                store.command().args(["sign", &events, "--key", &key]).args(json).args([
                    "--name",
                    "arm",
                    "--identity",
                    WHOM,
                    "-o",
                    name,
                ]),
            );
            assert_eq!(ran.fine().out.lines().count(), 2, "{name}");
        }
    }
    // Standard output may be an ordinary file.
    let out = place(&store, "out.ipse");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ipse"));
    command.arg("--store").arg(&store.path).args(["export", "-o", "/dev/stdout"]);
    let done = command.stdout(fs::File::create(&out).unwrap()).status().unwrap();
    assert!(done.success() && fs::read_to_string(&out).unwrap() == bundle);
}

#[test]
fn a_new_file_has_the_mode_that_users_expect() {
    let store = cup();
    let line = "umask 027; exec \"$0\" \"$@\"";
    let out = place(&store, "new");
    let mut shell = assert_cmd::Command::new("sh");
    shell.args(["-c", line, env!("CARGO_BIN_EXE_ipse"), "--store", text(&store.path)]);
    ran(shell.args(["export", "-o", text(&out)])).fine();
    assert_eq!(mode(&out), 0o640);
    for kept in [0o600, 0o664] {
        fs::set_permissions(&out, Permissions::from_mode(kept)).unwrap();
        export(&store, "new").fine();
        assert_eq!(mode(&out), kept, "a file that replaces another keeps its mode");
    }
}

/// A command replaces only files that it could have written; anything else needs `--force`.
#[test]
fn a_file_of_another_kind_is_not_replaced() {
    let store = cup();
    let (key, events) = (key(&store, "arm.key"), store.write("week.jsonl", attempt("1", true)));
    let [bundle, signed] = ["log.ipse", "signed.jsonl"].map(|name| place(&store, name));
    export(&store, "log.ipse").fine();
    sign(&store, &events, &key, text(&signed)).fine();
    let manifest = store.write("agent.toml", "agent_id = \"x\"\n");
    let archive = store.write("other.tar", [&b"facts.jsonl"[..], &[0; 600]].concat());
    let link = text(&place(&store, "link")).to_string();
    symlink("agent.toml", &link).unwrap();
    for file in [&manifest, &archive, &events, text(&signed), &link] {
        let run = || store.run(&["export", "-o", file]);
        changes_nothing(&store, run, &["is not replaced", "not a bundle of this agent", "--force"]);
    }
    for file in [&manifest, &archive, text(&bundle)] {
        let run = || sign(&store, &events, &key, file);
        changes_nothing(&store, run, &["is not replaced", "signed events", "--force"]);
    }
    // Its own kind, an empty file, and the input.
    let whole = fs::read(&bundle).unwrap();
    let empty = store.write("empty", "");
    for name in ["log.ipse", "empty"] {
        export(&store, name).fine();
        assert!(fs::read(place(&store, name)).unwrap() == whole, "{name}");
    }
    fs::write(&empty, "").unwrap();
    for file in [text(&signed), &empty, &events] {
        sign(&store, &events, &key, file).fine();
    }
}

/// The bundle of another agent may be the only evidence of it.
#[test]
fn a_bundle_of_another_agent_is_not_replaced() {
    let (store, other) = (cup(), Store::nothing());
    let manifest = std::fs::read_to_string(vector("manifest/golden.toml")).unwrap();
    let manifest = other.write("other.toml", manifest.replace("ward-robot-01", "another"));
    other.run(&["init", "--manifest", &manifest]).fine();
    let bundle = place(&store, "robot.ipse");
    other.run(&["export", "-o", text(&bundle)]).fine();
    let run = || export(&store, "robot.ipse");
    changes_nothing(&store, run, &["is not replaced", "not a bundle of this agent", "--force"]);
    store.run(&["export", "-o", text(&bundle), "--force"]).fine();
    export(&store, "robot.ipse").fine();
}

#[test]
fn force_replaces_any_file_but_those_that_are_needed() {
    let store = cup();
    let (key, events) = (key(&store, "arm.key"), store.write("week.jsonl", attempt("1", true)));
    let forced_export = |file: &str| ran(store.command().args(["export", "-o", file, "--force"]));
    let forced_sign = |more: &[&str]| {
        let args = ["sign", &events, "--key", &key, "--name", "arm", "--identity", WHOM];
        ran(store.command().args(args).args(more).arg("--force"))
    };
    let manifest = store.write("agent.toml", "agent_id = \"x\"\n");
    forced_export(&manifest).fine();
    assert_eq!(ipse_bundle::is_bundle(&fs::read(&manifest).unwrap()), Some(true));
    forced_sign(&["-o", &manifest]).fine();
    assert_eq!(fs::read_to_string(&manifest).unwrap().lines().count(), 2);
    let log_key = format!("{}.keys/log.key", text(&store.path));
    for file in [text(&store.path), &log_key] {
        changes_nothing(&store, || forced_export(file), &["is not written to"]);
    }
    changes_nothing(&store, || forced_sign(&["-o", &key]), &["is not written to"]);
    forced_sign(&[]).ended(2, &["--out"]);
}

/// Events that are extracted from a bundle would be stored without their proofs.
#[test]
fn a_bundle_is_not_imported_as_events() {
    let store = cup();
    let bundle = place(&store, "robot one.ipse");
    export(&store, "robot one.ipse").fine();
    let bytes = fs::read(&bundle).unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &bytes).unwrap();
    let folded = encoder.finish().unwrap();
    let zipped = store.write("robot.ipse.gz", &folded);
    let other = Store::new();
    let command = "ipse import-bundle 'REPLACED' --trust";
    let named = command.replace("REPLACED", text(&bundle));
    for more in [&[][..], &["--signed"], &["--json"]] {
        let import = |file: &str| other.run(&[&["import", file][..], more].concat());
        import(text(&bundle)).ended(2, &["is a bundle", "nothing was stored", &named]);
        import(&zipped).ended(2, &["is a bundle", "ipse import-bundle"]);
        for input in [&bytes, &folded] {
            let args = [&["import", "-"][..], more].concat();
            let ran = other.fed(&args, input.clone());
            ran.ended(2, &["standard input is a bundle", "ipse import-bundle FILE"]);
        }
    }
    other.run(&["log"]).ended(1, &[]);
    let key = key(&store, "arm.key");
    sign(&store, text(&bundle), &key, text(&place(&store, "signed"))).ended(2, &["is a bundle"]);
}

/// The names of unfinished files in a directory.
fn unfinished(store: &Store) -> Vec<String> {
    let names = fs::read_dir(store.directory.path()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".new-ipse-")).collect()
}

#[test]
fn a_killed_command_leaves_the_file_as_it_was_and_another_that_can_be_found() {
    let store = cup();
    let key = key(&store, "arm.key");
    let events = store.write("week.jsonl", attempt("1", true));
    let out = text(&place(&store, "signed.jsonl")).to_string();
    sign(&store, &events, &key, &out).fine();
    let before = fs::read(&out).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ipse"));
    command.args(["sign", "-", "--key", &key, "--name", "arm", "--identity", WHOM, "-o", &out]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let until = Instant::now() + Duration::from_secs(30);
    while unfinished(&store).is_empty() {
        assert!(Instant::now() < until, "no file was begun");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(fs::read(&out).unwrap() == before);
    assert_eq!(unfinished(&store).len(), 1);
    let guide = fs::read_to_string(root().join("docs/guide/forgetting.md")).unwrap();
    assert!(guide.contains(".new-ipse-"), "the guide says what it is called");
    // Neither an error nor a success leaves one.
    fs::remove_file(place(&store, &unfinished(&store)[0])).unwrap();
    sign(&store, &events, &key, &out).fine();
    fs::write(store.path.with_extension("db.keys").join("operator.pub"), "damaged").unwrap();
    export(&store, "bundle").ended(2, &["operator.pub"]);
    assert!(unfinished(&store).is_empty() && !place(&store, "bundle").exists());
}

/// Signing a tree head removes an unfinished one.
#[test]
fn unfinished_tree_heads_are_swept_by_the_next_one() {
    let store = cup();
    let heads = store.path.with_extension("db.keys").join("heads");
    for name in [".new-abc", ".new-ipse-abc"] {
        fs::write(heads.join(name), "half a head").unwrap();
    }
    store.run(&["record", "--zone", "z", "--failed", "--no-consolidate"]).fine();
    store.run(&["tree-head", "--sign"]).fine();
    let names: Vec<_> =
        fs::read_dir(&heads).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [format!("{WHOM}.note").as_str()]);
}

#[test]
fn another_store_is_not_replaced() {
    let (store, other) = (cup(), cup());
    let before = fs::read(&other.path).unwrap();
    let ran = store.run(&["export", "-o", text(&other.path)]);
    ran.ended(2, &["it is a database"]);
    assert_eq!(fs::read(&other.path).unwrap(), before);
}

#[test]
fn a_producers_key_is_not_one_of_the_store() {
    let store = cup();
    for name in ["log.key", "operator.key", "new.key", "revoked"] {
        let out = place(&store, "ipse.db.keys").join(name);
        let args = ["key", "new", "producer", "arm", "--any-source", "--out", text(&out)];
        store.run(&args).ended(2, &["it is in the key directory"]);
    }
    assert!(!place(&store, "ipse.db.keys").join("revoked").exists());
}
