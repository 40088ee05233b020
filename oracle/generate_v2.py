#!/usr/bin/env python3
"""A random log that lasts many days and in which the world changes, as JSON Lines on stdout.

    python3 oracle/generate_v2.py SEED [N]

Guarantees: the same SEED and N give the same bytes, on any machine with Python 3.11. About N lines
(default 500) from several sources, with rates that change on some days, windows of parameters that
move, zones with incidents, late events, equal times and times at both ends of a day. SEED modulo 6
selects the profile: changes, band, sources, sparse, zones, odd. The spelling of lines, and the
lines that the door refuses, are those of `generate.py`. Only `v2.py` computes the expected result
of a log: this program knows the edge cases of the rules, not the rules.
"""

import datetime
import random
import sys
from decimal import Decimal

import generate
from generate import Num

PROFILES = ("changes", "band", "sources", "sparse", "zones", "odd")
BASES = {"zones": "zones", "odd": "mixed"}  # the profile of `generate.py` to begin with
LAST_DAY = datetime.datetime(2026, 5, 6)  # the day of the door's lines of `generate.py`
CLOCKS = (0, 0, 1, 43200, 43200, 43201, 86398, 86399, 86399)  # seconds; few, so that many are equal
RATES = (0.0, 0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0, 1.0)
SOURCES = ("import", "robot-7", "r\u00f6b \ue000", "arm \U0001f600", "a+b", "robot-70")


class Regimes:
    """What holds for one key: a list of first days, each with a rate and a place of the window."""

    def __init__(self, rng, days, steady):
        turns = 0 if rng.random() < steady else rng.choice((1, 1, 2, 3))
        oldest = rng.choice((0, 0, days * 8 // 10))
        starts = [0] + sorted(rng.randint(oldest, days) for _ in range(turns))
        self.parts = [(start, rng.choice(RATES), rng.random()) for start in starts]

    def on(self, day):
        return [part[1:] for part in self.parts if part[0] <= day][-1]


class World(generate.Habits):
    """The ingredients of one log that lasts many days."""

    def __init__(self, rng, profile, room):
        super().__init__(rng, BASES.get(profile, "skill"))
        self.world = profile
        self.days = self.length(room)
        self.steady = {"changes": 0.1, "band": 0.5, "sparse": 0.4}.get(profile, 0.3)
        self.loose = rng.choice((0, 0, 0.1))  # share of events that lack a part of the key
        self.skills = self.names("skill.", rng.choice((1, 1, 2)))
        self.targets = self.names("class.", 1 if profile == "band" else rng.choice((1, 1, 2, 4)))
        self.envs = self.names("env", 1)
        self.params = self.names("p", self.width())
        self.grids |= {name: self.grid() for name in self.params}
        self.wander = rng.choice((0.05, 0.2, 0.5))  # share of attempts away from the focus
        # Events of older days have no parameters and fail: a cut on the day they appear.
        self.params_from = rng.choice((0, 0, 0, self.days // 2)) if profile == "band" else 0
        self.given = 1 if self.params_from else rng.choice((1, 1, 0.9, 0.5))
        self.focus = Regimes(rng, self.days, 0.5)  # where the planner of this world tries
        self.sources = rng.sample(SOURCES, rng.choice((1, 2, 3, 5)))
        self.loud = (rng.choice(self.sources), rng.randint(0, self.days), rng.choice((0, 1)))
        self.regimes, self.day = {}, 0

    def length(self, room):
        if self.world == "sparse":
            return max(room // self.rng.choice((1, 2, 4)), 1)
        if self.world == "band":
            return self.rng.choice((12, 20, 40, 70, 100, 130))
        return self.rng.choice((2, 9, 20, 40, 70, 70, 130, 200))

    def width(self):
        if self.world in ("changes", "sources", "sparse"):
            return self.rng.choice((0, 0, 1, 2))
        return self.rng.choice((1, 1, 2, 3, 5))

    def regime(self, key):
        key = repr(key)  # odd fields have values that cannot be hashed
        if key not in self.regimes:
            self.regimes[key] = Regimes(self.rng, self.days, self.steady)
        return self.regimes[key].on(self.day)

    def chance(self, key, source, params):
        """The rate of a key, spoilt outside the window of the first parameter."""
        rate, centre = self.regime(key)
        liar, since, lie = self.loud
        if self.world == "sources" and source == liar and self.day >= since:
            return lie
        if self.day < self.params_from:
            return 0.02
        name = self.params[0] if self.params else None
        if name not in params or self.world not in ("band", "odd"):
            return rate
        place = self.places.get(name, 0)
        return self.good if abs(place - centre) < 0.3 else self.bad

    def tried(self):
        """Parameters of one attempt: mostly near the focus of the day, else anywhere."""
        rng, self.places, values = self.rng, {}, {}
        if self.day < self.params_from:
            return values
        centre = self.focus.on(self.day)[1]
        for name in self.params:
            grid = self.grids[name]
            place = min(max(rng.gauss(centre, 0.1), 0), 1)
            place = rng.random() if rng.random() < self.wander else place
            if rng.random() < self.given:
                self.places[name] = place
                values[name] = self.near(grid[round(place * (len(grid) - 1))])
        if rng.random() < 0.01:
            values["rare"] = Num(rng.choice(("1", "2")))  # seldom three values: does it count?
        if rng.random() < self.stray / 2:
            values[generate.odd_text(rng)] = generate.odd_value(rng)
        return values

    def near(self, text):
        """The value, or one with more digits than a cell has, at the edge of that cell."""
        if self.rng.random() < 0.6:
            return Num(text)
        shift = Decimal(self.rng.choice((-50, -10, -5, -4, 4, 5, 10, 50))) / 10**5
        return Num(format(Decimal(text) * (1 + shift), "f"))

    def source(self):
        liar, since, _ = self.loud
        if self.world == "sources" and self.day >= since and self.rng.random() < 0.6:
            return liar
        return self.rng.choice(self.sources)


# ---- cuts met exactly ----------------------------------------------------------------------


def spread(rng, count, days):
    """`count` observations on all of `days` days."""
    places = list(range(days)) + [rng.randrange(days) for _ in range(count - days)]
    return [places.count(day) for day in range(days)]


def edge_days(rng):
    """Rows (n, s): unanimous days, then the opposite, at the edge of making a cut.

    The gap of n1 successes and n2 failures is zero where n1 * n2 = K * K.
    """
    boundaries = rng.choice((1, 1, 2, 2, 3, 4, 5, 8))
    before = rng.randint(1, boundaries)
    after = boundaries + 1 - before
    k = 3 + (boundaries - 1).bit_length()
    divisors = [n for n in range(before, k * k + 1) if k * k % n == 0] or [before]
    n1 = rng.choice(divisors)
    n2 = max(k * k // n1 + rng.choice((0, 0, 1, -1)), after)
    rows = [(n, n) for n in spread(rng, n1, before)] + [(n, 0) for n in spread(rng, n2, after)]
    return rows if rng.random() < 0.5 else rows[::-1]


def mirror_days(rng):
    """Rows (n, s) that read backwards are the opposite, so that two gaps are equal."""
    sizes = [rng.randint(4, 12) for _ in range(rng.choice((1, 1, 2)))]
    middle = [(2 * n, n) for n in (rng.choice((1, 1, 2, 5)),)]
    rows = [(n, n - rng.choice((0, 0, 1))) for n in sizes]
    rows += middle + [(n, n - s) for n, s in reversed(rows)]
    return rows if rng.random() < 0.5 else rows[::-1]


def exact_plan(world, room):
    """(day, data) of facts of their own, in random order."""
    rng, plan = world.rng, []
    for number in range(40):
        rows = rng.choice((edge_days, mirror_days))(rng)
        first = rng.randint(0, world.days)
        made = [(first + i, {"skill_id": f"exact.{number}", "success": won < s})
                for i, (n, s) in enumerate(rows) for won in range(n)]
        if rng.random() < 0.2:
            made = [(day, zone_data(data)) for day, data in made]
        if len(plan) + len(made) <= room:
            plan += made
    rng.shuffle(plan)
    return plan


def zone_data(data):
    return {"zone": data["skill_id"], "success": data["success"]}


# ---- events --------------------------------------------------------------------------------


def outcome_data(world, works):
    rng = world.rng
    if rng.random() < 0.02 + world.stray / 2:
        return generate.outcome_fields(world, works)
    if rng.random() < 0.7:
        return {"success": works}
    return {"outcome": "success" if works else "failed"}


def result_data(world, source):
    rng, data = world.rng, {"skill_id": world.field(world.skills)}
    if rng.random() >= world.loose:
        data["target_class"] = world.field(world.targets)
    if rng.random() >= world.loose:
        data[rng.choice(("environment", "env"))] = world.field(world.envs)
    if rng.random() < (0.9 if world.world == "zones" else 0.1):
        data["zone"] = world.field(world.zones)
    params = world.tried()
    if params or rng.random() < 0.1:
        data["params"] = params
    thing = data.get("zone") if world.world == "zones" else data.get("target_class")
    works = rng.random() < world.chance((data["skill_id"], thing), source, params)
    data |= outcome_data(world, works)
    if rng.random() < (0.05 if works else 0.7):
        data["failure_reason"] = world.field(world.reasons)
    return data


def incident_data(world):
    """An incident, or nothing on the days on which the zone is calm."""
    zone = world.field(world.zones)
    if world.rng.random() < world.regime(("incidents", zone))[0]:
        return None
    data = {"zone": zone}
    if world.rng.random() < 0.6:
        data["failure_reason"] = world.field(world.reasons)
    return data


def random_event(world, source):
    """type and data of one event."""
    incidents = 0.3 if world.world == "zones" else 0.03
    others = 0.3 if world.world == "odd" else 0.02
    dice = world.rng.random()
    if dice < others:
        return generate.random_event(world)
    data = incident_data(world) if dice < others + incidents else None
    if data is not None:
        return "incident", data
    return "execution_result", result_data(world, source)


class Log(generate.Log):
    """Writes lines day by day, with storms of repeated attempts and with late events."""

    def __init__(self, rng, profile, room):
        super().__init__(rng, "mixed", room)
        self.habits = World(rng, profile, room)
        share = {"changes": 0.3, "sources": 0.2, "sparse": 0.5}.get(profile, 0)
        self.plan = exact_plan(self.habits, int(room * share))
        self.planned, self.storm = len(self.plan) / room, 0

    def pass_time(self, number):
        """Sets the day of the world: that of the line, or an older one for a late event."""
        today = number * self.habits.days // self.room
        late = self.rng.random() < 0.06 and self.storm == 0
        self.habits.day = self.rng.randint(0, today) if late else today

    def time(self, day):
        """The text of a time; in odd worlds it is sometimes at an end of the calendar."""
        rng = self.rng
        if self.habits.world == "odd" and rng.random() < 0.01:
            return rng.choice(generate.EDGE_TIMES)
        seconds = rng.choice(CLOCKS) if rng.random() < 0.8 else rng.randrange(86400)
        instant = LAST_DAY + datetime.timedelta(days=day - self.habits.days, seconds=seconds)
        return generate.spell_instant(rng, instant, rng.choice(generate.OFFSETS))

    def made(self, number):
        """day, source, type and data of the next event: planned, repeated or random."""
        rng, world = self.rng, self.habits
        if self.plan and rng.random() < 2 * self.planned:
            day, data = self.plan.pop()
            return day, rng.choice(world.sources), "execution_result", data
        self.pass_time(number)
        if self.storm and self.written:
            self.storm -= 1
            last = self.written[-1]
            return world.day, last["source"], last["type"], last["data"]
        self.storm = rng.choice((3, 8, 20)) if rng.random() < 0.01 else 0
        source = world.source()
        return world.day, source, *random_event(world, source)

    def fresh(self, number):
        rng = self.rng
        day, source, name, data = self.made(number)
        time = self.time(day)
        event = {"id": f"{number:x}", "source": source, "type": name, "time": time, "data": data}
        self.written.append(event)
        return generate.dress(rng, event)


def lines(seed, count):
    """The bytes of each line, with its end."""
    log = Log(random.Random(seed), PROFILES[seed % len(PROFILES)], count)
    for number in range(count):
        yield log.line(number) + (b"\r\n" if log.rng.random() < 0.01 else b"\n")


def main():
    seed = int(sys.argv[1])
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    sys.stdout.buffer.writelines(lines(seed, count))


if __name__ == "__main__":
    main()
