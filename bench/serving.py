"""The measurements over HTTP, compared with the endpoint that the paper describes.

Guarantees: both servers have the same facts, compared before anything is measured; they take turns
in one run, and the first one changes from round to round; a round begins with a fresh copy of the
store; the cost of producers is also measured without readers, and both figures are kept.
"""
import contextlib
import json
import os
import resource
import sqlite3
import time
from dataclasses import dataclass

import prepare
import servers
import standin
from measure import Trouble, busy_seconds, run, say
from workload import named

OURS, FASTAPI = "ipse", "fastapi"
EVENTS, KEYS = 100_000, 1000
PATH = "/api/agent/semantic"
QUERY = "?skill_id=manipulation.grasp&target_class=object_class_000&env=sim_relaxed"
FACT_KEY = "manipulation.grasp + object_class_000 + sim_relaxed"
ONE_KIND = "skill_success_rate"
# The kinds of requests: the facts of the target, and four for comparison.
FACTS, ONE, SAME, GROUNDING, SQL = "facts", "one", "same", "grounding", "sql"
PATHS = {(OURS, FACTS): PATH + QUERY, (OURS, ONE): f"{PATH}{QUERY}&kind={ONE_KIND}",
         (OURS, SAME): PATH + QUERY, (OURS, GROUNDING): f"{PATH}{QUERY}&format=grounding",
         (FASTAPI, FACTS): PATH + QUERY, (FASTAPI, SQL): "/sql" + QUERY}
CONNECTIONS = (1, 16)
# The order of measurements: server, kind of request, connections.
TURNS = ((OURS, FACTS, 1), (FASTAPI, FACTS, 1), (OURS, FACTS, 16), (FASTAPI, FACTS, 16),
         (OURS, ONE, 16), (FASTAPI, SQL, 16), (OURS, SAME, 16), (OURS, GROUNDING, 16))
# The producer during reads: events per batch, and batches per second.
RATE_BATCH, RATE = 100, 10
# Ingest: events of a batch, and the number of producers that share the batches.
INGEST_BATCH, PRODUCERS = 1000, (1, 4)
# Intents of planners: without and with a consultation.
PLAIN, ECHOED = "plain", "echoed"
INTENTS = "/api/agent/intents"
INTENT = {"skill_id": "manipulation.place", "environment": "sim_relaxed",
          "params": {"height_m": 0.4, "upright": True}}
EXAMPLES = os.path.join(os.path.dirname(prepare.HERE), "examples", "gates")
GATES = {name: os.path.join(EXAMPLES, f"{name.replace('_', '-')}.toml")
         for name in ("ecm_registry", "policy", "temperament")}
# A producer's first batches, and the last pass after ingest, which follows a second without events.
WARM_S, SETTLE_S = 0.5, 1.5


@dataclass
class Plan:
    """The extent of a run."""

    name: str
    rounds: int
    seconds: int
    batches: int


def plan(quick, rounds):
    """The plan for the flags."""
    if quick:
        return Plan("quick", rounds or 2, 1, 20)
    return Plan("full", rounds or 5, 4, 100)


class Serving:
    """A run in progress: the plan, and the samples so far."""

    def __init__(self, workshop, the_plan):
        self.workshop, self.plan, self.samples, self.round = workshop, the_plan, [], 0
        self.facts = os.path.join(workshop.temporary, "facts.db")
        self.gated = os.path.join(workshop.temporary, "gated.db")
        self.facts_found = 0
        self.has_baseline = prepare.has_shared("http_fastapi.py")

    def prepare(self):
        """Creates stream, store and the baseline's facts, so that rounds only measure."""
        self.workshop.stream(EVENTS, KEYS)
        store = self.store()
        make_gated(self.workshop, self.workshop.stream(EVENTS, KEYS), self.gated)
        if self.has_baseline:
            make_baseline_facts(self.workshop, store, self.facts)
        else:
            say("SKIPPED: FastAPI is not measured (no ../shared/bench/http_fastapi.py)")

    def one_round(self, number):
        """Runs everything once, each part on a copy of the store."""
        self.round = number
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(self.workshop.copied(self.store()))
            headers = bearer(servers.token(self.workshop, store, "planner"))
            producer_token = servers.token(self.workshop, store, "producer")
            running = {OURS: stack.enter_context(servers.ipse(self.workshop, store))}
            if self.has_baseline:
                baseline = servers.fastapi(self.workshop, self.facts)
                running[FASTAPI] = stack.enter_context(baseline)
            check_same_facts(running, headers)
            _, _, body = running[OURS].get(PATHS[OURS, FACTS], headers)
            self.facts_found = len(json.loads(body)["facts"])
            self.read_in_turns(running, headers)
            self.read_while_appending(running[OURS], headers, producer_token)
        for producers in PRODUCERS:
            self.ingest(producers)
        self.propose()

    def store(self):
        """The store that is copied."""
        return self.workshop.store(EVENTS, KEYS)

    def read_in_turns(self, running, headers):
        """Runs every read once, without appends."""
        turns = [turn for turn in TURNS if turn[0] in running]
        first = 2 * self.round % len(turns)
        for impl, what, connections in turns[first:] + turns[:first]:
            given = headers if impl == OURS else {}
            figures = self.reading(running[impl], impl, what, given, connections)
            self.keep("read", impl, what=what, connections=connections, **figures)

    def reading(self, server, impl, what, headers, connections, clients=()):
        """One measurement: requests, answers, and the server's CPU meanwhile."""
        path, wanted = PATHS[impl, what], 200
        _, tag, body = server.get(path, headers)
        if what == SAME:
            headers, wanted = {**headers, "If-None-Match": tag}, 304
        expect(server, path, headers, wanted)
        # The first requests of a server or a connection cost more; they are not counted.
        servers.wrk(server, path, headers, connections, 1)
        before, others = server.cpu(), client_seconds(clients)
        asked = servers.wrk(server, path, headers, connections, self.plan.seconds)
        cpu_s, others = server.cpu() - before, client_seconds(clients) - others
        expect(server, path, headers, wanted)
        taken = asked.taken
        return {"requests": asked.requests, "per_second": asked.per_second,
                "p50_us": asked.p50_us, "p99_us": asked.p99_us, "wall_s": taken.wall_s,
                "cpu_us": cpu_s / asked.requests * 1e6, "bytes": 0 if what == SAME else len(body),
                "others": max(0.0, taken.others - (cpu_s + others) / taken.wall_s)}

    def read_while_appending(self, server, headers, producer_token):
        """Reads facts while a producer appends; measures the same producer without readers."""
        source = f"steady-{self.round}"
        events = self.workshop.stream(EVENTS, KEYS)
        with servers.producer(self.workshop, events, server, producer_token, source, RATE_BATCH,
                              a_second=RATE) as producer:
            producer.go()
            time.sleep(WARM_S)
            readings = []
            for connections in CONNECTIONS:
                alone = self.appending_alone(server)
                figures = self.reading(server, OURS, FACTS, headers, connections, [producer])
                spent = alone * figures["wall_s"] / figures["requests"] * 1e6
                readings.append({"connections": connections, **figures, "alone_cores": alone,
                                 "net_cpu_us": figures["cpu_us"] - spent})
            report = producer.report()
        appended = report["events"] / (report["ended"] - report["begun"])
        for figures in readings:
            self.keep("read-appending", OURS, what=FACTS, appended_per_second=appended, **figures)

    def appending_alone(self, server):
        """CPU of the server in cores while a producer appends, without readers."""
        before, begun = server.cpu(), time.perf_counter()
        time.sleep(self.plan.seconds)
        return (server.cpu() - before) / (time.perf_counter() - begun)

    def ingest(self, producers):
        """Durable ingest by several producers, onto the same history each time."""
        batches = self.plan.batches // producers
        events = self.workshop.stream(EVENTS, KEYS)
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(self.workshop.copied(self.store()))
            token = servers.token(self.workshop, store, "producer")
            server = stack.enter_context(servers.ipse(self.workshop, store))
            crowd = [stack.enter_context(servers.producer(
                self.workshop, events, server, token, f"bulk-{number}", INGEST_BATCH, batches))
                for number in range(producers)]
            # Producers that have ended count as children, with their preparation.
            clients = client_seconds(crowd) + ended_seconds()
            busy, before, begun = busy_seconds(), server.cpu(), time.perf_counter()
            for producer in crowd:
                producer.go()
            reports = [producer.report() for producer in crowd]
            time.sleep(SETTLE_S)
            cpu_s, wall = server.cpu() - before, time.perf_counter() - begun
            spent = cpu_s + ended_seconds() - clients
            others = 0.0 if busy is None else max(0.0, busy_seconds() - busy - spent) / wall
        self.keep_ingest(producers, reports, cpu_s, others)

    def propose(self):
        """Proposes intents. Each is judged and durable before it is answered."""
        flags = [word for name, file in GATES.items()
                 for word in (f"--{name.replace('_', '-')}", file)]
        with contextlib.ExitStack() as stack:
            store = stack.enter_context(self.workshop.copied(self.gated))
            headers = bearer(servers.token(self.workshop, store, "planner"))
            # As fast as possible: ten thousand per second is no limit.
            server = stack.enter_context(
                servers.ipse(self.workshop, store, *flags, "--intent-rate", "600000"))
            _, _, body = server.get(PATH + QUERY, headers)
            echoed = {**INTENT, "consultation": json.loads(body)["consultation"]}
            for what, intent in ((PLAIN, INTENT), (ECHOED, echoed)):
                script = posting(self.workshop, intent)
                for connections in CONNECTIONS:
                    self.proposing(server, what, headers, connections, script)

    def proposing(self, server, what, headers, connections, script):
        """One measurement of proposing."""
        servers.wrk(server, INTENTS, headers, connections, 1, script)
        before = server.cpu()
        asked = servers.wrk(server, INTENTS, headers, connections, self.plan.seconds, script)
        cpu_s, taken = server.cpu() - before, asked.taken
        self.keep("propose", OURS, what=what, connections=connections, requests=asked.requests,
                  per_second=asked.per_second, p50_us=asked.p50_us, p99_us=asked.p99_us,
                  cpu_us=cpu_s / asked.requests * 1e6,
                  others=max(0.0, taken.others - cpu_s / taken.wall_s))

    def keep_ingest(self, producers, reports, cpu_s, others):
        """Adds a sample of ingest, from the first batch sent to the last answer."""
        count = sum(report["events"] for report in reports)
        span = max(one["ended"] for one in reports) - min(one["begun"] for one in reports)
        waits = sorted(wait for report in reports for wait in report["waits_s"])
        self.keep("ingest", OURS, producers=producers, events=count, per_second=count / span,
                  cpu_us=cpu_s / count * 1e6, p50_us=waits[len(waits) // 2] * 1e6,
                  p99_us=waits[int(len(waits) * 0.99)] * 1e6, others=others)

    def keep(self, job, impl, **figures):
        """Adds a sample and logs it."""
        what = " ".join(str(figures[name]) for name in ("what", "connections", "producers")
                        if name in figures)
        say(f"round {self.round + 1}/{self.plan.rounds}: {job} {impl} {what}: "
            f"{figures['per_second']:.0f}/s, p99 {figures['p99_us']:.0f} µs, "
            f"{figures.get('net_cpu_us', figures['cpu_us']):.1f} µs CPU of the server")
        self.samples.append({"job": job, "impl": impl, "round": self.round, **figures})


def make_gated(workshop, events, store):
    """The same log under a manifest that names the files of the gates."""
    fields = {name: value for name, value in prepare.MANIFEST.items()
              if not name.endswith("_hash")} | GATES
    manifest = store + ".manifest.json"
    prepare.write_json(manifest, fields)
    run([workshop.ipse, "init", "--manifest", manifest, "--store", store], workshop.env)
    run([workshop.ipse, "import", events, "--store", store], workshop.env)


def posting(workshop, intent):
    """Writes the script that makes `wrk` propose an intent."""
    script = os.path.join(workshop.temporary, "intent.lua")
    with open(script, "w", encoding="ascii") as file:
        file.write(f"wrk.method = 'POST'\nwrk.body = [==[{json.dumps(intent)}]==]\n"
                   "wrk.headers['Content-Type'] = 'application/json'\n")
    return script


def bearer(token):
    """The headers of a request with a token."""
    return {"Authorization": f"Bearer {token}"}


def client_seconds(clients):
    """CPU seconds of clients so far."""
    return sum(servers.cpu_seconds(client.pid) for client in clients)


def ended_seconds():
    """CPU of all children that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def expect(server, path, headers, wanted):
    """Ends the run if an answer has another status."""
    status, _, body = server.get(path, headers)
    if status != wanted:
        raise Trouble(f"{path} answered {status} and not {wanted}: {body[:500]!r}")


def make_baseline_facts(workshop, store, path):
    """The facts of our store in the table that the baseline reads."""
    env = {**workshop.env, "PYTHONPATH": prepare.SHARED, "PYTHONDONTWRITEBYTECODE": "1"}
    identity = run([workshop.python, "-c", "import gen; print(gen.IDENTITY)"], env).out.strip()
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as ours:
        facts = ours.execute("SELECT fact_kind, fact_key, fact_value_json, last_updated "
                             "FROM semantic_facts").fetchall()
    say(f"loading {len(facts)} facts of {named(EVENTS, KEYS)} for FastAPI")
    with contextlib.closing(sqlite3.connect(path)) as theirs:
        theirs.executescript(standin.SCHEMA)
        theirs.executemany("INSERT INTO semantic_facts (identity_hash, fact_kind, fact_key, "
                           "fact_value_json, last_updated) VALUES (?, ?, ?, ?, ?)",
                           ((identity, *fact) for fact in facts))
        theirs.commit()


def check_same_facts(running, headers):
    """Ends the run if the servers do not answer with the same fact."""
    answers = []
    for impl, what in ((OURS, ONE), (FASTAPI, FACTS), (FASTAPI, SQL)):
        if impl in running:
            _, _, body = running[impl].get(PATHS[impl, what], headers if impl == OURS else {})
            facts = json.loads(body).get("facts", [])
            answers.append([(fact["fact_key"], fact["value"]) for fact in facts])
    if len(answers[0]) != 1 or answers[0][0][0] != FACT_KEY:
        raise Trouble(f"the requested fact is missing: {answers[0]}")
    if any(answer != answers[0] for answer in answers):
        raise Trouble(f"the servers have different facts: {answers}")
