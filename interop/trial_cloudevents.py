"""CloudEvents SDKs with the defaults of their emitters: Python `cloudevents` and npm `cloudevents`.

It guarantees that an event which an SDK sends in binary or structured mode is stored under the id,
source, type and time that the SDK gave it, whatever members its data has.
"""

import contextlib
import json
import os
import pathlib
import sqlite3
import subprocess

from served import DEADLINE, Server
from trial import expect

TOOLS = ["node", "npm"]
PYTHON = ["cloudevents", "requests"]
NODE = ["cloudevents"]

HERE = pathlib.Path(__file__).resolve().parent
TYPE = "execution_result"
TIME = "2026-05-06T10:00:00Z"
# Members with the names of event attributes, to detect a reader of the wrong place.
DATA = {"skill_id": "grasp", "success": True, "id": "INNER", "type": "note",
        "time": "2020-01-01T00:00:00Z"}
HINT = "feeds no fact; did you mean execution_result"


def stored(directory, event_id):
    """The stored event of an id."""
    with contextlib.closing(sqlite3.connect(f"file:{directory}/ipse.db?mode=ro", uri=True)) as db:
        rows = db.execute("select payload_json from episodic_events").fetchall()
    found = [event for event in (json.loads(row[0]) for row in rows if row[0])
             if event["id"] == event_id]
    expect(len(found) == 1, f"{len(found)} events have the id", event_id)
    return found[0]


def check_stored(server, event_id, source, **more):
    """Checks that the event with this id has the values that the SDK was given."""
    event = stored(server.directory, event_id)
    want = {"source": source, "type": TYPE, "time": TIME, "specversion": "1.0", **more}
    for name, value in want.items():
        expect(event.get(name) == value, f"{event_id}: {name} is {event.get(name)}, not", value)
    expect(event["data"]["id"] == "INNER", f"{event_id}: the data is", event["data"])
    return event


def posted(server, headers, body, want):
    """Posts the output of an SDK and returns the answer."""
    import requests

    token = {"Authorization": f"Bearer {server.tokens['producer']}"}
    answer = requests.post(f"{server.url}/api/agent/events", data=body,
                           headers={**headers, **token}, timeout=DEADLINE)
    expect(answer.status_code == want, f"{answer.status_code}, not {want}:", answer.text)
    return answer


def python_v1(server):
    """The API that is in use since version 1."""
    from cloudevents.v1.conversion import to_binary, to_structured
    from cloudevents.v1.http import CloudEvent

    def event(event_id, data=DATA, **more):
        attributes = {"id": event_id, "source": "arm-py1", "type": TYPE, "time": TIME, **more}
        return CloudEvent(attributes, data)

    posted(server, *to_binary(event("py1-binary")), 201)
    posted(server, *to_binary(event("py1-typed", datacontenttype="application/json")), 201)
    posted(server, *to_structured(event("py1-structured")), 201)
    posted(server, *to_structured(event("py1-bytes", json.dumps(DATA).encode())), 201)
    for event_id in ["py1-binary", "py1-typed", "py1-structured", "py1-bytes"]:
        check_stored(server, event_id, "arm-py1")
    bytes_event = stored(server.directory, "py1-bytes")
    expect("data_base64" not in bytes_event, "bytes that contain JSON are kept as bytes")
    near = event("py1-near")
    near["type"] = f"com.example.{TYPE}"
    answer = posted(server, *to_binary(near), 201).json()
    expect(answer.get("hint") == HINT, "no hint about the type:", answer)
    refused = posted(server, *to_binary(event("py1-text", "text")), 422).json()
    expect(refused["rule"] == "data_not_object", refused)
    return 5


def python_v2(server):
    """The API of version 2."""
    import datetime

    from cloudevents.core.bindings.http import to_binary, to_structured
    from cloudevents.core.formats.json import JSONFormat
    from cloudevents.core.v1.event import CloudEvent

    time = datetime.datetime(2026, 5, 6, 10, tzinfo=datetime.timezone.utc)

    def event(event_id):
        return CloudEvent({"id": event_id, "source": "arm py2", "type": TYPE, "time": time,
                           "specversion": "1.0", "subject": 'a "cup" of 5 € %41'}, DATA)

    for event_id, convert in [("py2-binary", to_binary), ("py2-structured", to_structured)]:
        message = convert(event(event_id), JSONFormat())
        posted(server, message.headers, message.body, 201)
        check_stored(server, event_id, "arm py2", subject='a "cup" of 5 € %41')
    message = to_binary(event("py2-binary"), JSONFormat())
    again = posted(server, message.headers, message.body, 200).json()
    expect(again["result"] == "duplicate", again)
    return 2


def javascript(server, place):
    """The emitter of npm's package, in both of its modes, and its events as a batch."""
    env = {**os.environ, "NODE_PATH": str(place.packages / "node_modules")}
    command = ["node", str(HERE / "emit.js"), f"{server.url}/api/agent/events",
               server.tokens["producer"]]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=DEADLINE)
    expect(done.returncode == 0, done.stderr)
    binary, structured, batch = json.loads(done.stdout)
    for answer in (binary, structured):
        expect(json.loads(answer["body"]).get("result") == "appended", answer)
    expect(json.loads(batch["body"])["appended"] == 2, batch)
    expect(batch["headers"].get("ipse-refused") == "1", "no Ipse-Refused:", batch["headers"])
    sent = ["js-binary", "js-structured", "js-batch-1", "js-batch-2"]
    for event_id in sent:
        check_stored(server, event_id, "arm-js", time="2026-05-06T10:00:00.000Z", subject="cup")
    expect("datacontenttype" not in stored(server.directory, "js-binary"),
           "a data type of JSON is kept")
    return len(sent)


def run(place):
    server = Server(place.ipse, place.scratch)
    with server:
        counts = python_v1(server), python_v2(server), javascript(server, place)
    server.run("verify", "--identity", server.identity)
    return "events stored as sent: Python v1 {}, Python v2 {}, npm {}".format(*counts)
