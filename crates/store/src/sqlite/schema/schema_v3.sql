-- Schema 3. An event can be forgotten: its row loses payload and columns and keeps the rest.

-- The one change that an event may undergo, and only whole.
DROP TRIGGER event_is_frozen;
CREATE TRIGGER event_is_frozen BEFORE UPDATE ON event
WHEN NEW.payload <> '' OR NEW.columns <> x'' OR OLD.type IN ('consolidation_run', 'forget')
  OR (NEW.at, NEW.event_ref, NEW.time_us, NEW.type, NEW.digest)
     IS NOT (OLD.at, OLD.event_ref, OLD.time_us, OLD.type, OLD.digest)
BEGIN SELECT RAISE(ABORT, 'the log is append-only; an event can only be forgotten whole'); END;

-- How many of a fact's past observations were forgotten since. It goes when the fact goes.
ALTER TABLE fact ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;

-- A row here: what the forget event at that position named may still be in the file or in the
-- write-ahead log. If `rewrite` is 1, getting rid of it takes writing the whole file anew.
CREATE TABLE erase_pending (
    at      INTEGER PRIMARY KEY,
    rewrite INTEGER NOT NULL
) STRICT;

-- Until now pages were freed without being cleared.
INSERT INTO erase_pending SELECT 0, 1 WHERE EXISTS (SELECT 1 FROM event);

-- How many bytes were taken out of events since the file was last written anew: rows are only ever
-- added at the end, so nothing uses them again.
CREATE TABLE space (
    freed INTEGER NOT NULL
) STRICT;
INSERT INTO space VALUES (0);

-- What an operator has set, for the whole store.
CREATE TABLE setting (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

DROP VIEW episodic_events;
CREATE VIEW episodic_events AS
SELECT m.identity_hash, e.at & ((1 << 40) - 1) AS seq, 'ev_' || lower(hex(e.event_ref)) AS event_ref,
       e.type, e.time_us, lower(hex(e.digest)) AS digest, nullif(e.payload, '') AS payload_json
FROM event e JOIN manifest m ON m.log = e.at >> 40;
