//! Bundles that are being exported: a killed server leaves no file. And a server whose log has a
//! damaged public key does not start.

use super::client::Request;
use super::server::{Server, one_agent, serve, wait_until};
use super::store::attempt;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

/// Enough events for an export that takes a while.
const EVENTS: usize = 20_000;

#[test]
fn a_bundle_has_no_name_while_it_is_written() {
    let (store, agent) = one_agent();
    let log: String = (0..EVENTS).map(|n| attempt(&n.to_string(), true)).collect();
    store.import(log).fine();
    let spool = tempfile::tempdir().unwrap();
    let line = format!("TMPDIR={}; export TMPDIR", spool.path().display());
    let mut server = Server::prepared(&serve(&store, &["--listen", "127.0.0.1:0"]), &line);
    let names = || fs::read_dir(spool.path()).unwrap().count();
    let (ended, mut connection) = (AtomicBool::new(false), server.connect());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let request = Request::get("/api/audit/bundle").token(&agent.auditor).close();
            let _ = connection.ask(&request);
            ended.store(true, Ordering::SeqCst);
        });
        // A name in the directory means that the bundle is being written: kill the server then.
        let until = std::time::Instant::now() + super::server::DEADLINE;
        while names() == 0 && !ended.load(Ordering::SeqCst) {
            assert!(std::time::Instant::now() < until, "the bundle was not answered");
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        server.kill();
    });
    assert_eq!(names(), 0, "something of the bundle is left");
    let mut server = Server::start(&store);
    let whole = server.get("/api/audit/bundle", &agent.auditor).ok();
    assert!(whole.body.len() > EVENTS, "the control: bundles are served");
    server.kill();
}

#[test]
fn a_damaged_key_of_the_log_keeps_the_server_from_starting() {
    for (name, damage) in [("log.vkey", "damaged\n"), ("log.key", "")] {
        let (store, _) = one_agent();
        fs::write(store.path.with_extension("db.keys").join(name), damage).unwrap();
        let mut child = serve(&store, &["--listen", "127.0.0.1:0"]).spawn().unwrap();
        let mut status = None;
        wait_until("the server ends", || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        let mut words = String::new();
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut words).unwrap();
        assert_eq!(status.unwrap().code(), Some(2), "{words}");
        assert!(words.contains(name) && words.contains("put back a copy"), "{words}");
    }
}
