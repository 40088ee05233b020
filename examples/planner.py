#!/usr/bin/env python3
"""A planner that learns without becoming someone else: consult, decide, propose, act, report.

Each round it wants to lift a glass cup. It reads what the agent knows, decides with which force to
grasp, proposes that as an intent, acts in a toy simulator with what the gates admitted, and reports
how it went, naming the intent. With --ignore-facts it never asks what is known: the same planner,
the same dice, the same gates, and nothing learned from.

It needs nothing but Python, a server (`ipse serve` with the three files of examples/gates) and two
tokens: IPSE_PLANNER may consult and propose, IPSE_PRODUCER may report. Its twin in Rust is
crates/cli/examples/planner.rs: the same dice give the same rounds.

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
# A recommendation is followed once it is more likely right than not.
TRUST = 0.5


class Dice:
    """Chance that both twins throw alike: a linear congruential generator."""

    def __init__(self, seed):
        self.state = seed

    def throw(self, low, high):
        """A whole number from low to high."""
        self.state = (self.state * 1103515245 + 12345) % 2**31
        return low + (self.state >> 8) % (high - low + 1)


def simulate(force):
    """The toy world: what becomes of a glass cup that is grasped with so many newtons."""
    if force < 20:
        return {"success": False, "failure_reason": "slip"}
    if force > 28:
        return {"success": False, "failure_reason": "crack"}
    return {"success": True}


class Agent:
    """The server's side of the planner: three requests."""

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
                # Too fast: the server says how long to wait.
                time.sleep(int(error.headers["Retry-After"]))

    def identity(self):
        return self.ask(self.planner, "/api/agent/identity")["identity_hash"]

    def consult(self):
        asked = {"skill_id": SKILL, "target_class": TARGET, "environment": WARD}
        query = urllib.parse.urlencode(asked)
        return self.ask(self.planner, f"/api/agent/semantic?{query}")

    def propose(self, force, consultation):
        intent = {"skill_id": SKILL, "target_class": TARGET, "environment": WARD,
                  "params": {"force_n": force}}
        if consultation is not None:
            intent["consultation"] = consultation
        return self.ask(self.planner, "/api/agent/intents", intent)

    def report(self, intent, outcome):
        """Reports at the time of the intent: this world has no clock of its own."""
        data = {"skill_id": SKILL, "target_class": TARGET, "environment": WARD,
                "params": intent["admitted_params"], "intent": intent["event_ref"], **outcome}
        self.ask(self.producer, "/api/agent/events", {
            "id": intent["event_ref"], "source": "planner-example", "type": "execution_result",
            "time": intent["time"], "data": data})


def recommended(facts):
    """The force that is known to work, if that is known well enough."""
    for fact in facts:
        force = fact["value"].get("params", {}).get("force_n", {}).get("recommended")
        if fact["fact_kind"] == "skill_success_rate" and force and force["confidence"] >= TRUST:
            return force["value"]
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("url", help="where `ipse serve` listens")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--ignore-facts", action="store_true", help="never ask what is known")
    args = parser.parse_args()

    agent, dice = Agent(args.url), Dice(args.seed)
    told = dict.fromkeys(["rounds", "informed", "admitted", "clamped", "needs_confirmation",
                          "denied", "worked", "failed"], 0)
    before = agent.identity()
    for _ in range(args.rounds):
        told["rounds"] += 1
        # The dice are thrown in every round, so that both ways of planning meet the same chance.
        force, consultation = dice.throw(1, 60), None
        if not args.ignore_facts:
            known = agent.consult()
            consultation = known["consultation"]
            best = recommended(known["facts"])
            told["informed"] += best is not None
            force = force if best is None else best
        intent = agent.propose(force, consultation)
        told[intent["verdict"]] += 1
        # What waits for a person is left alone: there are other cups.
        if intent["verdict"] in ("admitted", "clamped"):
            outcome = simulate(intent["admitted_params"]["force_n"])
            told["worked" if outcome["success"] else "failed"] += 1
            agent.report(intent, outcome)
    told["identity"], told["unchanged"] = before, agent.identity() == before
    print(json.dumps(told))


main()
