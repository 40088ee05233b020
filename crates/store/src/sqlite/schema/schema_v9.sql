-- Schema 9. The key of a producer is bound to sources, and events from the future are refused.

-- The event sources that a key may sign, as in `token`: one per line; NULL allows any. A key that was
-- registered earlier may use any source.
ALTER TABLE producer ADD COLUMN sources TEXT;

-- The rights of a key never change after its registration, and a revoked key stays revoked.
CREATE TRIGGER producer_is_frozen BEFORE UPDATE ON producer
WHEN (NEW.number, NEW.log, NEW.key, NEW.sources) IS NOT (OLD.number, OLD.log, OLD.key, OLD.sources)
  OR OLD.revoked AND NEW.revoked IS NOT OLD.revoked
BEGIN SELECT RAISE(ABORT, 'the key of a producer is revoked, and never changes otherwise'); END;
CREATE TRIGGER producer_is_not_replaced BEFORE INSERT ON producer
WHEN EXISTS (SELECT 1 FROM producer WHERE number = NEW.number OR log = NEW.log AND key = NEW.key)
BEGIN SELECT RAISE(ABORT, 'the key of a producer is never replaced'); END;

-- How many hours ahead of the clock of the receiver an event may be dated; NULL is any time. The
-- default is a day, also for a log without a row here.
ALTER TABLE policy ADD COLUMN max_ahead INTEGER DEFAULT 24;
