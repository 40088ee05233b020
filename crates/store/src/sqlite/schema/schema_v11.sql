-- Schema 11. Evidence that an auditor can judge again, identities that were registered by mistake, and
-- questions by time.

-- Ground: the bytes of files that the manifest names by their SHA-256, so that a bundle can carry
-- them. Several logs may name the same file; each keeps its own copy.
CREATE TABLE artefact (
    number INTEGER PRIMARY KEY,
    log    INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    bytes  BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX artefact_by_hash ON artefact (log, sha256);
CREATE TRIGGER artefact_is_frozen BEFORE UPDATE ON artefact
BEGIN SELECT RAISE(ABORT, 'a stored file never changes'); END;
CREATE TRIGGER artefact_is_kept BEFORE DELETE ON artefact
WHEN EXISTS (SELECT 1 FROM manifest WHERE log = OLD.log)
BEGIN SELECT RAISE(ABORT, 'a stored file is never removed'); END;
CREATE TRIGGER artefact_is_not_replaced BEFORE INSERT ON artefact
WHEN EXISTS (SELECT 1 FROM artefact
             WHERE number = NEW.number OR log = NEW.log AND sha256 = NEW.sha256)
BEGIN SELECT RAISE(ABORT, 'a stored file is never replaced'); END;

-- Signed: the cosignatures of witnesses under tree heads: the size of the head, name and id of the
-- key of the witness, its line, and the signed tree head that it saw. The newest tree head replaces
-- the one before it; a cosignature stays with its own.
CREATE TABLE cosignature (
    number INTEGER PRIMARY KEY,
    log    INTEGER NOT NULL,
    size   INTEGER NOT NULL CHECK (size > 0 AND size < 1 << 40),
    key    TEXT NOT NULL,
    line   TEXT NOT NULL,
    note   TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX cosignature_by_head ON cosignature (log, size, key);
CREATE TRIGGER cosignature_is_frozen BEFORE UPDATE ON cosignature
BEGIN SELECT RAISE(ABORT, 'a cosignature never changes'); END;
CREATE TRIGGER cosignature_is_kept BEFORE DELETE ON cosignature
BEGIN SELECT RAISE(ABORT, 'a cosignature is never removed'); END;
CREATE TRIGGER cosignature_is_not_replaced BEFORE INSERT ON cosignature
WHEN EXISTS (SELECT 1 FROM cosignature WHERE number = NEW.number
             OR log = NEW.log AND size = NEW.size AND key = NEW.key)
BEGIN SELECT RAISE(ABORT, 'a cosignature is never replaced'); END;

-- An identity without an event may be removed: it was registered by mistake. Its tokens, keys and
-- settings go with it, and its files.
DROP TRIGGER manifest_is_kept;
CREATE TRIGGER manifest_is_kept BEFORE DELETE ON manifest
WHEN EXISTS (SELECT 1 FROM event WHERE at > OLD.log << 40 AND at < (OLD.log + 1) << 40)
BEGIN SELECT RAISE(ABORT, 'a manifest with events is never removed'); END;

-- Acts of governance that took effect and are not in their log yet. The next transaction that
-- appends to the log writes the event and deletes the row. The first one of a log with events or
-- settings is its baseline: earlier versions recorded no acts.
CREATE TABLE act_owed (
    number INTEGER PRIMARY KEY,
    log    INTEGER NOT NULL,
    act    TEXT NOT NULL,
    data   TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX act_owed_once ON act_owed (log, act, data);
INSERT INTO act_owed (log, act, data)
SELECT log, 'baseline', '' FROM manifest m
WHERE EXISTS (SELECT 1 FROM event WHERE at > m.log << 40 AND at < (m.log + 1) << 40)
   OR EXISTS (SELECT 1 FROM producer p WHERE p.log = m.log)
   OR EXISTS (SELECT 1 FROM policy p WHERE p.log = m.log)
   OR EXISTS (SELECT 1 FROM retention r WHERE r.log = m.log)
   OR EXISTS (SELECT 1 FROM token t WHERE t.log = m.log);

-- What ipse records about itself is never forgotten, except intents.
DROP TRIGGER event_is_frozen;
CREATE TRIGGER event_is_frozen BEFORE UPDATE ON event
WHEN NEW.payload <> '' OR NEW.columns <> x''
  OR OLD.type IN ('consolidation_run', 'forget') OR OLD.type >= 'ipse.' AND OLD.type < 'ipse/'
  OR (NEW.at, NEW.event_ref, NEW.time_us, NEW.type, NEW.digest)
     IS NOT (OLD.at, OLD.event_ref, OLD.time_us, OLD.type, OLD.digest)
BEGIN SELECT RAISE(ABORT, 'the log is append-only; an event can only be forgotten whole'); END;

-- The times of the events that ipse wrote, pass records included. They are of the clock of the recorder,
-- so they say which position a time means. A type and a time are never forgotten.
CREATE INDEX event_of_recorder ON event (at, time_us)
WHERE type IN ('consolidation_run', 'forget', 'intent') OR type >= 'ipse.' AND type < 'ipse/';
-- The numbers of removed logs. No other identity gets them: a process that still has the removed
-- log open would write to the log of another agent.
CREATE TABLE retired (
    log INTEGER PRIMARY KEY
) STRICT;
