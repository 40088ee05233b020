//! The real binary, serving a store; and agents with a token of every role.
//!
//! **Invariants:** a server is killed at the end of its test, whatever the result.

use super::client::{Answer, Connection, Request};
use super::store::{CommandResult, Store, vector};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest time for anything that must happen.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < until, "it did not happen within {DEADLINE:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether an environment variable would change a setting of the server.
fn is_ours(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"IPSE_")
}

/// The command that serves a store.
pub(crate) fn serve(store: &Store, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ipse"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_ours(name)) {
        command.env_remove(name);
    }
    command.current_dir(store.directory.path());
    command.arg("--store").arg(&store.path).arg("serve").args(args);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    words: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(store: &Store) -> Self {
        Self::with(store, &[])
    }

    /// A server with more arguments; by default on a free port of loopback.
    pub(crate) fn with(store: &Store, args: &[&str]) -> Self {
        let elsewhere = args.contains(&"--listen");
        let place = if elsewhere { &[][..] } else { &["--listen", "127.0.0.1:0"] };
        Self::of(serve(store, &[place, args].concat()))
    }

    /// A server that judges intents by the files of `examples/gates`, with a high rate limit.
    pub(crate) fn gated(store: &Store, args: &[&str]) -> Self {
        let files = GATE_FILES.map(|(_, file)| example(file));
        let [registry, policy, temperament] = files.each_ref().map(String::as_str);
        let gates = ["--ecm-registry", registry, "--policy", policy, "--temperament", temperament];
        let fast = ["--intent-rate", "60000"];
        let pace = if args.contains(&fast[0]) { &[][..] } else { &fast };
        Self::with(store, &[&gates[..], pace, args].concat())
    }

    /// A server whose process is prepared by a line of shell.
    pub(crate) fn prepared(command: &Command, line: &str) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{line}; exec \"$0\" \"$@\"")]);
        shell.arg(command.get_program()).args(command.get_args());
        for (name, _) in command.get_envs() {
            shell.env_remove(name);
        }
        shell.current_dir(command.get_current_dir().unwrap());
        shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        Self::of(shell)
    }

    /// A server that cannot write a log line: standard error is full.
    pub(crate) fn unheard(store: &Store, args: &[&str]) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let full = std::fs::File::create("/dev/full").unwrap();
        let place = ["--listen", &address.to_string()];
        let child = serve(store, &[&place, args].concat()).stderr(full).spawn().unwrap();
        let mut server = Server { child, address, words: Arc::default(), listener: None };
        wait_until("it listens or has ended", || {
            Connection::open(address).is_ok() || !server.is_alive()
        });
        server
    }

    /// A server by its command.
    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (found, address) = channel();
        let words = Arc::new(Mutex::new(String::new()));
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let kept = words.clone();
        let listener = std::thread::spawn(move || listen(stderr, &kept, &found));
        let Ok(address) = address.recv_timeout(DEADLINE) else {
            let _ = child.kill();
            let _ = child.wait();
            panic!("it does not serve: {}", words.lock().unwrap());
        };
        Server { child, address, words, listener: Some(listener) }
    }

    /// Sends a request on a new connection.
    #[track_caller]
    pub(crate) fn ask(&self, request: &Request) -> Answer {
        let answer = self.connect().ask(&request.clone().close());
        answer.unwrap_or_else(|why| panic!("no answer: {why}; {}", self.words()))
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str, token: &str) -> Answer {
        self.ask(&Request::get(path).token(token))
    }

    #[track_caller]
    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.address).unwrap()
    }

    /// The lines on standard error so far.
    pub(crate) fn words(&self) -> String {
        self.words.lock().unwrap().clone()
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The number of open sockets. Files are not counted: SQLite keeps those of closed connections
    /// for the next ones while another connection holds a lock.
    pub(crate) fn sockets(&self) -> usize {
        let all = std::fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        let links = all.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
        links.filter(|link| link.as_os_str().as_encoded_bytes().starts_with(b"socket:")).count()
    }

    /// The peak of resident memory, in KiB.
    pub(crate) fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().strip_suffix(" kB").unwrap().parse().unwrap()
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let line = format!("kill -{name} {}", self.pid());
        assert!(Command::new("sh").args(["-c", &line]).status().unwrap().success());
    }

    /// Sends SIGKILL and waits for the process.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
        if let Some(listener) = self.listener.take() {
            listener.join().unwrap();
        }
    }

    /// Waits until the server ends by itself; returns the exit status and standard error.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> (ExitStatus, String) {
        wait_until("the server ends", || !self.is_alive());
        let status = self.child.wait().unwrap();
        if let Some(listener) = self.listener.take() {
            listener.join().unwrap();
        }
        (status, self.words())
    }

    /// Stops the server with SIGTERM.
    #[track_caller]
    pub(crate) fn stop(mut self) -> String {
        self.signal("TERM");
        let (status, words) = self.ended();
        assert_eq!(status.code(), Some(0), "{words}");
        words
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        // A panic of the server fails the test.
        if !std::thread::panicking() {
            assert!(!self.words().contains("panicked"), "{}", self.words());
        }
    }
}

/// Keeps every line, and finds the one with the address.
fn listen(lines: impl BufRead, kept: &Mutex<String>, found: &Sender<SocketAddr>) {
    for line in lines.lines().map_while(Result::ok) {
        if line.contains("serving ")
            && let Some((_, rest)) = line.split_once("://")
            && let Ok(address) = rest.split(';').next().unwrap_or_default().parse()
        {
            let _ = found.send(address);
        }
        let mut kept = kept.lock().unwrap();
        kept.push_str(&line);
        kept.push('\n');
    }
}

/// An agent of a store, with a token of each role.
pub(crate) struct Agent {
    pub(crate) identity: String,
    pub(crate) planner: String,
    pub(crate) producer: String,
    pub(crate) operator: String,
    pub(crate) auditor: String,
}

/// The acts that created the four tokens.
pub(crate) const ACTS: u8 = 4;

/// The gate files: their hashes for a manifest, and their paths.
pub(crate) const GATE_FILES: [(&str, &str); 3] = [
    ("ecm_registry", "gates/ecm-registry.toml"),
    ("policy", "gates/policy.toml"),
    ("temperament", "gates/temperament.toml"),
];

/// The path of an example.
pub(crate) fn example(file: &str) -> String {
    format!("{}/../../examples/{file}", env!("CARGO_MANIFEST_DIR"))
}

impl Agent {
    /// Registers an agent of that name; the golden one is `ward-robot-01`.
    pub(crate) fn register(store: &Store, name: &str) -> Self {
        Self::register_under(store, name, &[])
    }

    /// The same, with more arguments of `init`.
    pub(crate) fn register_under(store: &Store, name: &str, args: &[&str]) -> Self {
        Self::with(store, name, golden(), args)
    }

    /// The same, bound to the files of `examples/gates`.
    pub(crate) fn bound(store: &Store, name: &str) -> Self {
        Self::bound_under(store, name, &[])
    }

    /// The same, with more arguments of `init`.
    pub(crate) fn bound_under(store: &Store, name: &str, args: &[&str]) -> Self {
        let files = GATE_FILES.map(|(_, file)| example(file));
        Self::with(store, name, binding(&files), args)
    }

    /// The same, bound to other files.
    pub(crate) fn bound_to(store: &Store, name: &str, files: &[String; 3]) -> Self {
        Self::with(store, name, binding(files), &[])
    }

    fn with(store: &Store, name: &str, toml: String, args: &[&str]) -> Self {
        let file = store.write(&format!("{name}.toml"), toml.replace("ward-robot-01", name));
        let init = [&["init", "--manifest", &file], args].concat();
        let identity = store.run(&init).fine().out.trim().to_string();
        let token = |role: &str| {
            let any: &[&str] = if role == "producer" { &["--any-source"] } else { &[] };
            token(store, &identity, &[&["--role", role], any].concat())
        };
        let (planner, producer) = (token("planner"), token("producer"));
        let (operator, auditor) = (token("operator"), token("auditor"));
        Agent { planner, producer, operator, auditor, identity }
    }

    /// The token of a role.
    pub(crate) fn token(&self, role: &str) -> &str {
        match role {
            "planner" => &self.planner,
            "producer" => &self.producer,
            "operator" => &self.operator,
            "auditor" => &self.auditor,
            _ => panic!("no role {role}"),
        }
    }

    /// Runs a command for this agent.
    pub(crate) fn run(&self, store: &Store, args: &[&str]) -> CommandResult {
        store.run(&[&["--identity", &self.identity], args].concat())
    }
}

fn golden() -> String {
    std::fs::read_to_string(vector("manifest/golden.toml")).unwrap()
}

/// The golden manifest, bound to these gate files.
fn binding(files: &[String; 3]) -> String {
    let fields = GATE_FILES.map(|(field, _)| format!("{field}_hash = "));
    let golden = golden();
    let lines = golden.lines().filter(|line| !fields.iter().any(|it| line.starts_with(it)));
    let mut toml: String = lines.map(|line| format!("{line}\n")).collect();
    for ((field, _), file) in GATE_FILES.iter().zip(files) {
        toml += &format!("{field} = \"{file}\"\n");
    }
    toml
}

/// A store with the golden agent and its tokens.
pub(crate) fn one_agent() -> (Store, Agent) {
    let store = Store::nothing();
    let agent = Agent::register(&store, "ward-robot-01");
    (store, agent)
}

/// Creates a token.
pub(crate) fn token(store: &Store, identity: &str, args: &[&str]) -> String {
    let args = [&["--identity", identity, "token", "create", "--json"], args].concat();
    store.run(&args).fine().json()["token"].as_str().unwrap().to_string()
}
