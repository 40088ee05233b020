"""nginx, HAProxy and Caddy with the configurations of `docs/guide/serve.md`, TLS in front.

Only addresses, ports and certificates of the guide's configurations are replaced. For each proxy:
an answer that ipse gives before it has read the body arrives as its problem, events of a stream
arrive, and a large batch is accepted. Streams that clients close free their slots at once, directly
and through nginx. nginx also streams with its defaults. A wrong host is rejected.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import time

from served import DEADLINE, SOURCE, Server, call
from trial import Failed, expect

TOOLS = ["nginx", "haproxy", "caddy", "curl", "openssl"]
NAME = "ipse.example.org"
TRIES = 30
STREAMS = 64  # of one agent, as documented
# Seconds in which the slots of closed streams must be free: below the 15 s after which a comment
# would detect the closed connection, and far above the time that it takes.
FREE = 10
MB = 1_000_000


# ---- the proxies --------------------------------------------------------------------------------


def block(language):
    """The only configuration of this kind in the guide."""
    guide = (SOURCE / "docs/guide/serve.md").read_text()
    found = re.findall(f"^```{language}\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    expect(len(found) == 1, len(found), f"configurations for {language} in the guide")
    return found[0]


def replaced(text, *pairs):
    """The text with other addresses; each old one must be in it."""
    for old, new in pairs:
        expect(old in text, "the guide has no", repr(old))
        text = text.replace(old, new)
    return text


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Proxies:
    """The proxies, started in front of a server."""

    def __init__(self, scratch, upstream):
        self.scratch, self.upstream, self.ports = scratch, upstream, {}
        self.running = contextlib.ExitStack()
        self.chain, self.key = scratch / "chain.pem", scratch / "key.pem"
        call("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
             "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}",
             "-keyout", str(self.key), "-out", str(self.chain))

    def __enter__(self):
        with contextlib.ExitStack() as started:
            self.running = started
            self.nginx()
            self.haproxy()
            self.caddy()
            self.running = started.pop_all()
        return self

    def __exit__(self, *_):
        self.running.close()

    def start(self, name, command, *ports):
        log = self.running.enter_context((self.scratch / f"{name}.log").open("w+"))
        process = subprocess.Popen(command, cwd=self.scratch, stdout=log, stderr=log,
                                   env={**os.environ, "HOME": str(self.scratch)})
        self.running.callback(process.wait, DEADLINE)
        self.running.callback(process.terminate)
        until = time.monotonic() + DEADLINE
        for port in ports:
            while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
                words = (self.scratch / f"{name}.log").read_text()
                alive = process.poll() is None and time.monotonic() < until
                expect(alive, name, "does not start:", words)
                time.sleep(0.05)

    def nginx(self):
        port, plain = free_port(), free_port()
        site = replaced(block("nginx"), ("listen 443", f"listen 127.0.0.1:{port}"),
                        ("/etc/ssl/ipse/chain.pem", str(self.chain)),
                        ("/etc/ssl/ipse/key.pem", str(self.key)),
                        ("127.0.0.1:7477", self.upstream))
        defaults = (f"server {{ listen 127.0.0.1:{plain}; "
                    f"location / {{ proxy_pass http://{self.upstream}; }} }}")
        places = " ".join(f"{kind}_temp_path {self.scratch}/{kind};"
                          for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"])
        user = "user root;" if os.geteuid() == 0 else ""
        config = self.scratch / "nginx.conf"
        config.write_text(f"{user} daemon off; pid {self.scratch}/nginx.pid; error_log stderr;\n"
                          f"events {{}}\nhttp {{ access_log off; {places}\n{site}\n{defaults} }}\n")
        self.ports["nginx"], self.ports["nginx, defaults"] = port, plain
        command = [shutil.which("nginx"), "-p", str(self.scratch), "-c", str(config), "-e", "stderr"]
        self.start("nginx", command, port, plain)

    def haproxy(self):
        port, both = free_port(), self.scratch / "chain-and-key.pem"
        both.write_text(self.chain.read_text() + self.key.read_text())
        config = self.scratch / "haproxy.cfg"
        config.write_text(replaced(block("haproxy"), ("bind :443", f"bind 127.0.0.1:{port}"),
                                   ("/etc/ssl/ipse/chain-and-key.pem", str(both)),
                                   ("127.0.0.1:7477", self.upstream)))
        self.ports["haproxy"] = port
        self.start("haproxy", [shutil.which("haproxy"), "-db", "-f", str(config)], port)

    def caddy(self):
        port, config = free_port(), self.scratch / "Caddyfile"
        own = f"{NAME}:{port} {{\n    bind 127.0.0.1\n    tls {self.chain} {self.key}\n"
        site = replaced(block("caddy"), (f"{NAME} {{\n", own), ("127.0.0.1:7477", self.upstream))
        config.write_text("{\n    admin off\n    auto_https disable_redirects\n}\n" + site)
        self.ports["caddy"] = port
        command = [shutil.which("caddy"), "run", "--config", str(config), "--adapter", "caddyfile"]
        self.start("caddy", command, port)

    def connect(self, proxy):
        """A connection for `http.client`; to the server itself if there is no proxy."""
        if proxy is None:
            return http.client.HTTPConnection(self.upstream, timeout=DEADLINE)
        port = self.ports[proxy]
        connection = http.client.HTTPConnection(NAME, port, timeout=DEADLINE)
        connection.sock = socket.create_connection(("127.0.0.1", port), DEADLINE)
        if proxy != "nginx, defaults":
            context = ssl.create_default_context(cafile=self.chain)
            connection.sock = context.wrap_socket(connection.sock, server_hostname=NAME)
        return connection

    def ask(self, proxy, path, headers, method="GET", body=None):
        connection = self.connect(proxy)
        try:
            connection.request(method, path, body, headers)
            return connection, connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise Failed(f"{proxy} does not answer {method} {path}: {error!r}") from error


# ---- what is tried ------------------------------------------------------------------------------


def early_answers(proxies, proxy, token, files):
    """Sends unwanted bodies with curl: every answer must be ipse's problem."""
    port, out = proxies.ports[proxy], proxies.scratch / "answer"
    base = ["curl", "--silent", "--show-error", "--http1.1", "--max-time", str(DEADLINE),
            "--cacert", str(proxies.chain), "--resolve", f"{NAME}:{port}:127.0.0.1",
            "--output", str(out), "--write-out", "%{http_code} %{content_type}",
            "--header", "Content-Type: application/x-ndjson"]
    for size, auth, want in [(8.5, token, "body_too_large"), (1.5, "wrong", "unauthorized"),
                             (0.4, "wrong", "unauthorized")]:
        for number in range(TRIES):
            # Half of the clients do not wait for `100 Continue`.
            expecting = ["--header", "Expect:"] if number % 2 else []
            out.unlink(missing_ok=True)
            done = subprocess.run([*base, *expecting, "--header", f"Authorization: Bearer {auth}",
                                   "--data-binary", f"@{files[size]}",
                                   f"https://{NAME}:{port}/api/agent/events"],
                                  capture_output=True, text=True)
            what = f"{proxy}, {size} MB, try {number + 1}: {done.stdout} {done.stderr}"
            expect(done.stdout.endswith("application/problem+json"), what)
            expect(json.loads(out.read_text())["code"] == want, what)


def open_stream(proxies, proxy, token):
    headers = {"Authorization": f"Bearer {token}"}
    return proxies.ask(proxy, "/api/agent/stream", headers)


def followed(proxies, proxy, server):
    """Reads events of a stream while they are appended."""
    connection, answer = open_stream(proxies, proxy, server.tokens["planner"])
    expect(answer.status == 200, proxy, "answers a stream with", answer.status)
    for number in range(5):
        name = f"{proxy}-{number}"
        event = {"id": name, "source": "trial", "type": "note", "time": "2026-05-06T12:00:00Z"}
        status, _, sent = server.ask("/api/agent/events", server.tokens["producer"],
                                     json.dumps(event).encode(),
                                     {"Content-Type": "application/json"})
        result = sent.read()
        expect(status == 201, status, result)
        reference = json.loads(result)["event_ref"]
        try:
            while reference not in (line := answer.readline().decode()):
                expect(line, proxy, "ends the stream")
        except TimeoutError as error:
            raise Failed(f"{proxy} delivers no event within {DEADLINE} s") from error
    connection.close()


def freed(proxies, proxy, token):
    """Opens the maximum number of streams, closes them, and opens them again."""
    opened = []
    for _ in range(STREAMS):
        connection, answer = open_stream(proxies, proxy, token)
        expect(answer.status == 200, proxy, len(opened), answer.status)
        opened.append((connection, answer))
    connection, answer = open_stream(proxies, proxy, token)
    expect(answer.status == 429, proxy, "one stream too many:", answer.status)
    hang_up([*opened, (connection, answer)])
    begun, again = time.monotonic(), []
    while len(again) < STREAMS:
        connection, answer = open_stream(proxies, proxy, token)
        again.append((connection, answer))
        if answer.status != 200:
            hang_up([again.pop()])
            late = time.monotonic() - begun
            expect(late < FREE, proxy, f"{len(again)} places are free after {late:.1f} s")
            time.sleep(0.05)
    took = time.monotonic() - begun
    hang_up(again)
    return took


def hang_up(streams):
    for connection, answer in streams:
        answer.close()
        connection.close()


def hosts(proxies):
    def code(proxy, host):
        connection, answer = proxies.ask(proxy, "/version", {"Host": host})
        body = answer.read()
        connection.close()
        return json.loads(body).get("code", answer.status)

    for proxy in [None, "nginx", "haproxy", "caddy"]:
        expect(code(proxy, NAME) == 200, proxy, "its own name:", code(proxy, NAME))
    for proxy in [None, "nginx", "haproxy"]:
        answer = code(proxy, "evil.example")
        expect(answer == "host_not_allowed", proxy, "another name:", answer)
    expect(code("nginx, defaults", NAME) == 200, "nginx with its defaults names the upstream")


def batch(proxies, proxy, token):
    """A batch close to the limit."""
    padding = "x" * 60_000
    lines = "".join(json.dumps({"id": f"{proxy}-{n}", "source": "large", "type": "note",
                                "time": "2026-05-06T12:00:00Z", "data": {"padding": padding}}) + "\n"
                    for n in range(131)).encode()
    expect(7.85 * MB < len(lines) < 7.95 * MB, len(lines))
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"}
    connection, answer = proxies.ask(proxy, "/api/agent/events", headers, "POST", lines)
    body = answer.read()
    expect(answer.status == 200 and json.loads(body)["appended"] == 131, proxy, answer.status, body)
    connection.close()


def run(place):
    with Server(place.ipse, place.scratch, "--public-url", f"https://{NAME}") as server:
        upstream = server.url.removeprefix("http://")
        files = {}
        for size in [8.5, 1.5, 0.4]:
            files[size] = place.scratch / f"body-{size}"
            files[size].write_bytes(b"\n" * int(size * MB))
        with Proxies(place.scratch, upstream) as proxies:
            hosts(proxies)
            for proxy in ["nginx", "haproxy", "caddy"]:
                early_answers(proxies, proxy, server.tokens["producer"], files)
                batch(proxies, proxy, server.tokens["producer"])
            for proxy in [None, *proxies.ports]:
                followed(proxies, proxy, server)
            took = [f"{freed(proxies, proxy, server.tokens['planner']):.1f} s"
                    for proxy in [None, "nginx"]]
    return (f"{TRIES} early answers of each size through each proxy; {STREAMS} closed streams free "
            f"in {' and '.join(took)}, directly and through nginx")
