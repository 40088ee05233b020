"""Creates the inputs of the rivals, once, from a file of the workload.

usage: inputs.py EVENTS_FILE DIRECTORY

Runs in the private environment. Guarantees: every rival's input holds the same events under the
same numbers; nothing here is timed; the caller renames the directory when it is complete.
"""
import json
import os
import sqlite3
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

import standin
import workload

STANDIN, TYPED, DUCKDB_JSON, DUCKDB_TYPED = (
    "standin.db", "typed.parquet", "json.duckdb", "typed.duckdb")
FACTS = "CREATE TABLE fact (kind TEXT, key TEXT, value TEXT)"


def make(events_file, directory):
    """Creates all four inputs."""
    events = list(workload.read(events_file))
    make_standin(events, os.path.join(directory, STANDIN))
    columns = typed_columns(events)
    pq.write_table(columns, os.path.join(directory, TYPED))
    make_duckdb(columns, "SELECT * FROM source", os.path.join(directory, DUCKDB_TYPED))
    payloads = pa.table({"id": [event[0] for event in events],
                         "payload": [event[2] for event in events]})
    make_duckdb(payloads, "SELECT id, payload::JSON AS payload FROM source",
                os.path.join(directory, DUCKDB_JSON))


def make_standin(events, path):
    """The paper's tables in SQLite: a row with a JSON payload for each event."""
    db = sqlite3.connect(path)
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript(standin.SCHEMA)
    for _, time, data in events:
        standin.append(db, time, "execution_result", data)
    db.execute(standin.INDEX)
    db.commit()
    db.close()


def typed_columns(events):
    """The columns that a pass needs, typed."""
    rows = [(number, json.loads(data)) for number, _, data in events]
    texts = ("skill_id", "target_class", "environment", "failure_reason")
    columns = {name: pa.array([data[name] for _, data in rows], pa.string()) for name in texts}
    columns["id"] = pa.array([number for number, _ in rows], pa.int64())
    columns["force_n"] = pa.array([data["params"]["force_n"] for _, data in rows], pa.float64())
    columns["success"] = pa.array([data["success"] for _, data in rows], pa.bool_())
    return pa.table(columns)


def make_duckdb(source, select, path):
    """Creates a DuckDB file with the events of the query `source`, and a table for facts."""
    db = duckdb.connect(path)
    db.register("source", source)
    db.execute(f"CREATE TABLE event AS {select}")
    db.execute(FACTS)
    db.execute("CHECKPOINT")
    db.close()


if __name__ == "__main__":
    make(sys.argv[1], sys.argv[2])
