"""Writes the page and its charts from `results.json` and `results-http.json`.

Guarantees: every figure on the page comes from the results and none from this file, targets aside;
a page that is written is whole; nothing on it names the machine or a path of it.
"""
import os

import charts
import prepare
import serving_report
from jobs import KEYS, LARGE, OURS, OURS_IN_MEMORY, PYTHON_SLOW, STREAMS
from results import Results, targets
from tables import digits, machine_words, spread, table, target_table, times
from workload import short

NAMES = {OURS: "ipse", "python": "Python stand-in", "duckdb_json": "DuckDB, JSON payload",
         "duckdb_typed": "DuckDB, typed columns", "duckdb_query": "DuckDB, typed, query only",
         "polars": "Polars, in memory", "python_reread": "Python, reads all again",
         "python_delta": "Python, delta (inexact)", OURS_IN_MEMORY: "ipse, no disk"}
REBUILDERS = (OURS, "python", "duckdb_json", "duckdb_typed", "duckdb_query", "polars")
CHARTED = (OURS, "python", "duckdb_json", "duckdb_typed", "polars")
RECORDERS = (OURS, OURS_IN_MEMORY, "python_reread", "python_delta")

HEADER = """\
# Benchmarks

This page and its charts are made by `./bench/run` and must not be edited by hand.
"""

# Where a fact over HTTP is told; pages of older runs had a line that said it was not.
ELSEWHERE = "A fact over HTTP has targets of its own: [Over HTTP](#over-http).\n"
NOT_COVERED = "Not covered by this program: HTTP.\n"
COMPARED, REPEATED = "## What is compared", "## How to repeat it"

METHOD = """\
## How it was measured

The stream is W(N, K): N attempts over K keys of skill, target class and environment. K = 2 is the
paper's stream; K = 1000 spreads attempts evenly. The same lines, made from a fixed seed, go to
every implementation. Each measurement is a process of its own that loads untimed; what writes works
on a copy, a compacted one for ipse. Implementations take turns, and who begins changes from round
to round. A process reports the median of its runs; a figure here is the median of those over
rounds, with the least and the greatest in brackets. CPU time is that of the whole process, all
threads, kernel included. A rival whose number of facts or of observations behind them differs from
ours ends the run, so all of them count the same. Compare CPU times of one page only, never those of
two machines or two days.

Memory is what the kernel counts for `ipse rebuild`. Less than about 9 MB cannot be told apart: that
is what the process that starts it holds.
"""

DIFFERENCES = f"""\
{COMPARED}

All of them give, for each skill, target class and environment: attempts, successes, success rate,
mean and quartiles of the force, the commonest reason of failure, the last supporting event; and for
each skill, target class and reason: failures, and the last of them. Beyond that they differ.

**ipse** (`ipse bench rebuild`) reads the typed column chunks of the store, 4096 events each and 256
each at the end, and the typed columns of the events that are in no chunk yet, inside one read transaction; sums in exact
integers; and makes every fact of rule set v1 with all fields as canonical JSON: exact decimals,
confidence, the recommended window of a parameter, and the distribution of parameters for each
pattern of failure. Its quartiles are nearest ranks of values with four significant digits. It
parses no JSON, as that was done once, at import, which is measured on its own. It compares nothing
and writes nothing: `ipse rebuild` compares, and a pass writes.

**Python stand-in**: the paper's program is not published; this is its text written down with
`sqlite3`, `json` and `statistics`. Reads every row in order of time, parses its payload, groups,
aggregates, upserts facts as JSON, appends the record of the pass, commits durably. Has a confidence
of its own, in floats; no recommended window; no distribution for patterns; interpolates quartiles.

**DuckDB, JSON payload**: one SQL query over a table with a JSON column, each payload parsed once;
fact rows are inserted as JSON and committed to a file. No confidence, no recommended window, no
distribution for patterns, floats, interpolated quartiles, ties between reasons as they fall. All
cores.

**DuckDB, typed columns**: the same query over typed columns. **Query only**: the same, with rows
fetched and nothing written, which is the closest to what ours does.

**Polars**: two aggregations over typed columns that are in memory already; writes nothing and makes
no JSON; otherwise as DuckDB. All cores.

The last supporting event is the one with the greatest time and ref for ipse, the greatest row
number for DuckDB and Polars, and the last row in order of time for the stand-in.
"""

ONE_EVENT = """\
## One more event

One event is appended to a history, made durable, and a pass renews the facts it touches: what an
agent pays while it runs. K = {keys}. The stand-in is given in two readings: one reads the whole log
again at each pass and is exact; the other reads the new event only, so that its mean and quartiles
are those of that event alone.
"""

REPEAT = f"""\
{REPEATED}

```sh
./bench/run
```

It needs Python 3.10 or later with `venv`, a Rust toolchain, access to a package index, `wrk` (as
root it installs Debian's), and 15 GB of disk for the history of 1e7 events (`--no-large` leaves
that out). It makes a private environment with duckdb, polars, pyarrow, fastapi, uvicorn, uvloop and
httptools, builds the binary (profile `dist`), makes streams and stores under `target/bench`, measures, and writes
this page. `--quick` is a trial of a few minutes that leaves this page alone. `--only http` measures
what is under [Over HTTP](#over-http) and renews that section alone. `--report-only` writes the page
again from `target/bench/results.json` and `target/bench/results-http.json`. `IPSE_BIN` names a
binary to measure instead of a build.
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
    """Renews what is told about HTTP on a page whose other figures stay as they are."""
    text = prepare.read_text(page) or HEADER
    text = text.replace(NOT_COVERED, ELSEWHERE)
    text = serving_report.put(text, serving_report.HEADING, serving_report.section(serving_data),
                              COMPARED)
    replace(page, serving_report.put(text, REPEATED, REPEAT))


def replace(path, content):
    """Writes a file that is whole or as it was."""
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
        *one_event, pictures["record"] + "\n",
        "## Import, evidence, lookup, forgetting, opening, memory, disk\n", import_table(results),
        other_table(results), over_http, DIFFERENCES, METHOD, REPEAT])


def drawings(results):
    """The charts: name, title and text of each."""
    drawn = {}
    for k in STREAMS:
        title = f"All facts anew, K = {k}"
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
    """All facts anew on one stream: CPU, the same as multiples of ours, wall."""
    return "\n".join([
        f"## All facts anew, K = {k}\n", rebuild_table(results, k, "cpu_ms", "CPU ms"),
        slow_words(results, k) + picture + "\n", ratio_table(results, k),
        "Wall time also holds the wait for the disk, and is less than CPU time where several cores "
        "work:\n", rebuild_table(results, k, "wall_ms", "wall ms")])


def rebuild_table(results, k, field, unit):
    """One row for each implementation, one column for each size."""
    sizes = results.sizes("rebuild")
    rows = [(NAMES[impl], *(spread(results.figure("rebuild", impl, n, k, field))
                            for n in sizes)) for impl in REBUILDERS]
    return table((unit, *map(short, sizes)), rows, "l" + "r" * len(sizes))


def ratio_table(results, k):
    """How many times ours each rival takes."""
    sizes = results.sizes("rebuild")
    rows = [(NAMES[impl], *(times(results.times_ours(impl, n, k)) for n in sizes))
            for impl in REBUILDERS[1:]]
    return table(("CPU, to ours", *map(short, sizes)), rows, "l" + "r" * len(sizes))


def slow_words(results, k):
    """Says where the stand-in ran in fewer rounds."""
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


def micros(results, impl, n, field):
    """A figure in microseconds."""
    return spread(results.figure("record", impl, n, KEYS, field), 1e3)


def growth_words(results):
    """Growth with history, as far as it was measured."""
    sizes = results.sizes("record")
    base, rows = sizes[0], []
    for impl in RECORDERS:
        rows.append((NAMES[impl], *(times(results.growth(impl, n, base)) for n in sizes[1:])))
    head = ("CPU against a history of " + short(base), *map(short, sizes[1:]))
    found = table(head, rows, "l" + "r" * (len(sizes) - 1))
    once = f"\nA history of {short(LARGE)} events is measured in one round.\n"
    return found + once if LARGE in sizes else found


def import_table(results):
    """What importing each stream took, and the size on disk."""
    rows = [(short(load["n"]), str(load["k"]), digits(load["wall_s"]) + " s",
             f"{load['appended'] / load['wall_s']:,.0f}".replace(",", " "),
             digits(load["cpu_s"] / load["appended"] * 1e6),
             digits(load["store_bytes"] / 1e6), digits(load["store_bytes"] / load["event_bytes"]))
            for load in sorted(results.data["loads"], key=lambda load: (load["k"], load["n"]))]
    words = ("\nDisk is the closed store file to the bytes of its canonical events. Import is the "
             "whole command, on an empty store, durable every 1000 events, facts at the end.\n")
    return table(("events", "K", "import", "events/s", "CPU µs an event", "MB on disk", "× events"),
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
             ("forget", "one event forgotten, its bytes gone, CPU", "cpu_ms", 1, "ms"),
             ("forget", "one event forgotten, its bytes gone, wall", "wall_ms", 1, "ms"),
             ("forget-tenth", "every tenth event forgotten at once, CPU", "cpu_ms", 1e-3, "s"),
             ("open", "opening, to facts read and an event durable", "wall_ms", 1, "ms"),
             ("memory", "peak memory of `ipse rebuild`", "peak_bytes", 1e-6, "MB"))
    rows = []
    for job, words, field, factor, unit in kinds:
        for n in results.sizes(job):
            for k in STREAMS:
                figure = results.figure(job, OURS, n, k, field)
                if figure:
                    rows.append((words, f"{short(n)}, K {k}", spread(figure, factor), unit))
    return table(("job", "store", "measured", "unit"), rows, "llrl")
