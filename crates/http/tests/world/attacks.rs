//! Clients that send many requests at once and disconnect, over real sockets, while the test holds
//! every turn of planners.
//!
//! **Invariant:** no test depends on timing: the test holds the turns, so that it decides how long
//! requests wait.

use crate::service::Agent;
use crate::turns::{Rank, Turn};
use crate::world::World;
use axum::http::StatusCode;
use ipse_access::Role;
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

const AS_OF: &str = "/api/agent/semantic?as_of=0";
/// The limits in `service.rs`.
const PLANNER_TURNS: usize = 3;
const WAITING: usize = 32;
/// Timeout for everything that must happen.
const DEADLINE: Duration = Duration::from_secs(30);

struct Attack {
    world: World,
    address: SocketAddr,
    agent: Arc<Agent>,
}

impl Attack {
    fn new() -> Self {
        let world = World::new();
        let (address, agent) = (world.listen(), world.service().agents().remove(0));
        Attack { world, address, agent }
    }

    /// Takes all turns of planners.
    fn turns(&self) -> Vec<Turn> {
        let turn = || match pin!(self.agent.looks.turn(Rank::Ordinary))
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(turn) => turn.unwrap(),
            Poll::Pending => panic!("no turn is free"),
        };
        (0..PLANNER_TURNS).map(|_| turn()).collect()
    }

    /// Sends a planner's request that has to wait.
    fn waiting(&self) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).unwrap();
        let token = self.world.token(Role::Planner);
        let head =
            format!("GET {AS_OF} HTTP/1.1\r\nhost: [::1]\r\nauthorization: Bearer {token}\r\n\r\n");
        socket.write_all(head.as_bytes()).unwrap();
        socket
    }

    #[track_caller]
    fn wait_for_places_left(&self, count: usize) {
        let until = Instant::now() + DEADLINE;
        while self.agent.looks.places_left() != count {
            let left = self.agent.looks.places_left();
            assert!(Instant::now() < until, "{left} places are free instead of {count}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn status(&self, path: &str, role: Role) -> StatusCode {
        self.world.get(path, Some(role), &[]).status
    }
}

#[test]
fn the_next_that_would_wait_is_rejected_and_operators_are_served() {
    let attack = Attack::new();
    let turns = attack.turns();
    let waiting: Vec<TcpStream> = (0..WAITING).map(|_| attack.waiting()).collect();
    attack.wait_for_places_left(0);
    let next = attack.world.get(AS_OF, Some(Role::Planner), &[]);
    assert_eq!((next.status.as_u16(), &*next.code()), (429, "queue_full"));
    assert_eq!(next.header("retry-after"), "1");
    for (path, role) in [
        ("/api/agent/log", Role::Operator),
        (AS_OF, Role::Operator),
        ("/api/agent/passes", Role::Auditor),
        ("/api/agent/semantic", Role::Planner),
        ("/api/agent/identity", Role::Planner),
        ("/metrics", Role::Planner),
        ("/health/ready", Role::Planner),
    ] {
        assert_eq!(attack.status(path, role), StatusCode::OK, "{path}");
    }
    drop((waiting, turns));
}

#[test]
fn a_reset_socket_frees_its_place_and_its_question_is_never_asked() {
    let attack = Attack::new();
    let turns = attack.turns();
    let waiting: Vec<TcpStream> = (0..WAITING).map(|_| attack.waiting()).collect();
    attack.wait_for_places_left(0);
    for socket in &waiting {
        SockRef::from(socket).set_linger(Some(Duration::ZERO)).unwrap();
    }
    drop(waiting);
    attack.wait_for_places_left(WAITING);
    drop(turns);
    attack.wait_for_places_left(PLANNER_TURNS + WAITING);
    let metrics = attack.world.get("/metrics", Some(Role::Operator), &[]).body;
    assert!(!metrics.contains("/api/agent/semantic"), "a request was answered: {metrics}");
    assert_eq!(attack.status(AS_OF, Role::Planner), StatusCode::OK);
}

#[test]
fn a_closed_half_waits_on_and_is_answered() {
    let attack = Attack::new();
    let turns = attack.turns();
    let mut half_closed = attack.waiting();
    half_closed.shutdown(Shutdown::Write).unwrap();
    attack.wait_for_places_left(WAITING - 1);
    drop(turns);
    let mut answer = String::new();
    half_closed.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    attack.wait_for_places_left(PLANNER_TURNS + WAITING);
}
