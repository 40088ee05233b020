#!/usr/bin/env python3
"""A planner that learns while its identity stays the same: consult, decide, propose, act, report.

In each round it wants to lift a glass cup. It asks whether to try at all: under rule set v2 a grasp
that keeps failing is skipped until it is due again. Under v2 it asks which force to try; under v1 it
takes the recommended force, or draws one. It proposes the force as an intent, acts in a toy simulator
with the admitted parameters, and reports the outcome, naming the intent. With --ignore-facts it never reads facts: the same planner, the same random numbers, the
same gates, but no learning. With --stuck the gripper is stuck, and every grasp fails.

It needs only Python, a server (`ipse serve` with the three files of examples/gates) and two tokens:
IPSE_PLANNER may consult and propose, IPSE_PRODUCER may report. crates/cli/examples/planner.rs is
the same in Rust: the same random numbers give the same rounds.

    IPSE_PLANNER=… IPSE_PRODUCER=… python3 planner.py http://127.0.0.1:7477 --rounds 200
"""

import argparse
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request

SKILL, TARGET, WARD = "manipulation.grasp", "glass_cup", "sim_relaxed"
# A recommendation is followed if its confidence is at least one half.
TRUST = 0.5


class Dice:
    """Random numbers that are the same in both programs: a linear congruential generator."""

    def __init__(self, seed):
        self.state = seed

    def throw(self, low, high):
        """A whole number from low to high."""
        self.state = (self.state * 1103515245 + 12345) % 2**31
        return low + (self.state >> 8) % (high - low + 1)


def simulate(force):
    """The toy world: the outcome for a glass cup that is grasped with this force in newtons."""
    if force < 20:
        return {"success": False, "failure_reason": "slip"}
    if force > 28:
        return {"success": False, "failure_reason": "crack"}
    return {"success": True}


class Agent:
    """The requests that the planner sends to the server."""

    def __init__(self, url):
        self.url = url.rstrip("/")
        self.planner, self.producer = os.environ["IPSE_PLANNER"], os.environ["IPSE_PRODUCER"]

    def ask(self, token, path, body=None):
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers)
        while True:
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code != 429:
                    raise SystemExit(f"{path}: {error.code} {error.read().decode()}") from None
                # Too fast: the server returns the time to wait.
                time.sleep(int(error.headers["Retry-After"]))

    def identity(self):
        return self.ask(self.planner, "/api/agent/identity")["identity_hash"]

    def about_the_cup(self, path, **more):
        asked = {"skill_id": SKILL, "target_class": TARGET, "environment": WARD, **more}
        return self.ask(self.planner, f"{path}?{urllib.parse.urlencode(asked)}")

    def may_attempt(self):
        return self.about_the_cup("/api/agent/may-attempt")["attempt"]

    def suggest(self):
        """The force to try next, of those that the gates let through; none under v1."""
        answer = self.about_the_cup("/api/agent/suggest", param="force_n")
        return None if answer.get("reason") == "rules_v1" else answer

    def consult(self):
        return self.about_the_cup("/api/agent/semantic")

    def propose(self, force, consultation):
        intent = {"skill_id": SKILL, "target_class": TARGET, "environment": WARD,
                  "params": {"force_n": force}}
        if consultation is not None:
            intent["consultation"] = consultation
        return self.ask(self.planner, "/api/agent/intents", intent)

    def report(self, intent, outcome):
        """Reports at the time of the intent: this world has no clock."""
        data = {"skill_id": SKILL, "target_class": TARGET, "environment": WARD,
                "params": intent["admitted_params"], "intent": intent["event_ref"], **outcome}
        self.ask(self.producer, "/api/agent/events", {
            "id": intent["event_ref"], "source": "planner-example", "type": "execution_result",
            "time": intent["time"], "data": data})


def recommended(facts):
    """The recommended force, if its confidence is high enough."""
    for fact in facts:
        force = fact["value"].get("params", {}).get("force_n", {}).get("recommended")
        if fact["fact_kind"] == "skill_success_rate" and force and force["confidence"] >= TRUST:
            return force["value"]
    return None


def choose(agent, drawn):
    """A force, what it rests on, and whether it comes from experience."""
    suggestion = agent.suggest()
    if suggestion is not None:
        return suggestion["value"], suggestion["consultation"], suggestion["tried"]
    known = agent.consult()
    best = recommended(known["facts"])
    return drawn if best is None else best, known["consultation"], best is not None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("url", help="where `ipse serve` listens")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--ignore-facts", action="store_true", help="never read facts")
    parser.add_argument("--stuck", action="store_true", help="let every grasp fail")
    args = parser.parse_args()

    agent, dice = Agent(args.url), Dice(args.seed)
    counts = dict.fromkeys(["rounds", "skipped", "informed", "admitted", "clamped", "needs_confirmation",
                            "denied", "worked", "failed"], 0)
    before = agent.identity()
    for _ in range(args.rounds):
        counts["rounds"] += 1
        # A number is drawn in every round, so that both ways of planning get the same random
        # numbers.
        force, consultation = dice.throw(1, 60), None
        if not args.ignore_facts:
            if not agent.may_attempt():
                counts["skipped"] += 1
                continue
            force, consultation, informed = choose(agent, force)
            counts["informed"] += informed
        intent = agent.propose(force, consultation)
        counts[intent["verdict"]] += 1
        # Intents that wait for a person are skipped: there are other cups.
        if intent["verdict"] in ("admitted", "clamped"):
            outcome = simulate(intent["admitted_params"]["force_n"])
            if args.stuck:
                outcome = {"success": False, "failure_reason": "stuck"}
            counts["worked" if outcome["success"] else "failed"] += 1
            agent.report(intent, outcome)
    counts["identity"], counts["unchanged"] = before, agent.identity() == before
    print(json.dumps(counts))


main()
