-- Schema 6. Intents, decisions about them and `forget` events are found without a scan of the log.

-- Only these rows are in the index: appending any other event writes no more than before. Pass
-- records are not in it, because the table `pass` lists them. A forgotten event keeps its type, so
-- the index holds no text that has to be erased. A query uses the index only if it repeats the
-- exact condition.
CREATE INDEX event_of_house ON event (type)
WHERE type IN ('forget', 'intent') OR type >= 'ipse.' AND type < 'ipse/';
