"""The paper's consolidator, as a Python programmer would write it from the text.

The paper's own program is not published; this one replaces it: sqlite3, json and statistics,
the paper's two tables, and its steps in order: read the events past the checkpoint, extract, group,
aggregate, upsert the facts, append a consolidation_run event, commit. It is neither tuned nor
slowed down.

Guarantees: a pass commits; it reads the log and never a cache of it; it uses the standard library
only.
"""
import json
import math
import statistics
from collections import Counter, defaultdict

# Two readings of "a pass after each event". REREAD reads the whole log and updates the facts that
# new events touch: exact. DELTA reads new events only and adds counts to the old ones: mean and
# quartiles are then those of the new events alone.
REREAD, DELTA = "reread", "delta"

SCHEMA = """
CREATE TABLE episodic_events (
    id INTEGER PRIMARY KEY AUTOINCREMENT, identity_hash TEXT NOT NULL, ts TEXT NOT NULL,
    kind TEXT NOT NULL, payload_json TEXT NOT NULL);
CREATE TABLE semantic_facts (
    id INTEGER PRIMARY KEY AUTOINCREMENT, identity_hash TEXT NOT NULL, fact_kind TEXT NOT NULL,
    fact_key TEXT NOT NULL, fact_value_json TEXT NOT NULL, last_updated TEXT NOT NULL,
    UNIQUE (identity_hash, fact_kind, fact_key));
"""
INDEX = "CREATE INDEX episodic_by_time ON episodic_events (identity_hash, kind, ts)"
IDENTITY = "5f" * 32
SKILL, PATTERN = "skill_success_rate", "interaction_pattern"


def append(db, time, kind, payload):
    """Appends one event to the log; the caller commits."""
    db.execute("INSERT INTO episodic_events (identity_hash, ts, kind, payload_json) "
               "VALUES (?, ?, ?, ?)", (IDENTITY, time, kind, payload))


def forget_passes(db):
    """Resets the log to the state before any pass."""
    db.execute("DELETE FROM semantic_facts")
    db.execute("DELETE FROM episodic_events WHERE kind = 'consolidation_run'")
    db.commit()


def consolidate(db, now, reading=REREAD):
    """Runs one pass. Returns the number of new events."""
    since = checkpoint(db)
    groups = Groups(since)
    groups.take(read(db, "" if reading == REREAD else since))
    if not groups.new_events:
        return 0
    touched = [(SKILL, key, skill_value(groups.skills[key])) for key in sorted(groups.new_skills)]
    touched += [(PATTERN, key, pattern_value(groups.patterns[key]))
                for key in sorted(groups.new_patterns)]
    for kind, key, value in touched:
        if reading == DELTA and since:
            add_old_counts(db, kind, key, value)
        upsert(db, kind, key, value, now)
    record = {"first_processed_event_id": groups.first_id, "last_processed_ts": groups.last_time,
              "last_processed_event_id": groups.last_id, "semantic_rows_touched": len(touched)}
    append(db, now, "consolidation_run", json.dumps(record))
    db.commit()
    return groups.new_events


def checkpoint(db):
    """The time up to which the newest pass has read."""
    row = db.execute("SELECT payload_json FROM episodic_events WHERE identity_hash = ? AND "
                     "kind = 'consolidation_run' ORDER BY ts DESC, id DESC LIMIT 1",
                     (IDENTITY,)).fetchone()
    return json.loads(row[0])["last_processed_ts"] if row else ""


def read(db, since):
    """The results after a time, oldest first."""
    return db.execute("SELECT id, ts, payload_json FROM episodic_events WHERE identity_hash = ? "
                      "AND kind = 'execution_result' AND ts > ? ORDER BY ts, id",
                      (IDENTITY, since))


class Groups:
    """Attempts by skill key and failures by pattern, with the new ones marked."""

    def __init__(self, since):
        self.since = since
        self.skills, self.patterns = defaultdict(list), defaultdict(list)
        self.new_skills, self.new_patterns = set(), set()
        self.new_events, self.first_id, self.last_id, self.last_time = 0, None, None, None

    def take(self, rows):
        """Extracts and groups every row."""
        for event_id, time, payload in rows:
            try:
                data = json.loads(payload)
                skill, target = data["skill_id"], data["target_class"]
                key, success = (skill, target, data["environment"]), data["success"]
            except (ValueError, KeyError, TypeError):
                continue
            reason = data.get("failure_reason")
            force = data.get("params", {}).get("force_n")
            self.skills[key].append((event_id, force, success, reason))
            pattern = (skill, target, reason) if reason and not success else None
            if pattern:
                self.patterns[pattern].append(event_id)
            if time > self.since:
                self.note_new(event_id, time, key, pattern)

    def note_new(self, event_id, time, key, pattern):
        """Marks the groups that an event past the checkpoint touches."""
        self.new_events += 1
        self.new_skills.add(key)
        if pattern:
            self.new_patterns.add(pattern)
        if self.first_id is None:
            self.first_id = event_id
        self.last_id, self.last_time = event_id, time


def skill_value(attempts):
    """The value of a skill's fact."""
    n = len(attempts)
    successes = sum(1 for attempt in attempts if attempt[2])
    forces = [attempt[1] for attempt in attempts if attempt[1] is not None]
    reasons = Counter(attempt[3] for attempt in attempts if attempt[3]).most_common(1)
    mean, quartiles = spread(forces)
    return {"n_observations": n, "successes": successes, "success_rate": successes / n,
            "force_n": {"mean": mean, "q1": quartiles[0], "median": quartiles[1],
                        "q3": quartiles[2]},
            "confidence": confidence(n, successes / n, forces, mean),
            "top_failure_reason": reasons[0][0] if reasons else None,
            "last_supporting_event_id": attempts[-1][0]}


def spread(forces):
    """Mean and quartiles, if there are values."""
    mean = statistics.fmean(forces) if forces else None
    if len(forces) < 2:
        return mean, (mean, mean, mean)
    return mean, statistics.quantiles(forces, n=4, method="inclusive")


def confidence(n, rate, forces, mean):
    """Grows with the count, falls with the variance and with contradiction, as in the paper."""
    deviation = 0.0
    if forces and mean:
        deviation = math.sqrt(sum((f - mean) ** 2 for f in forces) / len(forces)) / mean
    return n / (n + 3) * max(rate, 1 - rate) / (1 + deviation)


def pattern_value(event_ids):
    """The value of a pattern's fact."""
    return {"n_observations": len(event_ids), "last_supporting_event_id": event_ids[-1]}


def add_old_counts(db, kind, key, value):
    """Adds the counts of the stored fact to those of the new events."""
    row = db.execute("SELECT fact_value_json FROM semantic_facts WHERE identity_hash = ? AND "
                     "fact_kind = ? AND fact_key = ?", (IDENTITY, kind, " + ".join(key))).fetchone()
    if row is None:
        return
    old = json.loads(row[0])
    value["n_observations"] += old["n_observations"]
    if kind == SKILL:
        value["successes"] += old["successes"]
        value["success_rate"] = value["successes"] / value["n_observations"]


def upsert(db, kind, key, value, now):
    """Writes one fact; the caller commits."""
    db.execute("INSERT INTO semantic_facts (identity_hash, fact_kind, fact_key, fact_value_json, "
               "last_updated) VALUES (?, ?, ?, ?, ?) "
               "ON CONFLICT (identity_hash, fact_kind, fact_key) DO UPDATE SET "
               "fact_value_json = excluded.fact_value_json, last_updated = excluded.last_updated",
               (IDENTITY, kind, " + ".join(key), json.dumps(value, sort_keys=True), now))
