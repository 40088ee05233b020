//! TLS, tested with OpenSSL.

use super::server::{Server, one_agent, serve};
use super::store::Store;
use std::io::Write;
use std::process::{Command, Stdio};

/// A self-signed certificate for `localhost` and its key.
fn certificate(store: &Store, name: &str) -> [String; 2] {
    let directory = store.directory.path();
    let [cert, key] = ["cert", "key"].map(|part| directory.join(format!("{name}.{part}.pem")));
    let done = Command::new("openssl")
        .args("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost".split(' '))
        .args(["-addext", "subjectAltName=DNS:localhost"])
        .args(["-keyout".as_ref(), key.as_os_str(), "-out".as_ref(), cert.as_os_str()])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    [cert, key].map(|path| path.to_str().unwrap().to_string())
}

#[test]
fn a_client_that_checks_the_certificate_is_answered() {
    let (store, agent) = one_agent();
    let [cert, key] = certificate(&store, "good");
    let server = Server::with(&store, &["--tls-cert", &cert, "--tls-key", &key]);
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-verify_return_error", "-verify_hostname", "localhost"])
        .args(["-CAfile", &cert, "-connect", &server.address.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let request = format!(
        "GET /api/agent/identity HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\n\
         connection: close\r\n\r\n",
        agent.planner
    );
    let mut to_client = client.stdin.take().unwrap();
    to_client.write_all(request.as_bytes()).unwrap();
    let done = client.wait_with_output().unwrap();
    drop(to_client);
    let answer = String::from_utf8(done.stdout).unwrap();
    let why = String::from_utf8_lossy(&done.stderr);
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains(&agent.identity), "{why}");
    // A client without TLS gets nothing, and the server continues.
    let plain = server.connect().ask(&super::client::Request::get("/version").close());
    assert!(plain.is_err(), "{plain:?}");
    server.stop();
}

/// The response arrives although the client still sends, and the connection ends cleanly.
#[test]
fn an_answer_before_the_body_arrives() {
    let (store, _agent) = one_agent();
    let [cert, key] = certificate(&store, "good");
    let server = Server::with(&store, &["--tls-cert", &cert, "--tls-key", &key]);
    for _ in 0..5 {
        let mut client = Command::new("openssl")
            .args(["s_client", "-quiet", "-CAfile", &cert])
            .args(["-connect", &server.address.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let head = "POST /api/agent/events HTTP/1.1\r\nhost: localhost\r\n\
                    authorization: Bearer wrong\r\ncontent-length: 1500000\r\n\r\n";
        let mut to_client = client.stdin.take().unwrap();
        to_client.write_all(head.as_bytes()).unwrap();
        // OpenSSL ends after it has read the end of the response.
        let _ = to_client.write_all(&vec![b'x'; 1_500_000]);
        let done = client.wait_with_output().unwrap();
        drop(to_client);
        let (answer, why) = (String::from_utf8(done.stdout).unwrap(), done.stderr);
        let why = String::from_utf8_lossy(&why);
        assert!(answer.starts_with("HTTP/1.1 401 ") && answer.ends_with('}'), "{answer} {why}");
        assert!(answer.contains("connection: close"), "{answer}");
        assert!(!why.contains("errno"), "it was reset: {why}");
    }
    server.stop();
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let store = Store::nothing();
    let ([cert, _], [_, key]) = (certificate(&store, "one"), certificate(&store, "other"));
    let done = serve(&store, &["--tls-cert", &cert, "--tls-key", &key]).output().unwrap();
    let err = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.code() == Some(2) && err.contains("do not match"), "{err}");
    let done = serve(&store, &["--tls-cert", "absent.pem", "--tls-key", &key]).output().unwrap();
    let err = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.code() == Some(2) && err.contains("could not read a certificate"), "{err}");
}
