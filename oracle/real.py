#!/usr/bin/env python3
"""V3's experiment on a real log, counted independently.

    python3 oracle/real.py FILE.jsonl[.gz]

Guarantees: one line of JSON on stdout with the counts of `ipse reproduce real` for FILE, written
from the protocol and not from the Rust code: the results of the lines, the split, and for each of
six policies the skipped, avoided and lost attempts. No ratio, no interval, no float. Standard
library only; lines are read and decisions found by the oracle of the rules, facts.py.

The protocol. Events that pass the door, each ref once (of several the first by time, then by
content), by time and then by ref. A decision is an event that supports a skill_success_rate fact.
History is everything not later than the decision at the half of all decisions, rounded up. After
it, each decision is skipped if the fact under its key has a success rate below one half, unless
the policy retries and the key was last attempted a day or longer ago. A skipped event is not part
of the history; all others are. Facts are as of the last pass: after the history only, before
the first event of each UTC day, or after each event.
"""
import gzip
import json
import sys
from collections import Counter

import facts

PASSES = ("frozen", "daily", "per event")
RETRIES = ("never", "after a day")


def read(path):
    """The events in order, and the numbers of duplicate, conflicting and refused lines."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        lines = [facts.admit_or_none(line) for _, line in facts.lines_of(file.read())]
    admitted = [event for event in lines if event is not None]
    events, again = {}, Counter()
    for event in sorted(admitted, key=lambda event: (event.time, event.ref, event.content)):
        first = events.setdefault(event.ref, event)
        if first is not event:
            again["duplicates" if first.content == event.content else "conflicts"] += 1
    return list(events.values()), {
        "events": len(events),
        "duplicates": again["duplicates"],
        "conflicts": again["conflicts"],
        "refused": len(lines) - len(admitted),
    }


def decision(event):
    """The key of a decision and whether it succeeded; None for any other event."""
    for kind, key, seen in facts.feeds(event):
        if kind == "skill_success_rate" and seen.outcome in facts.COUNTED:
            return key, seen.outcome == "success"
    return None


def lost_fields(decisions):
    """The keys of failures without a target or environment that all successes of the skill have."""
    succeeded = {key for key, success in decisions if success}
    skills = {key[0] for key in succeeded}
    bare = {(key[0], field) for key in succeeded for field in (1, 2) if key[field] == "*"}

    def lost(key):
        fields = [field for field in (1, 2) if key[field] == "*"]
        return key[0] in skills and any((key[0], field) not in bare for field in fields)

    return {key for key, success in decisions if not success and lost(key)}


def replay(history, later, passes, retry, lost):
    known, pending, last = {}, [], {}

    def consolidate_now():
        for key, success in pending:
            n, successes = known.get(key, (0, 0))
            known[key] = n + 1, successes + success
        pending.clear()

    for event, decided in history:
        if decided:
            pending.append(decided)
            last[decided[0]] = event.time
    consolidate_now()
    day = history[-1][0].time // facts.DAY if history else None
    counts, skipped_keys = Counter(), set()
    for event, decided in later:
        if passes == "daily" and event.time // facts.DAY != day:
            consolidate_now()
        day = event.time // facts.DAY
        if not decided:
            continue
        key, success = decided
        n, successes = known.get(key, (0, 0))
        counts["decisions"] += 1
        counts["successes" if success else "failures"] += 1
        counts["unknown_failures"] += n == 0 and not success
        waited = event.time - last.get(key, event.time)
        if 2 * successes < n and not (retry == "after a day" and waited >= facts.DAY):
            counts["skipped"] += 1
            counts["lost" if success else "avoided"] += 1
            counts["hindsight"] += not success and key in lost
            skipped_keys.add(key)
            continue
        last[key] = event.time
        if passes != "frozen":
            pending.append(decided)
        if passes == "per event":
            consolidate_now()
    names = ("decisions", "failures", "successes", "skipped", "avoided", "lost",
             "unknown_failures", "hindsight")
    return {
        "passes": passes,
        "retry": retry,
        "keys_skipped": len(skipped_keys),
        **{name: counts[name] for name in names},
    }


def part(pairs, lost):
    decided = [decided for _, decided in pairs if decided]
    failures = [key for key, success in decided if not success]
    return {
        "events": len(pairs),
        "decisions": len(decided),
        "failures": len(failures),
        "successes": len(decided) - len(failures),
        "keys": len({key for key, _ in decided}),
        "lost_fields": sum(key in lost for key in failures),
    }


def counts_of(path):
    events, report = read(path)
    pairs = [(event, decision(event)) for event in events]
    decisions = [(event.time, decided) for event, decided in pairs if decided]
    until = decisions[(len(decisions) + 1) // 2 - 1][0] if decisions else None
    history = [pair for pair in pairs if until is not None and pair[0].time <= until]
    later = pairs[len(history):]
    lost = lost_fields([decided for _, decided in decisions])
    return {
        **report,
        **({} if until is None else {"until": facts.time_text(until)}),
        "history": part(history, lost),
        "later": part(later, lost),
        "policies": [
            replay(history, later, passes, retry, lost) for passes in PASSES for retry in RETRIES
        ],
    }


if __name__ == "__main__":
    print(json.dumps(counts_of(sys.argv[1]), sort_keys=True))
