"""Hooks of schemathesis: a body type that it does not know, a limit on waiting requests, and
refusals that no schema can describe."""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    """An example is the text itself; in generated data, each item of a list is a line."""
    if isinstance(value, (bytes, str)):
        return value if isinstance(value, bytes) else value.encode(errors="ignore")
    items = value if isinstance(value, list) else [value]
    return "".join(json.dumps(item) + "\n" for item in items).encode()


MAX_DEPTH_OF_INTENT = 8  # as in the document
MIN_BYTES_TOO_LONG = 64  # the smallest limit of a text, in bytes; a schema counts characters


def depth(value):
    """The nesting depth of a JSON value."""
    if isinstance(value, (dict, list)):
        members = value.values() if isinstance(value, dict) else value
        return 1 + max(map(depth, members), default=0)
    return 0


def most_bytes(value):
    """The bytes of the longest text in JSON, of those that have more bytes than characters."""
    if isinstance(value, dict):
        return max((most_bytes(part) for pair in value.items() for part in pair), default=0)
    if isinstance(value, list):
        return max(map(most_bytes, value), default=0)
    size = len(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else 0
    return size if isinstance(value, str) and size > len(value) else 0


def names_a_skill(response):
    """Whether the sent body is an intent with the name of a skill and nothing else."""
    try:
        sent = json.loads(response.request.body)
    except (TypeError, ValueError):
        return False
    return isinstance(sent, dict) and list(sent) == ["skill_id"] and isinstance(sent["skill_id"], str)


# Parameters that each fit their schema and do not fit each other: operation, code, part of the detail.
UNRELATED = [
    ("/api/agent/suggest", "bad_candidates", ""),
    ("/api/audit/consistency", "bad_parameter", "must not be above"),
    ("/api/agent/log", "bad_parameter", "is after `until`"),
]


def contradict(case, answer):
    """Whether a request was refused because its parameters do not fit each other."""
    return any(case.operation.path == path and answer.get("code") == code
               and words in answer.get("detail", "") for path, code, words in UNRELATED)


@schemathesis.hook
def before_call(context, case, kwargs):
    """A request that may wait for a decision waits one second: the answer is the same."""
    query = case.query or {}
    if str(query.get("wait", "")).isdigit() and 1 < int(query["wait"]) <= 60:
        query["wait"] = 1


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Whether a failure counts.

    `positive_data_acceptance` requires that every event that fits its schema is accepted. An event
    whose name was forgotten must be refused: that depends on earlier requests, as with a conflict
    (409, which the check accepts), and not on the event. No schema can limit the nesting of an
    intent, count the bytes of a text, or compare two parameters. These refusals, recognised by
    their rules and codes, are not failures; every other refusal of a valid request is.

    `negative_data_rejection` treats an intent as invalid even if schemathesis itself has replaced
    the invalid body with the name of a skill, from the answer of another operation. Such a request
    is valid and is accepted.
    """
    if "accepted" in failure.title.lower():
        return not (case.operation.path == "/api/agent/intents" and names_a_skill(response))
    if response.status_code == 400 and "rejected" in failure.title.lower():
        return not contradict(case, json.loads(response.content))
    if response.status_code != 422 or "rejected" not in failure.title.lower():
        return True
    rule = json.loads(response.content).get("rule")
    an_intent = case.operation.path == "/api/agent/intents"
    too_deep = an_intent and rule == "too_deep" and depth(case.body) > MAX_DEPTH_OF_INTENT
    too_long = rule == "too_long" and most_bytes(case.body) > MIN_BYTES_TOO_LONG
    return not (rule == "forgotten" or too_deep or too_long)
