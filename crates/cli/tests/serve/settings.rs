//! Settings: a flag overrides the environment, the environment the file, the file the default. The
//! printed settings can be read again.

use super::client::Request;
use super::server::{Server, one_agent, serve};
use super::store::Store;
use serde_json::Value;
use std::process::{Command, Stdio};

/// Runs `serve` to its end; returns exit code, standard output and standard error.
fn ran(command: &mut Command) -> (i32, String, String) {
    let done = command.stdout(Stdio::piped()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
}

/// The settings with these arguments, without the flag of the store.
fn printed(store: &Store, args: &[&str], variables: &[(&str, &str)]) -> Value {
    let mut command = serve(store, &[]);
    let mut bare = Command::new(command.get_program());
    bare.current_dir(store.directory.path()).stdin(Stdio::null());
    for (name, _) in command.get_envs() {
        bare.env_remove(name);
    }
    bare.envs(variables.iter().copied());
    command = bare;
    command.args(["serve", "--print-config", "--json"]).args(args);
    let (exit, out, err) = ran(&mut command);
    assert_eq!(exit, 0, "{err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn each_place_wins_over_the_next() {
    let store = Store::nothing();
    let file = store.write(
        "ipse.toml",
        "listen = \"127.0.0.1:1\"\npass_every = 2\nlog_level = \"warn\"\nstore = \"in-file.db\"\n",
    );
    let args = ["--config", &file, "--listen", "127.0.0.1:3"];
    let all = printed(&store, &args, &[("IPSE_LISTEN", "127.0.0.1:2"), ("IPSE_PASS_EVERY", "5")]);
    let reported = |name: &str| (all[name]["value"].clone(), all[name]["origin"].as_str().unwrap());
    assert_eq!(reported("listen"), ("127.0.0.1:3".into(), "flag --listen"));
    assert_eq!(reported("pass_every"), (5.into(), "environment IPSE_PASS_EVERY"));
    assert_eq!(reported("log_level"), ("warn".into(), &*format!("file {file}")));
    assert_eq!(reported("pass_quiet"), (1000.into(), "default"));
    assert_eq!(reported("tls_cert"), (Value::Null, "not set"));
    let beside = store.directory.path().join("in-file.db");
    assert_eq!(reported("store").0, beside.to_str().unwrap(), "relative to the file");
    let all = printed(&store, &["--config", &file, "--store", "x.db"], &[("IPSE_STORE", "y.db")]);
    assert_eq!(all["store"]["value"], "x.db");
    let all = printed(&store, &["--config", &file], &[("IPSE_STORE", "y.db"), ("IPSE_KEYS", "k")]);
    assert_eq!((&all["store"]["value"], &all["key_dir"]["value"]), (&"y.db".into(), &"k".into()));
    assert_eq!(all["key_dir"]["origin"], "environment IPSE_KEYS");
}

#[test]
fn what_is_printed_gives_the_same_settings() {
    let store = Store::nothing();
    let args = ["--print-config", "--listen", "127.0.0.1:4", "--pass-quiet", "7"];
    let urls = ["--public-url", "https://a.example", "--public-url", "https://b.example/x"];
    let (exit, out, _) = ran(&mut serve(&store, &[&args[..], &urls].concat()));
    assert_eq!(exit, 0);
    let file = store.write("printed.toml", &out);
    let (_, again, _) = ran(&mut serve(&store, &["--print-config", "--config", &file]));
    let values = |text: &str| {
        let lines = text.lines().map(|line| line.split("  #").next().unwrap().trim_end());
        lines.map(str::to_string).collect::<Vec<_>>()
    };
    assert_eq!(values(&again), values(&out));
    assert!(out.contains("listen = \"127.0.0.1:4\"") && out.contains("pass_quiet = 7"), "{out}");
    let both = "public_url = [\"https://a.example\", \"https://b.example/x\"]";
    assert!(out.contains(both), "{out}");
}

#[test]
fn a_bad_setting_is_reported_with_its_place() {
    let store = Store::nothing();
    let file = |text: &str| store.write("bad.toml", text);
    for (text, words) in [
        ("colour = 1", "unknown setting `colour`; the settings are listen, store"),
        ("listen = 7477", "listen must be a text in quotes"),
        ("pass_every = \"64\"", "pass_every must be a whole number"),
        ("pass_every = 0", "pass_every must be a whole number of at least 1, not `0` (file "),
        ("pass_quiet = 86400001", "pass_quiet must be milliseconds"),
        ("log_level = \"loud\"", "log_level must be error, warn, info or debug, not `loud`"),
        ("log_format = \"xml\"", "log_format must be text or json"),
        ("listen = \"nowhere\"", "listen must be an address and a port"),
        (
            "public_url = \"ipse.example.org\"",
            "public_url must be a URL with a host, such as https",
        ),
        ("public_url = [\"https://a\", \"b\"]", "not `b` (file "),
        ("public_url = []", "public_url must be a text in quotes, or a list of such texts"),
        ("public_url = [1]", "public_url must be a text in quotes, or a list of such texts"),
        ("tls_cert = \"c.pem\"", "tls_cert and tls_key belong together"),
        ("listen = ", "could not read the settings in"),
        (&"#".repeat(70_000), "has more than 65536 bytes"),
    ] {
        let path = file(text);
        let (exit, out, err) = ran(&mut serve(&store, &["--config", &path]));
        assert_eq!((exit, out.as_str()), (2, ""), "{text}: {err}");
        assert!(err.contains(words), "{text}: {err}");
    }
    let (exit, _, err) = ran(&mut serve(&store, &["--config", "absent.toml"]));
    assert!(exit == 2 && err.contains("could not read the settings in absent.toml"), "{err}");
}

#[test]
fn public_urls_are_given_several_at_once() {
    let store = Store::nothing();
    let file = store.write("urls.toml", "public_url = \"https://in.file\"\n");
    let reported = |args: &[&str], variables: &[(&str, &str)]| {
        let all = printed(&store, args, variables);
        all["public_url"]["value"].clone()
    };
    let urls = |all: &[&str]| Value::from(all.to_vec());
    let variable = [("IPSE_PUBLIC_URL", "https://a,http://b")];
    assert_eq!(reported(&[], &[]), Value::Null);
    assert_eq!(reported(&["--config", &file], &[]), urls(&["https://in.file"]));
    assert_eq!(reported(&["--config", &file], &variable), urls(&["https://a", "http://b"]));
    let flags = ["--public-url", "https://c", "--public-url", "https://d"];
    assert_eq!(reported(&flags, &variable), urls(&["https://c", "https://d"]));
    let (exit, _, err) = ran(&mut serve(&store, &["--public-url", "ipse.example.org"]));
    let words = "public_url must be a URL with a host, such as https://ipse.example.org";
    assert!(exit == 2 && err.contains(words) && err.contains("(flag --public-url)"), "{err}");
}

#[test]
fn lines_for_programs_are_json_and_hold_no_token() {
    let (store, agent) = one_agent();
    let server = Server::with(&store, &["--log-format", "json", "--log-level", "debug"]);
    let asked = server.get("/api/agent/semantic", &agent.planner).ok();
    let words = server.stop();
    let lines: Vec<Value> =
        words.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let request = lines.iter().find(|line| line["message"] == "a request").expect(&words);
    assert_eq!(request["request_id"].as_str(), asked.header("x-request-id"));
    assert_eq!(
        (&request["path"], &request["status"]),
        (&"/api/agent/semantic".into(), &200.into())
    );
    assert!(!words.contains(&agent.planner), "a token is in the log");
}

/// Every request is logged, whatever its token and result. Only requests of operators are logged as
/// such.
#[test]
fn every_request_is_logged() {
    let (store, agent) = one_agent();
    let server = Server::with(&store, &["--log-format", "json", "--log-level", "debug"]);
    let asked = [
        server.get("/version", ""),
        server.get("/api/agent/log", "stranger"),
        server.get("/nowhere", &agent.planner),
        server.ask(&Request::new("POST", "/api/agent/consolidate").token(&agent.planner)),
        server.ask(&Request::new("POST", "/api/agent/consolidate").token(&agent.operator)),
    ];
    let words = server.stop();
    let lines: Vec<Value> = words.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reported = asked.map(|answer| {
        let id = answer.header("x-request-id").unwrap();
        let line = lines.iter().find(|line| line["request_id"] == id).expect(&words);
        assert_eq!(line["status"], answer.status);
        assert!(line["micros"].is_u64(), "{line}");
        line["message"].as_str().unwrap().to_string()
    });
    assert_eq!(reported[..3], ["a request"; 3].map(str::to_string));
    assert_eq!(reported[3..], ["a request was refused", "an operator request"]);
}

#[test]
fn no_identity_is_chosen() {
    let (store, agent) = one_agent();
    let (exit, _, err) = ran(&mut serve(&store, &["--identity", &agent.identity]));
    assert!(exit == 2 && err.contains("all agents of a store are served"), "{err}");
}

#[cfg(not(feature = "tls"))]
#[test]
fn a_build_without_tls_says_so() {
    let store = Store::nothing();
    let args = ["--tls-cert", "c.pem", "--tls-key", "k.pem"];
    let (exit, _, err) = ran(&mut serve(&store, &args));
    assert!(exit == 2 && err.contains("built without TLS"), "{err}");
}
