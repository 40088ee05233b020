"""Writes the page and its charts from `results.json` and `results-http.json`.

Guarantees: every figure on the page comes from the results, except for the targets; a page is
written completely or not at all; nothing on it names the machine or a path of it.
"""
import os

import charts
import prepare
import serving_report
from jobs import (KEYS, LARGE, OURS, OURS_IN_MEMORY, OURS_V2, OURS_V2_IN_MEMORY, PYTHON_SLOW,
                  STREAMS, V2_SIZES)
from results import Results, targets
from tables import digits, machine_words, spread, table, target_table, times
from workload import short

NAMES = {OURS: "ipse", "python": "Python stand-in", "duckdb_json": "DuckDB, JSON payload",
         "duckdb_typed": "DuckDB, typed columns", "duckdb_query": "DuckDB, typed, query only",
         "polars": "Polars, in memory", "python_reread": "Python, rereads the log",
         "python_delta": "Python, delta (inexact)", OURS_IN_MEMORY: "ipse, no disk"}
REBUILDERS = (OURS, "python", "duckdb_json", "duckdb_typed", "duckdb_query", "polars")
CHARTED = (OURS, "python", "duckdb_json", "duckdb_typed", "polars")
RECORDERS = (OURS, OURS_IN_MEMORY, "python_reread", "python_delta")

HEADER = """\
# Benchmarks

`./bench/run` generates this page and its charts. Do not edit them by hand.
"""

# The pointer to the section about HTTP; pages of older runs have the line NOT_COVERED instead.
ELSEWHERE = "[Over HTTP](#over-http) has its own targets.\n"
NOT_COVERED = "Not covered by this program: HTTP.\n"
COMPARED, REPEATED = "## What is compared", "## How to repeat it"

METHOD = """\
## How it was measured

The stream is W(N, K): N attempts over K keys of skill, target class and environment. K = 2 is the
paper's stream; K = 1000 spreads attempts evenly. Every implementation gets the same lines, made
from a fixed seed. Each measurement is its own process, and loading is not timed. Jobs that write
use a copy of the store, compacted for ipse. Implementations take turns, and the first one changes from
round to round. A process reports the median of its runs; a figure here is the median of those over
rounds, with minimum and maximum in brackets. CPU time is that of the whole process, all threads,
kernel included. If a rival's number of facts or of observations differs from ours, the run fails.
Compare CPU times of one page only, never those of two machines or two days.

Memory is what the kernel counts for `ipse rebuild`. Values below about 9 MB are not meaningful: the
process that starts the command already uses that much.
"""

DIFFERENCES = f"""\
{COMPARED}

All implementations compute, for each skill, target class and environment: attempts, successes,
success rate, mean and quartiles of the force, the most common failure reason, and the last
supporting event; and for each skill, target class and reason: failures, and the last of them. They
differ in the rest.

**ipse** (`ipse bench rebuild`) reads the typed column chunks of the store, 4096 events each and 256
each at the end, and the typed columns of events that are in no chunk yet, inside one read
transaction. It sums in exact integers, and computes every fact of rule set v1 with all fields as
canonical JSON: exact decimals, confidence, the recommended window of a parameter, and the
distribution of parameters for each failure pattern. Its quartiles are nearest ranks of values with
four significant digits. It parses no JSON: the import did that once, and is measured separately. It
compares nothing and writes nothing: `ipse rebuild` compares, and a pass writes.

**Python stand-in**: the paper's program is not published; this one follows its text with `sqlite3`,
`json` and `statistics`. It reads every row in order of time, parses its payload, groups,
aggregates, upserts facts as JSON, appends the pass record and commits durably. It has its own confidence, in
floats; no recommended window; no distribution for patterns; interpolated quartiles.

**DuckDB, JSON payload**: one SQL query over a table with a JSON column, each payload parsed once;
fact rows are inserted as JSON and committed to a file. No confidence, no recommended window, no
distribution for patterns, floats, interpolated quartiles, arbitrary choice between equally common
reasons. All cores.

**DuckDB, typed columns**: the same query over typed columns. **Query only**: the same, with rows
fetched and nothing written, which is closest to our work.

**Polars**: two aggregations over typed columns that are already in memory; writes nothing and
creates no JSON; otherwise like DuckDB. All cores.

The last supporting event is the one with the greatest time and ref for ipse, the greatest row
number for DuckDB and Polars, and the last row in order of time for the stand-in.
"""

ONE_EVENT = """\
## One more event

One event is appended to a history and made durable, and a pass updates the facts it touches: the
cost for a running agent. K = {keys}. The stand-in has two variants: one rereads the whole log at
each pass and is exact; the other reads the new event only, so that its mean and quartiles are those
of that event alone.
"""

REPEAT = f"""\
{REPEATED}

```sh
./bench/run
```

It needs Python 3.10 or later with `venv`, a Rust toolchain, access to a package index, `wrk` (as
root it installs Debian's), and 15 GB of disk for the history of 1e7 events (`--no-large` skips it).
It creates a private environment with duckdb, polars, pyarrow, fastapi, uvicorn, uvloop and
httptools, builds the binary (profile `dist`), creates streams and stores under `target/bench`,
measures, and writes this page. `--quick` is a run of a few minutes that does not change this page.
`--only http` measures and updates only the section [Over HTTP](#over-http). `--report-only` writes
the page again from `target/bench/results.json` and `target/bench/results-http.json`. `IPSE_BIN`
names a binary to measure instead of a build.
"""


def write(data, serving_data, page):
    """Writes the page, and the charts into a folder of the same name."""
    results = Results(data)
    folder = os.path.splitext(page)[0]
    drawn = drawings(results)
    os.makedirs(folder, exist_ok=True)
    for name, (_, svg) in drawn.items():
        replace(os.path.join(folder, name + ".svg"), svg)
    pictures = {name: f"![{title}]({os.path.basename(folder)}/{name}.svg)"
                for name, (title, _) in drawn.items()}
    replace(page, compose(results, pictures, serving_report.section(serving_data)))


def renew_serving(serving_data, page):
    """Replaces the section about HTTP on a page and keeps its other figures."""
    text = prepare.read_text(page) or HEADER
    text = text.replace(NOT_COVERED, ELSEWHERE)
    text = serving_report.put(text, serving_report.HEADING, serving_report.section(serving_data),
                              COMPARED)
    replace(page, serving_report.put(text, REPEATED, REPEAT))


def replace(path, content):
    """Writes a file completely or not at all."""
    part = path + ".part"
    try:
        with open(part, "w", encoding="utf-8") as file:
            file.write(content)
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.remove(part)


def compose(results, pictures, over_http):
    """The text of the page."""
    one_event = [ONE_EVENT.format(keys=KEYS), record_table(results), growth_words(results)]
    return "\n".join([
        HEADER, machine_words(results), "## Targets\n", target_table(targets(results)),
        ELSEWHERE,
        *(rebuild_section(results, k, pictures[f"rebuild-k{k}"]) for k in STREAMS),
        *one_event, pictures["record"] + "\n", rules_section(results),
        "## Import, evidence, lookup, forgetting, opening, memory, disk\n", import_table(results),
        other_table(results), over_http, DIFFERENCES, METHOD, REPEAT])


def drawings(results):
    """The charts: name, title and text of each."""
    drawn = {}
    for k in STREAMS:
        title = f"Rebuild of all facts, K = {k}"
        series = [points(results, "rebuild", impl, k) for impl in CHARTED]
        drawn[f"rebuild-k{k}"] = (title, charts.chart(
            title, "events in the log", "CPU time of one rebuild", series))
    title = f"One more event, K = {KEYS}"
    series = [points(results, "record", impl, KEYS) for impl in RECORDERS]
    drawn["record"] = (title, charts.chart(
        title, "events already in the log", "CPU time of one event with its pass", series))
    return drawn


def points(results, job, impl, k):
    """One line of a chart."""
    measured = [(n, results.median(job, impl, n, k)) for n in results.sizes(job)]
    return charts.Series(NAMES[impl], [(n, ms / 1e3) for n, ms in measured if ms])


def rebuild_section(results, k, picture):
    """The rebuild of all facts on one stream: CPU, the same as multiples of ours, wall."""
    return "\n".join([
        f"## Rebuild of all facts, K = {k}\n", rebuild_table(results, k, "cpu_ms", "CPU ms"),
        slow_words(results, k) + picture + "\n", ratio_table(results, k),
        "Wall time includes the wait for the disk, and is less than CPU time where several cores "
        "work:\n", rebuild_table(results, k, "wall_ms", "wall ms")])


def rebuild_table(results, k, field, unit):
    """One row for each implementation, one column for each size."""
    sizes = results.sizes("rebuild")
    rows = [(NAMES[impl], *(spread(results.figure("rebuild", impl, n, k, field))
                            for n in sizes)) for impl in REBUILDERS]
    return table((unit, *map(short, sizes)), rows, "l" + "r" * len(sizes))


def ratio_table(results, k):
    """The time of each rival, divided by ours."""
    sizes = results.sizes("rebuild")
    rows = [(NAMES[impl], *(times(results.times_ours(impl, n, k)) for n in sizes))
            for impl in REBUILDERS[1:]]
    return table(("CPU, to ours", *map(short, sizes)), rows, "l" + "r" * len(sizes))


def slow_words(results, k):
    """A note if the stand-in ran in fewer rounds."""
    figure = results.figure("rebuild", "python", PYTHON_SLOW, k)
    if figure is None or figure.rounds == results.data["rounds"]:
        return ""
    return (f"The Python stand-in at {short(PYTHON_SLOW)} ran in {figure.rounds} of "
            f"{results.data['rounds']} rounds.\n\n")


def record_table(results):
    """CPU and wall of one more event by history; ours also at p99."""
    sizes = results.sizes("record")
    rows = [(NAMES[impl] + ", CPU µs", *(micros(results, impl, n, "cpu_ms") for n in sizes))
            for impl in RECORDERS]
    rows.insert(1, ("ipse, CPU µs, p99", *(micros(results, OURS, n, "cpu_p99_ms") for n in sizes)))
    rows.insert(2, ("ipse, wall µs, with the wait for the disk",
                    *(micros(results, OURS, n, "wall_ms") for n in sizes)))
    return table(("history", *map(short, sizes)), rows, "l" + "r" * len(sizes))


def rules_section(results):
    """Rule set v2 beside v1, in the same rounds."""
    rows = [(f"rebuild, {short(n)}, K = {k}", *pair(results, "rebuild", OURS, OURS_V2, n, k))
            for k in STREAMS for n in V2_SIZES]
    for ours, v2, words in ((OURS_IN_MEMORY, OURS_V2_IN_MEMORY, "no disk"),
                            (OURS, OURS_V2, "durable")):
        rows += [(f"one more event on {short(n)}, {words}",
                  *pair(results, "record", ours, v2, n, KEYS)) for n in V2_SIZES]
    return "\n".join([
        "## Rule set v2 beside v1\n",
        "The same stream under both rule sets. v2 keeps its counts by day and source.\n",
        table(("CPU ms", "v1", "v2", "v2 to v1"), rows, "lrrr")])


def pair(results, job, v1, v2, n, k):
    """A figure under both rule sets, and their quotient."""
    both = [results.figure(job, impl, n, k) for impl in (v1, v2)]
    quotient = both[1].median / both[0].median if all(both) else None
    return (*map(spread, both), times(quotient))


def micros(results, impl, n, field):
    """A figure in microseconds."""
    return spread(results.figure("record", impl, n, KEYS, field), 1e3)


def growth_words(results):
    """Growth with history, as far as it was measured."""
    sizes = results.sizes("record")
    base, rows = sizes[0], []
    for impl in RECORDERS:
        rows.append((NAMES[impl], *(times(results.growth(impl, n, base)) for n in sizes[1:])))
    head = ("CPU relative to a history of " + short(base), *map(short, sizes[1:]))
    found = table(head, rows, "l" + "r" * (len(sizes) - 1))
    once = f"\nA history of {short(LARGE)} events is measured in one round.\n"
    return found + once if LARGE in sizes else found


def import_table(results):
    """The cost of importing each stream, and the size on disk."""
    rows = [(short(load["n"]), str(load["k"]), digits(load["wall_s"]) + " s",
             f"{load['appended'] / load['wall_s']:,.0f}".replace(",", " "),
             digits(load["cpu_s"] / load["appended"] * 1e6),
             digits(load["store_bytes"] / 1e6), digits(load["store_bytes"] / load["event_bytes"]))
            for load in sorted(results.data["loads"], key=lambda load: (load["k"], load["n"]))]
    words = ("\nDisk is the size of the closed store file, relative to the bytes of its canonical "
             "events. Import is the whole command, on an empty store, durable every 1000 events, "
             "with a pass at the end.\n")
    return table(("events", "K", "import", "events/s", "CPU µs per event", "MB on disk", "× events"),
                 rows, "rrrrrrr") + words


def other_table(results):
    """The remaining jobs, by store."""
    kinds = (("append", "100 000 more events, durable, one pass, one tree head", "per_second", 1,
              "events/s"),
             ("append-signed", "102 400 more events, signed by a producer", "per_second", 1,
              "events/s"),
             ("sign", "a tree head, signed and durable, CPU", "cpu_ms", 1, "ms"),
             ("sign", "a tree head, signed and durable, wall", "wall_ms", 1, "ms"),
             ("proof", "proof that an event is in the log, median", "wall_ms", 1, "ms"),
             ("proof", "proof that an event is in the log, p99", "wall_p99_ms", 1, "ms"),
             ("lookup", "one fact by its key, in process, median", "wall_ms", 1e6, "ns"),
             ("lookup", "one fact by its key, in process, p99", "wall_p99_ms", 1e6, "ns"),
             ("explain", "first page of an explanation, median", "wall_ms", 1, "ms"),
             ("explain", "first page of an explanation, p99", "wall_p99_ms", 1, "ms"),
             ("forget", "one event forgotten and erased, CPU", "cpu_ms", 1, "ms"),
             ("forget", "one event forgotten and erased, wall", "wall_ms", 1, "ms"),
             ("forget-tenth", "every tenth event forgotten at once, CPU", "cpu_ms", 1e-3, "s"),
             ("open", "opening, until facts are read and an event is durable", "wall_ms", 1, "ms"),
             ("memory", "peak memory of `ipse rebuild`", "peak_bytes", 1e-6, "MB"))
    rows = []
    for job, words, field, factor, unit in kinds:
        for n in results.sizes(job):
            for k in STREAMS:
                figure = results.figure(job, OURS, n, k, field)
                if figure:
                    rows.append((words, f"{short(n)}, K {k}", spread(figure, factor), unit))
    return table(("job", "store", "measured", "unit"), rows, "llrl")
