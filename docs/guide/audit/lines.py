"""Checks every line of an unpacked bundle, with rfc8785.

It guarantees, if it exits with 0:
- manifest.json, rule-set.json and every line of events.jsonl, entries.jsonl and facts.jsonl are in
  the one form that RFC 8785 gives them.
- Entries are numbered 1, 2, 3 ... and no event stands in two of them.
- Every event is the one of its entry: SHA-256 of its line, ref, type and time. Events stand in the
  order of their entries.
- Every entry of the range whose event is not there is named by a later `forget` event.
- Every pass record names the rule set that is in the bundle.

What the range and the checkpoint are, the operator's statement says; have its signature checked
first. The events up to the checkpoint are written to standard output: facts follow from those.
Exit 1 names the file, the line and what is wrong with it.

    lines.py DIRECTORY STATEMENT.json > EVENTS.jsonl
"""

import datetime
import hashlib
import json
import pathlib
import re
import sys

import rfc8785

ENTRY = {"digest", "event_ref", "seq", "time", "type"}


def wrong(place, what):
    sys.exit(f"lines: {place}: {what}")


def canonical(place, raw):
    """The JSON of some bytes, if they are its canonical form."""
    try:
        value = json.loads(raw)
        same = rfc8785.dumps(value) == raw
    except (ValueError, RecursionError) as error:
        wrong(place, f"{type(error).__name__}: {error}")
    return value if same else wrong(place, "is not in the form of RFC 8785")


def lines(path):
    """Numbered lines, each with the place it stands at, its bytes and its JSON."""
    raw = path.read_bytes()
    if raw and not raw.endswith(b"\n"):
        wrong(path.name, "the last line has no end")
    for number, line in enumerate(raw.split(b"\n")[:-1], 1):
        place = f"{path.name}, line {number}"
        yield place, line, canonical(place, line)


def read_entries(path):
    """The entries by ref."""
    entries = {}
    for place, _, entry in lines(path):
        if set(entry) != ENTRY or entry["seq"] != len(entries) + 1:
            wrong(place, "is not the next entry")
        if entries.setdefault(entry["event_ref"], entry) is not entry:
            wrong(place, "the event stands in an earlier entry")
    return entries


def ref_of(event):
    name = f"{event['source']}\n{event['id']}"
    return "ev_" + hashlib.sha256(name.encode()).hexdigest()[:32]


def instant(text):
    """A time as entries write it: in UTC, finer digits than a microsecond cut off."""
    text = re.sub(r"(\.\d{6})\d+", r"\1", text.upper())
    text = re.sub(r"\.(\d+)", lambda found: "." + found[1].ljust(6, "0"), text)
    time = datetime.datetime.fromisoformat(text).astimezone(datetime.timezone.utc)
    return time.isoformat().replace("+00:00", "Z")


def check_event(place, line, event, entries):
    """The entry of an event that says the same of it."""
    entry = entries.get(ref_of(event)) or wrong(place, "is in no entry")
    seq = entry["seq"]
    if hashlib.sha256(line).hexdigest() != entry["digest"]:
        wrong(place, f"its digest is not that of its entry, seq {seq}")
    if event["type"] != entry["type"] or instant(event["time"]) != entry["time"]:
        wrong(place, f"its type or time is not that of its entry, seq {seq}")
    return entry


def walk(directory, entries, checkpoint):
    """Checks all events; hands back their refs and, for each forgotten ref, who says so."""
    rule_set = hashlib.sha256((directory / "rule-set.json").read_bytes()).hexdigest()
    last, there, forgotten = 0, set(), {}
    for place, line, event in lines(directory / "events.jsonl"):
        entry = check_event(place, line, event, entries)
        seq = entry["seq"]
        if seq <= last:
            wrong(place, f"stands behind seq {last}, and is seq {seq}")
        last = seq
        there.add(entry["event_ref"])
        if event["type"] == "forget":
            forgotten.update((ref, seq) for ref in event["data"]["event_refs"])
        if event["type"] == "consolidation_run" and event["data"]["rule_set_sha256"] != rule_set:
            wrong(place, "this pass followed another rule set than rule-set.json")
        if checkpoint is not None and seq <= checkpoint:
            sys.stdout.buffer.write(line + b"\n")
    return there, forgotten


def main(directory, statement):
    directory = pathlib.Path(directory)
    said = json.loads(pathlib.Path(statement).read_bytes())["predicate"]
    for name in ["manifest.json", "rule-set.json"]:
        canonical(name, (directory / name).read_bytes())
    if (directory / "facts.jsonl").exists():
        list(lines(directory / "facts.jsonl"))
    entries = read_entries(directory / "entries.jsonl")
    there, forgotten = walk(directory, entries, said["checkpoint"])
    absent = [entry for ref, entry in entries.items() if ref not in there]
    absent = [entry for entry in absent if said["from"] <= entry["seq"] <= said["to"]]
    for entry in absent:
        if forgotten.get(entry["event_ref"], 0) <= entry["seq"]:
            wrong(f"seq {entry['seq']}", "its event is missing, and no later one says forgotten")
    for ref in there & set(forgotten):
        wrong(f"seq {entries[ref]['seq']}", "is named as forgotten, and is there")
    words = f"{len(entries)} entries, {len(there)} events, {len(absent)} forgotten"
    print(f"lines: {words}: canonical, and each as its entry says", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
