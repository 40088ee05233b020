-- Retention is set for each identity. The setting of the whole store goes to every identity that is
-- registered; there was no other setting.

CREATE TABLE retention (
    log  INTEGER PRIMARY KEY,
    kept TEXT NOT NULL
) STRICT;

INSERT INTO retention SELECT m.log, s.value FROM manifest m JOIN setting s ON s.name = 'retention';

DROP TABLE setting;
