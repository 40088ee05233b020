-- Schema 2. The newest row of `pass` holds the progress of the facts, so that a pass writes one
-- table less; chunks have another layout. All of that is derived: it is deleted here, and the next
-- pass rebuilds it from the events.

DROP TABLE progress;
DROP TABLE pass;

-- Derived: the pass records and their ranges, the last position in the stored tallies after each
-- pass, and the rules. The newest row holds the progress of the facts.
CREATE TABLE pass (
    at              INTEGER PRIMARY KEY,
    first_seq       INTEGER NOT NULL,
    last_seq        INTEGER NOT NULL,
    tallied         INTEGER NOT NULL,
    rule_version    TEXT NOT NULL,
    rule_set_sha256 BLOB NOT NULL
) STRICT;

-- Chunks of 4096 events have refs. The newest events, fewer than 4096, are in chunks of 256 without
-- refs.
DELETE FROM chunk;
DELETE FROM run;
DELETE FROM piece;
DELETE FROM fact;
DELETE FROM tally;

-- The trigger fails before anything is written. FAIL, unlike ABORT, needs no copy of the page for a
-- rollback.
DROP TRIGGER event_is_dense;
CREATE TRIGGER event_is_dense BEFORE INSERT ON event
WHEN EXISTS (SELECT 1 FROM event WHERE at = NEW.at)
  OR (NEW.at & ((1 << 40) - 1) <> 1 AND NOT EXISTS (SELECT 1 FROM event WHERE at = NEW.at - 1))
BEGIN SELECT RAISE(FAIL, 'the log is append-only and dense'); END;
