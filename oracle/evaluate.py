#!/usr/bin/env python3
"""What facts would have spared the owner of a log, counted independently.

    python3 oracle/evaluate.py FILE.jsonl[.gz] [HISTORY_PERCENT]

Guarantees: one line of JSON on stdout with the counts of `ipse evaluate` for FILE, written from the
protocol and not from the Rust code: the results of the lines, the split, and for each planner in
each way to learn the skipped, avoided and lost attempts. No ratio, no interval, no float. Standard
library only; lines are read and decisions found by the oracles of the rules, facts.py and v2.py.

The protocol. Events that pass the door, each ref once (of several the first by time, then by
content), by time and then by ref. A decision is an event that supports a skill_success_rate fact.
History is everything not later than the decision at that share of all decisions (default 50
percent), rounded up. After it, a planner attempts or skips each decision. A skipped one teaches
nothing. Facts change never after the history (frozen), before the first attempt of each UTC day
(daily), or after each attempt (per event). The circuit breaker and the times of attempts need no
facts.
"""
import gzip
import json
import sys
from collections import Counter

import facts
import v2

LEARNING = ("frozen", "daily", "per event")
PLANNERS = (("always", LEARNING[2:]), ("breaker", LEARNING[2:]), ("v1_never", LEARNING),
            ("v1_day", LEARNING), ("v2", LEARNING))
HOUR = 3600 * 10**6


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
    """The key of a decision, whether it succeeded, and its observation; None for other events."""
    for kind, key, seen in facts.feeds(event):
        if kind == "skill_success_rate" and seen.outcome in facts.COUNTED:
            return key, seen.outcome == "success", seen
    return None


def lost_fields(decisions):
    """The keys of failures without a target or environment that all successes of the skill have."""
    succeeded = {key for key, success, _ in decisions if success}
    skills = {key[0] for key in succeeded}
    bare = {(key[0], field) for key in succeeded for field in (1, 2) if key[field] == "*"}

    def lost(key):
        fields = [field for field in (1, 2) if key[field] == "*"]
        return key[0] in skills and any((key[0], field) not in bare for field in fields)

    return {key for key, success, _ in decisions if not success and lost(key)}


class Planner:
    """What one planner knows: observations by key behind its facts, and its own attempts."""

    def __init__(self, kind):
        self.kind, self.known, self.pending = kind, {}, []
        self.last, self.failed, self.broken, self.cached = {}, Counter(), {}, {}

    def made(self, decided):
        """Remembers an attempt without facts."""
        key, success, seen = decided
        self.last[key] = seen.event.time
        self.failed[key] = 0 if success else self.failed[key] + 1
        if success:
            self.broken.pop(key, None)
        elif self.failed[key] >= 3:
            self.broken[key] = seen.event.time
        self.pending.append(decided)

    def consolidate(self):
        for key, _, seen in self.pending:
            self.known.setdefault(key, []).append(seen)
            self.cached.pop(key, None)
        self.pending.clear()

    def skips(self, key, now):
        rates = self.known.get(key, [])
        low = 2 * sum(seen.outcome == "success" for seen in rates) < len(rates)
        if self.kind == "breaker":
            return key in self.broken and now - self.broken[key] < HOUR
        if self.kind == "v1_never":
            return low
        if self.kind == "v1_day":
            return low and now - self.last[key] < facts.DAY
        return self.kind == "v2" and not v2.may_attempt(*self.facts(key), now)[0]

    def facts(self, key):
        """The fact of a key and the advice on its skill, as `may_attempt` takes them."""
        skill = {k: seen for k, seen in self.known.items() if k[0] == key[0]}
        if key not in self.cached:
            seen = skill.get(key)
            self.cached[key] = seen and v2.fact("skill_success_rate", facts.fact_key(key), seen)
        counts = [(len(all_), v2.worked(all_)) for all_ in skill.values()]
        return self.cached[key], {"value": {"verdict": v2.advice(counts)[1]}}


def replay(history, later, kind, learning, lost):
    planner = Planner(kind)
    for decided in history:
        planner.made(decided)
    planner.consolidate()
    day, counts, skipped_keys = None, Counter(), set()
    for decided in later:
        key, success, seen = decided
        now = seen.event.time
        if learning == "daily" and now // facts.DAY != day:
            planner.consolidate()
        day = now // facts.DAY
        counts["decisions"] += 1
        counts["successes" if success else "failures"] += 1
        counts["unknown_failures"] += key not in planner.known and not success
        if planner.skips(key, now):
            counts["skipped"] += 1
            counts["lost" if success else "avoided"] += 1
            counts["hindsight"] += not success and key in lost
            skipped_keys.add(key)
            continue
        planner.made(decided)
        if learning == "per event":
            planner.consolidate()
    names = ("decisions", "failures", "successes", "skipped", "avoided", "lost",
             "unknown_failures", "hindsight")
    return {
        "planner": kind,
        "facts": learning,
        "keys_skipped": len(skipped_keys),
        "net": counts["avoided"] - counts["lost"],
        **{name: counts[name] for name in names},
    }


def part(decided, lost):
    failures = [key for key, success, _ in decided if not success]
    return {
        "decisions": len(decided),
        "failures": len(failures),
        "successes": len(decided) - len(failures),
        "keys": len({key for key, _, _ in decided}),
        "lost_fields": sum(key in lost for key in failures),
    }


def counts_of(path, percent):
    events, report = read(path)
    decisions = [decided for event in events if (decided := decision(event))]
    place = -(-len(decisions) * percent // 100)
    until = decisions[place - 1][2].event.time if place else None
    history = [one for one in decisions if until is not None and one[2].event.time <= until]
    later = decisions[len(history):]
    lost = lost_fields(decisions)
    return {
        **report,
        **({} if until is None else {"until": facts.time_text(until)}),
        "history": part(history, lost),
        "later": part(later, lost),
        "planners": [
            replay(history, later, kind, learning, lost)
            for kind, ways in PLANNERS for learning in ways
        ],
    }


if __name__ == "__main__":
    share = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    print(json.dumps(counts_of(sys.argv[1], share), sort_keys=True))
