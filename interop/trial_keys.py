"""A producer without ipse, with a key from OpenSSL that is registered by its PEM file.

It guarantees: signed batches of a shell script (openssl and jq) and of Python (`securesystemslib`
and `in-toto-attestation`), whose statements are not canonical JSON, are accepted over HTTP and by
import; and `ipse verify`, `ipse-verify` and securesystemslib verify them in a bundle.
"""

import base64
import hashlib
import json
import pathlib
import subprocess
import sys

from served import DEADLINE, SOURCE, Server, call
from trial import expect

TOOLS = ["openssl", "jq", "sha256sum", "tar"]
PYTHON = ["securesystemslib[crypto]", "in-toto-attestation", "protobuf", "cryptography",
          "rfc8785"]

HERE = pathlib.Path(__file__).resolve().parent
PAYLOAD_TYPE = "application/vnd.in-toto+json"
SENT = "urn:ipse:sent:v1"


def new_key(server, name):
    """Creates a key pair with OpenSSL, registers its public half, and returns the verifier key."""
    private, public = server.directory / f"{name}.key", server.directory / f"{name}.pem"
    call("openssl", "genpkey", "-algorithm", "ed25519", "-out", str(private))
    call("openssl", "pkey", "-in", str(private), "-pubout", "-out", str(public))
    made = server.run("key", "new", "producer", name, "--identity", server.identity,
                      "--any-source", "--public", str(public))
    return private, made.strip()


def events(source, count):
    """Events in canonical form: sorted members, no white space, ASCII and whole numbers only."""
    for n in range(count):
        data = {"environment": "ward3", "skill_id": "grasp", "success": True,
                "params": {"force_n": 20 + n}}
        event = {"id": f"signed-{n}", "source": source, "type": "execution_result",
                 "specversion": "1.0", "time": f"2026-05-06T10:{n:02}:00Z", "data": data,
                 "salt": hashlib.sha256(f"{source}{n}".encode()).hexdigest()[:32]}
        yield json.dumps(event, sort_keys=True, separators=(",", ":"))


def names_and_digests(lines):
    for line in lines:
        event = json.loads(line)
        name = hashlib.sha256(f"{event['source']}\n{event['id']}".encode()).hexdigest()[:32]
        yield f"ev_{name}", hashlib.sha256(line.encode()).hexdigest()


def in_toto_statement(lines, identity):
    """The statement as `in-toto-attestation` builds it and protobuf prints it: indented."""
    from google.protobuf.json_format import MessageToJson
    from in_toto_attestation.v1.resource_descriptor import ResourceDescriptor
    from in_toto_attestation.v1.statement import Statement

    subjects = [ResourceDescriptor(name=name, digest={"sha256": digest}).pb
                for name, digest in names_and_digests(lines)]
    statement = Statement(subjects, SENT, {"identity_hash": identity})
    statement.validate()
    return MessageToJson(statement.pb).encode()


def plain_statement(lines, identity):
    """The statement as written by a program without canonical JSON."""
    subjects = [{"name": name, "digest": {"sha256": digest}}
                for name, digest in names_and_digests(lines)]
    return json.dumps({"predicateType": SENT, "_type": "https://in-toto.io/Statement/v1",
                       "subject": subjects, "predicate": {"identity_hash": identity}}).encode()


def signed_by_python(private, keyid, lines, payload):
    """A signed file: the lines, and an envelope of securesystemslib."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import CryptoSigner, SSlibKey

    secret = load_pem_private_key(private.read_bytes(), None)
    raw = secret.public_key().public_bytes_raw()
    key = SSlibKey(keyid, "ed25519", "ed25519", {"public": raw.hex()})
    envelope = Envelope(payload, PAYLOAD_TYPE, {})
    envelope.sign(CryptoSigner(secret, key))
    return "".join(line + "\n" for line in [*lines, json.dumps(envelope.to_dict())])


def signed_by_shell(server, private, keyid, lines):
    """A signed file, made by openssl and jq only."""
    plain = server.directory / "plain.jsonl"
    plain.write_text("".join(line + "\n" for line in lines))
    return call("sh", str(HERE / "sign.sh"), str(plain), str(private), keyid, server.identity)


def posted(server, text):
    """Posts lines and returns the answer."""
    status, _, answer = server.ask("/api/agent/events", server.tokens["producer"], text.encode(),
                                   {"Content-Type": "application/x-ndjson"})
    body = json.loads(answer.read())
    expect(status == 200, status, body)
    return body


def check_library(server, bundle, keys):
    """The guide's script, with securesystemslib, on the unpacked bundle."""
    unpacked = server.directory / "unpacked"
    unpacked.mkdir()
    call("tar", "-xf", str(bundle), "-C", str(unpacked))
    done = call(sys.executable, str(SOURCE / "docs/guide/audit/statements.py"), str(unpacked),
                str(server.directory / "ipse.db.keys/operator.pub"), str(keys))
    expect("producers signed 18 events" in done, done)


def check_bundle(server, place, verifier_keys):
    """The bundle verifies, and counts the events of both producers."""
    bundle, keys = server.directory / "log.ipse", server.directory / "producers.vkey"
    keys.write_text("".join(key + "\n" for key in verifier_keys))
    server.run("verify", "--identity", server.identity)
    server.run("export", "--identity", server.identity, "-o", str(bundle))
    own = server.directory / "ipse.db.keys"
    done = subprocess.run([place.verify, str(bundle), "--trust", str(own / "log.vkey"),
                           str(own / "operator.pub"), str(keys)],
                          capture_output=True, text=True, timeout=DEADLINE)
    expect(done.returncode == 0, "ipse-verify:", done.stdout, done.stderr)
    expect("18 events signed by 2 producers" in done.stdout, done.stdout)
    check_library(server, bundle, keys)


def run(place):
    server = Server(place.ipse, place.scratch)
    (python_key, python), (shell_key, shell) = new_key(server, "arm-py"), new_key(server, "arm-sh")
    keyid = {key: "+".join(key.split("+")[:2]) for key in (python, shell)}
    lines = {name: list(events(name, 6)) for name in ("toto", "plain", "shell")}
    toto = signed_by_python(python_key, keyid[python], lines["toto"],
                            in_toto_statement(lines["toto"], server.identity))
    plain = signed_by_python(python_key, keyid[python], lines["plain"],
                             plain_statement(lines["plain"], server.identity))
    scripted = signed_by_shell(server, shell_key, keyid[shell], lines["shell"])
    payload = base64.b64decode(json.loads(scripted.splitlines()[-1])["payload"])
    expect(b"\n" in payload, "the shell's statement is canonical, so that nothing is tried")
    with server:
        for text in (toto, scripted):
            body = posted(server, text)
            expect((body["appended"], body["signed"], body["refused"]) == (6, 6, 0), body)
        body = posted(server, toto)
        expect((body["duplicates"], body["signed"]) == (6, 6), body)
    file = server.directory / "signed.jsonl"
    file.write_text(plain)
    done = json.loads(server.run("import", "--identity", server.identity, str(file), "--signed",
                                 "--json"))
    expect((done["appended"], done["signed"]) == (6, 6), done)
    check_bundle(server, place, [python, shell])
    return "18 events signed with two keys of OpenSSL verify"
