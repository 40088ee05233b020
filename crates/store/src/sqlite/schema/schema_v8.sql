-- Schema 8. Tokens that belong to the store itself, and columns for data tools.

-- The table `token` also holds tokens of the store. They have the log number 0, which no log has.
-- Observers have such tokens only, and no other role has one. An ipse with schema 7 would report
-- the row as damage.
CREATE TRIGGER token_suits_its_owner BEFORE INSERT ON token
WHEN (NEW.log = 0) IS NOT (NEW.role = 'observer')
BEGIN SELECT RAISE(ABORT, 'the token of an observer belongs to the store, and any other to a log'); END;

-- The view of events has columns that a data tool would otherwise extract from JSON. The new
-- columns come last, so that a query by column number still works. A forgotten event has no
-- payload: its source and id are NULL, and its time is kept. A corrupt payload gives NULL too:
-- without `json_valid` one such row would make the whole query fail.
--
-- `time` is UTC and always has six fractional digits: as text it sorts by time, and tools that
-- infer the format of a column from its first row can read all rows.
DROP VIEW episodic_events;
CREATE VIEW episodic_events AS
SELECT m.identity_hash, e.at & ((1 << 40) - 1) AS seq, 'ev_' || lower(hex(e.event_ref)) AS event_ref,
       e.type, e.time_us, lower(hex(e.digest)) AS digest, nullif(e.payload, '') AS payload_json,
       CASE WHEN json_valid(e.payload) THEN json_extract(e.payload, '$.source') END AS source,
       CASE WHEN json_valid(e.payload) THEN json_extract(e.payload, '$.id') END AS id,
       strftime('%Y-%m-%dT%H:%M:%S', e.time_us / 1000000, 'unixepoch')
       || printf('.%06dZ', e.time_us % 1000000) AS time
FROM event e JOIN manifest m ON m.log = e.at >> 40;
