"""Writes the section "Over HTTP" of the page from `results-http.json`.

Guarantees: every figure comes from the results, except for the targets; the section can be put into
a page whose other sections stay unchanged, byte for byte.
"""
import statistics

from results import Figure, Target, over
from serving import (CONNECTIONS, ECHOED, EVENTS, FACTS, FASTAPI, GROUNDING, KEYS, ONE, OURS,
                     PLAIN, PRODUCERS, QUERY, RATE, RATE_BATCH, SAME, SQL, TURNS)
from tables import digits, machine_words, spread, table, target_table, times
from workload import named

HEADING = "## Over HTTP"
MAX_CPU_US, MIN_TIMES, MAX_P99_MS = 20, 15, 1
NAMES = {(OURS, FACTS): "ipse", (OURS, ONE): "ipse, only the fact that FastAPI returns",
         (OURS, SAME): "ipse, `If-None-Match`, 304",
         (OURS, GROUNDING): "ipse, `format=grounding`", (FASTAPI, FACTS): "FastAPI",
         (FASTAPI, SQL): "FastAPI, SQLite query per request"}

WORDS = """\
A planner requests `GET /api/agent/semantic{query}`
from a store that holds {stream}. **FastAPI** is the endpoint that the paper describes: one process
of uvicorn with uvloop and httptools, with the same facts in a dict, or one point query of SQLite
for each request. `wrk` runs one thread with 1 or 16 persistent connections, and sends the next request
when the last one is answered. The servers take turns. Server CPU is that of the server's process,
all threads, kernel included, by the kernel's clock, divided by the number of answered requests; one
second of warm-up is not counted.

The servers do not do the same work. ipse checks a token that may have been revoked a second ago. It
returns all matching facts ({facts} here), their checkpoint, the consultation with its hash, the
grounding text, and an ETag. FastAPI checks no token and returns one fact.
"""

APPENDING = """\
The same while a producer appends {batch} events at a time, {rate} times a second, each time durable
and followed by a pass, so that the checkpoint of the answers changes. The server's CPU then
includes the appends. *Raw* divides all of it by the requests; *net* first subtracts the cost of the same
producer in an interval without readers. FastAPI is the one above, without appends.
"""

INGEST = """\
Durable ingest, in batches of 1000 lines of JSON (`application/x-ndjson`), onto the same store by
producers in Python on the same machine. A batch is answered once it is durable; CPU includes all
passes.
"""

PROPOSE = """\
Intents, proposed by `wrk` to the same log under the gates of `examples/gates`. Each is judged and
stored with its verdict, durably, before it is answered. An intent with a consultation is also
checked against the facts at that time.
"""

ABSENT = "Not measured yet: `./bench/run --only http` measures it.\n"


class ServingResults:
    """The content of `results-http.json`, by figure."""

    def __init__(self, data):
        self.data, self.samples = data, data["samples"]

    def figure(self, field, **wanted):
        """One figure; None if it was not measured."""
        values = [sample[field] for sample in self.samples
                  if all(sample.get(name) == value for name, value in wanted.items())]
        if not values:
            return None
        return Figure(statistics.median(values), min(values), max(values), len(values))

    def read(self, field, impl, what, connections):
        """A figure of reading without appends."""
        return self.figure(field, job="read", impl=impl, what=what, connections=connections)

    def appending(self, field, connections):
        """A figure of reading while a producer appends."""
        return self.figure(field, job="read-appending", connections=connections)

    def others(self):
        """CPU of other processes meanwhile, in cores; a list."""
        return [sample["others"] for sample in self.samples]


def median(figure):
    """The median, if the figure exists."""
    return figure and figure.median


def section(data):
    """The whole section; `data` is None if nothing was measured."""
    if data is None:
        return f"{HEADING}\n\n{ABSENT}"
    results = ServingResults(data)
    words = WORDS.format(query=QUERY, stream=named(EVENTS, KEYS), facts=data["facts"])
    return "\n".join([
        f"{HEADING}\n", machine_words(results), words, target_table(targets(results)),
        "Without appends:\n", read_table(results),
        APPENDING.format(batch=RATE_BATCH, rate=RATE), appending_table(results),
        INGEST, ingest_table(results), PROPOSE, propose_table(results)])


def targets(results):
    """The targets for a fact over HTTP."""
    return [target for connections in CONNECTIONS
            for target in (*quiet_targets(results, connections),
                           *appending_targets(results, connections))]


def quiet_targets(results, connections):
    """Targets without appends."""
    ours = median(results.read("cpu_us", OURS, FACTS, connections))
    theirs = median(results.read("cpu_us", FASTAPI, FACTS, connections))
    found = [Target(f"a fact over HTTP, {counted(connections)}", "≤", MAX_CPU_US, "µs CPU", ours),
             Target("… against FastAPI", "≥", MIN_TIMES, "×", over(theirs, ours))]
    if connections == CONNECTIONS[-1]:
        p99 = median(results.read("p99_us", OURS, FACTS, connections))
        found.append(Target("… p99", "≤", MAX_P99_MS, "ms", p99 and p99 / 1e3))
    return found


def appending_targets(results, connections):
    """The same targets while a producer appends."""
    net = median(results.appending("net_cpu_us", connections))
    theirs = median(results.read("cpu_us", FASTAPI, FACTS, connections))
    found = [Target(f"… while a producer appends, {counted(connections)}, net", "≤", MAX_CPU_US,
                    "µs CPU", net),
             Target("… … against FastAPI", "≥", MIN_TIMES, "×", over(theirs, net))]
    if connections == CONNECTIONS[-1]:
        p99 = median(results.appending("p99_us", connections))
        found.append(Target("… … p99", "≤", MAX_P99_MS, "ms", p99 and p99 / 1e3))
    return found


def counted(connections):
    """The number of connections as text."""
    return "1 connection" if connections == 1 else f"{connections} connections"


def read_table(results):
    """One row for each turn."""
    rows = []
    for impl, what, connections in sorted(TURNS, key=lambda turn: turn[2]):
        figures = {field: results.read(field, impl, what, connections)
                   for field in ("per_second", "p50_us", "p99_us", "cpu_us", "bytes")}
        if figures["cpu_us"]:
            base = median(results.read("cpu_us", FASTAPI, FACTS, connections))
            rows.append((NAMES[impl, what], str(connections), spread(figures["per_second"]),
                         spread(figures["p50_us"]), spread(figures["p99_us"]),
                         spread(figures["cpu_us"]), times(over(base, figures["cpu_us"].median)),
                         f"{figures['bytes'].median:.0f}"))
    return table(("request", "connections", "requests/s", "p50 µs", "p99 µs", "server CPU µs",
                  "FastAPI's CPU relative to it", "body bytes"), rows, "lrrrrrrr")


def appending_table(results):
    """Reading while a producer appends."""
    rows = []
    for connections in CONNECTIONS:
        base = median(results.read("cpu_us", FASTAPI, FACTS, connections))
        raw, net = (results.appending(field, connections) for field in ("cpu_us", "net_cpu_us"))
        rows.append((str(connections), *(spread(results.appending(field, connections))
                                         for field in ("per_second", "p50_us", "p99_us")),
                     spread(raw), spread(net), times(over(base, median(raw))),
                     times(over(base, median(net))),
                     spread(results.appending("alone_cores", connections), 1e3),
                     digits(median(results.appending("appended_per_second", connections)))))
    return table(("connections", "requests/s", "p50 µs", "p99 µs", "server CPU µs, raw", "net",
                  "FastAPI's CPU relative to raw", "to net", "appends alone, CPU ms/s",
                  "events/s appended"), rows, "r" * 10)


def ingest_table(results):
    """Ingest by one and by several producers."""
    rows = []
    for producers in PRODUCERS:
        figures = [results.figure(field, job="ingest", producers=producers)
                   for field in ("per_second", "cpu_us", "p50_us", "p99_us")]
        rate, cpu, p50, p99 = figures
        rows.append((str(producers), spread(rate), spread(cpu), spread(p50, 1e-3),
                     spread(p99, 1e-3)))
    return table(("producers", "events/s", "server CPU µs per event", "p50 ms per batch",
                  "p99 ms per batch"), rows, "rrrrr")


def propose_table(results):
    """Intents with and without a consultation."""
    rows = []
    for what, words in ((PLAIN, "none"), (ECHOED, "with its facts")):
        for connections in CONNECTIONS:
            figures = [results.figure(field, job="propose", what=what, connections=connections)
                       for field in ("per_second", "p50_us", "p99_us", "cpu_us")]
            if figures[0]:
                rows.append((words, str(connections), *(spread(figure) for figure in figures)))
    return table(("consultation", "connections", "intents/s", "p50 µs", "p99 µs", "server CPU µs"),
                 rows, "lrrrrr")


def put(page, heading, text, before=None):
    """The page with one section replaced, or inserted before another."""
    begin = find(page, heading)
    if begin is None:
        begin = end = find(page, before) if before else None
    else:
        end = page.find("\n## ", begin)
        end = end + 1 if end >= 0 else None
    if begin is None:
        return page.rstrip("\n") + "\n\n" + text
    if end is None:
        return page[:begin] + text
    return page[:begin] + text + "\n" + page[end:]


def find(page, heading):
    """The offset of a section; None if it is missing."""
    at = ("\n" + page).find(f"\n{heading}\n")
    return at if at >= 0 else None
