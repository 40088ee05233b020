-- Schema 1. Ground data: manifest and event. All other tables are derived and can be rebuilt.
--
-- A key `at` is log << 40 | seq: one integer, so that a log is one contiguous range of each table
-- and an append writes to the right edge only.

CREATE TABLE manifest (
    log           INTEGER PRIMARY KEY,
    identity_hash TEXT NOT NULL,
    canonical     TEXT NOT NULL
) STRICT;

-- The log. Event ref, time, type and digest are the ledger's entry; the payload is RFC 8785 bytes;
-- the typed columns are derived from it, so that a pass never parses JSON.
CREATE TABLE event (
    at        INTEGER PRIMARY KEY,
    event_ref BLOB NOT NULL,
    time_us   INTEGER NOT NULL,
    type      TEXT NOT NULL,
    digest    BLOB NOT NULL,
    columns   BLOB NOT NULL,
    payload   TEXT NOT NULL
) STRICT;

-- Derived: the typed columns of 4096 events, and their refs; `at` is the key of the last one.
CREATE TABLE chunk (
    at   INTEGER PRIMARY KEY,
    body BLOB NOT NULL,
    refs BLOB NOT NULL
) STRICT;

-- Derived: the index of event refs. Sorted runs of ref prefixes, written once and merged sixteen at
-- a time, with a filter that rejects nearly all new refs without reading the run. `at` is the run's
-- last event; its pieces are numbered from first_piece on.
CREATE TABLE run (
    at          INTEGER PRIMARY KEY,
    first_seq   INTEGER NOT NULL,
    first_piece INTEGER NOT NULL,
    filter      BLOB NOT NULL
) STRICT;
CREATE TABLE piece (
    number INTEGER PRIMARY KEY,
    refs   BLOB NOT NULL
) STRICT;

-- Derived: the pass records and their ranges.
CREATE TABLE pass (
    at        INTEGER PRIMARY KEY,
    first_seq INTEGER NOT NULL,
    last_seq  INTEGER NOT NULL
) STRICT;

-- Derived: the progress of the facts and tallies of a log, and their rules.
CREATE TABLE progress (
    log             INTEGER PRIMARY KEY,
    checkpoint      INTEGER NOT NULL,
    tallied         INTEGER NOT NULL,
    rule_version    TEXT NOT NULL,
    rule_set_sha256 BLOB NOT NULL
) STRICT;

-- Derived: the facts. No index on text: forgotten text must not survive in a page split.
CREATE TABLE fact (
    number    INTEGER PRIMARY KEY,
    log       INTEGER NOT NULL,
    fact_id   BLOB NOT NULL,
    fact_kind TEXT NOT NULL,
    fact_key  TEXT NOT NULL,
    value     TEXT NOT NULL,
    last_us   INTEGER NOT NULL,
    last_ref  BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX fact_by_id ON fact (fact_id);

-- Derived: the tallies of the facts, as of progress.tallied.
CREATE TABLE tally (
    number  INTEGER PRIMARY KEY,
    log     INTEGER NOT NULL,
    fact_id BLOB NOT NULL,
    state   BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX tally_by_id ON tally (fact_id);

-- The tables of the paper, for use with a plain sqlite3 shell.
CREATE VIEW semantic_facts AS
SELECT m.identity_hash, f.fact_kind, f.fact_key, f.value AS fact_value_json,
       strftime('%Y-%m-%dT%H:%M:%S', f.last_us / 1000000, 'unixepoch')
       || CASE f.last_us % 1000000 WHEN 0 THEN '' ELSE printf('.%06d', f.last_us % 1000000) END
       || 'Z' AS last_updated
FROM fact f JOIN manifest m ON m.log = f.log;

CREATE VIEW episodic_events AS
SELECT m.identity_hash, e.at & ((1 << 40) - 1) AS seq, 'ev_' || lower(hex(e.event_ref)) AS event_ref,
       e.type, e.time_us, lower(hex(e.digest)) AS digest, e.payload AS payload_json
FROM event e JOIN manifest m ON m.log = e.at >> 40;

-- Guards. A BEFORE INSERT trigger also rejects INSERT OR REPLACE, whose implicit delete fires no
-- delete trigger on a connection without recursive_triggers.
CREATE TRIGGER manifest_is_frozen BEFORE UPDATE ON manifest
BEGIN SELECT RAISE(ABORT, 'a manifest never changes'); END;
CREATE TRIGGER manifest_is_kept BEFORE DELETE ON manifest
BEGIN SELECT RAISE(ABORT, 'a manifest is never removed'); END;
CREATE TRIGGER manifest_is_not_replaced BEFORE INSERT ON manifest
WHEN EXISTS (SELECT 1 FROM manifest WHERE log = NEW.log OR identity_hash = NEW.identity_hash)
BEGIN SELECT RAISE(ABORT, 'a manifest is never replaced'); END;

CREATE TRIGGER event_is_frozen BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER event_is_kept BEFORE DELETE ON event
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER event_is_dense BEFORE INSERT ON event
WHEN EXISTS (SELECT 1 FROM event WHERE at = NEW.at)
  OR (NEW.at & ((1 << 40) - 1) <> 1 AND NOT EXISTS (SELECT 1 FROM event WHERE at = NEW.at - 1))
BEGIN SELECT RAISE(ABORT, 'the log is append-only and dense'); END;
