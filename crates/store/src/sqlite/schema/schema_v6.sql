-- Schema 6. Intents, decisions about them and `forget` events are found without a scan of the log.

-- Only these rows are in the index: appending any other event writes nothing more than before. Pass
-- records are left out, because the table `pass` lists them. An event keeps its type when it is
-- forgotten, so the index holds no text that has to be erased. A query uses it only if it repeats
-- the condition word for word.
CREATE INDEX event_of_house ON event (type)
WHERE type IN ('forget', 'intent') OR type >= 'ipse.' AND type < 'ipse/';
