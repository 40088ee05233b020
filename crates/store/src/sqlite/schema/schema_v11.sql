-- Schema 11. Evidence that an auditor can judge again, and identities that were registered by mistake.

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

-- Signed: the cosignatures of witnesses under tree heads: the size of the head, the name of the
-- witness, and its line in the note.
CREATE TABLE cosignature (
    number INTEGER PRIMARY KEY,
    log    INTEGER NOT NULL,
    size   INTEGER NOT NULL,
    name   TEXT NOT NULL,
    line   TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX cosignature_by_head ON cosignature (log, size, line);

-- An identity without an event may be removed: it was registered by mistake. Its tokens, keys and
-- settings go with it.
DROP TRIGGER manifest_is_kept;
CREATE TRIGGER manifest_is_kept BEFORE DELETE ON manifest
WHEN EXISTS (SELECT 1 FROM event WHERE at > OLD.log << 40 AND at < (OLD.log + 1) << 40)
BEGIN SELECT RAISE(ABORT, 'a manifest with events is never removed'); END;

-- The numbers of removed logs. No other identity gets them: a process that still has the removed
-- log open would write to the log of another agent.
CREATE TABLE retired (
    log INTEGER PRIMARY KEY
) STRICT;
