"""Clients by openapi-generator and openapi-python-client, and two linters, on the served document.

It guarantees: every operation of the document is called through the generated Python client and
answered with a success, except for `NOT_CALLED`, which is the list in docs/guide/clients.md. A new
operation fails the trial until it has a line in `CALLS`, or one in `NOT_CALLED` and in the guide.
"""

import importlib
import json
import os
import re
import subprocess
import sys
import urllib.request

from served import SOURCE, WIDE, Server
from trial import Failed, expect

FULL = True
TOOLS = ["java", "node", "npm"]
PYTHON = ["openapi-generator-cli==7.26.0", "openapi-python-client==0.29.*"]
NODE = ["@redocly/cli@2", "@stoplight/spectral-cli@6"]

GUIDE = SOURCE / "docs/guide/clients.md"
DOCUMENT = SOURCE / "crates/http/openapi.json"
SKILL = {"skill_id": "manipulation.grasp", "target_class": "glass_cup"}
EVENT = {"id": "generated", "source": "arm-7", "specversion": "1.0", "type": "execution_result",
         "time": "2026-05-06T12:00:00Z", "data": {**SKILL, "environment": "ward3",
                                                  "params": {"force_n": 25.5}, "success": True}}
INTENT = {**SKILL, "environment": "ward3", "params": {"force_n": 35}}

# The arguments of every operation, in the order of the calls. `done` has the answers so far, by
# operation. The token is one of the first role that the operation admits.
CALLS = {
    "consultFacts": lambda done: {"skill_id": "manipulation.grasp", "environment": "sim_relaxed"},
    "consultGrounding": lambda done: {"target_class": "glass_cup", "limit": 3},
    "readFact": lambda done: {"fact_id": done["consultFacts"]["facts"][0]["fact_id"]},
    "explainFact": lambda done: {"fact_id": done["consultFacts"]["facts"][0]["fact_id"]},
    "appendEvents": lambda done: {"body": EVENT},
    "proposeIntent": lambda done: {
        "body": {**INTENT, "consultation": done["consultFacts"]["consultation"]}},
    "listIntents": lambda done: {"standing": "waiting", "limit": 5},
    "readIntent": lambda done: {"event_ref": done["proposeIntent"]["event_ref"]},
    "confirmIntent": lambda done: {
        "event_ref": done["proposeIntent"]["event_ref"], "body": {"decision": "confirmed"}},
    "reportOutcome": lambda done: {
        "event_ref": done["proposeIntent"]["event_ref"], "body": {"success": True}},
    "listSkills": lambda done: {},
    "mayAttempt": lambda done: {"skill_id": "manipulation.grasp", "target_class": "glass_cup"},
    "suggestValue": lambda done: {
        "skill_id": "manipulation.grasp", "param": "force_n", "candidates": "20,25,30"},
    "readIdentity": lambda done: {},
    "consolidate": lambda done: {},
    "readLog": lambda done: {"after": 3, "limit": 100},
    "readPasses": lambda done: {"limit": 5},
    "readTreeHead": lambda done: {},
    "proveEvent": lambda done: {"event_ref": done["readLog"]["events"][0]["event_ref"]},
    "proveConsistency": lambda done: {"from": 1},
    "explainAction": lambda done: {"event_ref": done["proposeIntent"]["event_ref"]},
    "readBundle": lambda done: {},
    "forget": lambda done: {
        "body": {"event_refs": [done["readLog"]["events"][0]["event_ref"]]}},
    "live": lambda done: {},
    "ready": lambda done: {},
    "version": lambda done: {},
    "index": lambda done: {},
    "document": lambda done: {},
    "docs": lambda done: {},
}
# The operations that no generated client calls, with the media type if only that one is meant.
NOT_CALLED = {
    ("followLog", None), ("metrics", None),
    ("appendEvents", "application/cloudevents-batch+json"),
    ("appendEvents", "application/x-ndjson"),
    ("consultFacts", "text/plain"), ("index", "text/html"), ("explainAction", "text/plain"),
}
# Media types that are aliases of one that is called.
SAME = {"application/cloudevents+json": "application/json"}
# Operations that openapi-python-client 0.29 generates and cannot call: its module for a body of
# several media types raises NameError, and it leaves out answers that are neither JSON nor text.
BEYOND_PYTHON_CLIENT = {"appendEvents", "readBundle"}


class Operation:
    """One operation of the document."""

    def __init__(self, path, method, described):
        self.route, self.id = f"{method.upper()} {path}", described["operationId"]
        self.tag = described["tags"][0].lower()
        self.role = next(iter(described["x-ipse-roles"]), None)
        bodies = described.get("requestBody", {}).get("content", {})
        answers = [answer.get("content", {}) for status, answer in described["responses"].items()
                   if status.startswith("2")]
        self.bodies, self.answers = set(bodies), {media for one in answers for media in one}
        body = bodies.get("application/json", {}).get("schema", {}).get("$ref", "")
        self.body = body.rpartition("/")[2]  # the name of the schema of the body

    @property
    def function(self):
        return snake(self.id)

    def media(self):
        """Every media type other than JSON."""
        for several in (self.bodies, self.answers):
            yield from (one for one in several - {"application/json"}
                        if len(several) > 1 and one not in SAME)


def snake(name):
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def operations():
    document = json.loads(DOCUMENT.read_text())
    verbs = {"get", "put", "post", "delete", "patch"}
    return [Operation(path, method, described) for path, item in document["paths"].items()
            for method, described in item.items() if method in verbs]


def ran(*command, cwd=None):
    """The standard output of a program that must succeed. None of them may send telemetry."""
    quiet = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    done = subprocess.run(command, cwd=cwd, env={**os.environ, **quiet}, capture_output=True,
                          text=True)
    words = (done.stdout + done.stderr)[-4 * WIDE:]
    expect(done.returncode == 0, f"{command[0]} ended with {done.returncode}:\n{words}")
    return done.stdout


def lint(place):
    """Redocly and Spectral, without an error."""
    programs, file = place.packages / "node_modules/.bin", place.scratch / "openapi.json"
    found = json.loads(ran(str(programs / "redocly"), "lint", "--format=json", str(file)))
    expect(found["totals"]["errors"] == 0, "Redocly finds", found["problems"][:1])
    rules = place.scratch / "spectral.json"
    rules.write_text('{"extends": ["spectral:oas"]}')
    ran(str(programs / "spectral"), "lint", "--ruleset", str(rules), "--fail-severity", "error",
        str(file))


# ---- openapi-generator ----------------------------------------------------------------------


class Generated:
    """The client of openapi-generator, one instance for each token."""

    def __init__(self, place, server):
        out = place.scratch / "openapi-generator"
        ran(str(place.packages / "venv/bin/openapi-generator-cli"), "generate", "-g", "python",
            "-i", str(place.scratch / "openapi.json"), "-o", str(out), "--package-name",
            "ipse_generated")
        ran(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--requirement", str(out / "requirements.txt"))
        sys.path.insert(0, str(out))
        self.package, self.server = importlib.import_module("ipse_generated"), server

    def call(self, operation, arguments):
        """The answer of an operation, as plain JSON or as text."""
        package = self.package
        settings = package.Configuration(host=self.server.url)
        settings.access_token = self.server.tokens.get(operation.role)
        api = getattr(package, operation.tag.capitalize() + "Api")(package.ApiClient(settings))
        body = arguments.pop("body", None)
        if body is not None:
            arguments[snake(operation.body)] = getattr(package, operation.body).from_dict(body)
        answer = getattr(api, operation.function)(**arguments)
        return json.loads(answer.to_json()) if hasattr(answer, "to_json") else answer


# ---- openapi-python-client ------------------------------------------------------------------


class PythonClient:
    """The client of openapi-python-client."""

    def __init__(self, place, server):
        out = place.scratch / "ipse_python_client"
        ran(str(place.packages / "venv/bin/openapi-python-client"), "generate", "--path",
            str(place.scratch / "openapi.json"), "--output-path", str(out), "--meta", "none",
            cwd=place.scratch)
        sys.path.insert(0, str(place.scratch))
        self.server = server
        for operation in operations():
            file = out / "api" / operation.tag / f"{operation.function}.py"
            expect(file.exists(), f"openapi-python-client left out {operation.route}")

    def call(self, operation, arguments):
        place = f"ipse_python_client.api.{operation.tag}.{operation.function}"
        module = importlib.import_module(place)
        client = importlib.import_module("ipse_python_client.client")
        models = importlib.import_module("ipse_python_client.models")
        token = self.server.tokens.get(operation.role)
        made = (client.AuthenticatedClient(self.server.url, token=token) if token
                else client.Client(self.server.url))
        if "body" in arguments:
            arguments["body"] = getattr(models, operation.body).from_dict(arguments["body"])
        for name in ("kind", "standing"):
            if name in arguments:
                kinds = {"standing": "IntentStanding", "kind": "FactKind"}
                arguments[name] = getattr(models, kinds[name])(arguments[name])
        answer = module.sync_detailed(client=made, **arguments)
        expect(answer.status_code // 100 == 2, operation.route, answer.status_code, answer.content)
        expect(answer.parsed is not None, f"openapi-python-client does not read {operation.route}")
        return answer.parsed.to_dict() if hasattr(answer.parsed, "to_dict") else answer.parsed


# ---- the trial ------------------------------------------------------------------------------


def check_lists(described):
    """Checks that every operation is called or listed, and that the guide lists the same."""
    by_id = {operation.id: operation for operation in described}
    for operation in described:
        expect(operation.id in CALLS or (operation.id, None) in NOT_CALLED,
               f"{operation.route} is not called: add a line for {operation.id} to CALLS of "
               f"{__name__}.py, or list it in NOT_CALLED and in {GUIDE.name}")
        for media in operation.media():
            expect((operation.id, media) in NOT_CALLED or (operation.id, None) in NOT_CALLED,
                   f"{operation.route} has the further media type {media}: list it in NOT_CALLED")
    for operation in set(CALLS) | {operation for operation, _ in NOT_CALLED}:
        expect(operation in by_id, f"the document has no operation {operation}")
    row = re.compile(r"^\| `([A-Z]+ /[^`]+)`(?: as `([^`]+)`)? \|", re.MULTILINE)
    listed = set(row.findall(GUIDE.read_text()))
    meant = {(by_id[name].route, media or "") for name, media in NOT_CALLED}
    expect(listed == meant, f"{GUIDE.name} and NOT_CALLED differ: {sorted(listed ^ meant)}")


def check_answers(done):
    """Checks the values, not only the types."""
    fact, explained = done["readFact"], done["explainFact"]["fact"]
    expect(fact["fact_id"] == explained["fact_id"] and fact["value"] == explained["value"],
           "a fact and its explanation differ:", fact, explained)
    expect(done["consultGrounding"].startswith("known facts"), done["consultGrounding"])
    expect(done["proposeIntent"]["params"] == INTENT["params"], done["proposeIntent"])
    expect(done["confirmIntent"]["standing"] == "confirmed", done["confirmIntent"])
    expect(done["readIntent"]["gates"][-1]["result"] == "verified", done["readIntent"])
    expect(done["explainAction"]["event_ref"] == done["proposeIntent"]["event_ref"],
           done["explainAction"])
    expect(len(done["readLog"]["events"]) > 50, "a page of the log is short")
    if "readBundle" in done:
        expect(len(done["readBundle"]) > 10_000, "the bundle is short")


def check_python_block(place, server):
    """Runs the Python program of the guide unchanged."""
    program = re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    expect(program, f"{GUIDE.name} has no program in Python")
    file = place.scratch / "guide.py"
    file.write_text(program[1])
    env = {**server.env, "IPSE": server.url, "PLANNER": server.tokens["planner"],
           "PRODUCER": server.tokens["producer"],
           "PYTHONPATH": str(place.scratch / "openapi-generator"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, str(file)], env=env, capture_output=True, text=True)
    expect(done.returncode == 0, "the program of the guide failed:", done.stderr[-WIDE:])
    expect(done.stdout.split() == "skill_success_rate admitted {'force_n': 25} appended".split(),
           "the program of the guide printed", done.stdout)


def run(place):
    described = operations()
    check_lists(described)
    by_id = {operation.id: operation for operation in described}
    with Server(place.ipse, place.scratch) as server:
        served = urllib.request.urlopen(server.url + "/openapi.json").read()
        (place.scratch / "openapi.json").write_bytes(served)
        lint(place)
        calls = {}
        for maker, beyond in ((Generated, set()), (PythonClient, BEYOND_PYTHON_CLIENT)):
            client, done, calls[maker.__name__] = maker(place, server), {}, 0
            for name, arguments in CALLS.items():
                if name in beyond:
                    continue
                try:
                    done[name] = client.call(by_id[name], arguments(done))
                except Exception as error:  # whatever generated code raises
                    raise failed(maker, by_id[name], error) from error
                calls[maker.__name__] += 1
            check_answers(done)
            if "appendEvents" not in beyond:
                again = client.call(by_id["appendEvents"], {"body": EVENT})
                expect(again["result"] == "duplicate", "an event that is sent again:", again)
        check_python_block(place, server)
    return (f"{len(described)} operations; called by openapi-generator {calls['Generated']}, by "
            f"openapi-python-client {calls['PythonClient']}")


def failed(maker, operation, error):
    words = f"{type(error).__name__}: {error}"[:4 * WIDE]
    return Failed(f"the client {maker.__name__} cannot call {operation.route}: {words}")
