-- Schema 10. Rules may ask for the source of an event, and whether the last event of a fact worked.

-- The typed columns of an event end with its source. The program has added it to all events, in
-- parts. Rows that grew have moved, and left copies in the pages that they were in.
INSERT OR REPLACE INTO erase_pending SELECT 0, 1 WHERE EXISTS (SELECT 1 FROM event);

-- Chunks contain the columns, and the index of refs is made with them. The next append makes both
-- again.
DELETE FROM chunk;
DELETE FROM run;
DELETE FROM piece;

-- Whether the last supporting event of a fact is an attempt that worked. Rule set v1 does not ask.
ALTER TABLE fact ADD COLUMN last_worked INTEGER NOT NULL DEFAULT 0;
