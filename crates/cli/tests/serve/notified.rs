//! Notifications to a service manager over a real socket: ready after the server listens, stopping
//! when it stops.

use super::client::Request;
use super::server::{DEADLINE, Server, one_agent, serve};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

fn heard(socket: &UnixDatagram) -> String {
    let mut buffer = [0; 4096];
    let bytes = socket.recv(&mut buffer).expect("the manager received nothing");
    String::from_utf8(buffer[..bytes].to_vec()).unwrap()
}

#[test]
fn a_manager_is_notified_of_readiness_and_of_the_end() {
    let (store, agent) = one_agent();
    let path = store.directory.path().join("notify");
    let name = format!("ipse-test-{}", std::process::id());
    let hidden = SocketAddr::from_abstract_name(&name).unwrap();
    for (socket, named) in [
        (UnixDatagram::bind(&path).unwrap(), path.to_str().unwrap().to_owned()),
        (UnixDatagram::bind_addr(&hidden).unwrap(), format!("@{name}")),
    ] {
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        let mut command = serve(&store, &["--listen", "127.0.0.1:0"]);
        command.env("NOTIFY_SOCKET", &named);
        let server = Server::of(command);
        let ready = heard(&socket);
        assert!(
            ready.starts_with("READY=1\nSTATUS=serving 1 agent on http://127.0.0.1:"),
            "{ready}"
        );
        // Requests are answered from now on.
        assert!(ready.contains(&server.address.to_string()), "{ready}");
        server.ask(&Request::get("/api/agent/identity").token(&agent.planner)).ok();
        server.stop();
        let stopping = heard(&socket);
        assert!(stopping.starts_with("STOPPING=1\n"), "{stopping}");
    }
}

#[test]
fn a_manager_that_cannot_be_notified_does_not_matter() {
    let (store, agent) = one_agent();
    for (named, words) in [
        ("here", "must begin with / or @"),
        ("/nowhere/notify", "could not notify the service manager"),
    ] {
        let mut command = serve(&store, &["--listen", "127.0.0.1:0"]);
        command.env("NOTIFY_SOCKET", named);
        let server = Server::of(command);
        server.get("/api/agent/identity", &agent.planner).ok();
        let reported = server.stop();
        assert!(reported.contains(words), "{reported}");
    }
}
