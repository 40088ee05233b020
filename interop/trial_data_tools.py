"""sqlite3, pandas, DuckDB and Datasette on a store that is being served.

Runs every block of docs/guide/data-tools.md unchanged (Datasette on a free port), while the server
appends. Guarantee: a command on the page that does not work is a failure.
"""

import csv
import io
import json
import os
import pathlib
import re
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request

from served import DEADLINE, SOURCE, WIDE, Server
from trial import expect

TOOLS = ["sqlite3"]
PYTHON = ["pandas", "duckdb==1.5.5", "duckdb-extensions==1.5.5",
          "duckdb-extension-sqlite-scanner==1.5.5", "datasette==0.65.5"]
PAGE = SOURCE / "docs/guide/data-tools.md"
# The port that the page names.
PORT = "8001"


def run(place):
    server = Server(place.ipse, place.scratch)
    with server:
        trial = Trial(place, server)
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
        expect([kind for kind, _ in blocks] == ["sh", "sh", "python", "python", "json", "sh"],
               "the page has other blocks than this trial knows:", [kind for kind, _ in blocks])
        for step, (_, text) in zip(trial.steps(), blocks):
            trial.append()
            step(text)
        trial.append()
        trial.immutable_is_wrong()
        trial.nothing_changes_the_log()
    return f"{len(blocks)} blocks of the guide, with {trial.appended} events appended meanwhile"


class Trial:
    def __init__(self, place, server):
        self.place, self.server = place, server
        self.directory = server.directory
        bins = [pathlib.Path(place.ipse).parent, pathlib.Path(sys.executable).parent]
        self.env = {**server.env, "HOME": str(place.scratch), "PYTHONDONTWRITEBYTECODE": "1",
                    "PATH": os.pathsep.join([*map(str, bins), os.environ["PATH"]])}
        self.appended = 0

    def steps(self):
        return [self.queries, self.backup, self.pandas, self.duckdb, self.configuration,
                self.datasette]

    def append(self):
        """Appends one more event, acknowledged by the server: tools must see it."""
        self.appended += 1
        self.newest = f"live-{self.appended}"
        event = {"id": self.newest, "source": "trial", "type": "note",
                 "time": f"2026-06-01T00:00:{self.appended:02}.5Z", "data": {"n": self.appended}}
        status, _, answer = self.server.ask(
            "/api/agent/events", self.server.tokens["producer"], json.dumps(event).encode(),
            {"Content-Type": "application/cloudevents+json"})
        expect(status == 201, "an event was answered with", status, answer.read()[:WIDE])

    def call(self, *command):
        done = subprocess.run(command, cwd=self.directory, env=self.env, capture_output=True,
                              text=True, timeout=DEADLINE)
        expect(done.returncode == 0, command[-1][:WIDE], "ended with", done.returncode,
               done.stdout[-WIDE:], done.stderr[-WIDE:])
        return done.stdout

    def count(self):
        """The number of events of the appending source, from the server's own log."""
        log = self.server.run("log", "--identity", self.server.identity, "--json")
        return log.count('"live-')

    def queries(self, text):
        shown = self.call("sh", "-ec", text)
        expect(self.newest in shown, "sqlite3 does not show", self.newest)
        expect("2026-06-01T00:00:01.500000Z" in shown, "sqlite3 shows no readable time")
        counts = {tuple(row[:2]): int(row[2]) for row in csv.reader(io.StringIO(shown))
                  if len(row) == 3}
        expect(counts.get(("trial", "note")) == 1, "events by source and type are", counts)
        expect("manipulation.grasp" in shown, "no success rate is shown")

    def backup(self, text):
        shown = self.call("sh", "-ec", text)
        expect(shown.count("no findings") == 2, "the copy does not verify:", shown)
        copy = sqlite3.connect(self.directory / "copy.db")
        found = copy.execute("SELECT count(*) FROM episodic_events WHERE id = ?", [self.newest])
        expect(found.fetchone() == (1,), "the copy lacks", self.newest)
        copy.close()

    def pandas(self, text):
        check = """
assert not events.time.isna().any() and not facts.last_updated.isna().any()
assert str(events.time.dtype).startswith("datetime64"), events.time.dtype
print("newest", events.id.iloc[-1], set(events.id) >= {NEWEST})
"""
        shown = self.call(sys.executable, "-c", text + check.replace("NEWEST", repr(self.newest)))
        expect(re.search(r"newest .* True", shown), "pandas does not see", self.newest)
        expect(re.search(r"trial +note +3\b", shown), "pandas counts otherwise:", shown)

    def duckdb(self, text):
        check = """
import duckdb
print("rows", duckdb.sql("SELECT count(*) FROM 'events.parquet' WHERE source = 'trial'").fetchone())
"""
        shown = self.call(sys.executable, "-c", text + check)
        expect("rows (4,)" in shown, "DuckDB wrote other rows:", shown)
        expect(re.search(r"trial +│ note +│ +4 │ 2026-06-01 00:00:04.5", shown),
               "DuckDB counts otherwise:", shown)

    def configuration(self, text):
        (self.directory / "datasette.json").write_text(text)

    def datasette(self, text):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        expect(text.count(PORT) == 1, "the page names no port", PORT)
        with (self.directory / "datasette.log").open("w") as log:
            process = subprocess.Popen(["sh", "-c", "exec " + text.strip().replace(PORT, port)],
                                       cwd=self.directory, env=self.env, stdout=log, stderr=log)
        try:
            self.ask_datasette(f"http://127.0.0.1:{port}", process)
        finally:
            process.terminate()
            process.wait(DEADLINE)

    def ask_datasette(self, url, process):
        rows = url + "/ipse/episodic_events.json?_shape=array&source=trial&_sort_desc=seq"
        until = time.monotonic() + DEADLINE
        while (answer := get(rows)) is None and time.monotonic() < until:
            expect(process.poll() is None, "datasette ended:",
                   (self.directory / "datasette.log").read_text()[-WIDE:])
            time.sleep(0.1)
        expect(answer and answer[0] == 200, "datasette answers", answer)
        expect(json.loads(answer[1])[0]["id"] == self.newest, "datasette does not show the newest")
        self.append()
        expect(json.loads(get(rows)[1])[0]["id"] == self.newest, "datasette shows an older moment")
        facts = get(url + "/ipse/semantic_facts.csv")
        expect(facts[0] == 200 and "skill_success_rate" in facts[1], "datasette shows no facts")
        expect(get(url + "/ipse/token.json")[0] == 403, "datasette shows tokens")
        expect(get(url + "/ipse.json?sql=select+1")[0] == 403, "datasette runs any SQL")

    def immutable_is_wrong(self):
        """The warning on the page must be true; otherwise it must be removed."""
        query = "SELECT count(*) FROM episodic_events WHERE source = 'trial'"
        readers = {mode: sqlite3.connect(f"file:{self.directory / 'ipse.db'}?{mode}", uri=True)
                   for mode in ("mode=ro", "immutable=1")}
        found = {}
        for mode, reader in readers.items():
            try:
                found[mode] = reader.execute(query).fetchone()[0]
            except sqlite3.DatabaseError as error:
                found[mode] = str(error)
            reader.close()
        expect(found["mode=ro"] == self.appended == self.count(), "mode=ro sees", found)
        expect(found["immutable=1"] != self.appended, "immutable=1 sees everything")

    def nothing_changes_the_log(self):
        reader = sqlite3.connect(f"file:{self.directory / 'ipse.db'}?mode=ro", uri=True)
        writer = sqlite3.connect(self.directory / "ipse.db")
        for connection in (reader, writer):
            try:
                connection.execute("DELETE FROM event")
                expect(False, "events were deleted")
            except sqlite3.DatabaseError:
                connection.close()


def get(url):
    """Status and text, or None while no server answers."""
    try:
        with urllib.request.urlopen(url, timeout=DEADLINE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except urllib.error.URLError:
        return None
