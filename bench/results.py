"""From samples to figures, and from figures to "met" or "missed".

Guarantees: a figure is the median over rounds of each process's own median, and keeps its range; a
target that was not measured is neither met nor missed.
"""
import statistics
from dataclasses import dataclass

from jobs import KEYS, LARGE, OURS, OURS_IN_MEMORY, OURS_V2, OURS_V2_IN_MEMORY


@dataclass
class Figure:
    """The median over rounds, and its range."""

    median: float
    low: float
    high: float
    rounds: int


class Results:
    """The content of `results.json`, by figure."""

    def __init__(self, data):
        self.data = data
        self.samples = data["samples"]

    def figure(self, job, impl, n, k, field="cpu_ms"):
        """One figure; None if it was not measured."""
        wanted = (job, impl, n, k)
        values = [sample[field] for sample in self.samples
                  if (sample["job"], sample["impl"], sample["n"], sample["k"]) == wanted]
        if not values:
            return None
        return Figure(statistics.median(values), min(values), max(values), len(values))

    def median(self, job, impl, n, k, field="cpu_ms"):
        """The median alone; None if it was not measured."""
        figure = self.figure(job, impl, n, k, field)
        return figure and figure.median

    def times_ours(self, rival, n, k, field="cpu_ms"):
        """The rebuild time of a rival, divided by ours."""
        return over(self.median("rebuild", rival, n, k, field),
                    self.median("rebuild", OURS, n, k, field))

    def growth(self, impl, n, base):
        """The cost of one more event on `n` events, divided by the cost on `base`."""
        return over(self.median("record", impl, n, KEYS), self.median("record", impl, base, KEYS))

    def sizes(self, job):
        """The sizes at which a job was measured."""
        return sorted({sample["n"] for sample in self.samples if sample["job"] == job})

    def disk_ratio(self, n, k):
        """Bytes of a store divided by the bytes of its canonical events; None if not measured."""
        for load in self.data["loads"]:
            if (load["n"], load["k"]) == (n, k):
                return load["store_bytes"] / load["event_bytes"]
        return None

    def others(self):
        """CPU of other processes while ours and the rivals ran, in cores; a list."""
        return [sample["others"] for sample in self.samples if "others" in sample]


def over(above, below):
    """A quotient, if both values exist."""
    return above / below if above is not None and below else None


@dataclass
class Target:
    """One target: a bound, the measured value, and the unit of both."""

    goal: str
    sign: str
    bound: float
    unit: str
    measured: float | None

    @property
    def missing(self):
        """The relative distance from the bound, below zero if met; None if not measured."""
        if self.measured is None:
            return None
        part = self.measured / self.bound
        return part - 1 if self.sign == "≤" else 1 - part

    @property
    def missed(self):
        """Whether it was measured and missed."""
        return self.missing is not None and self.missing > 0

    @property
    def verdict(self):
        """Met, missed with the distance, or not measured."""
        if self.missing is None:
            return "not measured"
        return f"missed by {self.missing * 100:.1f} %" if self.missed else "met"


def targets(results):
    """All targets that this program measures."""
    return [*rebuild_targets(results), *event_targets(results), *rules_targets(results),
            *resource_targets(results)]


def rebuild_targets(results):
    """Targets for the rebuild of all facts."""
    small, big = (100_000, 2), (1_000_000, 1000)

    def faster(rival, words, cell, bound):
        return Target(f"… against {words}", "≥", bound, "×", results.times_ours(rival, *cell))

    return [
        Target("rebuild, 1e5 events, K = 2", "≤", 2.5, "ms CPU",
               results.median("rebuild", OURS, *small)),
        faster("python", "the Python stand-in", small, 250),
        faster("duckdb_typed", "DuckDB, typed columns", small, 8),
        Target("rebuild, 1e6 events, K = 1000", "≤", 60, "ms CPU",
               results.median("rebuild", OURS, *big)),
        faster("python", "the Python stand-in", big, 150),
        faster("duckdb_typed", "DuckDB, typed columns", big, 4),
        faster("polars", "Polars", big, 3.5),
    ]


def event_targets(results):
    """Targets for appends and queries."""
    synced = scaled(results.median("record", OURS, 1_000_000, KEYS), 1e3)
    one = scaled(results.median("record", OURS_IN_MEMORY, 1_000_000, KEYS), 1e3)
    lookup = scaled(results.median("lookup", OURS, 1_000_000, KEYS, "wall_p99_ms"), 1e3)
    return [
        Target("one more event on 1e6, with its pass, without the disk", "≤", 60, "µs CPU", one),
        Target("… with the kernel's work for a sync", "≤", 60, "µs CPU", synced),
        Target("… on 1e6 relative to 1e4", "≤", 1.5, "×", results.growth(OURS, 1_000_000, 10_000)),
        Target("durable ingest onto 1e6, batches of 1000, signed head", "≥", 100_000, "events/s",
               results.median("append", OURS, 1_000_000, KEYS, "per_second")),
        Target("… signed by a producer, 1024 at a time", "≥", 50_000, "events/s",
               results.median("append-signed", OURS, 1_000_000, KEYS, "per_second")),
        Target("proof that an event is in the log, 1e6, p99", "≤", 1, "ms",
               results.median("proof", OURS, 1_000_000, KEYS, "wall_p99_ms")),
        Target("lookup of a fact in process, p99", "≤", 1, "µs", lookup),
        Target("first page of an explanation, 1e6, p99", "≤", 10, "ms",
               results.median("explain", OURS, 1_000_000, KEYS, "wall_p99_ms")),
    ]


def rules_targets(results):
    """Targets for rule set v2, as multiples of v1."""
    def multiple(job, v2, v1, k):
        return over(results.median(job, v2, 1_000_000, k), results.median(job, v1, 1_000_000, k))

    return [
        Target("rebuild of 1e6 events under v2, K = 1000, to v1", "≤", 1.6, "×",
               multiple("rebuild", OURS_V2, OURS, KEYS)),
        Target("… K = 2", "≤", 1.6, "×", multiple("rebuild", OURS_V2, OURS, 2)),
        Target("one more event on 1e6 under v2, without the disk, to v1", "≤", 1.3, "×",
               multiple("record", OURS_V2_IN_MEMORY, OURS_IN_MEMORY, KEYS)),
    ]


def resource_targets(results):
    """Targets for memory, opening and disk."""
    def peak(n, k):
        return scaled(results.median("memory", OURS, n, k, "peak_bytes"), 1e-6)

    disk = [results.disk_ratio(1_000_000, k) for k in (2, 1000)]
    return [
        Target("peak memory of a rebuild, 1e5, K = 2", "≤", 12, "MB", peak(100_000, 2)),
        Target("peak memory of a rebuild, 1e6, K = 1000", "≤", 60, "MB", peak(1_000_000, 1000)),
        Target("opening a store of 1e7", "≤", 100, "ms",
               results.median("open", OURS, LARGE, KEYS, "wall_ms")),
        Target("disk, relative to the bytes of the canonical events", "≤", 2.2, "×",
               None if None in disk else max(disk)),
    ]


def scaled(value, factor):
    """A value in another unit, if it exists."""
    return None if value is None else value * factor
