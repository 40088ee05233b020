-- Schema 8. Tokens that belong to the store itself, and columns for data tools.

-- The table `token` also holds tokens of the store. They have the number 0, which no log has. An
-- observer has such a token and no other, and no other role has one. An ipse that knows schema 7 would report the row as damage.
CREATE TRIGGER token_suits_its_owner BEFORE INSERT ON token
WHEN (NEW.log = 0) IS NOT (NEW.role = 'observer')
BEGIN SELECT RAISE(ABORT, 'the token of an observer belongs to the store, and any other to a log'); END;

-- The view of events has columns for what a data tool would otherwise extract from JSON.
-- The new columns come last, so that a query that counts columns reads what it read before. A
-- forgotten event has no payload: its source and id are NULL, and its time is kept. A damaged
-- payload gives NULL too: without `json_valid` one such row would stop the whole query.
--
-- `time` is UTC and always has six digits of a second: as text it sorts in the order of time, and
-- tools that take the form of a column from its first row read all other rows as well.
DROP VIEW episodic_events;
CREATE VIEW episodic_events AS
SELECT m.identity_hash, e.at & ((1 << 40) - 1) AS seq, 'ev_' || lower(hex(e.event_ref)) AS event_ref,
       e.type, e.time_us, lower(hex(e.digest)) AS digest, nullif(e.payload, '') AS payload_json,
       CASE WHEN json_valid(e.payload) THEN json_extract(e.payload, '$.source') END AS source,
       CASE WHEN json_valid(e.payload) THEN json_extract(e.payload, '$.id') END AS id,
       strftime('%Y-%m-%dT%H:%M:%S', e.time_us / 1000000, 'unixepoch')
       || printf('.%06dZ', e.time_us % 1000000) AS time
FROM event e JOIN manifest m ON m.log = e.at >> 40;
