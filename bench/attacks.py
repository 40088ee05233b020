"""The attacks of `./bench/attack`, and the client that is measured during them.

Guarantees: an attack opens a fixed number of connections at a time, stops on request, and closes
its connections; the client sends requests at a steady rate and counts a missing answer or an error
as failed.
"""
import contextlib
import http.client
import json
import os
import socket
import struct
import sys
import threading
import time
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(os.path.dirname(HERE), "examples", "gates")
GATES = {name: os.path.join(EXAMPLES, f"{name.replace('_', '-')}.toml")
         for name in ("ecm_registry", "policy", "temperament")}
# A skill of the example gates with a rate limit.
LIMITED = {"skill_id": "manipulation.grasp", "target_class": "glass_cup",
           "environment": "sim_relaxed", "params": {"force_n": 20}}
PATIENCE_S = 30
# Requests per second of the measured client, and of the attacked agent's operator.
RATE, OPERATOR_RATE = 50, 5


@dataclass
class Target:
    """The server, and the tokens of the agent whose clients attack."""

    port: int
    tokens: dict
    events: int

    def connect(self):
        """Opens a connection to the server."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def request(self, path, role):
        """Returns the bytes of a request."""
        return (f"GET {path} HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: Bearer {self.tokens[role]}\r\n\r\n").encode()


def reset(connection):
    """Closes a connection with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def in_threads(count, work):
    """Runs the same function in several threads, until all have ended."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def asking(target, stop, count, path, role):
    """Sends requests on several connections, reads the answers; `path` maps a number to a path."""

    def ask(number):
        while not stop.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", target.port,
                                                        timeout=PATIENCE_S)
                with contextlib.closing(connection):
                    while not stop.is_set():
                        headers = {"Authorization": f"Bearer {target.tokens[role]}"}
                        connection.request("GET", path(number), headers=headers)
                        answer = connection.getresponse()
                        answer.read()
                        # An attacker waits less than `Retry-After`, but it waits.
                        stop.wait(0.1 if answer.status == 429 else 0)
                        number += count
            stop.wait(0.1)

    in_threads(count, ask)


def as_of(target):
    """Returns a path for facts at a past position that was not requested before."""
    return lambda number: f"/api/agent/semantic?as_of={target.events - number % 10_000}"


def reset_questions(target, stop):
    """Every two seconds, 560 requests about the past whose sockets are reset at once."""
    path, asked = as_of(target), 0
    while not stop.is_set():
        opened = []
        for _ in range(560):
            with contextlib.suppress(OSError):
                connection = target.connect()
                connection.sendall(target.request(path(asked), "planner"))
                opened.append(connection)
            asked += 1
        for connection in opened:
            reset(connection)
        stop.wait(2)


def many_questions(target, stop):
    """64 connections of one planner request facts of the past."""
    asking(target, stop, 64, as_of(target), "planner")


def scans(target, stop):
    """32 connections of one planner list waiting intents; there are none."""
    asking(target, stop, 32, lambda _: "/api/agent/intents?standing=waiting", "planner")


def passes(target, stop):
    """32 connections of one auditor list passes."""
    asking(target, stop, 32, lambda _: "/api/agent/passes?limit=1000", "auditor")


def limited_intents(target, stop):
    """16 connections of one planner propose a skill with a rate limit."""
    body = json.dumps(LIMITED)
    headers = {"Authorization": f"Bearer {target.tokens['planner']}",
               "Content-Type": "application/json"}

    def propose(_):
        while not stop.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", target.port,
                                                        timeout=PATIENCE_S)
                with contextlib.closing(connection):
                    while not stop.is_set():
                        connection.request("POST", "/api/agent/intents", body, headers)
                        connection.getresponse().read()
                        stop.wait(0.05)
            stop.wait(0.1)

    in_threads(16, propose)


def slow_bundle(target, stop):
    """Auditors of one agent download bundles, and read a byte per second."""

    def take(_):
        while not stop.is_set():
            with contextlib.suppress(OSError), contextlib.closing(target.connect()) as connection:
                connection.sendall(target.request("/api/audit/bundle", "auditor"))
                while not stop.wait(1) and connection.recv(1):
                    pass

    in_threads(4, take)


def unread_pages(target, stop):
    """400 connections without a token request /docs again and again, and read nothing."""
    request = b"GET /docs HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200
    held(target, stop, 400, request)


def half_heads(target, stop):
    """600 connections without a token send half a head; closed ones are opened again."""
    held(target, stop, 600, b"GET /health/live HTTP/1.1\r\nHost: ip")


def held(target, stop, count, request):
    """Keeps `count` connections open on which the same bytes were sent."""
    opened = []
    while not stop.is_set():
        opened = [one for one in opened if not is_closed(one)]
        for _ in range(count - len(opened)):
            with contextlib.suppress(OSError):
                connection = target.connect()
                opened.append(connection)
                connection.setblocking(False)
                connection.send(request)
        stop.wait(0.5)
    for connection in opened:
        connection.close()


def is_closed(connection):
    """Returns whether the server has closed a connection; reads nothing from it."""
    try:
        closed = connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        closed = True
    if closed:
        connection.close()
    return closed


ATTACKS = {"reset questions": reset_questions, "many questions": many_questions, "scans": scans,
           "passes": passes, "limited intents": limited_intents, "slow bundle": slow_bundle,
           "unread pages": unread_pages, "half heads": half_heads}


class Client:
    """A client of the other agent, and the operator of the attacked one."""

    def __init__(self, port, tokens):
        self.port, self.tokens, self.sent = port, tokens, 0
        self.kept = {}
        self.run = f"{os.getpid()}-{time.time_ns()}"

    def ask(self, whose, role, method, path, body=None, fresh=False):
        """Returns the milliseconds until the answer; None if it is missing or an error."""
        key = (whose, role, method)
        connection = None if fresh else self.kept.pop(key, None)
        began = time.perf_counter()
        for _ in range(2):
            reused = connection is not None
            connection = connection or http.client.HTTPConnection("127.0.0.1", self.port,
                                                                  timeout=PATIENCE_S)
            headers = {"Content-Type": "application/json"}
            if role:
                headers["Authorization"] = f"Bearer {self.tokens[whose][role]}"
            try:
                connection.request(method, path, body, headers)
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                connection = None
                if reused:
                    # The server may close an idle connection: a client retries.
                    continue
                return None
            if fresh:
                connection.close()
            else:
                self.kept[key] = connection
            return (time.perf_counter() - began) * 1e3 if answer.status < 300 else None
        return None

    def event(self):
        """Returns an event that was not sent before."""
        self.sent += 1
        return json.dumps({
            "id": f"{self.run}-{self.sent}", "source": "client", "type": "execution_result",
            "time": "2026-03-01T00:00:00Z",
            "data": {"skill_id": "manipulation.grasp", "target_class": "tray",
                     "environment": "sim_relaxed", "params": {"force_n": 20}, "success": True}})

    def next(self, number):
        """The next request: facts, the identity, an event, health; every other one on a new
        connection."""
        fresh = number % 8 >= 4
        match number % 4:
            case 0:
                path = "/api/agent/semantic?skill_id=manipulation.grasp"
                return self.ask("other", "planner", "GET", path, fresh=fresh)
            case 1:
                return self.ask("other", "planner", "GET", "/api/agent/identity", fresh=fresh)
            case 2:
                return self.ask("other", "producer", "POST", "/api/agent/events", self.event(),
                                fresh=fresh)
            case _:
                return self.ask("other", None, "GET", "/health/ready", fresh=fresh)


def steadily(rate, seconds, ask):
    """Sends requests at a rate, one at a time; returns the duration of each."""
    began, taken = time.perf_counter(), []
    for number in range(int(rate * seconds)):
        due = began + number / rate
        if time.perf_counter() > began + seconds:
            break
        time.sleep(max(0.0, due - time.perf_counter()))
        taken.append(ask(number))
    return taken


def percentile(taken, part):
    """Returns a percentile of the durations; a failed request counts as infinite."""
    ordered = sorted(PATIENCE_S * 1e3 if one is None else one for one in taken)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def main():
    """Measures for `seconds` and prints the result."""
    port, seconds = int(sys.argv[1]), int(sys.argv[2])
    tokens = json.load(sys.stdin)
    client, operator = Client(port, tokens), Client(port, tokens)
    pages = []

    def look():
        page = "/api/agent/log?limit=100"
        pages.extend(steadily(OPERATOR_RATE, seconds, lambda _: operator.ask(
            "attacked", "operator", "GET", page)))

    thread = threading.Thread(target=look)
    thread.start()
    taken = steadily(RATE, seconds, client.next)
    thread.join()
    failed = sum(one is None for one in taken)
    print(json.dumps({
        "requests": len(taken), "failed": failed, "p50_ms": percentile(taken, 0.5),
        "p99_ms": percentile(taken, 0.99), "max_ms": percentile(taken, 1),
        "operator_p99_ms": percentile(pages, 0.99)}))


if __name__ == "__main__":
    main()
