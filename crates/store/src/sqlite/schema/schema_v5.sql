-- Schema 5. Access tokens.

-- Access tokens by log. The token itself is never stored: `hash` is SHA-256 of its text, and
-- `token_id` the beginning of SHA-256 of that. `sources` are the event sources that a producer may
-- use, one per line; NULL allows any. Times are microseconds since 1970. A token without `expires`
-- never expires.
CREATE TABLE token (
    number    INTEGER PRIMARY KEY,
    log       INTEGER NOT NULL,
    token_id  BLOB NOT NULL,
    hash      BLOB NOT NULL,
    role      TEXT NOT NULL,
    name      TEXT,
    sources   TEXT,
    created   INTEGER NOT NULL,
    expires   INTEGER,
    revoked   INTEGER,
    last_used INTEGER
) STRICT;
CREATE UNIQUE INDEX token_by_id ON token (log, token_id);

-- The rights of a token never change after its creation, and a revoked token stays revoked.
CREATE TRIGGER token_is_frozen BEFORE UPDATE ON token
WHEN (NEW.number, NEW.log, NEW.token_id, NEW.hash, NEW.role, NEW.name, NEW.sources, NEW.created,
      NEW.expires)
     IS NOT (OLD.number, OLD.log, OLD.token_id, OLD.hash, OLD.role, OLD.name, OLD.sources,
             OLD.created, OLD.expires)
  OR OLD.revoked IS NOT NULL AND NEW.revoked IS NOT OLD.revoked
BEGIN SELECT RAISE(ABORT, 'a token is used and revoked, and never changes otherwise'); END;
CREATE TRIGGER token_is_not_replaced BEFORE INSERT ON token
WHEN EXISTS (SELECT 1 FROM token
             WHERE number = NEW.number OR log = NEW.log AND token_id = NEW.token_id)
BEGIN SELECT RAISE(ABORT, 'a token is never replaced'); END;
