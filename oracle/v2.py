#!/usr/bin/env python3
"""The oracle of rule set v2: snapshots, the planner's rules and the drift monitor.

    python3 oracle/v2.py snapshot FILE.jsonl[.gz] [--forget refs.json]
    python3 oracle/v2.py vectors DIRECTORY

Guarantees: written from the page of rule set v2, not from the program that it checks. What v2
leaves as in v1 (door, keys, numbers, cells, W, windows, number text) is imported from `facts.py`.
Nothing is accumulated: every value is computed from the full list of its observations, in exact
integers, so the result depends on no order, no clock and no earlier run. `snapshot` prints the
snapshot, and on stderr one line of JSON as `facts.py` does. `vectors` compares every vector of a
directory byte for byte, and exits 1 with a diff at the first difference. Standard library only.
"""

import argparse
import datetime
import difflib
import functools
import gzip
import json
import pathlib
import sys
from collections import Counter, defaultdict
from fractions import Fraction

import facts as v1

RULE_VERSION = "v2"
UNIT = 10**4  # of W, low, high and thresholds
BOUNDARY_DAYS = 64  # days of a part whose boundaries are candidates for a cut
RUNGS = (64, 32, 16, 8)  # newest days of a parameter, tried after all its days
HOUR, WEEK = 3_600_000_000, 7 * v1.DAY  # microseconds: the limits of the wait before a retry
SUGGEST_VALUES = 512  # values that fill the window of `suggest`
CANDIDATE_LIMIT = 256
DRIFT_RECENT, DRIFT_ALL = 7, 63  # days: the last week, and that week with the 56 days before
DRIFT_DAY_LIMIT = 4  # observations that one day of one fact counts for
LAST_INSTANT = v1.END_OF_TIME - 1


@functools.lru_cache(maxsize=1 << 16)
def wilson(a, n, k):
    """W(a, n; K) in units of 1/10000, and 0 without observations."""
    return v1.wilson(a, n, k) if n else 0


def low_high(s, n):
    """The bounds of a rate, in units of 1/10000: low rounded down, high rounded up."""
    return wilson(s, n, 3), UNIT - wilson(n - s, n, 3)


def bounds(s, n):
    low, high = low_high(s, n)
    return {"low": v1.confidence_text(low), "high": v1.confidence_text(high)}


def day_text(day):
    return datetime.date.fromordinal(day + v1.EPOCH).isoformat()


# ---- the newest stretch (section 2) --------------------------------------------------------


def total(days):
    """(n, s) of a list of (day, n, s)."""
    return sum(n for _, n, _ in days), sum(s for _, _, s in days)


def cut(part):
    """The index in `part` after which the newest of the greatest gaps lies, or None."""
    n, s = total(part)
    boundaries = min(len(part), BOUNDARY_DAYS) - 1
    if boundaries < 1 or s in (0, n):
        return None
    k = 3 + v1.lg(boundaries)
    best, place, n2, s2 = 0, None, 0, 0
    for start in range(len(part) - 1, len(part) - 1 - boundaries, -1):
        n2, s2 = n2 + part[start][1], s2 + part[start][2]
        n1, s1 = n - n2, s - s2
        fell = wilson(s1, n1, k) + wilson(n2 - s2, n2, k)
        rose = wilson(s2, n2, k) + wilson(n1 - s1, n1, k)
        gap = max(fell, rose) - UNIT
        if gap > best:
            best, place = gap, start
    return place


def stretch(days):
    """The first day of the newest stretch of (day, n, s) rows; None if no day has observations."""
    part = sorted(row for row in days if row[1] > 0)
    while part:
        start = cut(part)
        if start is None:
            return part[0][0]
        part = part[start:]
    return None


def day_counts(pairs):
    """Rows (day, n, s) of (day, succeeded) pairs."""
    n, s = Counter(), Counter()
    for day, succeeded in pairs:
        n[day] += 1
        s[day] += bool(succeeded)
    return [(day, n[day], s[day]) for day in sorted(n)]


def since(days, first):
    return [row for row in days if row[0] >= first]


# ---- many sources (section 3) --------------------------------------------------------------


def robust(sources):
    """`robust` of source -> rows (day, n, s), or None with fewer than two sources."""
    counts = [total(since(rows, stretch(rows))) for rows in sources.values()]
    counts = [(n, s) for n, s in counts if n]
    if len(counts) < 2:
        return None
    cap = v1.rank(sorted(n for n, _ in counts), 1, 2)
    n = sum(min(n, cap) for n, _ in counts)
    s = sum(s if n <= cap else round(Fraction(s * cap, n)) for n, s in counts)
    return {"sources": len(counts), "n": n, "successes": s, **bounds(s, n)}


# ---- the recommended value of a parameter (section 3) --------------------------------------


def holds_steady(rows, best):
    """Whether the outcomes between low and high of a recommendation make no cut."""
    low, high = (Fraction(best[name]) * 10**6 for name in ("low", "high"))
    inside = [(day, won) for day, v, won in rows if low <= v1.cell(v, 4) <= high]
    days = day_counts(inside)
    return stretch(days) == days[0][0]


def recommend(rows, m):
    """(`recommended`, whether it uses all days) of (day, micro, succeeded) rows, or (None, _)."""
    days = sorted({day for day, _, _ in rows})
    for rung in (len(days), *(r for r in RUNGS if r < len(days))):
        first = days[-rung]
        used = [row for row in rows if row[0] >= first]
        best = v1.recommend([(v, won) for _, v, won in used], m)
        if best is None or not holds_steady(used, best):
            continue
        best["outside"] = len(used) - best["successes"] - best["failures"]
        if rung < len(days):
            best["since"] = day_text(first)
        return best, rung == len(days)
    return None, False


def param_values(counted):
    """name -> value of each parameter, and the (n, successes, failures) of windows of all days."""
    columns = defaultdict(list)
    for o in counted:
        for name, v in o.params.items():
            columns[name].append((day_of(o), v, o.outcome == "success"))
    m = sum(len(rows) >= 3 for rows in columns.values())
    params, windows = {}, []
    for name, rows in columns.items():
        best, all_days = recommend(rows, m)
        summary = v1.summary([v for _, v, _ in rows])
        params[name] = summary | v1.if_any("recommended", best)
        if all_days:
            windows.append((len(rows), best["successes"], best["failures"]))
    return params, windows, m


# ---- values (section 3) --------------------------------------------------------------------


def day_of(o):
    return o.event.time // v1.DAY


def last_of(observations):
    return max(observations, key=lambda o: (o.event.time, o.event.ref))


def retry_after(last, first):
    """When to retry, in microseconds: it waits as long as the stretch lasted, within limits.

    A time after the year 9999 has no RFC 3339 text: it becomes the last instant that has one.
    """
    wait = max(HOUR, min(WEEK, (day_of(last) - first) * v1.DAY))
    return min(last.event.time + wait, LAST_INSTANT)


def by_source(observations):
    """source -> rows (day, n, s)."""
    pairs = defaultdict(list)
    for o in observations:
        pairs[o.event.source].append((day_of(o), o.outcome == "success"))
    return {source: day_counts(rows) for source, rows in pairs.items()}


def newest(observations):
    """The first day of the stretch, its observations, and the older ones."""
    first = stretch(day_counts((day_of(o), not v1.is_adverse(o)) for o in observations))
    inside = [o for o in observations if day_of(o) >= first]
    return first, inside, [o for o in observations if day_of(o) < first]


def worked(observations):
    return sum(not v1.is_adverse(o) for o in observations)


def skill_value(observations):
    counted = [o for o in observations if o.outcome in v1.COUNTED]
    uncounted = Counter(o.outcome for o in observations if o.outcome not in v1.COUNTED)
    if not counted:
        return [], {}
    first, inside, older = newest(counted)
    n, s = len(inside), worked(inside)
    params, windows, m = param_values(counted)
    agreed = [wilson(max(s, n - s), n, 3)]
    if not older:
        agreed += [wilson(s_in + (n - s - f_in), n, 3 + 2 * v1.lg(m))
                   for rows, s_in, f_in in windows if rows == n]
    last = last_of(inside)
    before = {"n": len(older), "successes": worked(older)} if older else None
    return inside, {
        "confidence": v1.confidence_text(max(agreed)),
        "successes": s,
        "failures": n - s,
        "success_rate": v1.decimal_text(s, n),
        **bounds(s, n),
        "since": day_text(first),
        "last_outcome": last.outcome,
        "retry_after": v1.time_text(retry_after(last, first)),
        "sources": len({o.event.source for o in inside}),
        **v1.if_any("before", before),
        **v1.if_any("robust", robust(by_source(counted))),
        **v1.if_any("params", params),
        **v1.top_reason("top_failure_reason", inside),
        **v1.if_any("uncounted", dict(uncounted)),
    }


def zone_value(observations):
    first, inside, older = newest(observations)
    before = {"n": len(older), "adverse": len(older) - worked(older)} if older else None
    _, value = v1.zone_value(inside)
    return inside, value | {
        **bounds(value["adverse"], len(inside)),
        "since": day_text(first),
        "sources": len({o.event.source for o in inside}),
        **v1.if_any("before", before),
    }


def advice(counts):
    """(skill, verdict) of the all-time (n, s) of each key; (None, None) with fewer than two."""
    if len(counts) < 2:
        return None, None
    n, s = sum(n for n, _ in counts), sum(s for _, s in counts)
    f = n - s
    c1 = 10**6 * (f + 1) ** 2 // (n + 1) ** 2
    c0 = 10**6 * (s + 1) ** 2 // (n + 1) ** 2
    gains = [s * c1 + (n - s) * c0 - own_loss(n, s) for n, s in counts]
    gain, divisor = sum(gains), s * c1 + f * c0
    skill = v1.decimal_text(gain, divisor, 4, "floor") if divisor else v1.Number("0")
    if gain == 0 or gain * gain < sum(x * x for x in gains):
        return skill, "unproven"
    return skill, "informative" if gain > 0 else "misleading"


def own_loss(n, s):
    f = n - s
    return 10**6 * (s * (f + 1) ** 2 + f * (s + 1) ** 2) // (n + 1) ** 2


def advice_value(keys):
    """`skill_advice` of the lists of counted observations of each key of a skill."""
    everything = [o for counted in keys for o in counted]
    n, s = len(everything), worked(everything)
    skill, verdict = advice([(len(counted), worked(counted)) for counted in keys])
    return everything, {
        "confidence": v1.confidence_text(wilson(max(s, n - s), n, 3)),
        "keys": len(keys),
        "successes": s,
        "failures": n - s,
        "success_rate": v1.decimal_text(s, n),
        **bounds(s, n),
        **v1.if_any("skill", skill),
        **v1.if_any("verdict", verdict),
    }


VALUES = {
    "skill_success_rate": skill_value,
    "interaction_pattern": v1.pattern_value,
    "zone_risk": zone_value,
    "object_property": v1.property_fact_value,
    "skill_advice": advice_value,
}


# ---- the snapshot --------------------------------------------------------------------------


def grouped(events):
    """(kind, key) -> observations; of `skill_advice`: the counted ones of each key of the skill."""
    groups, skills = defaultdict(list), defaultdict(lambda: defaultdict(list))
    for event in events:
        for kind, parts, o in v1.feeds(event):
            groups[kind, v1.fact_key(parts)].append(o)
            if kind == "skill_success_rate" and o.outcome in v1.COUNTED:
                skills[parts[0]][parts].append(o)
    for skill, keys in skills.items():
        groups["skill_advice", v1.fact_key((skill,))] = list(keys.values())
    return groups


def fact(kind, key, observations):
    """One fact, or None if no event supports it."""
    supporting, value = VALUES[kind](observations)
    if not supporting:
        return None
    last = last_of(supporting).event
    value |= {
        "n_observations": len(supporting),
        "last_supporting_event_id": last.ref,
        "rule_version": RULE_VERSION,
    }
    updated = v1.time_text(last.time)
    return {"fact_key": key, "fact_kind": kind, "last_updated": updated, "value": value}


def fact_list(events):
    """Every fact of any collection of distinct events, in the order of the snapshot."""
    groups = grouped(events)
    ordered = sorted(groups, key=lambda name: (name[0].encode(), name[1].encode()))
    found = [fact(*name, groups[name]) for name in ordered]
    return [one for one in found if one is not None]


def facts(events):
    """The snapshot text of any collection of distinct events."""
    return "".join(v1.canonical(one) + "\n" for one in fact_list(events))


# ---- the planner's rule (section 5) --------------------------------------------------------


def scaled(number):
    """Units of 1/10000 of a number text of a fact."""
    return int(Fraction(number) * UNIT)


def may_attempt(fact, advice_fact, now, threshold=5000, quorum=False):
    """(attempt, reason): two facts of v2 or None, `now` in microseconds, the threshold in units."""
    reason = skip_reason(fact, advice_fact, now, threshold, quorum)
    return reason != "skip", reason


def skip_reason(fact, advice_fact, now, threshold, quorum):
    if fact is None:
        return "no_fact"
    if advice_fact is not None and advice_fact["value"].get("verdict") == "misleading":
        return "misleading"
    value = fact["value"]
    judged = value.get("robust") if quorum else value
    if judged is None:
        return "no_robust"
    if scaled(judged["high"]) >= threshold:
        return "high_enough"
    if value["last_outcome"] != "failed":
        return "succeeded_last"
    due = v1.read_time(value["retry_after"])
    if now < due - WEEK:
        return "future_fact"
    return "skip" if now < due else "retry_due"


# ---- the planner's rule for values (section 5b) --------------------------------------------


class BadCandidates(ValueError):
    """No candidates, too many, or two that fall into one fine cell."""


def suggest_window(cells):
    """The whole newest days that hold at least SUGGEST_VALUES values, as [day, v, n, s] rows."""
    cells, held = [row for row in cells if row[2] > 0], Counter()
    for day, _, n, _ in cells:
        held[day] += n
    first, inside = None, 0
    for day in sorted(held, reverse=True):
        if inside >= SUGGEST_VALUES:
            break
        first, inside = day, inside + held[day]
    return first, inside, [row for row in cells if row[0] >= first] if held else []


def nearest(candidates, v):
    return min(candidates, key=lambda c: (abs(c - v), c))


def counts_for(candidates, v):
    """The candidate that a value counts for, or None."""
    if len(candidates) == 1:
        return v if v == candidates[0] else None
    below, above = candidates[0] - v, v - candidates[-1]
    if 2 * below > candidates[1] - candidates[0] or 2 * above > candidates[-1] - candidates[-2]:
        return None
    return nearest(candidates, v)


def anchor_of(window, candidates, prefer):
    """The value that worked most often on the newest day with a hit, else the caller's."""
    hits = [row for row in window if row[3] > 0]
    if hits:
        newest_day, best = max(row[0] for row in hits), Counter()
        for day, v, _, s in hits:
            best[v] += s if day == newest_day else 0
        return min(best, key=lambda v: (-best[v], v))
    return candidates[(len(candidates) - 1) // 2] if prefer is None else prefer


def suggest(cells, candidates, prefer=None):
    """The next value to try, from cells [day, fine, n, s]; all values in micro-units."""
    candidates = sorted(v1.cell(c, 4) for c in candidates)
    if not 1 <= len(candidates) <= CANDIDATE_LIMIT or len(set(candidates)) < len(candidates):
        raise BadCandidates("bad_candidates")
    first, inside, window = suggest_window(cells)
    n, s = Counter(), Counter()
    for _, v, tried, won in window:
        candidate = counts_for(candidates, v)
        n[candidate], s[candidate] = n[candidate] + tried, s[candidate] + won
    anchor = anchor_of(window, candidates, prefer)
    high = {c: low_high(s[c], n[c])[1] for c in candidates}
    value = min(candidates, key=lambda c: (-high[c], abs(c - anchor), c))
    return {
        "value": value, "n": n[value], "successes": s[value], "high": high[value],
        "first_day": first, "window_n": inside, "anchor": anchor, "tried": n[value] > 0,
        "why": why(value, nearest(candidates, anchor), n, s),
    }


def why(value, settled, n, s):
    def story(v):
        return f"{v1.units(v)} was tried {n[v]} times, {s[v]} worked"

    if value == settled:
        return story(settled)
    other = story(value) if n[value] else f"{v1.units(value)} was never tried"
    return f"{story(settled)}; {other} and could be better"


# ---- the drift monitor (section 6) ---------------------------------------------------------


def limited(rows):
    """(n, s) of rows (day, n, s), of which each day counts for a few observations at most."""
    most = DRIFT_DAY_LIMIT
    return total([(day, n, s) if n <= most else (day, most, round(Fraction(most * s, n)))
                  for day, n, s in rows])


def departure(rows, day):
    """(e, v) of one fact, or None if it cannot be compared."""
    n_r, s_r = limited([row for row in rows if day - DRIFT_RECENT < row[0] <= day])
    n_b, s_b = limited([row for row in rows if day - DRIFT_ALL < row[0] <= day - DRIFT_RECENT])
    n, s = n_r + n_b, s_r + s_b
    if not n_r or not n_b or not 0 < s < n:
        return None
    e = 10**6 * (s_r * n - n_r * s) ** 2 // n**2
    return e, 10**6 * n_r * n_b * s * (n - s) // (n**2 * (n - 1))


def drift(keys, day=None):
    """The report of fact key -> rows (day, n, s), as of a day or of the newest one."""
    if day is None:
        day = max((row[0] for rows in keys.values() for row in rows if row[1]), default=0)
    found = {key: departure(rows, day) for key, rows in keys.items()}
    found = {key: ev for key, ev in found.items() if ev is not None}
    x = sum(e - v for e, v in found.values())
    spread = sum(2 * v * v + 10**6 * v for _, v in found.values())
    most = sorted((v - e, key.encode(), key) for key, (e, v) in found.items() if e > v)
    return {
        "day": day_text(day),
        "facts": len(found),
        "drift": x > 0 and x * x >= 9 * spread,
        "z2": v1.decimal_text(x * abs(x), spread, 2, "floor") if spread else v1.Number("0"),
        "most": [key for _, _, key in most[:3]],
    }


def drift_of(events, day=None):
    """The report of a collection of distinct events."""
    pairs = defaultdict(list)
    for event in events:
        for kind, parts, o in v1.feeds(event):
            if kind == "skill_success_rate" and o.outcome in v1.COUNTED:
                pairs[v1.fact_key(parts)].append((day_of(o), o.outcome == "success"))
    return drift({key: day_counts(rows) for key, rows in pairs.items()}, day)


# ---- the vectors ---------------------------------------------------------------------------


class Differs(Exception):
    """The oracle and a vector differ; the message is a diff."""


def same(name, want, got):
    """Texts are compared as they are, other values by their canonical text."""
    if want != got:
        rows = difflib.unified_diff(want.splitlines(), got.splitlines(), f"{name} (vector)",
                                    f"{name} (oracle)", lineterm="", n=0)
        raise Differs("\n".join(rows) or f"{name}: line ends differ")


def same_value(name, want, got):
    same(name, v1.canonical(want), v1.canonical(got))


def load(path):
    return json.loads(path.read_text(encoding="utf-8"), parse_float=v1.Number)


def load_events(path):
    """The events of a vector; one log has a housekeeping event, which the door refuses."""
    return v1.read_log(path.read_bytes())[0]


def check_logs(directory):
    logs = sorted(directory.glob("*.events.jsonl"))
    for path in logs:
        name, events = path.name.removesuffix(".events.jsonl"), load_events(path)
        want = directory / f"{name}.snapshot.jsonl"
        same(want.name, want.read_bytes().decode(), facts(events.values()))
        refs = directory / f"{name}.forget.json"
        if refs.exists():
            for ref in load(refs):
                events.pop(ref, None)
            want = directory / f"{name}.forgotten.snapshot.jsonl"
            same(want.name, want.read_bytes().decode(), facts(events.values()))
    return len(logs)


def check_small_functions(cases):
    for i, case in enumerate(cases["W"]):
        same_value(f"W {i}", case["W"], wilson(case["a"], case["n"], case["K"]))
    for i, case in enumerate(cases["stretch"]):
        days = [tuple(row) for row in case["days"]]
        first = stretch(days)
        same_value(f"stretch {i}", [case["since"], case["n_s"]],
                   [first, list(total(since(days, first)))])
    for i, case in enumerate(cases["robust"]):
        same_value(f"robust {i}", case["robust"], robust(case["sources"]))
    for i, case in enumerate(cases["advice"]):
        same_value(f"advice {i}", [case["skill"], case["verdict"]], list(advice(case["counts"])))


def check_planner(case, by_name):
    fact = by_name.get(("skill_success_rate", case["fact_key"]))
    # The skill is the first part of the key; " + " inside a part is written " \+ ".
    skill = case["fact_key"].split(" + ")[0]
    advice_fact = by_name.get(("skill_advice", skill)) if case["with_advice"] else None
    now = v1.read_time(case["now"])
    got = may_attempt(fact, advice_fact, now, case["threshold"], case["quorum"])
    same_value(f"may_attempt {case}", [case["attempt"], case["reason"]], list(got))


def check_functions(directory):
    cases = load(directory / "functions.json")
    check_small_functions(cases)
    names = {case["events"] for kind in ("drift", "may_attempt") for case in cases[kind]}
    logs = {name: load_events(directory / f"{name}.events.jsonl").values() for name in names}
    tables = {name: {(one["fact_kind"], one["fact_key"]): one for one in fact_list(events)}
              for name, events in logs.items()}
    for case in cases["drift"]:
        same_value(f"drift {case['events']}", case["report"], drift_of(logs[case["events"]]))
    for case in cases["may_attempt"]:
        check_planner(case, tables[case["events"]])
    return sum(map(len, cases.values()))


def check_suggestions(directory):
    cases = load(directory / "suggest.json")
    for i, case in enumerate(cases):
        try:
            got = suggest(case["cells"], case["candidates"], case["prefer"])
        except BadCandidates as error:
            got = {"error": str(error)}
        kept = {name: got[name] for name in case["want"] if name in got}
        same_value(f"suggest {i}", case["want"], kept)
    return len(cases)


def check_vectors(directory):
    try:
        logs, functions = check_logs(directory), check_functions(directory)
        suggestions = check_suggestions(directory)
    except Differs as difference:
        print(difference)
        return 1
    print(f"{logs} logs, {functions} functions, {suggestions} suggestions: equal")
    return 0


def print_snapshot(path, forget):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as log:
        events, report = v1.read_log(log.read())
    for ref in load(pathlib.Path(forget)) if forget else ():
        events.pop(ref, None)
    sys.stdout.buffer.write(facts(events.values()).encode())
    print(json.dumps(report), file=sys.stderr)
    return 0


def main():
    parser = argparse.ArgumentParser(description="the oracle of rule set v2")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("snapshot", help="print the snapshot of a log")
    command.add_argument("file", help="JSON Lines, gzip if the name ends in .gz")
    command.add_argument("--forget", metavar="FILE", help="JSON array of event refs to forget")
    command = commands.add_parser("vectors", help="check every vector of a directory")
    command.add_argument("directory", type=pathlib.Path)
    args = parser.parse_args()
    if args.command == "vectors":
        return check_vectors(args.directory)
    return print_snapshot(args.file, args.forget)


if __name__ == "__main__":
    sys.exit(main())
