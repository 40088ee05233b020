"""Servers that are measured, and the producers and readers that generate their load.

Guarantees: a process that is started here ends when its `with` block ends, in any case; CPU is that
of a whole process, with all threads, ended ones and the kernel included, to the nanosecond; an
answer that is an error ends the run.
"""
import contextlib
import http.client
import json
import os
import re
import subprocess
import time
from dataclasses import dataclass

import prepare
from measure import Trouble, run

# The longest time until a server prints its address, and until a producer is ready.
PATIENCE_S = 60
# The kernel's CPU clock of a whole process, as in clock_getcpuclockid(3).
CPU_CLOCK_OF_PROCESS = 2
UNITS = {"us": 1.0, "ms": 1e3, "s": 1e6, "m": 60e6}


def cpu_seconds(pid):
    """The CPU seconds of a process since it began."""
    try:
        return time.clock_gettime((~pid << 3) | CPU_CLOCK_OF_PROCESS)
    except OSError as error:
        raise Trouble(f"a process that is measured has ended: {error.strerror}") from error


@contextlib.contextmanager
def started(command, env=None, **streams):
    """A process that ends with the `with` block."""
    try:
        child = subprocess.Popen(command, env=env, **{"stdin": subprocess.DEVNULL, **streams})
    except OSError as error:
        raise Trouble(f"could not start `{command[0]}`: {error.strerror}") from error
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()


@dataclass
class Server:
    """A running server."""

    pid: int
    port: int

    def cpu(self):
        """Its CPU seconds so far."""
        return cpu_seconds(self.pid)

    def get(self, path, headers):
        """Sends a request: status, tag and body of the answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.headers.get("ETag"), answer.read()
        except OSError as error:
            raise Trouble(f"no answer to {path}: {error}") from error
        finally:
            connection.close()


@contextlib.contextmanager
def serving(command, env, words_file):
    """A server, once it has printed its address on standard error."""
    with open(words_file, "w+b") as words:
        with started(command, env, stdout=subprocess.DEVNULL, stderr=words) as child:
            yield Server(child.pid, listening_port(child, words_file))


def listening_port(child, words_file):
    """The port that a server printed."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        ended = child.poll()
        with open(words_file, encoding="utf-8", errors="replace") as file:
            words = file.read()
        found = re.search(r"http://127\.0\.0\.1:(\d+)\b", words)
        if found:
            return int(found.group(1))
        if ended is not None:
            raise Trouble(f"a server ended with {ended}:\n{words[-2000:]}")
        time.sleep(0.02)
    raise Trouble(f"a server did not print its address:\n{words[-2000:]}")


def ipse(workshop, store, *more):
    """Our server on its own store."""
    command = [workshop.ipse, "serve", "--listen", "127.0.0.1:0", "--store", store, *more]
    return serving(command, workshop.env, store + ".words")


def token(workshop, store, role):
    """Creates a token of a role."""
    sources = ["--any-source"] if role == "producer" else []
    command = [workshop.ipse, "token", "create", "--role", role, *sources, "--json", "--store",
               store]
    return run(command, workshop.env).json()["token"]


def fastapi(workshop, facts):
    """The baseline, run in its own directory, on a database of facts."""
    # Leave nothing behind in that directory, not even compiled files.
    env = {**workshop.env, "FACTS_DB": facts, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [workshop.python, "-m", "uvicorn", "http_fastapi:app", "--app-dir", prepare.SHARED,
               "--host", "127.0.0.1", "--port", "0", "--no-access-log", "--loop", "uvloop",
               "--http", "httptools"]
    words = os.path.join(workshop.temporary, "fastapi.words")
    return serving(command, env, words)


class Producer:
    """A producer that is ready."""

    def __init__(self, child):
        self.child, self.pid = child, child.pid
        if child.stdout.readline() != b"ready\n":
            raise Trouble("a producer ended before it began")

    def go(self):
        """Starts the producer."""
        self.child.stdin.write(b"\n")
        self.child.stdin.flush()

    def report(self):
        """Ends its input and waits for its report."""
        said, _ = self.child.communicate()
        if self.child.returncode != 0:
            raise Trouble(f"a producer ended with {self.child.returncode}")
        return json.loads(said)


@contextlib.contextmanager
def producer(workshop, events_file, server, bearer, source, per_batch, batches=0, a_second=0):
    """A producer at a rate, or with a fixed number of batches."""
    program = os.path.join(prepare.HERE, "producer.py")
    command = [workshop.python, program, events_file, str(server.port), bearer, source,
               str(per_batch), str(batches), str(a_second)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with started(command, workshop.env, **pipes) as child:
        yield Producer(child)


@dataclass
class Asked:
    """The result of `wrk`; `taken` is the cost of `wrk` itself."""

    requests: int
    per_second: float
    p50_us: float
    p99_us: float
    taken: object


def wrk(server, path, headers, connections, seconds, script=None):
    """Repeats the same request on several connections; a script can make it a POST."""
    scripted = ["-s", script] if script else []
    named = [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]
    url = f"http://127.0.0.1:{server.port}{path}"
    taken = run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", *scripted, *named,
                 url])
    said = taken.out
    if "Non-2xx" in said or "Socket errors" in said:
        raise Trouble(f"not every request to {path} was answered:\n{said}")
    return Asked(int(found(r"(\d+) requests in", said)),
                 float(found(r"Requests/sec:\s+([\d.]+)", said)),
                 micros(found(r"^\s+50%\s+(\S+)", said)),
                 micros(found(r"^\s+99%\s+(\S+)", said)), taken)


def found(pattern, text):
    """The match of a pattern in the output of `wrk`."""
    match = re.search(pattern, text, re.MULTILINE)
    if not match:
        raise Trouble(f"cannot parse the output of `wrk`:\n{text}")
    return match.group(1)


def micros(text):
    """A time of `wrk` in microseconds."""
    number, unit = re.fullmatch(r"([\d.]+)([a-z]+)", text).groups()
    return float(number) * UNITS[unit]
