-- Schema 4. Evidence for an auditor who does not trust this file.

-- Derived: roots of complete subtrees of the Merkle tree over the log. `at` is the last entry of a
-- block of 256; its row holds the root of the block and of each larger subtree that ends there.
CREATE TABLE tree (
    at    INTEGER PRIMARY KEY,
    nodes BLOB NOT NULL
) STRICT;

-- The newest signed tree head of each log. It replaces the previous one.
CREATE TABLE tree_head (
    log  INTEGER PRIMARY KEY,
    note TEXT NOT NULL
) STRICT;

-- Public keys of producers by log, and whether they are revoked.
CREATE TABLE producer (
    number  INTEGER PRIMARY KEY,
    log     INTEGER NOT NULL,
    key     TEXT NOT NULL,
    revoked INTEGER NOT NULL
) STRICT;

-- The signature requirement of a log: 0 signatures are ignored, 1 they are stored, 2 they are
-- required. The default is 1.
CREATE TABLE policy (
    log        INTEGER PRIMARY KEY,
    signatures INTEGER NOT NULL
) STRICT;

-- Ground data: statements of producers. `number` is log << 40 | a number from 1 on; `events` are
-- the positions of the events that the envelope names and the log contains.
CREATE TABLE statement (
    number   INTEGER PRIMARY KEY,
    signer   TEXT NOT NULL,
    events   BLOB NOT NULL,
    envelope TEXT NOT NULL
) STRICT;
CREATE TRIGGER statement_is_frozen BEFORE UPDATE ON statement
BEGIN SELECT RAISE(ABORT, 'what a producer signed never changes'); END;
CREATE TRIGGER statement_is_kept BEFORE DELETE ON statement
BEGIN SELECT RAISE(ABORT, 'what a producer signed is never removed'); END;
CREATE TRIGGER statement_is_not_replaced BEFORE INSERT ON statement
WHEN EXISTS (SELECT 1 FROM statement WHERE number = NEW.number)
BEGIN SELECT RAISE(FAIL, 'what a producer signed is never replaced'); END;
