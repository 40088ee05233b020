#!/usr/bin/env python3
"""The oracle: from a log of events to the snapshot of rule set v1, written from the specification.

    python3 oracle/facts.py FILE.jsonl[.gz] [--forget refs.json]

Guarantees: the bytes on stdout are those that docs/formats/fact.md prescribes for the events of
FILE that pass the door (docs/formats/event.md), without those whose refs are listed in refs.json;
stderr holds one line of JSON with the result of each line of FILE. Nothing is accumulated: every
fact is computed from the full list of its observations. No computation uses floats: a double exists
only between its JSON text and its shortest decimal form. Standard library only, and no code is
shared with the program that it checks.
"""

import argparse
import base64
import datetime
import functools
import gzip
import hashlib
import json
import re
import sys
from collections import Counter, defaultdict
from fractions import Fraction
from typing import NamedTuple

RULE_VERSION = "v1"
SIZE_LIMIT = 65536  # bytes of an event, as sent and canonical
DEPTH_LIMIT = 32  # the event itself is 1
PARAMS_LIMIT = 256
NAME_LIMIT = 256  # bytes of id, source and type
TEXT_LIMIT = 1024  # bytes of a text that facts use
INTEGER_LIMIT = 2**53 - 1
USABLE_LIMIT = 10**15  # micro-units
OUTCOMES = ("success", "failed", "denied", "interrupted", "canceled", "unknown")
COUNTED = ("success", "failed")
DAY = 86_400_000_000  # microseconds
EPOCH = datetime.date(1970, 1, 1).toordinal()
END_OF_TIME = (datetime.date(9999, 12, 31).toordinal() + 1 - EPOCH) * DAY
RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)
SALT = re.compile(r"[0-9A-Fa-f]{32}")


class Refused(ValueError):
    """The door refuses a line; the message is the reason."""


class Event(NamedTuple):
    ref: str
    source: str
    type: str
    time: int  # microseconds since 1970, finer digits cut off
    data: dict
    content: bytes  # canonical, without salt: compared to find duplicates


class Observation(NamedTuple):
    event: Event
    outcome: str | None = None
    reason: str | None = None
    params: dict = {}
    value: str | int | None = None  # of a property: a text, or micro-units


class Number(str):
    """The decimal text of a number in a fact."""


# ---- canonical JSON (RFC 8785) -------------------------------------------------------------


def number_text(x):
    """The text of a double as ECMAScript prints it."""
    sign, digits, point = decimal_digits(x)
    if not digits:
        return "0"
    if 0 < point <= 21:
        whole, rest = digits[:point].ljust(point, "0"), digits[point:]
        return sign + whole + ("." + rest if rest else "")
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    mantissa = digits[0] + ("." + digits[1:] if digits[1:] else "")
    return f"{sign}{mantissa}e{point - 1:+d}"


def decimal_digits(x):
    """Sign, digits and point of the shortest form: the value is 0.DIGITS * 10^point."""
    text = repr(x)
    sign = "-" if text.startswith("-") else ""
    mantissa, _, exponent = text.lstrip("-").partition("e")
    whole, _, rest = mantissa.partition(".")
    digits = (whole + rest).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + rest) - len(digits))
    return sign, digits.rstrip("0"), point


def utf16(text):
    return text.encode("utf-16-be")


def canonical(value):
    """RFC 8785 text of a value made of dicts, lists, texts, floats, ints, Numbers and literals."""
    if isinstance(value, dict):
        names = sorted(value, key=utf16)
        return "{" + ",".join(canonical(n) + ":" + canonical(value[n]) for n in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, float):
        return number_text(value)
    return json.dumps(value, ensure_ascii=False)


# ---- the door ------------------------------------------------------------------------------


def refuse_if(condition, reason):
    if condition:
        raise Refused(reason)


def unique_members(pairs):
    members = dict(pairs)
    refuse_if(len(members) != len(pairs), "duplicate key")
    return members


def read_number(text):
    x = float(text)
    refuse_if(x in (float("inf"), float("-inf")), "number overflows a double")
    plain = re.fullmatch(r"-?[0-9]+", number_text(x))
    refuse_if(plain and abs(int(plain[0])) > INTEGER_LIMIT, "integer beyond 2^53-1")
    return x


def read_integer(text):
    """A number without fraction and exponent: a double cannot hold a longer one exactly."""
    refuse_if(abs(float(text)) > INTEGER_LIMIT, "integer beyond 2^53-1")
    return read_number(text)


def refuse_constant(name):
    raise Refused(f"{name} is not JSON")


def read_json(line):
    """Strict JSON of one line; check_tree rejects the rest of what Python tolerates."""
    text = line.decode("utf-8")
    refuse_if(text.startswith("\ufeff"), "byte order mark")
    return json.loads(
        text,
        object_pairs_hook=unique_members,
        parse_float=read_number,
        parse_int=read_integer,
        parse_constant=refuse_constant,
    )


def check_tree(value, depth):
    """Refuses U+0000 and lone surrogates in any text or name, and nesting over the limit."""
    if isinstance(value, str):
        refuse_if("\0" in value, "U+0000")
        refuse_if(any("\ud800" <= c <= "\udfff" for c in value), "lone surrogate")
    elif isinstance(value, (dict, list)):
        refuse_if(depth > DEPTH_LIMIT, "nesting too deep")
        for child in value:
            check_tree(child, depth + 1)
        for child in value.values() if isinstance(value, dict) else ():
            check_tree(child, depth + 1)


def normalise(event):
    """`kind` becomes `type`; source and specversion get their defaults."""
    refuse_if("type" in event and "kind" in event, "type and kind together")
    event = {"source": "import", "specversion": "1.0", **event}
    if "kind" in event:
        event["type"] = event.pop("kind")
    return event


def check_name(event, field):
    name = event.get(field)
    refuse_if(not isinstance(name, str) or not name, f"{field} missing, empty or no text")
    refuse_if(len(name.encode()) > NAME_LIMIT, f"{field} too long")
    refuse_if(any(c < " " or "\x7f" <= c <= "\x9f" for c in name), f"control in {field}")


def is_housekeeping(kind):
    return kind in ("consolidation_run", "forget", "intent") or kind.startswith("ipse.")


def check_attributes(event):
    for field in ("id", "source", "type"):
        check_name(event, field)
    refuse_if(is_housekeeping(event["type"]), "reserved type")
    refuse_if(event["source"] == "ipse", "reserved source")
    refuse_if(event["specversion"] != "1.0", "another specversion")
    salt = event.get("salt", "0" * 32)
    refuse_if(not isinstance(salt, str) or not SALT.fullmatch(salt), "malformed salt")


def check_data(event):
    data = event.get("data", {})
    refuse_if(not isinstance(data, dict), "data is not an object")
    params = data.get("params")
    refuse_if(isinstance(params, dict) and len(params) > PARAMS_LIMIT, "too many params")
    return data


def read_time(text):
    """Microseconds since 1970 in UTC of an RFC 3339 time, finer digits cut off."""
    match = RFC3339.fullmatch(text) if isinstance(text, str) else None
    refuse_if(match is None, "time missing or not RFC 3339")
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    refuse_if(hour > 23 or minute > 59 or second > 59, "no such time, or a leap second")
    days = datetime.date(year, month, day).toordinal() - EPOCH  # ValueError: no such day
    offset_hour, offset_minute = int(match[9] or 0), int(match[10] or 0)
    refuse_if(offset_hour > 23 or offset_minute > 59, "no such offset")
    offset = (offset_hour * 60 + offset_minute) * (-1 if match[8] == "-" else 1)
    seconds = (hour * 60 + minute - offset) * 60 + second
    micros = days * DAY + seconds * 10**6 + int((match[7] or "")[:6].ljust(6, "0"))
    refuse_if(not 0 <= micros < END_OF_TIME, "time outside 1970-9999")
    return micros


def event_ref(source, event_id):
    return "ev_" + hashlib.sha256(f"{source}\n{event_id}".encode()).hexdigest()[:32]


def decode_data(event):
    """Moves a JSON object from `data_base64` to `data`; both together are refused. An event with
    its own salt stays unchanged."""
    encoded = event.get("data_base64")
    refuse_if("data_base64" in event and "data" in event, "data and data_base64")
    if not isinstance(encoded, str) or "salt" in event:
        return event
    try:
        data = read_json(base64.b64decode(encoded, validate=True))
    except ValueError:
        return event
    if not isinstance(data, dict):
        return event
    return {"data": data, **{name: value for name, value in event.items() if name != "data_base64"}}


def admit(line):
    """The event of one line of bytes, or a ValueError: refused."""
    refuse_if(len(line) > SIZE_LIMIT, "too large as sent")
    event = read_json(line)
    refuse_if(not isinstance(event, dict), "not an object")
    event = decode_data(event)
    check_tree(event, 1)
    event = normalise(event)
    check_attributes(event)
    time, data = read_time(event.get("time")), check_data(event)
    salted = canonical({"salt": "0" * 32, **event})
    refuse_if(len(salted.encode()) > SIZE_LIMIT, "too large in canonical form")
    event.pop("salt", None)
    ref = event_ref(event["source"], event["id"])
    content = canonical(event).encode()
    return Event(ref, event["source"], event["type"], time, data, content)


def admit_or_none(line):
    try:
        return admit(line)
    except (ValueError, RecursionError):
        return None


def lines_of(raw):
    """Numbered lines that are not blank; a line ends with LF or CR LF."""
    for number, line in enumerate(raw.split(b"\n"), 1):
        line = line.removesuffix(b"\r")
        if line.strip(b" \t\r"):
            yield number, line


def read_log(raw):
    """The stored events by ref, and the result of each line."""
    events = {}
    report = {"appended": 0, "duplicates": 0, "conflicts": 0, "refused": []}
    for number, line in lines_of(raw):
        event = admit_or_none(line)
        if event is None:
            report["refused"].append(number)
            continue
        first = events.setdefault(event.ref, event)
        same = "duplicates" if first.content == event.content else "conflicts"
        report["appended" if first is event else same] += 1
    return events, report


# ---- numbers -------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def micro(x):
    """Micro-units of a double, or None if it is unusable."""
    v = round(Fraction(repr(x)) * 10**6)  # round of a Fraction is half-even and exact
    return v if abs(v) <= USABLE_LIMIT else None


@functools.lru_cache(maxsize=None)
def cell(v, d):
    """v rounded half-even to d significant digits, symmetric in sign."""
    unit = 10 ** max(len(str(abs(v))) - d, 0)
    size = round(Fraction(abs(v), unit)) * unit
    return -size if v < 0 else size


def decimal_text(num, den, digits=6, mode="half_even"):
    """An exact quotient as decimal text, trailing zeros and a bare point stripped."""
    scaled = Fraction(num * 10**digits, den)
    q = scaled.numerator // scaled.denominator if mode == "floor" else round(scaled)
    whole, rest = divmod(abs(q), 10**digits)
    fraction = f"{rest:0{digits}d}".rstrip("0") if digits else ""
    return Number(("-" if q < 0 else "") + str(whole) + ("." + fraction if fraction else ""))


def units(v):
    return decimal_text(v, 10**6)


def rank(ordered, num, den):
    """The element at rank ceil(n * num / den), from 1."""
    return ordered[-(-len(ordered) * num // den) - 1]


# ---- confidence (section 4) ----------------------------------------------------------------


def wilson(a, n, k):
    """W(a, n; K) in units of 1/10000: the greatest t that meets the condition, by bisection."""
    def holds(t):
        y = 10**4 * (2 * a + k) - 2 * (n + k) * t
        return y >= 0 and y * y * n >= (k * k * n + 4 * k * a * (n - a)) * 10**8

    low, high = 0, 10**4
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def confidence_text(t):
    return decimal_text(t, 10**4, 4, "floor")


def sig(a, b, k):
    return a > b and (a - b) ** 2 >= k * (a + b)


def lg(x):
    return (max(x, 1) - 1).bit_length()


# ---- which events feed which facts (section 2) ---------------------------------------------


def text_or_none(value):
    good = isinstance(value, str) and 1 <= len(value.encode()) <= TEXT_LIMIT
    return value if good else None


def object_or_empty(value):
    return value if isinstance(value, dict) else {}


def usable(value):
    return micro(value) if isinstance(value, float) else None


def usable_params(data):
    read = {name: usable(x) for name, x in object_or_empty(data.get("params")).items()}
    return {name: v for name, v in read.items() if v is not None and text_or_none(name)}


def outcome_of(event):
    if event.type != "execution_result":
        return None
    outcome, success = event.data.get("outcome"), event.data.get("success")
    if outcome is not None:
        return outcome if isinstance(outcome, str) and outcome in OUTCOMES else "unknown"
    if isinstance(success, bool):
        return "success" if success else "failed"
    return None


def property_value(value):
    """A text, micro-units, or None for a value that is not a property value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return text_or_none(value) if isinstance(value, str) else usable(value)


def feeds(event):
    """Every (fact kind, key parts, observation) of one event."""
    if is_housekeeping(event.type):
        return
    skill, target, env, env_short, zone, reason = (
        text_or_none(event.data.get(field))
        for field in ("skill_id", "target_class", "environment", "env", "zone", "failure_reason")
    )
    outcome = outcome_of(event)
    seen = Observation(event, outcome, reason, usable_params(event.data))
    if skill and outcome:
        yield "skill_success_rate", (skill, target or "*", env or env_short or "*"), seen
    if skill and outcome == "failed" and reason:
        yield "interaction_pattern", (skill, target or "*", reason), seen
    if zone and (outcome in COUNTED or event.type == "incident"):
        yield "zone_risk", (zone,), seen
    for name, value in object_or_empty(event.data.get("object")).items():
        value = property_value(value)
        if target and text_or_none(name) and value is not None:
            yield "object_property", (target, name), Observation(event, value=value)


def fact_key(parts):
    return " + ".join(part.replace("\\", "\\\\").replace("+", "\\+") for part in parts)


# ---- the recommended value of a parameter (section 5) --------------------------------------


def tallied(pairs):
    """value -> [successes, failures] of (value, succeeded) pairs."""
    tally = defaultdict(lambda: [0, 0])
    for value, succeeded in pairs:
        tally[value][0 if succeeded else 1] += 1
    return tally


def best_window(cells, k):
    """(start, end) of the best admissible window of [successes, failures] cells, or None."""
    found = []
    limit = len(cells)  # a run that reaches this far from here contains a failing run
    for start in reversed(range(len(cells))):
        s = f = 0
        for end in range(start, limit):
            s, f = s + cells[end][0], f + cells[end][1]
            if sig(f, s, 3):
                limit = end
                break
            if sig(s, f, k):
                found.append((s - f, -f, -start, end))
    if not found:
        return None
    _, _, start, end = max(found)
    return -start, end


def recommend(observed, m):
    """`recommended` of one parameter, from its (micro, succeeded) pairs, or None."""
    fine = tallied((cell(v, 4), won) for v, won in observed)
    coarse = tallied((cell(cell(v, 4), 2), won) for v, won in observed)
    order = sorted(coarse)
    k_b = 3 + 2 * (lg(m) + lg(len(order)))
    window = best_window([coarse[c] for c in order], k_b)
    if window is None:
        return None
    inside = order[window[0]:window[1] + 1]
    s_in, f_in = (sum(coarse[c][i] for c in inside) for i in (0, 1))
    worked = {c for c in inside if coarse[c][0] > coarse[c][1]}
    kept = [v for v in sorted(fine) if cell(v, 2) in worked and fine[v][0] > fine[v][1]]
    successes = [v for v in kept for _ in range(fine[v][0])]
    return {
        "value": units(rank(successes, 1, 2)),
        "low": units(kept[0]),
        "high": units(kept[-1]),
        "successes": s_in,
        "failures": f_in,
        "confidence": confidence_text(wilson(s_in, s_in + f_in, k_b)),
    }


# ---- values (section 6) --------------------------------------------------------------------


def summary(values):
    """n, mean and quartiles of micro-units."""
    fine = sorted(cell(v, 4) for v in values)
    quartiles = {"q1": (1, 4), "median": (1, 2), "q3": (3, 4)}
    return {
        "n": len(values),
        "mean": decimal_text(sum(values), len(values) * 10**6),
        **{name: units(rank(fine, *p)) for name, p in quartiles.items()},
    }


def by_param(observations):
    """name -> list of (micro, succeeded)."""
    columns = defaultdict(list)
    for o in observations:
        for name, v in o.params.items():
            columns[name].append((v, o.outcome == "success"))
    return columns


def if_any(name, value):
    return {name: value} if value else {}


def most_common(texts):
    """(text, count): highest count, then smallest by UTF-8 bytes."""
    return min(Counter(texts).items(), key=lambda item: (-item[1], item[0].encode()))


def top_reason(name, observations):
    """Reasons count from failed results and incidents only."""
    adverse = [o for o in observations if o.reason and is_adverse(o)]
    if not adverse:
        return {}
    reason, n = most_common(o.reason for o in adverse)
    return {name: {"reason": reason, "n": n}}


def is_adverse(o):
    return o.outcome == "failed" or o.event.type == "incident"


def skill_value(observations):
    counted = [o for o in observations if o.outcome in COUNTED]
    uncounted = Counter(o.outcome for o in observations if o.outcome not in COUNTED)
    n, s = len(counted), sum(o.outcome == "success" for o in counted)
    if n == 0:
        return counted, {}
    columns = by_param(counted)
    m = sum(len(column) >= 3 for column in columns.values())
    params, bounds = {}, [wilson(max(s, n - s), n, 3)]
    for name, column in columns.items():
        params[name] = summary([v for v, _ in column])
        best = recommend(column, m)
        params[name] |= if_any("recommended", best)
        if best and len(column) == n:
            agree = best["successes"] + (n - s - best["failures"])
            bounds.append(wilson(agree, n, 3 + 2 * lg(m)))
    return counted, {
        "confidence": confidence_text(max(bounds)),
        "successes": s,
        "failures": n - s,
        "success_rate": decimal_text(s, n),
        **if_any("params", params),
        **top_reason("top_failure_reason", counted),
        **if_any("uncounted", dict(uncounted)),
    }


def pattern_value(observations):
    n = len(observations)
    columns = by_param(observations)
    params = {name: summary([v for v, _ in column]) for name, column in columns.items()}
    confidence = confidence_text(wilson(n, n, 3))
    return observations, {"confidence": confidence, **if_any("params", params)}


def zone_value(observations):
    n, adverse = len(observations), sum(map(is_adverse, observations))
    incidents = sum(o.event.type == "incident" for o in observations)
    return observations, {
        "confidence": confidence_text(wilson(max(adverse, n - adverse), n, 3)),
        "adverse": adverse,
        "failures": adverse - incidents,
        "incidents": incidents,
        "risk": decimal_text(adverse, n),
        **top_reason("top_reason", observations),
    }


def agreeing_numbers(numbers):
    """The number of fine cells within 10 % of the median cell."""
    fine = sorted(cell(v, 4) for v in numbers)
    median = rank(fine, 1, 2) if fine else 0
    return sum(10 * abs(v - median) <= abs(median) for v in fine)


def property_fact_value(observations):
    numbers = [o.value for o in observations if isinstance(o.value, int)]
    texts = [o.value for o in observations if isinstance(o.value, str)]
    value = {}
    if numbers:
        value["numeric"] = summary(numbers)
    agree = agreeing_numbers(numbers)
    if texts:
        top, count = most_common(texts)
        value["categorical"] = {"n": len(texts), "top": {"value": top, "n": count}}
        agree = max(agree, count)
    value["confidence"] = confidence_text(wilson(agree, len(observations), 3))
    return observations, value


VALUES = {
    "skill_success_rate": skill_value,
    "interaction_pattern": pattern_value,
    "zone_risk": zone_value,
    "object_property": property_fact_value,
}


# ---- the snapshot (section 7) --------------------------------------------------------------


def time_text(micros):
    days, rest = divmod(micros, DAY)
    seconds, fraction = divmod(rest, 10**6)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    date = datetime.date.fromordinal(days + EPOCH).isoformat()
    return f"{date}T{clock}" + (f".{fraction:06d}Z" if fraction else "Z")


def fact_line(kind, key, observations):
    """The line of one fact, or nothing if no event supports it."""
    supporting, value = VALUES[kind](observations)
    if not supporting:
        return ""
    time, ref = max((o.event.time, o.event.ref) for o in supporting)
    value |= {
        "n_observations": len(supporting),
        "last_supporting_event_id": ref,
        "rule_version": RULE_VERSION,
    }
    fact = {"fact_key": key, "fact_kind": kind, "last_updated": time_text(time), "value": value}
    return canonical(fact) + "\n"


def snapshot(events):
    """The snapshot bytes of any collection of distinct events."""
    groups = defaultdict(list)
    for event in events:
        for kind, parts, observation in feeds(event):
            groups[kind, fact_key(parts)].append(observation)
    ordered = sorted(groups, key=lambda fact: (fact[0].encode(), fact[1].encode()))
    return "".join(fact_line(*fact, groups[fact]) for fact in ordered).encode()


def main():
    parser = argparse.ArgumentParser(description="events in, snapshot of rule set v1 out")
    parser.add_argument("file", help="JSON Lines, gzip if the name ends in .gz")
    parser.add_argument("--forget", metavar="FILE", help="JSON array of event refs to forget")
    args = parser.parse_args()
    opener = gzip.open if args.file.endswith(".gz") else open
    with opener(args.file, "rb") as log:
        events, report = read_log(log.read())
    if args.forget:
        with open(args.forget, "rb") as refs:
            for ref in json.load(refs):
                events.pop(ref, None)
    sys.stdout.buffer.write(snapshot(events.values()))
    print(json.dumps(report), file=sys.stderr)


if __name__ == "__main__":
    main()
