//! The stream follows the log: every position once and in order, to every client that resumes,
//! across crashes, for writes of all processes, and to no other agent.

use super::client::{Connection, Request};
use super::events::{BATCH, LINES, ONE, batch, event, lines, ref_of};
use super::server::{Agent, Server, one_agent};
use super::store::Store;
use serde_json::Value;
use std::net::Shutdown;

/// One message of a stream.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) id: Option<u64>,
    pub(crate) name: String,
    pub(crate) data: Value,
}

pub(crate) struct Stream {
    connection: Connection,
    text: String,
}

impl Stream {
    /// Follows from now on, or from after a position.
    pub(crate) fn open(server: &Server, token: &str, last: Option<u64>) -> Self {
        let request = Request::get("/api/agent/stream").token(token);
        let request = match last {
            Some(last) => request.header("last-event-id", &last.to_string()),
            None => request,
        };
        let mut connection = server.connect();
        connection.write(&request.bytes()).unwrap();
        let head = connection.answer_head().unwrap().ok();
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        Stream { connection, text: String::new() }
    }

    /// The next message; a timeout fails the test.
    pub(crate) fn next(&mut self) -> Message {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let reported = parsed(block);
                self.text = rest.to_string();
                if let Some(reported) = reported {
                    return reported;
                }
                continue;
            }
            let chunk = self.connection.chunk().unwrap().expect("the stream goes on");
            self.text += std::str::from_utf8(&chunk).unwrap();
        }
    }

    /// The next event of the log: a message with a position.
    fn event(&mut self) -> (u64, String, Value) {
        loop {
            let Message { id, name, data } = self.next();
            match id {
                Some(id) => {
                    assert_eq!(data["seq"], id, "{data}");
                    return (id, name, data);
                }
                None => assert_eq!(name, "tree_head", "only tree heads have no id: {data}"),
            }
        }
    }

    /// The events up to a position.
    fn until(&mut self, seq: u64) -> Vec<(u64, String, Value)> {
        let mut all: Vec<(u64, String, Value)> = Vec::new();
        while all.last().is_none_or(|(last, ..)| *last < seq) {
            all.push(self.event());
        }
        all
    }
}

/// Parses a block of lines; `None` for a comment.
fn parsed(block: &str) -> Option<Message> {
    let field = |name: &str| {
        let mut values =
            block.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let value = values.next().map(str::to_string);
        assert!(values.next().is_none(), "{name} twice in {block}");
        value
    };
    let data = serde_json::from_str(&field("data")?).unwrap();
    Some(Message {
        id: field("id").map(|id| id.parse().unwrap()),
        name: field("event").unwrap(),
        data,
    })
}

fn send(server: &Server, agent: &Agent, events: &[String]) {
    let request = match events {
        [one] => Request::events(ONE, one.clone()),
        [_, _] => Request::events(BATCH, batch(events)),
        _ => Request::events(LINES, lines(events)),
    };
    let answer = server.ask(&request.token(&agent.producer));
    assert!(matches!(answer.status, 200 | 201), "{answer:?}");
}

fn some(from: u32, to: u32) -> Vec<String> {
    (from..to).map(|n| event("arm", &n.to_string(), "grasp", n % 3 > 0)).collect()
}

fn head(store: &Store, agent: &Agent) -> u64 {
    agent.run(store, &["log", "--json"]).out.lines().count() as u64
}

/// The acts that created the four tokens of an agent: the first positions of its log.
const ACTS: u64 = super::server::ACTS as u64;

/// Checks that the first events of a log are these acts, and returns the others.
#[track_caller]
fn after_acts(reported: &[(u64, String, Value)]) -> &[(u64, String, Value)] {
    let (acts, others) = reported.split_at(ACTS as usize);
    for ((id, name, data), want) in acts.iter().zip(1..) {
        assert_eq!((*id, name.as_str(), &data["type"]), (want, "act", &"ipse.act".into()));
        assert!(data.get("data").is_none(), "keys and tokens are not streamed: {data}");
    }
    others
}

/// No automatic passes, so that every position is known.
const BY_HAND: [&str; 4] = ["--pass-every", "100000", "--pass-quiet", "3600000"];

#[test]
fn events_are_streamed_in_order() {
    let (store, agent) = one_agent();
    let server = Server::with(&store, &BY_HAND);
    let mut stream = Stream::open(&server, &agent.planner, None);
    let events = some(0, 6);
    send(&server, &agent, &events[..1]);
    send(&server, &agent, &events[1..3]);
    send(&server, &agent, &events[3..]);
    let fold = Request::new("POST", "/api/agent/consolidate").token(&agent.operator);
    server.ask(&fold).ok();
    let body = format!("{{\"event_refs\":[\"{}\"]}}", ref_of(&events[2]));
    let forget = Request::post("/api/agent/forget", "application/json", body);
    server.ask(&forget.token(&agent.operator)).ok();
    // A forget event, and the pass that goes with it.
    let reported = stream.until(ACTS + 9);
    let names: Vec<&str> = reported.iter().map(|(_, name, _)| name.as_str()).collect();
    let mut want = vec!["appended"; 6];
    want.extend(["consolidation", "forget", "consolidation"]);
    assert_eq!(names, want);
    assert_eq!(
        reported.iter().map(|(id, ..)| *id).collect::<Vec<_>>(),
        (ACTS + 1..=ACTS + 9).collect::<Vec<_>>()
    );
    for (event, (_, _, data)) in events.iter().zip(&reported) {
        assert_eq!(data["event_ref"], ref_of(event).as_str());
        assert_eq!(data["type"], "execution_result");
        assert!(data.get("data").is_none(), "the content is not streamed: {data}");
    }
    assert_eq!(reported[6].2["data"]["last_seq"], ACTS + 6);
    assert_eq!(reported[6].2["data"]["trigger"], "manual");
    assert_eq!(reported[8].2["data"]["trigger"], "forget");
    // A client that resumes gets the earlier events, without the forgotten content.
    let again = Stream::open(&server, &agent.auditor, Some(0)).until(ACTS + 9);
    let bare =
        |all: &[(u64, String, Value)]| all.iter().map(|one| one.2.to_string()).collect::<Vec<_>>();
    assert_eq!(bare(after_acts(&again)), bare(&reported));
}

/// Every position comes once, across broken streams, killed servers, passes and writes of other
/// processes.
#[test]
fn who_resumes_misses_nothing_and_hears_nothing_twice() {
    let (store, agent) = one_agent();
    let (mut heard, mut sent) = (0, 0);
    for round in 0..12 {
        let mut server = Server::with(&store, &["--pass-every", "4", "--pass-quiet", "5"]);
        let mut stream = Stream::open(&server, &agent.planner, Some(heard));
        for _ in 0..3 {
            send(&server, &agent, &some(sent, sent + 3));
            sent += 3;
        }
        // Disconnects in the middle, at another place each time.
        let most = head(&store, &agent);
        let leave = (heard + 3 + round % 4).min(most);
        while heard < leave {
            let (id, ..) = stream.event();
            assert_eq!(id, heard + 1);
            heard = id;
        }
        if round % 3 == 0 {
            drop(stream);
            stream = Stream::open(&server, &agent.planner, Some(heard));
        }
        let (id, ..) = stream.event();
        assert_eq!(id, heard + 1);
        heard = id;
        server.kill();
        store.run(&["record", "--zone", "z", "--failed", "--source", "other"]).fine();
    }
    let server = Server::start(&store);
    let last = head(&store, &agent);
    let reported = Stream::open(&server, &agent.planner, Some(heard)).until(last);
    let ids: Vec<u64> = reported.iter().map(|(id, ..)| *id).collect();
    assert_eq!(ids, (heard + 1..=last).collect::<Vec<_>>());
    assert!(last > 100 && !ids.is_empty(), "{last}");
    // More than any page and any queue, at once.
    send(&server, &agent, &some(sent, sent + 3000));
    let all = Stream::open(&server, &agent.operator, Some(0)).until(last + 3000);
    assert!(all.iter().zip(1..).all(|((id, ..), want)| *id == want));
}

#[test]
fn a_position_that_is_none_is_refused() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    let ask = |value: &str| {
        let request = Request::get("/api/agent/stream").token(&agent.planner);
        let mut connection = server.connect();
        connection.write(&request.header("last-event-id", value).bytes()).unwrap();
        // A stream would not end.
        connection.answer_head().unwrap().status
    };
    let (head, beyond) = (ACTS.to_string(), (ACTS + 1).to_string());
    for good in ["0", head.as_str()] {
        assert_eq!(ask(good), 200, "{good:?}");
    }
    let none = ["x", "", "-1", "1.5", "0x1", "1 2", "+5", "99999999999999999999", "١", "1,2"];
    for bad in none.into_iter().chain([beyond.as_str()]) {
        assert_eq!(ask(bad), 400, "{bad:?}");
    }
    let path = "/api/agent/stream?last_event_id=5";
    server.get(path, &agent.planner).problem(400, "unknown_parameter");
}

/// A stream ends when its token expires or is revoked, whether the log is quiet or grows.
#[test]
fn a_stream_ends_with_its_token() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    for busy in [false, true] {
        let token = super::server::token(&store, &agent.identity, &["--role", "planner"]);
        let mut stream = Stream::open(&server, &token, None);
        agent.run(&store, &["token", "revoke", &token]).fine();
        for number in 0.. {
            if busy {
                let sent = event(&format!("arm{busy}"), &number.to_string(), "grasp", true);
                server.ask(&Request::events(ONE, sent).token(&agent.producer)).is(201);
            }
            // The last chunk is empty.
            if !matches!(stream.connection.chunk(), Ok(Some(_))) {
                break;
            }
            assert!(number < 10_000, "it goes on");
        }
    }
}

/// A stream ends when its client closes its sending half: there is no response to wait for.
#[test]
fn a_stream_ends_when_its_client_closes() {
    let (store, agent) = one_agent();
    store.run(&["tree-head", "--sign"]).fine();
    let server = Server::with(&store, &BY_HAND);
    for more in [&b""[..], b"x", &Request::get("/version").bytes()] {
        let mut stream = Stream::open(&server, &agent.planner, None);
        // A stream begins with the newest tree head, here that of the acts.
        let Message { id, name, data } = stream.next();
        assert_eq!((id, name.as_str()), (None, "tree_head"));
        assert_eq!((&data["tree_size"], stream.text.as_str()), (&ACTS.into(), ""));
        stream.connection.write(more).unwrap();
        stream.connection.socket.shutdown(Shutdown::Write).unwrap();
        // No event and no comment follows, and no response to later bytes.
        assert!(stream.connection.is_closed(), "{more:?}");
    }
}

#[test]
fn a_stream_says_that_it_must_not_be_buffered() {
    let (store, agent) = one_agent();
    let server = Server::start(&store);
    let mut connection = server.connect();
    let request = Request::get("/api/agent/stream").token(&agent.planner);
    connection.write(&request.bytes()).unwrap();
    let head = connection.answer_head().unwrap().ok();
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    assert_eq!(head.header("connection"), Some("close"), "nothing can follow a stream");
}

/// `after` is for clients that cannot set a header. The header wins, because a browser that
/// reconnects sends it with its original address.
#[test]
fn a_stream_begins_after_a_position() {
    let (store, agent) = one_agent();
    let server = Server::with(&store, &BY_HAND);
    send(&server, &agent, &some(0, 6));
    let first = |after: u64, last: Option<u64>| {
        let path = format!("/api/agent/stream?after={after}");
        let request = Request::get(&path).token(&agent.planner);
        let last = last.map(|last| last.to_string());
        let request = last.iter().fold(request, |it, last| it.header("last-event-id", last));
        let mut connection = server.connect();
        connection.write(&request.bytes()).unwrap();
        connection.answer_head().unwrap().ok();
        Stream { connection, text: String::new() }.event().0
    };
    assert_eq!(first(0, None), 1);
    assert_eq!(first(ACTS + 4, None), ACTS + 5);
    assert_eq!(first(0, Some(ACTS + 3)), ACTS + 4);
    assert_eq!(first(ACTS + 5, Some(0)), 1);
    let refused = |path: &str, code: &str| {
        server.get(&format!("/api/agent/stream?{path}"), &agent.planner).problem(400, code);
    };
    refused(&format!("after={}", ACTS + 7), "bad_last_event_id");
    refused("after=99999999999999999999", "bad_parameter");
    refused("after=", "bad_parameter");
    refused("after=-1", "bad_parameter");
    refused("after=1&after=1", "repeated_parameter");
}

/// Events of another process are streamed too, without a request to this one.
#[test]
fn what_another_process_writes_is_streamed() {
    let (store, agent) = one_agent();
    let server = Server::with(&store, &BY_HAND);
    let mut stream = Stream::open(&server, &agent.planner, None);
    for n in 0..3 {
        store.run(&["record", "--zone", "z", "--failed", "--id", &n.to_string()]).fine();
        let (id, name, _) = stream.event();
        assert_eq!((id, name.as_str()), (ACTS + 2 * n + 1, "appended"));
        let (id, name, data) = stream.event();
        assert_eq!((id, name.as_str()), (ACTS + 2 * n + 2, "consolidation"));
        assert_eq!(data["data"]["last_seq"], ACTS + 2 * n + 1);
    }
    let log = store.run(&["log", "--json"]).fine().out;
    let first: Value = serde_json::from_str(log.lines().nth(ACTS as usize).unwrap()).unwrap();
    store.run(&["forget", first["event_ref"].as_str().unwrap()]).fine();
    assert_eq!(stream.event().1, "forget");
    assert_eq!(stream.event().1, "consolidation");
}

#[test]
fn agents_do_not_hear_of_each_other() {
    let store = Store::nothing();
    let agents = ["ward-robot-01", "ward-robot-02"].map(|name| Agent::register(&store, name));
    let server = Server::with(&store, &BY_HAND);
    let mut streams = agents.each_ref().map(|agent| Stream::open(&server, &agent.planner, Some(0)));
    let of = |agent: usize, n: u32| event(&format!("arm{agent}"), &n.to_string(), "grasp", true);
    for n in 0..40 {
        for (number, agent) in agents.iter().enumerate() {
            if n % 2 == 0 || number == 0 {
                send(&server, agent, &[of(number, n)]);
            }
        }
    }
    for (number, (stream, count)) in streams.iter_mut().zip([40, 20]).enumerate() {
        let mine: Vec<String> =
            (0..40).filter(|n| n % 2 == 0 || number == 0).map(|n| ref_of(&of(number, n))).collect();
        let reported = stream.until(ACTS + count);
        let heard: Vec<&str> = after_acts(&reported)
            .iter()
            .map(|(.., data)| data["event_ref"].as_str().unwrap())
            .collect();
        assert_eq!(heard, mine);
    }
    // Nothing of the other agent is under way either: the next message is its own.
    send(&server, &agents[0], &[of(0, 100)]);
    send(&server, &agents[1], &[of(1, 100)]);
    assert_eq!(streams[1].event().2["event_ref"], ref_of(&of(1, 100)).as_str());
}
