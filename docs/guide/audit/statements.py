"""Checks every signed statement of an unpacked bundle, with securesystemslib and rfc8785.

It guarantees, if it exits with 0:
- SHA256SUMS.sig and certificate.dsse.json are signed by the operator's key that was given, and say
  what they must: this list of hashes, this manifest, this identity.
- Each of these two envelopes and its statement are in their one canonical form: no byte is free.
- Every file in signatures/ is signed by a producer's key that was given, is about this identity,
  has no name twice in one object, and every event that it names is in the log with the digest that was signed. Files that name
  only keys which were not given are counted aloud, and count for nothing.

Keys inside the bundle are never read. Exit 1 names the file and what is wrong with it.

    statements.py DIRECTORY OPERATOR.pub [PRODUCERS.vkey]
"""

import base64
import hashlib
import json
import pathlib
import sys

import rfc8785
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"


class Wrong(Exception):
    """Something does not hold."""


def demand(holds, what):
    if not holds:
        raise Wrong(what)


def note_key(name, raw):
    """A key under the id that envelopes name: its name and four bytes of a hash."""
    short = hashlib.sha256(name.encode() + b"\n\x01" + raw).hexdigest()[:8]
    return SSlibKey(f"{name}+{short}", "ed25519", "ed25519", {"public": raw.hex()})


def operator_key(path):
    return note_key("operator", load_pem_public_key(path.read_bytes()).public_bytes_raw())


def producer_key(line):
    name, short, key = line.split("+", 2)
    key = base64.b64decode(key, validate=True)
    demand(len(key) == 33 and key[0] == 1, f"the key of {name} is not an Ed25519 key")
    key = note_key(name, key[1:])
    demand(key.keyid == f"{name}+{short}", f"the id of {name}'s key is not that of the key")
    return key


def each_name_once(pairs):
    """An object of JSON in which no name stands twice."""
    demand(len({name for name, _ in pairs}) == len(pairs), "a name stands twice in one object")
    return dict(pairs)


def statement_of(envelope, predicate_type):
    """The statement in an envelope whose signature was checked."""
    demand(envelope.payload_type == PAYLOAD_TYPE, "the payload is of another type")
    statement = json.loads(envelope.payload, object_pairs_hook=each_name_once)
    demand(statement["_type"] == STATEMENT_TYPE, "the payload is no in-toto statement")
    demand(statement["predicateType"] == predicate_type, "the statement is of another type")
    return statement


def subjects_of(statement):
    return [(one["name"], one["digest"]["sha256"]) for one in statement["subject"]]


def operators_word(raw, key, predicate_type):
    """The predicate and the subjects of what the operator signed, in its one form."""
    document = json.loads(raw)
    names = [sorted(signature) for signature in document["signatures"]]
    demand(names == [["keyid", "sig"]], "there must be one signature, with keyid and sig")
    envelope = Envelope.from_dict(document)
    envelope.verify([key], 1)
    demand(rfc8785.dumps(envelope.to_dict()) == raw, "the envelope is not in canonical form")
    statement = statement_of(envelope, predicate_type)
    demand(rfc8785.dumps(statement) == envelope.payload, "the statement is not canonical")
    return statement["predicate"], subjects_of(statement)


def check_sums(directory, key, identity):
    raw = (directory / "SHA256SUMS.sig").read_bytes()
    predicate, subjects = operators_word(raw, key, "urn:ipse:bundle:v1")
    sums = hashlib.sha256((directory / "SHA256SUMS").read_bytes()).hexdigest()
    demand(subjects == [("SHA256SUMS", sums)], "it is about another SHA256SUMS")
    demand(predicate["identity_hash"] == identity, "it is about another identity")
    size = len((directory / "entries.jsonl").read_bytes().splitlines())
    demand(predicate["tree_size"] == size, f"it says another size than {size} entries")


def check_certificate(directory, key, identity):
    raw = (directory / "certificate.dsse.json").read_bytes()
    predicate, subjects = operators_word(raw, key, "urn:ipse:certificate:v1")
    demand(subjects == [("manifest.json", identity)], "it is about another manifest")
    demand(predicate["identity_hash"] == identity, "it is about another identity")
    manifest = (directory / "manifest.json").read_bytes()
    demand(rfc8785.dumps(predicate["manifest"]) == manifest, "it quotes another manifest")


def check_sent(raw, keys, identity, digests):
    """How many events a producer signed here; none if the key was not given."""
    envelope = Envelope.from_dict(json.loads(raw))
    known = [key for key in keys if key.keyid in envelope.signatures]
    if not known:
        return None
    envelope.verify(known, len(known))
    statement = statement_of(envelope, "urn:ipse:sent:v1")
    demand(statement["predicate"] == {"identity_hash": identity}, "it was sent to another identity")
    subjects = subjects_of(statement)
    for name, digest in subjects:
        demand(name in digests, f"{name} was signed and is not in the log")
        demand(digests[name] == digest, f"{name} was signed with other content than the log has")
    return len(subjects)


def check_signatures(directory, keys, identity):
    entries = map(json.loads, (directory / "entries.jsonl").read_bytes().splitlines())
    digests = {entry["event_ref"]: entry["digest"] for entry in entries}
    signed, unknown = 0, 0
    for path in sorted((directory / "signatures").glob("*")):
        count = at(path.name, check_sent, path.read_bytes(), keys, identity, digests)
        signed += count or 0
        unknown += count is None
    return signed, unknown


def at(place, check, *args):
    """Runs a check; every error in it is reported with its place."""
    try:
        return check(*args)
    except Wrong as wrong:
        sys.exit(f"statements: {place}: {wrong}")
    except Exception as error:
        sys.exit(f"statements: {place}: {type(error).__name__}: {error}")


def main(directory, operator, producers=None):
    directory = pathlib.Path(directory)
    identity = hashlib.sha256((directory / "manifest.json").read_bytes()).hexdigest()
    key = at(operator, operator_key, pathlib.Path(operator))
    lines = pathlib.Path(producers).read_text().split() if producers else []
    keys = [at(producers, producer_key, line) for line in lines]
    at("SHA256SUMS.sig", check_sums, directory, key, identity)
    at("certificate.dsse.json", check_certificate, directory, key, identity)
    signed, unknown = check_signatures(directory, keys, identity)
    if unknown:
        print(f"statements: {unknown} of producers whose keys you did not give: not counted")
    print(f"statements: the operator's two hold; producers signed {signed} events of the log")


if __name__ == "__main__":
    main(*sys.argv[1:])
