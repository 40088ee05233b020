-- Schema 7. Retention is set for each identity. The setting of the whole store is copied to every
-- registered identity; no other setting existed.

CREATE TABLE retention (
    log  INTEGER PRIMARY KEY,
    kept TEXT NOT NULL
) STRICT;

INSERT INTO retention SELECT m.log, s.value FROM manifest m JOIN setting s ON s.name = 'retention';

DROP TABLE setting;
