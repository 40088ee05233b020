"""The stream of events of all measurements.

Workload W(N, K) as defined by the project's benchmark contract: N attempts over K keys of skill,
target class and environment. K = 2 is the paper's stream: a glass cup that mostly holds and an
unknown object that mostly does not, four to one. A larger K spreads attempts evenly over that many
keys.

Guarantees: the same N and K give the same bytes on any machine; W(N, K) begins with W(M, K) for
every M below N; every implementation reads these lines and no others.
"""
import json
import random

SEED = 20260506
REASONS = ("slip", "force_limit", "occluded", "timeout", "unreachable", "collision_guard")
SKILLS = ("manipulation.grasp", "manipulation.place", "nav.goto", "perception.scan", "door.open")
ENVIRONMENTS = ("sim_relaxed", "sim_strict", "ward_day", "ward_night")
# Targets of a large K, each tried with every skill in every environment.
KEYS_PER_TARGET = len(SKILLS) * len(ENVIRONMENTS)
# The spread of the force around its mean, as a part of it.
SPREAD = 0.12
# The first event is at 2026-02-01T02:40:00Z, with a fixed interval between events.
START_MS = (2 * 60 + 40) * 60_000
STEP_MS = 137
# Times stay inside February up to here.
MAX_EVENTS = 10_000_000


def keys(k):
    """The K keys: skill, target class, environment, chance of success, mean force."""
    if k == 2:
        grasp, relaxed = SKILLS[0], ENVIRONMENTS[0]
        return [(grasp, "glass_cup", relaxed, 0.8, 25.0),
                (grasp, "unknown_object", relaxed, 0.2, 15.0)]
    return [_key(number) for number in range(k)]


def _key(number):
    skill = SKILLS[number % len(SKILLS)]
    environment = ENVIRONMENTS[number // len(SKILLS) % len(ENVIRONMENTS)]
    target = f"object_class_{number // KEYS_PER_TARGET:03d}"
    chance = 0.2 + 0.7 * (number * 37 % 101) / 101
    return skill, target, environment, chance, 5.0 + number * 13 % 40


def lines(n, k):
    """The N lines of JSON, each with its end. The order of draws is part of the definition."""
    if n > MAX_EVENTS:
        raise ValueError(f"W(N, K) goes up to N = {MAX_EVENTS}")
    generator = random.Random(SEED)
    draw, bits, all_keys = generator.random, generator.getrandbits, keys(k)
    for number in range(n):
        place = int(draw() >= 0.8) if k == 2 else int(draw() * k)
        skill, target, environment, chance, mean = all_keys[place]
        force = abs(generator.gauss(mean, mean * SPREAD))
        success, reason = "true", "null"
        if draw() >= chance:
            success, reason = "false", f'"{REASONS[int(draw() * draw() * len(REASONS))]}"'
        duration = 200 + int(draw() * 3000)
        yield (f'{{"id":"{number + 1}","source":"w","type":"execution_result",'
               f'"time":"{_time(number)}","data":{{"skill_id":"{skill}",'
               f'"target_class":"{target}","environment":"{environment}",'
               f'"params":{{"force_n":{force:.2f}}},"success":{success},'
               f'"failure_reason":{reason},"duration_ms":{duration},'
               f'"trace_id":"{bits(64):016x}"}}}}\n')


def _time(number):
    seconds, millis = divmod(START_MS + number * STEP_MS, 1000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    day, hour = divmod(hours, 24)
    return f"2026-02-{day + 1:02d}T{hour:02d}:{minute:02d}:{second:02d}.{millis:03d}Z"


def short(n):
    """A number of events in words: 1e5."""
    return f"1e{len(str(n)) - 1}"


def named(n, k):
    """A stream in words: W(1e5, 2)."""
    return f"W({short(n)}, {k})"


def write(path, n, k):
    """Writes W(N, K) to a file."""
    with open(path, "w", encoding="ascii") as file:
        file.writelines(lines(n, k))


def read(path):
    """Reads a file of the workload: number, time and the text of the data of each event."""
    with open(path, encoding="ascii") as file:
        for number, line in enumerate(file, start=1):
            head, data = line.split(',"data":', 1)
            yield number, json.loads(head + "}")["time"], data[:-2]
