#!/usr/bin/env python3
"""An adversarial random log, as JSON Lines on stdout.

    python3 oracle/generate.py SEED [N]

Guarantees: the same SEED and N give the same bytes, on any machine with Python 3.11. About N lines
(default 400), of which about 3 % are to be refused; the rest feed all four fact kinds under few
keys. SEED modulo 6 selects the profile: one skill with a window, thresholds met exactly, zones,
objects, odd texts, and everything at once. Only `facts.py` computes the expected result of a log:
this program knows the edge cases of the rules, not the rules.
"""

import datetime
import json
import random
import sys
from decimal import Decimal

PROFILES = ("skill", "threshold", "zones", "objects", "texts", "mixed")
BASE_TIME = datetime.datetime(2026, 5, 6, 10, 0, 0)
FRACTIONS = ("", "", "", "", ".0", ".000", ".000000", ".0000009", ".1", ".100000", ".1000001",
             ".12345", ".123456", ".1234561", ".1234567", ".999999", ".9999999999", ".000001000001")
OFFSETS = (0, 0, 0, 60, 120, -330, 345, -480, 1439, -1439)
EDGE_TIMES = ("1970-01-01T00:00:00Z", "1969-12-31T23:30:00-01:00", "2024-02-29T12:00:00z",
              "9999-12-31T23:59:59.999999999Z", "2000-02-29t00:00:00-00:00",
              "9999-12-31T23:59:59-00:00", "1970-01-01T05:30:00.0000001+05:30")
ODD_TEXTS = (
    "*", "+", "\\", "a+b", "a + b", "a \\+ b", "\\\\+", "a", "b", '"', 'q"uote', "tab\there",
    "new\nline", "\x01", "\x1f\x7f\x80", "\u2028", "\ue000", "\uf8ff", "\uffee", "\ufb1d",
    "\U0001f600", "\U00010000", "\u00e9", "e\u0301", " lead", "Lead", "lead", "true", "false",
    "null", "5", "0", "/", "</script>", "\u200b", "\ufeff", "\u0131", "")
LONG_TEXTS = ("n" * 1024, "n" * 1025, "\u0444" * 512, "\u0444" * 512 + "x", "\U0001f600" * 256,
              "\U0001f600" * 256 + "y", "\uffee" * 341 + "z", "\uffee" * 341 + "zz")
ODD_NUMBERS = """
    0 -0 0.0 -0.0 1 -1 25 25.0 24.7 24.65 24.75 24.85 24.700000000000003 0.1 0.2 0.3
    0.30000000000000004 0.1000000000000000055511151231257827 12345 12355 -12345 1234.5 1235.5
    0.12345 0.12355 99995 99985 99.995 9.9995 999.95 1.25 1.35 12.5 13.5 -12.5 12.45 12.4499
    0.125 0.135 5e-7 0.0000005 0.00000051 1.5e-6 2.5e-6 -1.5e-6 -5e-7 0.0000015 1e-7 1e-6 5e-324
    2.2e-308 1e-400 1e9 -1e9 1000000000 1000000000.0000005 1000000000.0000004 1000000000.000001
    999999999.9999995 -1000000000.0000005 999999999.9999994 123456.789012 123456789.123456789 1e10
    -1e10 1000000001 1e300 -1e300 1.7976931348623157e308 1e21 -1e21 1000000000000000000000.0
    9007199254740991 -9007199254740991 9007199254740991.4 4503599627370495.5 0.000001 -0.000001
    3.3333333333333335 123449999 123450000 1e3 1E+3 1.5E-3 0.1e1 333333.333333 0.9999995
    0.99999949""".split()
NON_NUMBERS = ("5", True, False, None, ["1"], {"x": "1"}, "")
NON_TEXTS = (None, True, False, [], {}, ["a"], {"a": "b"})
OUTCOMES = ("success", "failed", "success", "failed", "denied", "interrupted", "canceled",
            "unknown", "Success", "weird", "", " success", None, True, ["failed"], {})
OTHER_TYPES = ("operator_note", "Execution_Result", "execution_skipped", "ipsex", "Intent",
               "forgets", "execution_result ", "\u7f51", "incidents")


class Num(str):
    """The text of a JSON number, which may be respelled with the same value."""


# ---- writing JSON in many spellings --------------------------------------------------------


def respell(rng, text):
    """Another spelling of the same exact decimal, so of the same double."""
    sign, digits, exponent = Decimal(text).as_tuple()
    if text.startswith("-0") or len(text) > 30 or not any(digits):
        return text
    whole = ("-" if sign else "") + "".join(map(str, digits))
    scientific = f"{whole}{rng.choice('eE')}{exponent}"
    padded = f"{whole}0{rng.choice('eE')}{exponent - 1}"
    plain = f"{Decimal(text):f}" if -30 < exponent < 30 else scientific
    if plain.lstrip("-").isdigit() and abs(int(plain)) > 2**53 - 1:
        plain += ".0"  # the door refuses the integer
    longer = plain + ("00" if "." in plain else ".0") if "e" not in plain.lower() else plain
    return rng.choice((text, scientific, padded, plain, longer))


def escape(rng, char):
    pair = char.encode("utf-16-be").hex()
    units = [pair[i:i + 4] for i in range(0, len(pair), 4)]
    return "".join("\\u" + rng.choice((unit, unit.upper())) for unit in units)


def write_text(rng, text):
    plain = json.dumps(text, ensure_ascii=rng.random() < 0.2)
    if rng.random() < 0.95 or len(text) > 64:
        return plain
    return '"' + "".join(escape(rng, c) for c in text) + '"'


def write(rng, value, gaps):
    """JSON text of a value, with members in random order and white space chosen from `gaps`."""
    def gap():
        return rng.choice(gaps)

    if isinstance(value, Num):
        return respell(rng, value) if rng.random() < 0.2 else value
    if isinstance(value, str):
        return write_text(rng, value)
    if isinstance(value, dict):
        items = [f"{gap()}{write_text(rng, k)}{gap()}:{gap()}{write(rng, v, gaps)}{gap()}"
                 for k, v in rng.sample(list(value.items()), len(value))]
        return "{" + (",".join(items) or gap()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(gap() + write(rng, v, gaps) + gap() for v in value) + "]"
    return json.dumps(value)


def dress(rng, event):
    """One line for an event: `kind` or `type`, with or without defaults and salt."""
    worn = dict(event)
    if rng.random() < 0.5:
        worn["kind"] = worn.pop("type")
    if worn["source"] == "import" and rng.random() < 0.7:
        del worn["source"]
    if rng.random() < 0.4:
        worn["specversion"] = "1.0"
    if rng.random() < 0.3:
        digits = "0123456789abcdef" if rng.random() < 0.7 else "0123456789ABCDEFabcdef"
        worn["salt"] = "".join(rng.choice(digits) for _ in range(32))
    gaps = rng.choice((("",), ("",), (" ",), ("", " ", "\t", "\r")))
    return write(rng, worn, gaps).encode()


# ---- the parts of events -------------------------------------------------------------------


def spell_time(rng):
    """Few instants, so that many are equal or late; many spellings of each."""
    if rng.random() < 0.03:
        return rng.choice(EDGE_TIMES)
    offset = rng.choice(OFFSETS)
    instant = BASE_TIME + datetime.timedelta(seconds=rng.choice((0, 0, 1, 2, 60, 86399)))
    return spell_instant(rng, instant, offset)


def spell_instant(rng, instant, offset):
    """One spelling of an instant in UTC, at an offset in minutes and with a random fraction."""
    local = instant + datetime.timedelta(minutes=offset)
    hours, minutes = divmod(abs(offset), 60)
    zone = rng.choice("Zz" if offset == 0 else "+")
    if offset or rng.random() < 0.2:
        zone = f"{'-' if offset < 0 else '+'}{hours:02d}:{minutes:02d}"
    day, clock = local.strftime("%Y-%m-%d"), local.strftime("%H:%M:%S")
    return day + rng.choice("TTTt") + clock + rng.choice(FRACTIONS) + zone


def odd_text(rng):
    return rng.choice(LONG_TEXTS if rng.random() < 0.08 else ODD_TEXTS)


def odd_field(rng):
    if rng.random() < 0.75:
        return odd_text(rng)
    return rng.choice(NON_TEXTS + (Num("7"),))


def random_double(rng):
    size = 10.0 ** rng.randint(-8, 10)
    return repr(rng.uniform(-size, size))


def odd_number(rng):
    return Num(rng.choice(ODD_NUMBERS) if rng.random() < 0.8 else random_double(rng))


def odd_value(rng):
    if rng.random() < 0.8:
        return odd_number(rng)
    return rng.choice(NON_NUMBERS)


def some(rng, names, chance):
    return {name: None for name in names if rng.random() < chance}


class Habits:
    """The ingredients of one log: few keys, a profile, and the rate of odd values."""

    def __init__(self, rng, profile):
        self.rng, self.profile = rng, profile
        few = {"skill": 1, "threshold": 2, "zones": 2, "objects": 2}.get(profile, 3)
        self.stray = {"texts": 0.5, "mixed": 0.2, "zones": 0.1, "objects": 0.1}.get(profile, 0.02)
        self.skills = self.names("skill.", few)
        self.targets, self.envs = self.names("class.", few), self.names("env", few)
        self.zones, self.reasons = self.names("zone-", few + 1), self.names("reason ", 4)
        wide = rng.choice((1, 2, 3)) if profile in ("skill", "threshold") else rng.choice(
            (0, 1, 2, 3, 5, 9, 12, 40))
        self.params = self.names("p", wide)
        self.properties = self.names("prop", rng.choice((2, 4, 8)))
        self.grids = {name: self.grid() for name in self.params + self.properties}
        self.first = rng.choice((0, 0.5, 0.9))
        self.good = rng.choice((0.7, 0.85, 0.95, 1.0))
        self.bad = rng.choice((0.0, 0.1, 0.3, 0.5))
        self.sources = rng.choice((
            ("import",), ("import", "robot-7"), ("robot-7", "r\u00f6b \ue000")))

    def names(self, stem, count):
        odd = [text for text in ODD_TEXTS if text] if self.rng.random() < 0.5 else []
        plain = [f"{stem}{i}" for i in range(count)]
        return self.rng.sample(plain + self.rng.sample(odd, min(len(odd), count)), count)

    def grid(self):
        """Values around a base, close enough to share coarse cells or far enough not to."""
        rng = self.rng
        base = Decimal(rng.choice(("10", "24.6", "0.001", "-5", "1000", "99.9", "0.1234", "-0.02")))
        step = Decimal(rng.choice(("1", "0.05", "0.5", "0.0001", "10", "0.0000005")))
        return [format(base + i * step, "f") for i in range(rng.choice((2, 4, 8, 16)))]

    def field(self, names):
        """An odd value, or one of a few names, the first more often than all others."""
        if self.rng.random() < self.stray:
            return odd_field(self.rng)
        return names[0] if self.rng.random() < self.first else self.rng.choice(names)

    def value(self, name):
        """A number of the grid, more often from its middle, or an odd value."""
        if name not in self.grids or self.rng.random() < self.stray / 2:
            return odd_value(self.rng)
        grid = self.grids[name]
        return Num(grid[self.rng.randrange(len(grid))])

    def values(self, names):
        rng = self.rng
        if rng.random() < self.stray / 5:
            return rng.choice(NON_TEXTS + ("params",))
        chance = rng.choice((1, 1, 1, 0.7)) if self.stray > 0.05 else 1
        chosen = some(rng, names, chance)
        if rng.random() < self.stray:
            chosen[odd_text(rng)] = None
        return {name: self.value(name) for name in chosen}

    def works(self, params):
        """The first parameter decides: a window works, except for a hole in it; with noise."""
        rng = self.rng
        chance = rng.choice((self.good, self.bad))
        if self.params and isinstance(params, dict) and self.params[0] in params:
            grid, value = self.grids[self.params[0]], params[self.params[0]]
            place = grid.index(value) if value in grid else 0
            inside = len(grid) // 4 <= place < len(grid) - len(grid) // 4
            chance = self.good if inside and place != len(grid) // 2 + 1 else self.bad
        return rng.random() < chance


# ---- events --------------------------------------------------------------------------------


def outcome_fields(habits, works):
    rng = habits.rng
    if rng.random() < 0.15 + habits.stray / 2:
        fields = {"outcome": rng.choice(OUTCOMES)}
        return fields | ({"success": works} if rng.random() < 0.4 else {})
    if rng.random() < 0.03:
        return {"success": rng.choice((None, "yes", Num("1"), [], "true"))}
    if rng.random() < 0.7:
        return {"success": works}
    return {"outcome": "success" if works else "failed"}


def result_data(habits):
    rng, data = habits.rng, {}
    if habits.params or rng.random() < 0.2:
        data["params"] = habits.values(habits.params)
    works = habits.works(data.get("params"))
    data |= outcome_fields(habits, works)
    if rng.random() < 0.97:
        data["skill_id"] = habits.field(habits.skills)
    if rng.random() < 0.8:
        data["target_class"] = habits.field(habits.targets)
    for name in ("environment", "env"):
        if rng.random() < (0.8 if name == "environment" else 0.3):
            data[name] = habits.field(habits.envs)
    if rng.random() < (0.9 if habits.profile == "zones" else 0.3):
        data["zone"] = habits.field(habits.zones)
    if rng.random() < (0.2 if works else 0.8):
        data["failure_reason"] = habits.field(habits.reasons)
    if rng.random() < (0.5 if habits.profile == "objects" else 0.1):
        data["object"] = object_fields(habits)
    return data


def object_fields(habits):
    rng = habits.rng
    if rng.random() < 0.05:
        return rng.choice(NON_TEXTS)
    names = some(rng, habits.properties, rng.choice((0.5, 1)))
    if rng.random() < habits.stray:
        names[odd_text(rng)] = None
    return {name: property_of(habits, name) for name in names}


def property_of(habits, name):
    rng = habits.rng
    kind = rng.choice(("grid", "grid", "near", "near", "odd", "text", "boolean", "other"))
    if kind == "grid":
        return habits.value(name)
    if kind == "near":  # around the edge of 10 % of the median
        return Num(rng.choice(("10", "10", "10", "9", "11", "9.001", "8.999", "11.01", "0", "-10")))
    if kind == "odd":
        return odd_value(rng)
    if kind == "text":
        return odd_text(rng) if rng.random() < 0.3 else rng.choice(habits.reasons + ["true"])
    if kind == "boolean":
        return rng.random() < 0.6
    return rng.choice((None, [], {"mass": Num("1")}, [Num("2")]))


def incident_data(habits):
    rng = habits.rng
    data = {"zone": habits.field(habits.zones)} if rng.random() < 0.9 else {}
    if rng.random() < 0.6:
        data["failure_reason"] = habits.field(habits.reasons)
    if rng.random() < 0.3:
        data |= {"skill_id": habits.field(habits.skills)} | outcome_fields(habits, True)
    return data


def observation_data(habits):
    data = {"object": object_fields(habits)}
    if habits.rng.random() < 0.95:
        data["target_class"] = habits.field(habits.targets)
    return data


def formless_data(habits):
    rng = habits.rng
    if rng.random() < 0.5:
        return result_data(habits)  # the structure fits, the type does not
    note, deep = {"note": "free text \x02"}, {"deep": [[[[Num("1")]]]]}
    return rng.choice(({}, note, deep, {"n": odd_number(rng)}))


def random_event(habits):
    """type and data of one event."""
    weights = {"zones": (50, 40, 5, 5), "objects": (25, 5, 65, 5), "skill": (95, 2, 2, 1),
               "threshold": (95, 2, 2, 1)}.get(habits.profile, (60, 15, 17, 8))
    makers = (("execution_result", result_data), ("incident", incident_data),
              (habits.rng.choice(("observation", "sighting")), observation_data),
              (habits.rng.choice(OTHER_TYPES), formless_data))
    name, make = habits.rng.choices(makers, weights)[0]
    return name, make(habits)


# ---- thresholds met exactly ----------------------------------------------------------------


def boundary(rng, k):
    """(more, fewer) with (more - fewer)^2 = k * (more + fewer), or a neighbour of it."""
    j = rng.choice((1, 1, 1, 2, 2, 3) if k < 6 else (1, 1, 2))
    more, fewer = (k * j * j + k * j) // 2, (k * j * j - k * j) // 2
    return more + rng.choice((0, 0, -1, 1)), max(fewer + rng.choice((0, 0, 0, -1, 1)), 0)


def fine_value(rng, coarse, power):
    """A value of (mostly) one coarse cell: up to four digits around two."""
    shift = rng.choice((0, 0, 0, 0, 5, -5, 30, -40, 49, -49))
    if rng.random() < 0.02:
        shift = rng.choice((50, -50))
    return Num(format(Decimal(coarse * 100 + shift).scaleb(power), "f"))


def threshold_cells(rng, wide, count):
    """`count` cells of (successes, failures), each at the edge of being good or bad."""
    k = 3 + 2 * ((wide - 1).bit_length() + (count - 1).bit_length())
    twin, cells = boundary(rng, k), []
    for _ in range(count):
        kind = rng.choice(("twin", "good", "bad", "bad", "few"))
        more, fewer = {"twin": twin, "good": boundary(rng, k), "bad": boundary(rng, 3)[::-1],
                       "few": (rng.randint(0, 2), rng.randint(0, 2))}[kind]
        cells.append((more, fewer))
    return cells


def threshold_results(habits, number):
    """All results of one fact, built cell by cell around the thresholds."""
    rng = habits.rng
    wide, count = rng.choice((1, 1, 2, 3, 4, 5, 12)), rng.choice((1, 1, 2, 2, 3, 4, 5, 9))
    start, power = rng.randint(10, 80), rng.choice((-8, -4, -3, -2, -1, 0, 2))
    sign, results = rng.choice((1, 1, 1, -1)), []
    for i, (s, f) in enumerate(threshold_cells(rng, wide, count)):
        for works in [True] * s + [False] * f:
            params = {"x": fine_value(rng, sign * (start + 2 * i), power)}
            params |= {f"other{p}": Num(str(rng.randint(1, 3))) for p in range(1, wide)}
            if rng.random() < habits.stray:
                del params["x"]
            results.append({"skill_id": f"t{number}", "success": works, "params": params})
    return results


def threshold_plan(habits, room):
    plan = []
    for number in range(200):
        results = threshold_results(habits, number)
        if len(plan) + len(results) <= room:
            plan += results
    habits.rng.shuffle(plan)
    return plan


# ---- lines at the edge of the door, accepted and refused -----------------------------------


def quoted(text):
    return f'"{text}"'


GOOD = {"id": '"ID"', "source": '"robot-9"', "type": '"execution_result"',
        "time": '"2026-05-06T10:00:00Z"', "data": '{"skill_id":"door","success":true}'}
REFUSED_TIMES = """
    2026-05-06T10:00:60Z 2026-06-30T23:59:60Z 2026-05-06T24:00:00Z 2026-05-06T10:60:00Z
    2026-02-29T10:00:00Z 2026-13-01T10:00:00Z 2026-00-10T10:00:00Z 2026-05-00T10:00:00Z 2026-05-06
    2026-05-06T10:00:00 2026-05-06T10:00Z 2026-05-06T10:00:00.Z 2026-05-06T10:00:00,5Z
    2026-05-06T10:00:00+24:00 2026-05-06T10:00:00+0200 2026-05-06T10:00:00+02 20260506T100000Z
    2026-05-06T10:00:00+02:60 2026-W19-3T10:00:00Z 1969-12-31T23:59:59.999999Z 1778061600
    1970-01-01T00:00:00+00:01 9999-12-31T23:59:59-00:01 10000-01-01T00:00:00Z 2026-5-6T10:00:00Z
    0000-01-01T00:00:00Z 0001-01-01T00:00:00+01:00 -2026-05-06T10:00:00Z +2026-05-06T10:00:00Z
    2026-05-06T10:00:00ZZ 2026-05-06_10:00:00Z 2026-05-06T10:00:00\u221202:00
    \u0662026-05-06T10:00:00Z 1900-02-29T10:00:00Z 2100-02-29T00:00:00Z""".split()
REFUSED_FIELDS = {
    "id": ('""', "7", "null", '"a\\u0000b"', '"a\\n"', '"\\u007f"', '"\\u0085"', quoted("i" * 257),
           quoted("\u0444" * 128 + "i")),
    "source": ('""', "null", '"ipse"', '"a\\tb"'),
    "type": ('""', "[]", '"forget"', '"intent"', '"consolidation_run"', '"ipse."', '"ipse.x"',
             '"\\u009f"'),
    "kind": ('"execution_result"', "null"),
    "specversion": ('"0.3"', "1.0", "null", '"1.0 "', '"1"'),
    "salt": ('""', "null", quoted("0" * 31), quoted("0" * 33), quoted("g" * 32),
             quoted("\uff10" * 32)),
    "time": ("null", "1778061600", '"2026-05-06 10:00:00Z"', '"2026-05-06T10:00:00Z "',
             '"2026-05-06T10:00:00Z\\n"', '""'),
    "data": ("null", "[]", '"text"', "1", "false"),
    "x\\u0000": ("1",),
    "x\\ud800": ("1",),
    "\\u0069d": ('"twice"',),
}
REFUSED_VALUES = (
    "9007199254740992", "-9007199254740992", "9007199254740993", "9007199254740991.5", "1e16",
    "1e17", "-1e20", "999999999999999934463", "1e400", "-1e309", "1.7976931348623159e308",
    "1" * 21, "1" * 22, "-" + "1" * 22, "1000000000000000000000", "9" * 400, "NaN", "Infinity",
    "-Infinity", "nan", "01", "-01", "+1", "1.", ".5", "1e", "1e+",
    "--1", "-", "0x10", "1_000", "1,", "True", "None", "nul", "undefined", "'a'", '"\\ud800"',
    '"\\udc00"', '"\\udc00\\ud800"', '"\\ud83d\\u0041"', '"\\u0000"', '"\\x41"', '"\\u12g4"',
    '"\\u+123"', '"\\u 12"', '"\t"', '"\x01"', '"a', "[1,]", "[1 2]", '{"a":1,"a":1}',
    '{"a":1,"\\u0061":2}', '{"a":1,}', "{a:1}", '{"a"}', "[" * 31 + "]" * 31,
    "[" * 5000 + "]" * 5000, "[" * 5000, "\u0661", "1 // x", "/**/1", "\u00a01", "\x0c1",
    "\u20281", '"\x00"')
ACCEPTED_VALUES = (
    "9007199254740991", "-9007199254740991", "9007199254740991.4", "1e21", "-0", "-0.0e-0",
    "1000000000000000000000.0", "1e+22", "-1.5e300", "1e-400", "1E+0021", "0e9999", "[ ]",
    "[" * 30 + "]" * 30, '{"a":' * 29 + "{}" + "}" * 29, '"\\ud83d\\ude00"', '"\x7f\\u001f\\/"',
    '{"a":1,"A":2}', '"\ufeff"', '{"":"","\\u00e9":1,"e\\u0301":2}')
ACCEPTED_FIELDS = {
    "id": (quoted("\u0444" * 128), '"\u00a0\u2028*+\\\\"'),
    "source": ('"ipse.x"', '"IPSE"'),
    "type": ('"ipse"', '"Forget"'),
    "specversion": ('"1.0"',),
    "salt": (quoted("aB" * 16),),
    "data": ('{"params":[' + ",".join(["1"] * 300) + "]}",),
    "subject": ("null",),
    "data_base64": ('"AA=="',),
    "Extension-With.Odd name": ('{"a":[1]}',),
}
REFUSED_LINES = (
    b"{", b"[]", b"null", b'"event"', b"{}", b"7", b"\xef\xbb\xbf{}", b"not json", b"\x0b",
    b"\xc2\xa0", b"\xff", b"{}{}", b"\x00", b"// comment", b"[" * 70000)


def door_line(number, **fields):
    """One compact line; a field set to None is omitted."""
    event = GOOD | {"id": f'"door-{number}"'} | fields
    return ("{" + ",".join(f'"{k}":{v}' for k, v in event.items() if v is not None) + "}").encode()


def sized_line(number, size, complete):
    """A line of exactly `size` bytes; a complete one is already canonical."""
    extra = {"salt": '"' + "0" * 32 + '"', "specversion": '"1.0"'} if complete else {}
    fields = {"data": '{"pad":""}', **extra}
    pad = size - len(door_line(number, **fields))
    return door_line(number, **fields | {"data": '{"pad":"' + "x" * pad + '"}'})


def params_line(number, count):
    params = ",".join(f'"p{i}":{i}' for i in range(count))
    return door_line(number, data='{"skill_id":"wide","success":true,"params":{' + params + "}}")


def pick(rng, table):
    """One field of a table with one of its tokens, each token as likely as any other."""
    name, token = rng.choice([(name, token) for name in table for token in table[name]])
    return {name: token}


def value_line(number, token):
    return door_line(number, data='{"skill_id":"door","success":true,"v":' + token + "}")


def refused_line(rng, number):
    kind = rng.choice(("time", "field", "field", "value", "value", "line", "absent", "bytes"))
    if kind == "time":
        return door_line(number, time=json.dumps(rng.choice(REFUSED_TIMES), ensure_ascii=False))
    if kind == "field":
        return door_line(number, **pick(rng, REFUSED_FIELDS))
    if kind == "value":
        return value_line(number, rng.choice(REFUSED_VALUES))
    if kind == "absent":
        return door_line(number, **{rng.choice(("id", "type", "time")): None})
    return rng.choice(REFUSED_LINES) if kind == "line" else refused_bytes(rng, number)


def refused_bytes(rng, number):
    return rng.choice(all_refused_bytes(number))


def all_refused_bytes(number):
    good = door_line(number)
    return (
        good + b"x", good + good, good + b",", good[:-1], good + b"\x00", good + b"\x0c",
        b"\xef\xbb\xbf" + good, b"[" + good + b"]", b"\xc2\xa0" + good, good + b" " * 65536,
        good.replace(b"door", b"do\xffor", 1), good.replace(b"door", b"\xed\xa0\x80", 1),
        good.replace(b"door", b"\xc0\x80", 1), params_line(number, 257),
        sized_line(number, 65537, True), sized_line(number, 65536, False))


def edge_line(rng, number):
    """A line that the door just accepts."""
    kind = rng.choice(("field", "value", "value", "bytes", "absent"))
    if kind == "field":
        return door_line(number, **pick(rng, ACCEPTED_FIELDS))
    if kind == "value":
        return value_line(number, rng.choice(ACCEPTED_VALUES))
    if kind == "absent":
        return door_line(number, **{rng.choice(("source", "data")): None})
    return rng.choice(all_edge_bytes(number))


def all_edge_bytes(number):
    good = door_line(number)
    return (b" \t" + good + b" \r", good + b"\r", params_line(number, 256),
            sized_line(number, 65536, True), good + b" " * (65536 - len(good)))


# ---- the log -------------------------------------------------------------------------------


def changed(rng, event, number):
    """The same name with other content."""
    other = dict(event)
    kind = rng.choice(("time", "data", "type", "extension", "no data"))
    if kind == "time":
        same_instant = other["time"].replace("Z", "+00:00")
        other["time"] = same_instant if "Z" in other["time"] else "2026-01-01T00:00:00Z"
    elif kind == "type":
        other["type"] += "_"
    elif kind == "extension":
        other["extension"] = f"v{number}"
    elif kind == "no data":
        del other["data"]
    else:
        other["data"] = other["data"] | {"changed": Num(str(number))}
    return other


class Log:
    """Writes lines one by one; remembers them to repeat and to contradict them."""

    def __init__(self, rng, profile, room):
        self.rng, self.room, self.written = rng, room, []
        self.habits = Habits(rng, profile)
        share = {"threshold": 0.8}.get(profile, 0)
        self.plan = threshold_plan(self.habits, int(room * share))

    def fresh(self, number):
        rng = self.rng
        if self.plan:
            name, data = "execution_result", self.plan.pop()
        else:
            name, data = random_event(self.habits)
        event = {"id": f"{number:x}" if rng.random() < 0.9 else f"\U0001f600 \ue000 {number}",
                 "source": rng.choice(self.habits.sources), "type": name,
                 "time": spell_time(rng), "data": data}
        if rng.random() < 0.05:
            event["subject"] = odd_field(rng)
        self.written.append(event)
        return dress(rng, event)

    def line(self, number):
        rng, dice = self.rng, self.rng.random()
        if dice < 0.03:
            return refused_line(rng, number)
        if dice < 0.05:
            return edge_line(rng, number)
        if dice < 0.06:
            return rng.choice((b"", b"  ", b"\t\r"))
        if dice < 0.10 and self.written:
            return dress(rng, rng.choice(self.written))
        if dice < 0.13 and self.written:
            return dress(rng, changed(rng, rng.choice(self.written), number))
        return self.fresh(number)


def main():
    seed = int(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    log = Log(random.Random(seed), PROFILES[seed % len(PROFILES)], count)
    for number in range(count):
        ending = b"\r\n" if log.rng.random() < 0.01 else b"\n"
        sys.stdout.buffer.write(log.line(number) + ending)


if __name__ == "__main__":
    main()
