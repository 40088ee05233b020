#!/usr/bin/env python3
"""Repeats V3 and the sweeps with CPython's generator and SciPy's intervals.

Usage: v3.py IPSE. Needs NumPy and SciPy. Written from the protocol, not from the Rust code: it
implements the scene, the controls and the counts again. Every figure that `ipse reproduce v3` and
`ipse reproduce sweeps` print, also for random seeds, must be the same.
"""

import json
import random
import subprocess
import sys

import numpy
from scipy import stats

CHANCE = {"glass": 0.8, "unknown": 0.2}
PAPER = [20260506, 20260507, 20260513, 20260517, 20260519, 20260523, 20260529, 20260531,
         20260601, 20260607]
# Zero, a negative seed, and seeds of two, three and four words.
ODD = [0, 1, -7, 2**31, 2**32 - 1, 2**32, 2**40 + 5, 2**64 - 1, 2**64 + 3, 2**100 + 17]


def replay(seed, control, decisions=1000, threshold=0.5, mean=0.5, weight=10):
    """The numbers of failed attempts without memory, of attempts, and of failed attempts."""
    r = random.Random(seed)
    draw = lambda name, n: sum(r.random() < CHANCE[name] for _ in range(n))
    rate = {"glass": draw("glass", 160) / 160, "unknown": draw("unknown", 40) / 40}
    held_out = {"glass": (draw("glass", 40), 40), "unknown": (draw("unknown", 10), 10)}

    def attempts(name):
        if control == "uniform":
            return True
        if control == "raw":
            return rate[name] >= threshold
        good, n = held_out[name]
        return (weight * mean + good) / (weight + n) >= threshold

    without = tried = failed = 0
    for _ in range(decisions):
        name = r.choice(["glass", "unknown"])
        without += not r.random() < CHANCE[name]
        if attempts(name):
            tried += 1
            failed += not r.random() < CHANCE[name]
    return without, tried, failed


def interval(values):
    if len(set(values)) < 2:
        return None
    found = stats.bootstrap((numpy.array(values),), numpy.mean, n_resamples=10_000, method="BCa",
                            random_state=numpy.random.RandomState(20260524))
    return [found.confidence_interval.low, found.confidence_interval.high]


def check(ours, seeds, what, control, **setting):
    reductions = []
    for run, seed in zip(ours["per_seed"], seeds, strict=True):
        base, _, _ = replay(seed, "raw", setting.get("decisions", 1000))
        _, tried, failed = replay(seed, control, **setting)
        # Seeds that not every JSON reader can read exactly are texts.
        got = (int(run["seed"]), run["no_memory_unproductive"], run["attempts"], run["unproductive"])
        assert got == (seed, base, tried, failed), (what, got, (seed, base, tried, failed))
        reductions.append(100 * (1 - failed / base))
    near = lambda a, b: abs(a - b) <= 1e-9
    assert near(ours["mean_reduction"], numpy.mean(reductions)), (what, ours["mean_reduction"])
    want = interval(reductions)
    if want is None or ours["ci"] is None:
        assert want is ours["ci"] is None, (what, ours["ci"], want)
    else:
        assert all(near(a, b) for a, b in zip(ours["ci"], want)), (what, ours["ci"], want)


def ask(ipse, what, seeds):
    given = [part for seed in seeds for part in ("--seed", str(seed))]
    done = subprocess.run([ipse, "reproduce", what, "--json", *given], check=True,
                          capture_output=True)
    return json.loads(done.stdout)[what]


def main(ipse):
    chosen = random.Random("arbitrary seeds")
    some = lambda n: [chosen.randrange(2**32) for _ in range(n)]
    for seeds in [PAPER, ODD, some(10), some(3), some(2), some(1), some(40)]:
        ours = ask(ipse, "v3", seeds)
        for control in ("raw", "uniform", "calibrated"):
            check(ours[control], seeds, control, control)
    for seeds in [PAPER, some(7)]:
        ours = ask(ipse, "sweeps", seeds)
        for name, point in ours["threshold"].items():
            check(point, seeds, name, "calibrated", threshold=float(name))
        for name, point in ours["prior"].items():
            mean, weight = map(float, name.split("/"))
            check(point, seeds, name, "calibrated", mean=mean, weight=weight)
        for name, point in ours["n"].items():
            check(point, seeds, name, "calibrated", decisions=int(name))
    print("V3 and the sweeps equal the results of CPython and SciPy")


main(*sys.argv[1:])
