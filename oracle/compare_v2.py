#!/usr/bin/env python3
"""Compares a built `ipse` under rule set v2 with its oracle, through the command line.

usage: compare_v2.py PATH_TO_IPSE FIRST_SEED COUNT [EVENTS]

Guarantee: exit 0 only if for every seed the counts, the refused line numbers and the snapshot bytes
of both programs agree, so do the drift reports of the newest day and of some others, and the
answers of `may-attempt` and `suggest` to random questions. The snapshot bytes agree again after some events are forgotten, and `ipse rebuild` finds them equal both times.
"""
import hashlib
import json
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


def same_plans(ipse, seed, events, directory):
    """The number of random questions that both planners' rules answer alike; None if one differs."""
    store, rng = (ipse, "--store", os.path.join(directory, "store.db")), random.Random(f"plan {seed}")
    groups = v2.grouped(events.values())
    table = {(one["fact_kind"], one["fact_key"]): one for one in v2.fact_list(events.values())}
    parts = {v1.fact_key(part): part for event in events.values()
             for kind, part, _ in v1.feeds(event) if kind == "skill_success_rate"}
    questions = 0
    for key in rng.sample(sorted(parts), min(len(parts), 8)):
        about = asked(parts[key])
        if about is None:
            continue
        if not same_attempt(store, seed, rng, about, key, parts[key][0], table):
            return None
        if not same_suggestion(store, seed, rng, about, groups["skill_success_rate", key]):
            return None
        questions += 2
    return questions


def asked(part):
    """The arguments that name a key; None for texts that a command line does not carry."""
    if any(text.startswith("-") or not text.isprintable() for text in part):
        return None
    skill, target, environment = part
    named = (("--target", target), ("--environment", environment))
    return ("--skill", skill, *(word for pair in named if pair[1] != "*" for word in pair))


def same_attempt(store, seed, rng, about, key, skill, table):
    fact = table.get(("skill_success_rate", key))
    advice = table.get(("skill_advice", v1.fact_key((skill,))))
    near = v1.read_time(fact["value"]["retry_after"]) if fact else 0
    now = near + rng.choice((-8 * v1.DAY, -v1.DAY, -1, 0, 1, v1.DAY))
    now = min(max(now, 0), v1.END_OF_TIME - 1)
    threshold, quorum = rng.choice((0, 2500, 5000, 9000, 10000)), rng.random() < 0.4
    options = ("--threshold", str(threshold / 10000), "--now", v1.time_text(now))
    options += ("--quorum",) if quorum else ()
    done = compare.run(*store, "may-attempt", "--json", *about, *options)
    ours = json.loads(done.stdout)
    theirs = v2.may_attempt(fact, advice, now, threshold, quorum)
    exits = 0 if theirs[0] else 1
    if ([ours["attempt"], ours["reason"]], done.returncode) != (list(theirs), exits):
        print(f"seed {seed}: may-attempt {about} {options} differs: {ours} {theirs}")
        return False
    return True


def same_suggestion(store, seed, rng, about, observations):
    counted = [o for o in observations if o.outcome in v1.COUNTED]
    names = sorted({name for o in counted for name in o.params if name.isprintable()})
    name = rng.choice([one for one in names if not one.startswith("-")] or ["force_n"])
    cells = {}
    for o in counted:
        if name in o.params:
            cell = cells.setdefault((v2.day_of(o), v1.cell(o.params[name], 4)), [0, 0])
            cell[0], cell[1] = cell[0] + 1, cell[1] + (o.outcome == "success")
    rows = [[day, v, n, s] for (day, v), (n, s) in cells.items()]
    near = [v for _, v, _, _ in rows] + [x * 10**6 for x in range(1, 60, 4)]
    candidates = rng.sample(sorted(set(near)), rng.randint(1, min(len(set(near)), 12)))
    prefer = rng.choice((None, rng.choice(near)))
    options = ("--param", name, "--candidates=" + ",".join(map(v1.units, candidates)))
    options += () if prefer is None else ("--prefer=" + v1.units(prefer),)
    done = compare.run(*store, "suggest", "--json", *about, *options, ok=(0, 2))
    try:
        theirs = v2.suggest(rows, candidates, prefer and v1.cell(prefer, 4))
    except v2.BadCandidates:
        theirs = None
    if theirs is None or done.returncode:
        return (theirs is None) == (done.returncode == 2)
    ours, since = json.loads(done.stdout, parse_float=str, parse_int=str), theirs["first_day"]
    want = {
        "value": v1.units(theirs["value"]), "anchor": v1.units(theirs["anchor"]),
        "n": str(theirs["n"]), "successes": str(theirs["successes"]), "tried": theirs["tried"],
        "high": v1.decimal_text(theirs["high"], 10000, 4), "why": theirs["why"],
        "window": {"n": str(theirs["window_n"]),
                   "since": None if since is None else v2.day_text(since)},
    }
    want = {one: str(value) if one in ("value", "anchor", "high") else value
            for one, value in want.items()}
    got = {one: ours[one] for one in want}
    if got != want:
        print(f"seed {seed}: suggest {about} {options} differs\n  ours   {got}\n  oracle {want}")
    return got == want


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
        questions = same_plans(ipse, seed, events, directory)
        if questions is None:
            return False
        remaining = forget(ipse, directory, refs) if refs else our_facts
    gone = set(refs)
    kept = [event for ref, event in events.items() if ref not in gone]
    state = f"snapshots after forgetting {len(refs)} events"
    if not compare.same_facts(seed, remaining, v2.facts(kept).encode(), state):
        return False
    lines, short = our_facts.count(b"\n"), hashlib.sha256(our_facts).hexdigest()[:16]
    print(f"seed {seed}: {len(events)} events, {lines} facts, {questions} questions, "
          f"{len(refs)} forgotten, {short} equal")
    return True


def main():
    ipse, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    events = int(sys.argv[4]) if len(sys.argv) > 4 else 500
    equal = [compare_one(ipse, seed, events) for seed in range(first, first + count)]
    print(f"{sum(equal)} passed, {len(equal) - sum(equal)} failed")
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
