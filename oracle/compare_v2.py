#!/usr/bin/env python3
"""Compares a built `ipse` under rule set v2 with its oracle, through the command line.

usage: compare_v2.py PATH_TO_IPSE FIRST_SEED COUNT [EVENTS]

Guarantee: exit 0 only if for every seed the counts, the refused line numbers and the snapshot bytes
of both programs agree, so do the drift reports of the newest day and of some others, the snapshot
bytes agree again after some events are forgotten, and `ipse rebuild` finds them equal both times.
"""
import hashlib
import os
import random
import sys
import tempfile

import compare
import facts as v1
import generate_v2
import v2


def chosen(seed, events):
    """Some events to forget: a few, a share, the newest days, or all of one source."""
    rng, refs = random.Random(f"forget {seed}"), sorted(events)
    if not refs:
        return []
    kind = rng.choice(("few", "share", "newest", "source"))
    if kind == "newest":
        days = sorted({event.time // v1.DAY for event in events.values()})
        first = days[-rng.randint(1, min(len(days), 9))]
        return [ref for ref in refs if events[ref].time // v1.DAY >= first]
    if kind == "source":
        source = events[rng.choice(refs)].source
        return [ref for ref in refs if events[ref].source == source]
    most = min(len(refs), 5) if kind == "few" else len(refs)
    return rng.sample(refs, rng.randint(1, most))


def forget(ipse, directory, refs):
    """The snapshot of our store after it forgot these events."""
    ipse = (ipse, "--store", os.path.join(directory, "store.db"))
    path = os.path.join(directory, "refs.txt")
    with open(path, "w", encoding="ascii") as file:
        file.writelines(ref + "\n" for ref in refs)
    compare.run(*ipse, "forget", "--yes", "--from-file", path, ok=(0,))
    compare.run(*ipse, "rebuild", ok=(0,))
    return compare.run(*ipse, "snapshot", ok=(0,)).stdout


def same_drift(ipse, seed, events, directory):
    """Whether the drift reports agree; the days are those of some events, and days near them."""
    ipse = (ipse, "--store", os.path.join(directory, "store.db"), "drift", "--json")
    days = sorted({event.time // v1.DAY for event in events.values()})
    rng = random.Random(f"drift {seed}")
    for day in [None, *(rng.choice(days) + rng.randint(0, 8) for _ in range(4) if days)]:
        if day is not None and (day + 1) * v1.DAY > v1.END_OF_TIME:
            continue
        asked = () if day is None else ("--day", v2.day_text(day))
        ours = compare.run(*ipse, *asked).stdout.strip()
        theirs = v1.canonical(v2.drift_of(events.values(), day)).encode()
        if ours != theirs:
            print(f"seed {seed}: drift differs\n  ours   {ours}\n  oracle {theirs}")
            return False
    return True


def compare_one(ipse, seed, count):
    raw = b"".join(generate_v2.lines(seed, count))
    events, their_counts = v1.read_log(raw)
    their_facts = v2.facts(events.values()).encode()
    refs = chosen(seed, events)
    with tempfile.TemporaryDirectory() as directory:
        log = os.path.join(directory, "log.jsonl")
        with open(log, "wb") as file:
            file.write(raw)
        our_counts, our_facts = compare.ours(ipse, log, directory, "--rules", "v2")
        if not compare.same_counts(seed, our_counts, their_counts):
            return False
        if not compare.same_facts(seed, our_facts, their_facts):
            return False
        if not same_drift(ipse, seed, events, directory):
            return False
        remaining = forget(ipse, directory, refs) if refs else our_facts
    gone = set(refs)
    kept = [event for ref, event in events.items() if ref not in gone]
    state = f"snapshots after forgetting {len(refs)} events"
    if not compare.same_facts(seed, remaining, v2.facts(kept).encode(), state):
        return False
    lines, short = our_facts.count(b"\n"), hashlib.sha256(our_facts).hexdigest()[:16]
    print(f"seed {seed}: {len(events)} events, {lines} facts, {len(refs)} forgotten, {short} equal")
    return True


def main():
    ipse, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    events = int(sys.argv[4]) if len(sys.argv) > 4 else 500
    equal = [compare_one(ipse, seed, events) for seed in range(first, first + count)]
    print(f"{sum(equal)} passed, {len(equal) - sum(equal)} failed")
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
