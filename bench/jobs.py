"""The jobs that are measured: inputs, number of runs and order.

Guarantees: implementations take turns, so that other load slows all of them alike; each measurement
is its own process; a rival whose counts differ from the facts in the store ends the run; every
figure is kept with its round and the load of the machine.
"""
import os
from dataclasses import dataclass

import prepare
from measure import Trouble, peak_memory, run, say
from workload import named

OURS = "ipse"
# The same on a file system in memory, where a sync costs nothing: the CPU time without the disk.
OURS_IN_MEMORY, MEMORY = "ipse_in_memory", "/dev/shm"
# The same under rule set v2.
OURS_V2, OURS_V2_IN_MEMORY = "ipse_v2", "ipse_v2_in_memory"
V2_SIZES = (100_000, 1_000_000)
STREAMS = (2, 1000)
# The stream on which one more event, ingest, lookup, forgetting and opening are measured.
KEYS = 1000
LARGE = 10_000_000
REBUILD_RIVALS = ("python", "duckdb_json", "duckdb_typed", "duckdb_query", "polars")
RECORD_RIVALS = ("python_reread", "python_delta")
# Runs in one process, by the number of events: enough for a median where runs are short.
OUR_RUNS = {1_000: 25, 10_000: 25, 100_000: 25, 1_000_000: 11}
RIVAL_RUNS = {1_000: 15, 10_000: 11, 100_000: 7, 1_000_000: 3}
PYTHON_RUNS = {1_000: 9, 10_000: 7, 100_000: 3, 1_000_000: 1}
REREAD_RUNS = {10_000: 5, 100_000: 3, 1_000_000: 1}
DELTA_RUNS = 100
# The stand-in takes seconds per run here, and its figures vary least.
PYTHON_SLOW, PYTHON_SLOW_ROUNDS = 1_000_000, 2
LOOKUP_RUNS, APPEND_RUNS, OPEN_RUNS, EXPLAIN_RUNS, FORGET_RUNS = 10, 3, 11, 500, 40
SIGN_RUNS, PROOF_RUNS = 100, 500


@dataclass
class Plan:
    """The extent of a run."""

    name: str
    rounds: int
    sizes: tuple
    histories: tuple
    record_runs: int

    @property
    def cells(self):
        """Every stream that is rebuilt: size and keys."""
        return [(n, k) for n in self.sizes for k in STREAMS]

    @property
    def v2_cells(self):
        """Streams that are rebuilt under rule set v2 too."""
        return [(n, k) for n, k in self.cells if n in V2_SIZES]

    @property
    def memory_cells(self):
        """Streams on which memory is measured."""
        return [(n, k) for n, k in ((100_000, 2), (1_000_000, 1000)) if n in self.sizes]


def plan(quick, large, rounds):
    """The plan for the flags."""
    if quick:
        return Plan("quick", rounds or 2, (1_000, 10_000, 100_000), (10_000, 100_000), 200)
    histories = (10_000, 100_000, 1_000_000) + ((LARGE,) if large else ())
    return Plan("full", rounds or 3, (1_000, 10_000, 100_000, 1_000_000), histories, 1000)


class Bench:
    """A run in progress: the plan, and the samples so far."""

    def __init__(self, workshop, the_plan):
        self.workshop, self.plan, self.samples = workshop, the_plan, []
        self.round, self.expected = 0, {}

    def prepare(self):
        """Creates all streams, stores and inputs, so that rounds only measure."""
        if LARGE in self.plan.histories:
            prepare.check_space(self.workshop, LARGE, KEYS)
        for n, k in self.plan.cells:
            self.expected[n, k] = prepare.fact_counts(self.workshop.store(n, k))
            self.workshop.inputs(n, k)
        for n in self.plan.histories:
            self.workshop.store(n, KEYS)
        for n, k in self.plan.v2_cells:
            self.workshop.store(n, k, "v2")

    def loads(self):
        """The cost of importing each store."""
        stores = sorted({*self.plan.cells, *((n, KEYS) for n in self.plan.histories)})
        return [self.workshop.load(n, k) for n, k in stores]

    def one_round(self, number):
        """Runs every implementation once on every stream."""
        self.round = number
        for n, k in self.plan.cells:
            self.rebuild(n, k)
        for n in self.plan.histories:
            self.record(n)
        largest = self.plan.sizes[-1]
        self.ours("append", largest, KEYS, APPEND_RUNS)
        self.ours("append-signed", largest, KEYS, APPEND_RUNS)
        self.ours("sign", largest, KEYS, SIGN_RUNS)
        self.ours("proof", largest, KEYS, PROOF_RUNS)
        self.ours("lookup", largest, KEYS, LOOKUP_RUNS)
        self.ours("explain", largest, KEYS, EXPLAIN_RUNS)
        for n in (self.plan.sizes[1], largest):
            self.ours("forget", n, KEYS, FORGET_RUNS)
        self.ours("forget-tenth", largest, KEYS, 1)
        for n, k in self.plan.memory_cells:
            self.memory(n, k)
        if number == 0:
            self.opening(self.plan.histories[-1])

    def rebuild(self, n, k):
        """Rebuilds all facts with each implementation; the first one changes with the round."""
        turns = [OURS, *([OURS_V2] if n in V2_SIZES else []), *REBUILD_RIVALS]
        first = self.round % len(turns)
        for name in turns[first:] + turns[:first]:
            if name in (OURS, OURS_V2):
                self.ours("rebuild", n, k, OUR_RUNS[n], name)
            elif name != "python":
                self.rival("rebuild", name, n, k, RIVAL_RUNS[n])
            elif n < PYTHON_SLOW or self.round < PYTHON_SLOW_ROUNDS:
                self.rival("rebuild", name, n, k, PYTHON_RUNS[n])

    def record(self, n):
        """Appends one more event to a history of `n`."""
        if n < LARGE or self.round == 0:
            self.ours("record", n, KEYS, self.plan.record_runs)
        if n < LARGE and os.path.isdir(MEMORY):
            self.ours("record", n, KEYS, self.plan.record_runs, OURS_IN_MEMORY)
        if n in V2_SIZES:
            self.ours("record", n, KEYS, self.plan.record_runs, OURS_V2)
        if n in V2_SIZES and os.path.isdir(MEMORY):
            self.ours("record", n, KEYS, self.plan.record_runs, OURS_V2_IN_MEMORY)
        if n < PYTHON_SLOW:
            self.rival("record", "python_delta", n, KEYS, DELTA_RUNS)
        if n < PYTHON_SLOW or (n == PYTHON_SLOW and self.round == 0):
            self.rival("record", "python_reread", n, KEYS, REREAD_RUNS[n])

    def opening(self, n):
        """Opens a store, if this binary can measure it."""
        help_text = run([self.workshop.ipse, "bench", "--help"]).out
        if "- open:" in help_text:
            self.ours("open", n, KEYS, OPEN_RUNS)
        else:
            say("opening: not measured, this binary has no such job")

    def ours(self, job, n, k, runs, impl=OURS):
        """Runs one job of `ipse bench`."""
        rules = "v2" if impl in (OURS_V2, OURS_V2_IN_MEMORY) else "v1"
        command = [self.workshop.ipse, "bench", job, "--store", self.workshop.store(n, k, rules),
                   "--keys", str(k), "--runs", str(runs), "--json"]
        place = {"TMPDIR": MEMORY} if impl in (OURS_IN_MEMORY, OURS_V2_IN_MEMORY) else {}
        taken = run(command, {**self.workshop.env, **place})
        answer = taken.json()
        self.keep(job, impl, n, k, taken, runs=runs, cpu_ms=answer["cpu_ms"]["median"],
                  wall_ms=answer["wall_ms"]["median"], cpu_p99_ms=answer["cpu_ms"]["p99"],
                  wall_p99_ms=answer["wall_ms"]["p99"], per_second=answer["per_second"])

    def rival(self, job, name, n, k, runs):
        """Runs one job of one rival."""
        program = os.path.join(prepare.HERE, "rivals.py")
        command = [self.workshop.python, program, job, name, self.workshop.inputs(n, k), str(runs)]
        taken = run(command, self.workshop.env)
        answer = taken.json()
        if job == "rebuild" and answer["counts"] != self.expected[n, k]:
            raise Trouble(f"{name} on {named(n, k)} counts {answer['counts']}, "
                          f"the store has {self.expected[n, k]}")
        self.keep(job, name, n, k, taken, runs=runs, cpu_ms=answer["cpu_ms"],
                  wall_ms=answer["wall_ms"])

    def memory(self, n, k):
        """Measures the peak memory of the command `ipse rebuild`."""
        command = [self.workshop.ipse, "rebuild", "--store", self.workshop.store(n, k)]
        peak = peak_memory(command, self.workshop.env)
        say(f"round {self.round + 1}/{self.plan.rounds}: memory {named(n, k)}: "
            f"{peak / 1e6:.1f} MB")
        self.samples.append({"job": "memory", "impl": OURS, "n": n, "k": k, "round": self.round,
                             "peak_bytes": peak})

    def keep(self, job, impl, n, k, taken, **figures):
        """Adds a sample and logs it."""
        say(f"round {self.round + 1}/{self.plan.rounds}: {job} {named(n, k)} {impl}: "
            f"{figures['cpu_ms']:.4g} ms CPU")
        self.samples.append({"job": job, "impl": impl, "n": n, "k": k, "round": self.round,
                             "others": taken.others, **figures})
