"""The parts of audit.md about a log that goes on: the monitor, and witnesses.

It guarantees, if its functions return:
- The monitor of the page follows a live `ipse serve`, and ends with 1 when the log behind it was
  replaced by a fork that the same key signed again, and when it was rolled back.
- The commands of the page get a cosignature from a witness over HTTP. The witness refuses a fork.
- Go and ipse-verify accept a cosigned tree head, and reject it after one flipped bit.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

PATIENCE = 60
PAGE = pathlib.Path(__file__).resolve().parents[1] / "audit.md"
SOURCE = PAGE.parents[2]
VKEY = "ipse.db.keys/log.vkey"


def block(who):
    """The commands of the page that begin with this word."""
    text = PAGE.read_text().split(f"```sh\n# {who}\n", 1)[1]
    return "set -eu\n" + text.split("```", 1)[0]


def clean():
    return {k: v for k, v in os.environ.items() if not k.startswith("IPSE_")}


class Home:
    """A store in a directory with the programs of the page."""

    def __init__(self, ipse, tools, place):
        self.place, self.ipse = place, ipse
        place.mkdir()
        (place / "heads").symlink_to(pathlib.Path(tools) / "heads")
        shutil.copy(SOURCE / "vectors/manifest/golden.toml", place / "agent.toml")
        self.run("init", "--manifest", "agent.toml")
        self.run("import", str(SOURCE / "vectors/facts/glass_cup.events.jsonl"))
        shutil.copy(place / VKEY, place / "log-of-this.vkey")
        for name in ("log.vkey", "operator.pub"):
            shutil.copy(place / "ipse.db.keys" / name, place)

    def run(self, *args, code=0, stdin=None):
        done = subprocess.run([self.ipse, *args], cwd=self.place, input=stdin, env=clean(),
                              capture_output=True)
        if done.returncode != code:
            sys.exit(f"ipse {args} ended with {done.returncode}:\n{done.stderr.decode()}")
        return done.stdout

    def shell(self, script, **env):
        path = f"{pathlib.Path(self.ipse).parent}:{os.environ['PATH']}"
        return subprocess.run(["sh", "-c", script], cwd=self.place, capture_output=True,
                              env=clean() | {"PATH": path} | env)

    def grow(self, zone, count=3):
        """Adds events that no other history has."""
        for _ in range(count):
            self.run("record", "--zone", zone, "--failed")

    def keep(self):
        """A copy of the store as it is now."""
        (self.place / "copy.db").unlink(missing_ok=True)
        script = "import sqlite3; sqlite3.connect('ipse.db').execute(\"VACUUM INTO 'copy.db'\")"
        subprocess.run([sys.executable, "-c", script], cwd=self.place, check=True)

    def go_back(self):
        """Puts the copy in the place of the store, and removes what would betray it here."""
        for name in ("ipse.db", "ipse.db-wal", "ipse.db-shm"):
            (self.place / name).unlink(missing_ok=True)
        shutil.copy(self.place / "copy.db", self.place / "ipse.db")
        for note in (self.place / "ipse.db.keys/heads").iterdir():
            note.unlink()


def until(holds, what):
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"waited in vain: {what}")
        time.sleep(0.1)


def free_port():
    """A port below the ephemeral range of the kernel."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


class Server:
    def __init__(self, home, port):
        self.log = (home.place / "serve.log").open("ab")
        command = [home.ipse, "serve", "--listen", f"127.0.0.1:{port}"]
        self.process = subprocess.Popen(command, cwd=home.place, env=clean(), stdout=self.log,
                                        stderr=self.log)
        answers = lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0
        until(answers, "the server")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        self.log.close()


def size_in(path):
    return int(path.read_text().split("\n")[1]) if path.exists() else 0


def monitored(ipse, tools, work):
    """The monitor follows a log, and stops at a fork and at a rollback."""
    for what, word in [("forked", "does not show"), ("rolled back", "rolled back")]:
        home = Home(ipse, tools, work / f"monitor-{word[:4]}")
        made = json.loads(home.run("token", "create", "--role", "auditor", "--json"))
        (home.place / "head.note").write_bytes(home.run("tree-head"))
        home.keep()
        port = free_port()
        server = Server(home, port)
        env = {"token": made["token"], "url": f"http://127.0.0.1:{port}", "every": "0.2"}
        with (home.place / "monitor.log").open("wb") as log:
            path = {"PATH": os.environ["PATH"]}
            monitor = subprocess.Popen(["sh", "-c", block("monitor")], cwd=home.place,
                                       env=clean() | path | env, stdout=log, stderr=log)
        try:
            for zone in ("one", "two"):
                home.grow(zone)
                home.run("tree-head", "--sign")
                want = size_in_store(home)
                until(lambda: size_in(home.place / "head.note") == want, f"a head over {want}")
            server.stop()
            assert monitor.poll() is None, "a server that is away is no contradiction"
            home.go_back()
            home.grow("another", 9 if what == "forked" else 1)
            server = Server(home, port)
            until(lambda: monitor.poll() is not None, f"the monitor, when the log was {what}")
        finally:
            server.stop()
            monitor.kill()
        said = (home.place / "monitor.log").read_text()
        if monitor.wait() != 1 or word not in said or "STOPPED" not in said:
            sys.exit(f"{what}: the monitor ended with {monitor.returncode}:\n{said}")
        home.run("proof", "consistency", "head.note", code=1)
        home.run("proof", "consistency", "new.note")
        print(f"  the monitor stops                     a log that was {what}, signed again")


def size_in_store(home):
    return json.loads(home.run("tree-head", "--json"))["tree_size"]


def witnessed(ipse, verify, tools, work):
    """The commands of operator and auditor with a witness, and every attack on its line."""
    home = Home(ipse, tools, work / "witness")
    command = [pathlib.Path(tools) / "witness", "witness.example/w1", "log.vkey"]
    witness = subprocess.Popen(command, cwd=home.place, stdout=subprocess.PIPE, text=True)
    try:
        (home.place / "witness.vkey").write_text(witness.stdout.readline())
        address = {"witness": witness.stdout.readline().strip()}
        home.keep()
        for zone in ("one", "two"):
            home.grow(zone)
            fine(home.shell(block("operator"), **address))
            fine(home.shell(block("auditor")))
        attacked(home, verify)
        home.go_back()
        home.grow("another", 9)
        done = home.shell(block("operator"), **address)
        if done.returncode == 0 or b"409" not in done.stderr:
            sys.exit(f"a fork from 0 entries should be refused: {done}")
        old = size_in(home.place / "cosigned.note")
        home.shell(f"ipse witness request --since {old} > request")
        post = "curl -sS -o answer -w '%{http_code}' --data-binary @request"
        done = home.shell(f'{post} "$witness/add-checkpoint"', **address)
        if done.stdout != b"422":
            sys.exit(f"the witness should refuse a fork: {done}")
        add = ("witness", "add", "--request", "request", "--witness", "witness.vkey")
        home.run(*add, "answer", code=1)
        home.run("witness", "add", "cosigned.note", "--witness", "witness.vkey", code=2)
    finally:
        witness.kill()
        witness.wait()
    print("  a witness refuses                     a second history, signed again")


def fine(done):
    if done.returncode:
        sys.exit(f"a command of the page ended with {done.returncode}: {done}")


def attacked(home, verify):
    """No bit of the cosigned head can be flipped, and no bundle is without the cosignature."""
    path = home.place / "cosigned.note"
    note, key = path.read_bytes(), (home.place / "witness.vkey").read_text().strip()
    command = ["./heads", "-witness", key, "log-of-this.vkey", "flipped.note"]
    begin = note.rindex("\u2014".encode())
    # All bytes of the head and of the cosignature; the signature of the log is checked elsewhere.
    places = [*range(note.index(b"\n\n")), *range(begin, len(note))]
    for at in places:
        (home.place / "flipped.note").write_bytes(
            note[:at] + bytes([note[at] ^ 1 << at % 7]) + note[at + 1:])
        done = subprocess.run(command, cwd=home.place, capture_output=True)
        if done.returncode == 0:
            sys.exit(f"byte {at} of a cosigned tree head can be changed")
    home.grow("three")
    home.run("export", "-o", "later.ipse")
    command = [verify, "later.ipse", "--trust", "log.vkey", "operator.pub", "--witness", key]
    done = subprocess.run(command, cwd=home.place, capture_output=True)
    if done.returncode != 1 or b"did not cosign this tree head" not in done.stdout:
        sys.exit(f"a bundle without the cosignature: {done}")
    print(f"  fails for Go                          a bit of a cosigned head, {len(places)} bytes")
