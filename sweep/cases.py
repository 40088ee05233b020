"""The commands of the sweep: the initial state and the guarantees of each.

Guarantee: every command of docs/reference/cli.md that writes below the store, the keys or a given
path is here, and `READERS` are run to show that they change nothing.
"""
import base64
import dataclasses
import gzip
import hashlib
import json
import pathlib
import re
import subprocess
import typing

from serving import serve
from world import Broken, Ran, World, refs_in

SOURCE = pathlib.Path(__file__).resolve().parent.parent
GATES = {name: SOURCE / "examples/gates" / file for name, file in [
    ("policy", "policy.toml"), ("ecm_registry", "ecm-registry.toml"),
    ("temperament", "temperament.toml")]}
# A pass over this many events seals a chunk of 256.
WEEK = 300
CANARY = b"canary-7f3a91d2c4"
CANARY_ID = "to-be-forgotten"
STORE, KEYS = "ipse.db", "ipse.db.keys"
WITNESS = "witness.example/w1"
# Stores of earlier versions, and the one that needs the most migration steps.
SAMPLES = SOURCE / "vectors/store"
OLDEST = "schema_5"
# The roles of tokens: appends, proposes, reads bundles.
ROLES = ("producer", "planner", "auditor")
ALL = ("kill", "torn", "short", "eio", "late", "dead", "full", "unread")


def manifest(agent):
    hashes = {f"{name}_hash": hashlib.sha256(path.read_bytes()).hexdigest()
              for name, path in GATES.items()}
    fields = {"agent_id": agent, "operator": "sweep", "embodiment": "none",
              "commissioned_at": "2026-05-01T00:00:00Z", **hashes}
    return json.dumps(fields).encode()


def event(name, at, force=25, reason=None):
    """An event in canonical form, as one line. It has a salt, so signing it gives equal bytes."""
    data = {"environment": "ward3", "params": {"force_n": force}, "skill_id": "grasp",
            "success": reason is None, "target_class": "cup"}
    if reason:
        data["failure_reason"] = reason
    salt = hashlib.sha256(name.encode()).hexdigest()[:32]
    line = {"data": data, "id": name, "salt": salt, "source": "arm-7", "specversion": "1.0",
            "time": f"2026-05-06T10:{at // 60 % 60:02}:{at % 60:02}Z", "type": "execution_result"}
    return json.dumps(line, separators=(",", ":"), sort_keys=True).encode() + b"\n"


def lines(prefix, count):
    return b"".join(event(f"{prefix}-{n}", n, 20 + n % 9, ["slip", None, None][n % 3])
                    for n in range(count))


def template(programs, scratch):
    """A store with a log, keys, a producer and tokens; files to read; an empty store."""
    world = World.new(programs, scratch, identity_of("agent"))
    world.write("agent.json", manifest("swept"))
    world.write("other.json", manifest("another"))
    world.fine("init", "--manifest", "agent.json")
    world.fine("--store", "spare.db", "init", "--manifest", "agent.json")
    world.fine("import", "-", stdin=lines("first", 20))
    world.fine("key", "new", "producer", "arm-7", "--source", "arm-7", "--out", "arm-7.key")
    # A key that was made elsewhere: only its public half is registered here.
    world.fine("--store", "elsewhere.db", "init", "--manifest", "agent.json")
    public = world.fine("--store", "elsewhere.db", "key", "new", "producer", "arm-8",
                        "--any-source", "--out", "elsewhere.key")
    world.write("elsewhere.vkey", public.encode())
    world.write("week.jsonl", lines("week", WEEK))
    world.write("week.jsonl.gz", gzip.compress(lines("week", WEEK), mtime=0))
    world.fine("sign", "week.jsonl", "--key", "arm-7.key", "--name", "arm-7", "-o", "signed.jsonl")
    for role in ROLES:
        sources = ("--any-source",) if role == "producer" else ()
        token = world.json("token", "create", "--role", role, "--name", role, *sources)["token"]
        world.write(f"{role}.token", token.encode())
    world.fine("export", "-o", "log.ipse")
    world.write("anchor.note", world.fine("tree-head").encode())
    return world


# ---- what a command promises ------------------------------------------------------------------


def need(holds, what):
    if not holds:
        raise Broken(what)


def has_ids(*wanted):
    def check(world):
        missing = sorted(set(wanted) - set(world.ids()))
        need(not missing, f"{len(missing)} events are missing, as {missing[:3]}")
    return check


def has_week(world):
    has_ids(*(f"week-{n}" for n in range(WEEK)))(world)


def has_pass(world):
    last = json.loads(world.log()[-1])
    need(last["type"] == "consolidation_run", "no pass covers the newest event")


def is_forgotten(world):
    need(any(json.loads(line)["event"] is None for line in world.log()), "nothing is forgotten")
    need(CANARY_ID not in world.ids(), "the event is still there")
    found = world.holds(CANARY)
    need(not found, f"forgotten text is still in {found}")


def is_taken_in(world):
    need(world.log("spare.db") == world.log(), "the log is not that of the bundle")
    world.verify("spare.db")


def is_bundle(world):
    world.verify_bundle("out/log.ipse")


def is_cosigned(world):
    name = world.place / "cosigned.ipse"
    world.fine("export", "--cosigned", "-o", str(name))
    need(f"\n\u2014 {WITNESS} ".encode() in name.read_bytes(), "the cosignature is missing")
    world.verify_bundle(str(name))


def is_signed_file(world):
    need(world.path("out/signed.jsonl").read_bytes() == world.path("signed.jsonl").read_bytes(),
         "the signed file differs from one that was signed without a fault")


def is_signed_prefix(world):
    """Truncated input is signed up to the break, and the exit code reports it."""
    *events, envelope = world.path("out/signed.jsonl").read_bytes().splitlines(keepends=True)
    need(b"".join(events) == b"".join(lines("week", WEEK).splitlines(True)[:len(events)])
         and b"payloadType" in envelope, "the signed file is neither complete nor a prefix")


def keys_fit(world, store=STORE):
    """Both keys of the store sign, and what they sign verifies under their public halves."""
    name = world.place / "fitting.ipse"
    world.fine("--store", store, "export", "-o", str(name))
    world.verify_bundle(str(name), store)


def listed_keys(world, role):
    return {row["state"] for row in world.json("key", "list") if row["role"] == role}


def has_head(world):
    """The newest tree head covers the log and equals the one next to the keys."""
    head = world.json("tree-head")
    kept = list(world.path(f"{KEYS}/heads").glob("*.note"))
    need([path.read_text() for path in kept] == [head["note"]], "the two newest heads differ")
    need(head["tree_size"] == len(world.log()), "the newest head does not cover the log")


def has_log_key(world):
    need("here" in listed_keys(world, "log"), "there is no log key")
    has_head(world)
    keys_fit(world)


def has_operator_key(world):
    need("here" in listed_keys(world, "operator"), "there is no operator key")
    keys_fit(world)


def producer_signs(key):
    """A producer's private key exists, and events that it signs are accepted."""
    def check(world):
        signed = world.fine("sign", "-", "--key", key, "--name", "arm-8", stdin=event("signed", 0))
        other = world.copy(world.place)
        ran = other.ipse("import", "--signed", "-", stdin=signed.encode())
        other.remove()
        need(ran.code == 0, f"the producer's events are refused: {ran.err.strip()[-200:]}")
        public = pathlib.Path(key).with_suffix(".vkey")
        if world.path(public.parent).name == "producers":
            need(world.path(public).exists(), f"{public} is missing")
    return check


def is_revoked(role):
    def check(world):
        need(listed_keys(world, role) == {"revoked"}, f"the key is {listed_keys(world, role)}")
        gone = {"log": "log.key", "operator": "operator.key", "producer": "producers/arm-8.key"}
        need(not world.path(f"{KEYS}/{gone[role]}").exists(), f"{gone[role]} is not put away")
    return check


def has_token(world):
    names = [token["name"] for token in world.json("token", "list")]
    need("swept" in names, "the token is not listed")


def is_token_revoked(world):
    names = [token["name"] for token in world.json("token", "list")]
    need("planner" not in names, "the token is live")


def is_set(name, value):
    def check(world):
        now = world.json("config")[name]
        now = next(iter(now.values())) if isinstance(now, dict) else now
        need(now == value, f"{name} is {now}")
    return check


def is_migrated(world):
    older = ("--store", "older.db")
    world.fine(*older, "verify")
    facts = (SAMPLES / f"{OLDEST}.snapshot.jsonl").read_text()
    need(world.fine(*older, "snapshot") == facts, "the facts of the migrated store are others")


def is_initialised(world):
    world.verify()
    keys_fit(world)


def has_both_identities(world):
    for name in ("agent", "other"):
        identity = hashlib.sha256(
            world.fine("--store", STORE, "--identity", identity_of(name), "identity",
                       "--canonical").encode()).hexdigest()
        need(identity == identity_of(name), "the identity is another one")
    vkeys = world.path(f"{KEYS}/log.vkey").read_text()
    need(identity_of("other") in vkeys, "log.vkey does not name the second identity")


def identity_of(name):
    fields = json.loads(manifest({"agent": "swept", "other": "another"}[name]))
    canonical = json.dumps(fields, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def is_report(world):
    sums = world.path("out/report/SHA256SUMS").read_text().splitlines()
    need(sums, "SHA256SUMS is empty")
    for line in sums:
        digest, name = line.split(maxsplit=1)
        found = hashlib.sha256(world.path(f"out/report/{name}").read_bytes()).hexdigest()
        need(found == digest, f"{name} does not match SHA256SUMS")


def done_nothing(world):
    """The output is checked instead of the effect."""


# ---- what a command said before it ended -------------------------------------------------------


def said_refs(world, ran):
    known = {json.loads(line)["event_ref"] for line in world.log()}
    missing = set(refs_in(ran.out)) - known
    need(not missing, f"printed, but not in the log: {missing}")


def said_durable(world, ran):
    durable = re.findall(r"^durable up to line \d+: (\d+) appended, (\d+) dup", ran.err, re.M)
    stored = max((int(new) + int(old) for new, old in durable), default=0)
    has_ids(*(f"week-{n}" for n in range(stored)))(world)


def said_all_or_nothing(world, ran):
    need(world.log("spare.db") in ([], world.log()), "a part of the bundle was imported")
    world.verify("spare.db")


def said_forgot(world, ran):
    if "forgot " in ran.out and "pending" not in ran.out + ran.err:
        is_forgotten(world)


def said_head(world, ran):
    if ran.out.endswith("=\n"):
        kept = list(world.path(f"{KEYS}/heads").glob("*.note"))
        need([path.read_text() for path in kept] == [ran.out], "printed before it was kept")


def said_request(world, ran):
    """The tree head in the request was kept outside the store before it was printed."""
    if ran.out.endswith("=\n"):
        said_head(world, dataclasses.replace(ran, out=ran.out.split("\n\n", 1)[1]))


def said_token(world, ran):
    if ran.out.endswith("\n"):
        has_token(world)


def said_served(world, ran):
    known = {json.loads(line)["event_ref"] for line in world.log()}
    missing = set(ran.acknowledged) - known
    need(not missing, f"acknowledged, but not in the log: {missing}")
    if ran.bundle:
        name = world.place / "downloaded.ipse"
        name.write_bytes(ran.bundle)
        world.verify_bundle(str(name))


def said_fine(world, ran):
    """No findings: then everything that is compared was read."""
    if ran.code == 0:
        need(f"/{KEYS}/" not in ran.what, "there are no findings, and a key or head was not read")


def said_nothing(world, ran):
    """The exit code is the only output."""


# ---- the commands -------------------------------------------------------------------------------


@dataclasses.dataclass
class Case:
    """A command: its initial state, and what must hold afterwards."""

    name: str
    arguments: tuple
    # Holds after exit 0; raises `Broken` if not.
    done: typing.Callable
    # Checks the output of the command, whatever its exit code.
    said: typing.Callable = said_nothing
    # Commands that prepare the template, without a fault.
    before: tuple = ()
    prepare: typing.Callable = lambda world: None
    # Files that it may change, besides stores and tree heads.
    changes: tuple = ()
    # The file that must be unchanged or complete; how to check it if not by `done`.
    output: str = ""
    whole: typing.Callable = None
    # Exit codes of a second run that finds the work done.
    repeated: tuple = (0,)
    # Whether events of the template may lose their content.
    forgets: bool = False
    # Whether the template has no store.
    fresh: bool = False
    # Whether `ipse verify` must find nothing before the command is run again.
    verifies: bool = True
    # The command that completes the work after a second run, if any.
    settled_by: tuple = ()
    # Names of files that a killed process may leave.
    leaves: tuple = ("*/.new-ipse-*",)
    # Whether it is a server: it answers instead of ending, and its log is a file of the run.
    serves: bool = False
    # The part of the root whose operations count.
    below: str = ""
    modes: tuple = ALL
    # Modes in which every operation is hit, even if only every N-th is requested.
    always: tuple = ()
    run: typing.Callable = None

    def attempt(self, world, fault=None) -> Ran:
        if fault:
            fault = dataclasses.replace(fault, below=self.below)
        run = self.run or (lambda world, fault: world.ipse(*self.arguments, fault=fault))
        return run(world, fault)

    def template(self, base, scratch):
        """The world that every run of this case copies."""
        world = base.copy(scratch)
        self.prepare(world)
        for arguments in self.before:
            world.fine(*arguments)
        world.age()
        return world


def without_store(world):
    for name in list(world.files()):
        if name.startswith(STORE):
            world.path(name).unlink()
    for directory in ("heads", "producers", "revoked", ""):
        path = world.path(f"{KEYS}/{directory}")
        if path.is_dir():
            path.rmdir()


def with_canary(world):
    world.path("log.ipse").unlink()
    line = event(CANARY_ID, 59, reason=CANARY.decode())
    world.fine("import", "-", stdin=lines("older", 5) + line + lines("newer", 5))


def with_older_store(world):
    world.write("older.db", gzip.decompress((SAMPLES / f"{OLDEST}.db.gz").read_bytes()))


def with_answer(world):
    """A request, and the answer of a witness, which OpenSSL signs (C2SP tlog-cosignature)."""
    request = world.fine("witness", "request")
    world.write("request", request.encode())
    secret, message = world.place / "witness.pem", world.place / "message"
    run = lambda *args: subprocess.run(("openssl", *map(str, args)), check=True,
                                       capture_output=True).stdout
    run("genpkey", "-algorithm", "ed25519", "-out", secret)
    public = b"\x04" + run("pkey", "-in", secret, "-pubout", "-outform", "DER")[-32:]
    key_id = hashlib.sha256(WITNESS.encode() + b"\n" + public).digest()[:4]
    head = request.split("\n\n")[1] + "\n"
    message.write_text(f"cosignature/v1\ntime 1790000000\n{head}")
    signature = run("pkeyutl", "-sign", "-inkey", secret, "-rawin", "-in", message)
    line = base64.b64encode(key_id + (1790000000).to_bytes(8, "big") + signature).decode()
    world.write("answer", f"\u2014 {WITNESS} {line}\n".encode())
    public = base64.b64encode(public).decode()
    world.write("witness.vkey", f"{WITNESS}+{key_id.hex()}+{public}\n".encode())
    secret.unlink()
    message.unlink()


def with_old_output(world):
    world.write("out/log.ipse", b"an older file\n")


def forget(world, fault):
    ref = next(line["event_ref"] for line in map(json.loads, world.log())
               if line["event"] is None or line["event"]["id"] == CANARY_ID)
    return world.ipse("forget", ref, "--yes", fault=fault)


def register(world, fault):
    public = world.path("elsewhere.vkey").read_text().strip()
    return world.ipse("key", "new", "producer", "arm-8", "--any-source", "--public", public,
                      fault=fault)


def prune(world, fault):
    return world.ipse("prune", "--before", "2026-05-07", "--yes", fault=fault)


PAUSED = ("record", "--id", "waiting", "--zone", "dock", "--failed", "--no-consolidate")
REPORT = ("reproduce", "v1", "--quick", "--out", "out/report")

CASES = (
    Case("init", ("init", "--manifest", "agent.json"), is_initialised, prepare=without_store,
         changes=(f"{KEYS}/*",), fresh=True),
    Case("init (second identity)", ("init", "--manifest", "other.json"), has_both_identities,
         changes=(f"{KEYS}/log.vkey",)),
    Case("record", ("record", "--id", "one", "--zone", "dock", "--failed",
                    "--time", "2026-05-08T10:00:00Z"), has_ids("one"), said_refs),
    Case("import", ("import", "--verbose", "week.jsonl"), has_week, said_durable),
    Case("import (gzip)", ("import", "--verbose", "week.jsonl.gz"), has_week, said_durable),
    Case("import --signed", ("import", "--verbose", "--signed", "signed.jsonl"), has_week, said_durable),
    Case("import-bundle", ("--store", "spare.db", "import-bundle", "log.ipse", "--trust",
                           f"{KEYS}/log.vkey", "--trust", f"{KEYS}/operator.pub"),
         is_taken_in, said_all_or_nothing, repeated=(0, 2)),
    Case("consolidate", ("consolidate",), has_pass, before=(PAUSED,)),
    Case("forget", (), is_forgotten, said_forgot, prepare=with_canary, forgets=True, run=forget),
    Case("prune", (), is_forgotten, said_forgot, prepare=with_canary, forgets=True, run=prune,
         repeated=(0, 1)),
    Case("export", ("export", "-o", "out/log.ipse", "--force"), is_bundle, prepare=with_old_output,
         changes=("out/log.ipse",), output="out/log.ipse",
         # A key that can be read once and not again must not give a bundle without it.
         always=("unread",)),
    Case("sign", ("sign", "week.jsonl", "--key", "arm-7.key", "--name", "arm-7", "-o",
                  "out/signed.jsonl"), is_signed_file, output="out/signed.jsonl",
         whole=is_signed_prefix),
    Case("tree-head --sign", ("tree-head", "--sign"), has_head, said_head, before=(PAUSED,)),
    Case("witness request", ("witness", "request"), has_head, said_request, before=(PAUSED,)),
    Case("witness add", ("witness", "add", "answer", "--request", "request", "--witness",
                         "witness.vkey"), is_cosigned, prepare=with_answer),
    Case("key new log", ("key", "new", "log"), has_log_key, before=(("key", "revoke", "log"),),
         # Until the new key has signed a head, the newest one is of the revoked key: a finding.
         repeated=(0, 2), verifies=False, settled_by=("tree-head", "--sign")),
    Case("key new operator", ("key", "new", "operator"), has_operator_key,
         before=(("key", "revoke", "operator"),), repeated=(0, 2)),
    Case("key new producer", ("key", "new", "producer", "arm-8", "--any-source"),
         producer_signs(f"{KEYS}/producers/arm-8.key"), repeated=(0, 2)),
    Case("key new producer --out",
         ("key", "new", "producer", "arm-8", "--any-source", "--out", "out/arm-8.key"),
         producer_signs("out/arm-8.key"), repeated=(0, 2)),
    Case("key new producer --public", (), producer_signs("elsewhere.key"), run=register),
    Case("key revoke log", ("key", "revoke", "log"), is_revoked("log"), changes=(f"{KEYS}/*",),
         repeated=(0, 2)),
    Case("key revoke operator", ("key", "revoke", "operator"), is_revoked("operator"),
         changes=(f"{KEYS}/*",), repeated=(0, 2)),
    Case("key revoke producer", ("key", "revoke", "arm-8"), is_revoked("producer"),
         before=(("key", "revoke", "arm-7"),
                 ("key", "new", "producer", "arm-8", "--any-source")),
         changes=(f"{KEYS}/producers/*",), repeated=(0, 1)),
    Case("token create", ("token", "create", "--role", "planner", "--name", "swept"), has_token,
         said_token),
    Case("token revoke", ("token", "revoke", "planner"), is_token_revoked),
    Case("config retention", ("config", "retention", "180d"), is_set("retention", "180d")),
    Case("config signatures", ("config", "signatures", "require"),
         is_set("signatures", "require")),
    Case("migrate", ("--store", "older.db", "migrate"), is_migrated, prepare=with_older_store),
    Case("serve", (), done_nothing, said_served, run=serve(GATES), serves=True),
    # Its experiments run in their own stores below tmp.
    Case("reproduce --out", REPORT, is_report, below="out", leaves=("*/.new-ipse-*", "tmp/*")),
    Case("verify", ("verify",), done_nothing, said_fine),
)

# Commands that read: each must leave every file unchanged.
READERS = (
    ("verify",), ("rebuild",), ("identity",), ("identity", "--certificate"), ("facts",),
    ("explain", "grasp + cup + ward3"), ("snapshot",), ("diff", "0", "15"), ("log",), ("passes",),
    ("config",), ("key", "list"), ("token", "list"), ("tree-head",), ("manifest", "new"),
    ("proof", "consistency", "anchor.note"),
    ("gates", "new", "policy"), ("prune", "--keep", "1", "--dry-run"),
)
