//! Metrics: they change with the counted events, and show nothing of other agents.

use super::client::Request;
use super::events::event;
use super::server::{ACTS, Agent, Server, one_agent, wait_until};
use super::store::Store;

/// The size of a log with the acts of its tokens and this many events more.
fn after_acts(more: u8) -> f64 {
    f64::from(ACTS + more)
}

fn attempt(id: &str) -> String {
    event("arm", id, "grasp", true)
}

/// The value of a metric by its name with labels.
#[track_caller]
fn figure(page: &str, name: &str) -> f64 {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

#[test]
fn every_figure_moves_with_what_it_counts() {
    let (store, agent) = one_agent();
    let server = Server::with(&store, &["--pass-every", "1"]);
    let lines = [attempt("a"), attempt("b"), attempt("a"), "{}".to_string()].join("\n");
    server.ask(&Request::events("application/x-ndjson", lines).token(&agent.producer)).ok();
    server.get("/api/agent/semantic", &agent.planner).ok();
    server.get("/api/agent/log", &agent.planner).is(403);
    server.get("/api/agent/log", "stranger").is(401);
    // The head over the acts is new: that over the pass follows a second later.
    let signed = || figure(&server.get("/metrics", &agent.producer).ok().text(), "ipse_tree_size");
    wait_until("the pass is signed", || signed() >= after_acts(3));
    let answer = server.get("/metrics", &agent.producer).ok();
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(answer.header("content-type"), Some(kind));
    let page = answer.text();
    assert!(page.ends_with("# EOF\n"));
    for (name, value) in [
        ("ipse_events_total{result=\"appended\"}", 2.0),
        ("ipse_events_total{result=\"duplicate\"}", 1.0),
        ("ipse_events_total{result=\"refused\"}", 1.0),
        ("ipse_append_seconds_count", 1.0),
        ("ipse_queue", 0.0),
        ("ipse_passes_total{trigger=\"threshold\"}", 1.0),
        ("ipse_rows_touched_total", 1.0),
        ("ipse_log_size", after_acts(3)),
        ("ipse_checkpoint", after_acts(2)),
        ("ipse_tree_size", after_acts(3)),
        ("ipse_facts", 1.0),
        ("ipse_requests_total{method=\"GET\",route=\"/api/agent/semantic\",status=\"200\"}", 1.0),
        ("ipse_requests_total{method=\"GET\",route=\"/api/agent/log\",status=\"403\"}", 1.0),
        ("ipse_request_seconds_count{method=\"POST\",route=\"/api/agent/events\"}", 1.0),
        ("ipse_server_connections", 1.0),
        ("ipse_server_unauthorized_total", 1.0),
    ] {
        assert_eq!(figure(&page, name), value, "{name}");
    }
    assert!(
        figure(&page, "ipse_snapshot_age_seconds") < figure(&page, "ipse_server_uptime_seconds")
    );
}

#[test]
fn other_agents_are_not_in_it() {
    let (store, agent) = one_agent();
    let other = Agent::register(&store, "ward-robot-02");
    let server = Server::start(&store);
    server.ask(&Request::events("application/json", attempt("a")).token(&agent.producer)).is(201);
    let page = server.get("/metrics", &other.auditor).ok().text();
    assert_eq!(figure(&page, "ipse_log_size"), after_acts(0));
    assert_eq!(figure(&page, "ipse_events_total{result=\"appended\"}"), 0.0);
    for absent in ["/api/agent/events", &agent.identity] {
        assert!(!page.contains(absent), "{absent} in {page}");
    }
}

const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

fn observer(store: &Store) -> String {
    let made = store.run(&["token", "create", "--role", "observer", "--name", "p"]).fine();
    made.out.trim().to_string()
}

fn page(server: &Server, token: &str, accept: &str) -> String {
    let request = Request::get("/metrics").token(token).header("accept", accept);
    let answer = server.ask(&request).ok();
    assert_eq!(answer.header("vary"), Some("accept"));
    answer.text()
}

#[test]
fn the_format_is_the_one_that_is_asked_for() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    server.ask(&Request::events("application/json", attempt("a")).token(&agent.producer)).is(201);
    let request = Request::get("/metrics").token(&agent.planner);
    let answer = server.ask(&request.header("accept", "text/plain;version=0.0.4")).ok();
    assert_eq!(answer.header("content-type"), Some(PROMETHEUS));
    let text = answer.text();
    assert!(text.contains("# TYPE ipse_events_total counter\n"), "{text}");
    assert!(text.contains("# HELP ipse_events_total Events that producers sent"), "{text}");
    assert!(!text.contains("# EOF") && !text.contains("# UNIT"), "{text}");
    let open = page(&server, &agent.planner, "application/openmetrics-text;version=1.0.0");
    assert!(open.contains("# TYPE ipse_events counter\n") && open.ends_with("# EOF\n"));
    // Both have the same values.
    let samples = |page: &str| {
        let names = page.lines().filter(|line| !line.starts_with('#'));
        names.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect::<Vec<_>>()
    };
    let new = |name: &String| !name.contains("route=\"/metrics\"");
    let [text, open] =
        [text, open].map(|page| samples(&page).into_iter().filter(new).collect::<Vec<_>>());
    assert_eq!(text, open);
}

#[test]
fn the_process_and_the_store_are_measured() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    let page = || page(&server, &agent.operator, "*/*");
    let before = page();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let started = figure(&before, "process_start_time_seconds");
    assert!((now.as_secs_f64() - started).abs() < 600.0, "{started}");
    assert!(figure(&before, "process_cpu_seconds_total") > 0.0);
    let [resident, addressed] = ["resident", "virtual"]
        .map(|kind| figure(&before, &format!("process_{kind}_memory_bytes")));
    assert!(resident > 1e6 && addressed >= resident, "{resident} {addressed}");
    let open = figure(&before, "process_open_fds");
    assert!(open > 3.0 && open < figure(&before, "process_max_fds"));
    let version = format!("ipse_build_info{{version=\"{}\"}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(figure(&before, &version), 1.0);

    let bytes = std::fs::metadata(&store.path).unwrap().len();
    assert_eq!(figure(&before, "ipse_server_store_bytes{file=\"store\"}"), bytes as f64);
    server.ask(&Request::events("application/json", attempt("a")).token(&agent.producer)).is(201);
    let wal = std::fs::metadata(store.path.with_extension("db-wal")).unwrap().len();
    assert_eq!(figure(&page(), "ipse_server_store_bytes{file=\"wal\"}"), wal as f64);
    assert!(wal > 0);

    assert_eq!(figure(&before, "ipse_server_streams"), 0.0);
    let mut streams: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for stream in &mut streams {
        let request = Request::get("/api/agent/stream").token(&agent.planner);
        stream.write(&request.bytes()).unwrap();
        stream.answer_head().unwrap().ok();
    }
    assert_eq!(figure(&page(), "ipse_server_streams"), 3.0);
    assert_eq!(figure(&page(), "ipse_server_waiting_requests"), 0.0);
}

#[test]
fn an_observer_sees_every_agent_and_nothing_else() {
    let (store, agent) = one_agent();
    let other = Agent::register(&store, "ward-robot-02");
    let token = observer(&store);
    let server = Server::start(&store);
    server.ask(&Request::events("application/json", attempt("a")).token(&agent.producer)).is(201);
    for accept in ["text/plain", "*/*"] {
        let page = page(&server, &token, accept);
        for (of, size) in [(&agent, 1), (&other, 0)] {
            let label = format!("identity=\"{}\"", of.identity);
            let sent = format!("ipse_events_total{{{label},result=\"appended\"}}");
            assert_eq!(figure(&page, &sent), f64::from(size));
            let log_size = figure(&page, &format!("ipse_log_size{{{label}}}"));
            assert!(log_size >= after_acts(size));
        }
        figure(&page, "ipse_server_connections");
        let types: Vec<&str> = page.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let mut once = types.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), types.len(), "{page}");
    }
    server.get("/api/agent/identity", &token).problem(403, "forbidden");
    // Its use is recorded, and it is rejected after it is revoked.
    let listed = || store.run(&["token", "list", "--observers", "--json"]).json();
    wait_until("its use is noted", || listed()[0]["last_used"].is_string());
    store.run(&["token", "revoke", "p"]).fine();
    wait_until("it is revoked", || server.get("/metrics", &token).status == 401);
}
