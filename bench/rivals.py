"""Runs one rival in its own process and prints its cost as one line of JSON.

usage: rivals.py JOB RIVAL INPUTS_DIRECTORY RUNS

JOB is `rebuild` (rebuild all facts) or `record` (one more event, then a pass; the stand-in only).

Runs in the private environment. Guarantees: loading and clearing are not timed; one warm-up run is
discarded; CPU time is that of the whole process, all threads; a rival works on a copy of its
input; the counts of its results are printed too, so that the caller can detect wrong results.
"""
import json
import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time

import inputs
import standin

# One query for both DuckDB rivals and for reading or writing: only the source differs. The last
# supporting event is the one with the greatest number, which in W(N, K) is the latest.
DUCKDB_FACTS = """
WITH attempt AS ({source}),
skill AS (
    SELECT skill_id, target_class, environment, count(*) AS n,
           count(*) FILTER (WHERE success) AS successes, avg(force_n) AS mean,
           quantile_cont(force_n, [0.25, 0.5, 0.75]) AS quartiles,
           mode(failure_reason) AS reason, max(id) AS last
    FROM attempt GROUP BY skill_id, target_class, environment),
pattern AS (
    SELECT skill_id, target_class, failure_reason, count(*) AS n, max(id) AS last
    FROM attempt WHERE NOT success AND failure_reason IS NOT NULL
    GROUP BY skill_id, target_class, failure_reason)
SELECT 'skill_success_rate' AS kind,
       concat_ws(' + ', skill_id, target_class, environment) AS key,
       json_object('n_observations', n, 'successes', successes, 'success_rate', successes / n,
                   'mean', mean, 'quartiles', quartiles, 'top_failure_reason', reason,
                   'last_supporting_event_id', last)::TEXT AS value
FROM skill
UNION ALL
SELECT 'interaction_pattern', concat_ws(' + ', skill_id, target_class, failure_reason),
       json_object('n_observations', n, 'last_supporting_event_id', last)::TEXT
FROM pattern
"""
TYPED_SOURCE = "SELECT * FROM event"
# One extraction for all fields: the payload of a row is parsed once.
JSON_SOURCE = """
SELECT id, field.skill_id, field.target_class, field.environment, field.params.force_n,
       field.success, field.failure_reason
FROM (SELECT id, json_transform(payload, '{"skill_id": "VARCHAR", "target_class": "VARCHAR",
      "environment": "VARCHAR", "params": {"force_n": "DOUBLE"}, "success": "BOOLEAN",
      "failure_reason": "VARCHAR"}') AS field FROM event)
"""


class StandIn:
    """The Python stand-in: a pass over a log without earlier passes."""

    def __init__(self, directory):
        self.db = sqlite3.connect(os.path.join(directory, inputs.STANDIN))

    def reset(self):
        """Removes all facts."""
        standin.forget_passes(self.db)

    def run(self):
        """Runs the pass."""
        standin.consolidate(self.db, "2026-05-01T00:00:00Z")

    def facts(self):
        """Kind and observations of every fact."""
        rows = self.db.execute("SELECT fact_kind, fact_value_json FROM semantic_facts")
        return [(kind, json.loads(value)["n_observations"]) for kind, value in rows]


class StandInRecord(StandIn):
    """The Python stand-in: one more event on a log whose facts are up to date."""

    def __init__(self, directory, reading):
        super().__init__(directory)
        self.reading, self.number = reading, 0
        standin.forget_passes(self.db)
        standin.consolidate(self.db, "2026-05-01T00:00:00Z")
        rows = self.db.execute("SELECT payload_json FROM episodic_events "
                               "WHERE kind = 'execution_result' ORDER BY id LIMIT 1000")
        self.payloads = [row[0] for row in rows]

    def reset(self):
        """Does nothing: every event builds on the one before."""

    def run(self):
        """Appends, commits and runs a pass."""
        payload = self.payloads[self.number % len(self.payloads)]
        self.number += 1
        standin.append(self.db, f"2026-06-01T00:00:00.{self.number:06d}Z", "execution_result",
                       payload)
        self.db.commit()
        standin.consolidate(self.db, f"2026-06-02T00:00:00.{self.number:06d}Z", self.reading)


class DuckDb:
    """DuckDB: one query, its rows written and committed, or only fetched."""

    def __init__(self, directory, name, source, writes):
        import duckdb
        self.db = duckdb.connect(os.path.join(directory, name))
        self.query, self.writes, self.rows = DUCKDB_FACTS.format(source=source), writes, []

    def reset(self):
        """Removes all facts."""
        self.db.execute("DELETE FROM fact")

    def run(self):
        """Runs the query."""
        if self.writes:
            self.db.execute("INSERT INTO fact " + self.query)
        else:
            self.rows = self.db.execute(self.query).fetchall()

    def facts(self):
        """Kind and observations of every fact."""
        if self.writes:
            self.rows = self.db.execute("SELECT kind, key, value FROM fact").fetchall()
        return [(kind, json.loads(value)["n_observations"]) for kind, _, value in self.rows]


class Polars:
    """Polars: two aggregations over a typed frame in memory; nothing is written."""

    def __init__(self, directory):
        import polars
        self.pl = polars
        self.frame = polars.read_parquet(os.path.join(directory, inputs.TYPED))
        self.results = []

    def reset(self):
        """Does nothing: nothing was written."""

    def run(self):
        """Runs both aggregations together."""
        lazy = self.frame.lazy()
        self.results = self.pl.collect_all([self.skills(lazy), self.patterns(lazy)])

    def skills(self, lazy):
        """The aggregation behind skill_success_rate."""
        pl, force = self.pl, self.pl.col("force_n")
        quartiles = [force.quantile(part, "linear").alias(f"q{part}") for part in (.25, .5, .75)]
        return lazy.group_by("skill_id", "target_class", "environment").agg(
            pl.len().alias("n"), pl.col("success").sum().alias("successes"),
            pl.col("success").mean().alias("success_rate"), force.mean().alias("mean"), *quartiles,
            pl.col("failure_reason").drop_nulls().mode().first().alias("reason"),
            pl.col("id").max().alias("last"))

    def patterns(self, lazy):
        """The aggregation behind interaction_pattern."""
        pl = self.pl
        failed = lazy.filter(~pl.col("success") & pl.col("failure_reason").is_not_null())
        return failed.group_by("skill_id", "target_class", "failure_reason").agg(
            pl.len().alias("n"), pl.col("id").max().alias("last"))

    def facts(self):
        """Kind and observations of every fact."""
        kinds = (standin.SKILL, standin.PATTERN)
        return [(kind, n) for kind, result in zip(kinds, self.results) for n in result["n"]]


RIVALS = {
    ("rebuild", "python"): StandIn,
    ("rebuild", "duckdb_json"):
        lambda where: DuckDb(where, inputs.DUCKDB_JSON, JSON_SOURCE, writes=True),
    ("rebuild", "duckdb_typed"):
        lambda where: DuckDb(where, inputs.DUCKDB_TYPED, TYPED_SOURCE, writes=True),
    ("rebuild", "duckdb_query"):
        lambda where: DuckDb(where, inputs.DUCKDB_TYPED, TYPED_SOURCE, writes=False),
    ("rebuild", "polars"): Polars,
    ("record", "python_reread"): lambda where: StandInRecord(where, standin.REREAD),
    ("record", "python_delta"): lambda where: StandInRecord(where, standin.DELTA),
}


def measure(rival, runs):
    """CPU and wall milliseconds of each run except the first."""
    taken = []
    for _ in range(runs + 1):
        rival.reset()
        cpu, wall = time.process_time(), time.perf_counter()
        rival.run()
        taken.append(((time.process_time() - cpu) * 1e3, (time.perf_counter() - wall) * 1e3))
    return taken[1:]


def counts(facts):
    """Per kind: the number of facts, and the number of observations behind them."""
    summary = {}
    for kind, observations in facts:
        so_far = summary.setdefault(kind, [0, 0])
        so_far[0] += 1
        so_far[1] += observations
    return summary


def main(job, name, directory, runs):
    """Copies the input, measures, prints."""
    with tempfile.TemporaryDirectory() as scratch:
        copy = shutil.copytree(directory, os.path.join(scratch, "inputs"))
        rival = RIVALS[job, name](copy)
        taken = measure(rival, runs)
        print(json.dumps({"runs": runs, "counts": counts(rival.facts()),
                          "cpu_ms": statistics.median(cpu for cpu, _ in taken),
                          "wall_ms": statistics.median(wall for _, wall in taken)}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
