-- Schema 2. The newest row of `pass` says how far the facts have come, so that a pass writes one
-- table less; chunks have another layout. All of that is derived: it is emptied here, and the next
-- pass makes it again from the events.

DROP TABLE progress;
DROP TABLE pass;

-- Derived: which events are pass records, and what they cover; how far the sums behind the facts
-- were stored then, and under which rules. The newest row says how far the facts have come.
CREATE TABLE pass (
    at              INTEGER PRIMARY KEY,
    first_seq       INTEGER NOT NULL,
    last_seq        INTEGER NOT NULL,
    tallied         INTEGER NOT NULL,
    rule_version    TEXT NOT NULL,
    rule_set_sha256 BLOB NOT NULL
) STRICT;

-- Chunks of 4096 events have refs; the newest events stand in chunks of 256 without, until there
-- are 4096 of them.
DELETE FROM chunk;
DELETE FROM run;
DELETE FROM piece;
DELETE FROM fact;
DELETE FROM tally;

-- It fails before anything was written: FAIL, unlike ABORT, then needs no copy of the page to go
-- back to.
DROP TRIGGER event_is_dense;
CREATE TRIGGER event_is_dense BEFORE INSERT ON event
WHEN EXISTS (SELECT 1 FROM event WHERE at = NEW.at)
  OR (NEW.at & ((1 << 40) - 1) <> 1 AND NOT EXISTS (SELECT 1 FROM event WHERE at = NEW.at - 1))
BEGIN SELECT RAISE(FAIL, 'the log is append-only and dense'); END;
