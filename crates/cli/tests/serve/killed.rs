//! SIGKILL under load, repeatedly on one store. Acknowledged events are in the log, byte for byte
//! and at their position. Other events are stored completely or not at all. The facts match the
//! log.

use super::chance::Chance;
use super::load::{Outside, Producer};
use super::server::{Server, one_agent};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const ROUNDS: u64 = 100;
const PRODUCERS: usize = 4;
/// The number of rounds between full verifications.
const VERIFY_EVERY: u64 = 10;
/// The longest time for which a server runs under load, in milliseconds.
const LONGEST: u64 = 160;

#[test]
fn killed_under_load_it_keeps_what_it_acknowledged() {
    let (store, agent) = one_agent();
    let identity = store.run(&["identity", "--json"]).fine().json()["manifest"].clone();
    let mut chance = Chance::new();
    let mut producers: Vec<Producer> = (0..PRODUCERS)
        .map(|n| Producer::new(&format!("arm{n}"), &agent.producer, chance.split()))
        .collect();
    let mut outside = Outside::default();
    for round in 1..=ROUNDS {
        // Passes run often, so that a kill hits them too.
        let mut server = Server::with(&store, &["--pass-every", "16", "--pass-quiet", "5"]);
        outside.compare(&server, &agent);
        let life = Duration::from_millis(chance.below(LONGEST));
        let (address, stop) = (server.address, AtomicBool::new(false));
        let sent: Vec<_> = std::thread::scope(|scope| {
            let send = |producer| scope.spawn(|| Producer::send(producer, address, &stop));
            let threads: Vec<_> = producers.iter_mut().map(send).collect();
            std::thread::sleep(life);
            server.kill();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        outside.note(sent);
        if round % VERIFY_EVERY == 0 {
            outside.compare_rows(&store);
            store.run(&["verify"]).fine();
            store.run(&["rebuild"]).fine();
        }
    }
    let server = Server::start(&store);
    outside.compare(&server, &agent);
    server.stop();
    outside.compare_rows(&store);
    store.run(&["verify"]).fine();
    store.run(&["rebuild"]).fine();
    let standing = store.run(&["identity", "--json"]).fine().json();
    assert_eq!((&standing["manifest"], &standing["unchanged"]), (&identity, &true.into()));
    let acknowledged = outside.acknowledged.len();
    eprintln!(
        "{ROUNDS} kills, {acknowledged} events acknowledged, {} requests unanswered, {} passes",
        outside.unanswered, standing["passes"]
    );
    // Otherwise it was not under load, and the test shows nothing.
    assert!(acknowledged > 1000 && outside.unanswered > 50, "too little was going on");
}
