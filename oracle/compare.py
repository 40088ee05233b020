#!/usr/bin/env python3
"""Compares a built `ipse` with the oracle on generated logs, through the command line.

usage: compare.py PATH_TO_IPSE FIRST_SEED COUNT [EVENTS [replays]]

Guarantee: exit 0 only if for every seed the counts, the refused line numbers and the snapshot
bytes of both programs agree, and `ipse rebuild` finds them equal too; with `replays` also all
counts of `ipse evaluate` on the log.
"""
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from itertools import zip_longest

HERE = os.path.dirname(os.path.abspath(__file__))
MANIFEST = {"agent_id": "oracle", "operator": "oracle", "embodiment": "none",
            "policy_hash": "1" * 64, "ecm_registry_hash": "2" * 64,
            "temperament_hash": "3" * 64, "commissioned_at": "2026-05-01T00:00:00Z"}


def run(*command, ok=(0, 1)):
    done = subprocess.run(command, capture_output=True)
    if done.returncode not in ok:
        raise SystemExit(f"{command}: exit {done.returncode}\n{done.stderr.decode()}")
    return done


def ours(ipse, log, directory, *options):
    """Counts and snapshot of a new store that `init` makes with these options."""
    store = os.path.join(directory, "store.db")
    manifest = os.path.join(directory, "agent.json")
    with open(manifest, "w", encoding="utf-8") as file:
        json.dump(MANIFEST, file)
    ipse = (ipse, "--store", store)
    run(*ipse, "init", "--manifest", manifest, *options, ok=(0,))
    # Generated events come from any time.
    run(*ipse, "config", "max-ahead", "off", ok=(0,))
    report = json.loads(run(*ipse, "import", log, "--json").stdout)
    refused = [entry["line"] for entry in report["refusals"] if entry["rule"] != "conflict"]
    run(*ipse, "rebuild", ok=(0,))
    counts = {name: report[name] for name in ("appended", "duplicates", "conflicts")}
    return {**counts, "refused": refused}, run(*ipse, "snapshot", ok=(0,)).stdout


def theirs(log):
    done = run(sys.executable, os.path.join(HERE, "facts.py"), log, ok=(0,))
    return json.loads(done.stderr.splitlines()[-1]), done.stdout


def holds(ours, theirs):
    """Whether ours contains every value of the oracle."""
    if isinstance(theirs, dict):
        return all(name in ours and holds(ours[name], value) for name, value in theirs.items())
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(holds, ours, theirs))
    return ours == theirs


def compare_replays(ipse, seed, log):
    """Whether the counts of all planners agree, on half of a log and on the whole of it."""
    for percent in ("50", "0"):
        found = run(ipse, "evaluate", log, "--history", percent, "--json").stdout
        theirs = run(sys.executable, os.path.join(HERE, "evaluate.py"), log, percent, ok=(0,))
        found, theirs = json.loads(found)[0], json.loads(theirs.stdout)
        if not holds(found, theirs):
            print(f"seed {seed}: replays differ\n  ours   {found}\n  oracle {theirs}")
            return False
    return True


def same_counts(seed, ours, theirs):
    if ours != theirs:
        print(f"seed {seed}: counts differ\n  ours   {ours}\n  oracle {theirs}")
    return ours == theirs


def same_facts(seed, ours, theirs, state="snapshots"):
    """Whether two snapshots are equal; prints the first facts that differ."""
    if ours != theirs:
        print(f"seed {seed}: {state} differ")
        pairs = zip_longest(ours.splitlines(), theirs.splitlines(), fillvalue=b"(none)")
        for our_line, their_line in [pair for pair in pairs if pair[0] != pair[1]][:2]:
            print(f"  ours   {our_line.decode()[:600]}\n  oracle {their_line.decode()[:600]}")
    return ours == theirs


def compare(ipse, seed, events, replays):
    with tempfile.TemporaryDirectory() as directory:
        log = os.path.join(directory, "log.jsonl")
        generated = run(sys.executable, os.path.join(HERE, "generate.py"), str(seed), str(events))
        with open(log, "wb") as file:
            file.write(generated.stdout)
        our_counts, our_facts = ours(ipse, log, directory)
        their_counts, their_facts = theirs(log)
        if replays and not compare_replays(ipse, seed, log):
            return False
    if not same_counts(seed, our_counts, their_counts):
        return False
    if not same_facts(seed, our_facts, their_facts):
        return False
    facts, short = our_facts.count(b"\n"), hashlib.sha256(our_facts).hexdigest()[:16]
    print(f"seed {seed}: {our_counts['appended']} events, {facts} facts, {short} equal")
    return True


def main():
    ipse, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    events = int(sys.argv[4]) if len(sys.argv) > 4 else 600
    replays = sys.argv[5:] == ["replays"]
    equal = [compare(ipse, seed, events, replays) for seed in range(first, first + count)]
    print(f"{sum(equal)} passed, {len(equal) - sum(equal)} failed")
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
