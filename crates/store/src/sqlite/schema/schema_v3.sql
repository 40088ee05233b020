-- Schema 3. An event can be forgotten: payload and columns of its row are emptied, the rest stays.

-- The only allowed change of an event: payload and columns are emptied together.
DROP TRIGGER event_is_frozen;
CREATE TRIGGER event_is_frozen BEFORE UPDATE ON event
WHEN NEW.payload <> '' OR NEW.columns <> x'' OR OLD.type IN ('consolidation_run', 'forget')
  OR (NEW.at, NEW.event_ref, NEW.time_us, NEW.type, NEW.digest)
     IS NOT (OLD.at, OLD.event_ref, OLD.time_us, OLD.type, OLD.digest)
BEGIN SELECT RAISE(ABORT, 'the log is append-only; an event can only be forgotten whole'); END;

-- The number of forgotten observations of a fact. It is deleted with the fact.
ALTER TABLE fact ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;

-- Erase marks: the content that the forget event at this position named may still be in the file or
-- in the write-ahead log. If `rewrite` is 1, erasing it requires a rewrite of the whole file.
CREATE TABLE erase_pending (
    at      INTEGER PRIMARY KEY,
    rewrite INTEGER NOT NULL
) STRICT;

-- Earlier versions freed pages without clearing them.
INSERT INTO erase_pending SELECT 0, 1 WHERE EXISTS (SELECT 1 FROM event);

-- Bytes that were deleted from events since the last rewrite of the file. Rows are added at the end
-- only, so this space is not reused.
CREATE TABLE space (
    freed INTEGER NOT NULL
) STRICT;
INSERT INTO space VALUES (0);

-- Settings of the whole store.
CREATE TABLE setting (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

DROP VIEW episodic_events;
CREATE VIEW episodic_events AS
SELECT m.identity_hash, e.at & ((1 << 40) - 1) AS seq, 'ev_' || lower(hex(e.event_ref)) AS event_ref,
       e.type, e.time_us, lower(hex(e.digest)) AS digest, nullif(e.payload, '') AS payload_json
FROM event e JOIN manifest m ON m.log = e.at >> 40;
