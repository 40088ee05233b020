"""A directory with a store, and programs that run there with or without a fault.

Guarantees: every run sees the same bytes and times, copied from a template that no run touches;
nothing outside the directory is part of a run; a fault hits only operations below the directory.
"""
import ctypes
import dataclasses
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

# A run that takes longer is stuck. The slowest takes half a second on an idle machine.
DEADLINE = 60
# The age that the last tree head gets, so that a new one is due: at most one is signed per second.
AN_HOUR = 3600
# The files that SQLite keeps next to an open store, or until the next process opens it.
SIDE_FILES = ("-wal", "-shm", "-journal")
PROGRAM_DIED = (101, 134)


class Broken(Exception):
    """A violated invariant, as a message."""


class Record(ctypes.Structure):
    """The report of the shim: `struct record` of shim.c."""

    _fields_ = [("counts", ctypes.c_uint64 * 4), ("hit", ctypes.c_uint64),
                ("lost_names", ctypes.c_uint64), ("synced_later", ctypes.c_uint64),
                ("unsynced_name", ctypes.c_uint64), ("what", ctypes.c_char * 216)]


@dataclasses.dataclass
class Fault:
    """The operation of a mode's class that is hit; only files below a part of the root count."""

    mode: str
    at: int
    below: str = ""


@dataclasses.dataclass
class Ran:
    """The result of a run."""

    code: int
    out: str
    err: str
    # The rest is set by a run with a fault.
    counts: tuple = ()
    hit: int = 0
    lost_names: bool = False
    unsynced_name: bool = False
    what: str = ""
    acknowledged: list = dataclasses.field(default_factory=list)
    bundle: bytes = b""

    def died(self):
        """Whether the process was killed, which a fault may require."""
        return self.code == -signal.SIGKILL

    def panicked(self):
        return self.code in PROGRAM_DIED or "panicked at" in self.err \
            or (self.code < 0 and not self.died())


class Programs:
    """The built programs: ipse, ipse-verify and the shim."""

    def __init__(self, ipse, ipse_verify, shim):
        self.ipse, self.ipse_verify, self.shim = ipse, ipse_verify, shim


class World:
    """A directory `root` with all files of a run, and a place outside for the record."""

    def __init__(self, programs, place, identity):
        self.programs, self.place = programs, pathlib.Path(place)
        # The identity to use if a store holds several.
        self.identity = identity
        self.root = self.place / "root"
        self.env = {name: value for name, value in os.environ.items()
                    if not name.startswith(("IPSE_", "SWEEP_"))}
        self.env["TMPDIR"] = str(self.root / "tmp")

    @classmethod
    def new(cls, programs, scratch, identity):
        world = cls(programs, tempfile.mkdtemp(dir=scratch), identity)
        for directory in ("tmp", "out"):
            (world.root / directory).mkdir(parents=True)
        return world

    def copy(self, scratch):
        """Another world with the same files, bytes, modes and times."""
        world = World(self.programs, tempfile.mkdtemp(dir=scratch), self.identity)
        shutil.copytree(self.root, world.root, symlinks=True)
        return world

    def remove(self):
        shutil.rmtree(self.place, ignore_errors=True)

    # ---- programs

    def faulty(self, fault):
        """The environment of a process with a fault, and the record that it fills."""
        record = self.place / "record"
        record.write_bytes(bytes(ctypes.sizeof(Record)))
        settings = {"LD_PRELOAD": self.programs.shim, "SWEEP_ROOT": str(self.root / fault.below),
                    "SWEEP_RECORD": str(record), "SWEEP_MODE": fault.mode,
                    "SWEEP_AT": str(fault.at)}
        return dict(self.env, **settings), record

    def run(self, *command, fault=None, stdin=b""):
        env, record = self.faulty(fault) if fault else (self.env, None)
        try:
            done = subprocess.run(command, cwd=self.root, env=env, input=stdin,
                                  capture_output=True, timeout=DEADLINE)
        except subprocess.TimeoutExpired as error:
            raise Broken(f"{' '.join(command[1:])} did not end") from error
        ran = Ran(done.returncode, done.stdout.decode(errors="replace"),
                  done.stderr.decode(errors="replace"))
        if record:
            self.read_record(ran, record)
        return ran

    @staticmethod
    def read_record(ran, record):
        record = Record.from_buffer_copy(record.read_bytes())
        ran.counts, ran.hit, ran.what = tuple(record.counts), record.hit, record.what.decode()
        ran.lost_names = record.lost_names != 0 and record.synced_later == 0
        ran.unsynced_name = record.unsynced_name != 0

    def ipse(self, *arguments, fault=None, stdin=b""):
        return self.run(self.programs.ipse, *arguments, fault=fault, stdin=stdin)

    def fine(self, *arguments, stdin=b""):
        """Runs ipse without a fault; it must succeed. Returns its output."""
        ran = self.ipse(*arguments, stdin=stdin)
        if ran.code != 0:
            raise Broken(f"`ipse {' '.join(arguments)}` exits {ran.code}: {ran.err.strip()[-300:]}")
        return ran.out

    def json(self, *arguments):
        return json.loads(self.fine(*arguments, "--json"))

    # ---- files

    def path(self, name):
        return self.root / name

    def write(self, name, data):
        self.path(name).write_bytes(data)

    def files(self):
        """All files below the root: name to SHA-256."""
        found = {}
        for directory, _, names in os.walk(self.root):
            for name in names:
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    digest = hashlib.sha256(file.read()).hexdigest()
                found[os.path.relpath(path, self.root)] = digest
        return found

    def holds(self, text):
        """The files that contain some bytes."""
        return [name for name in self.files() if text in self.path(name).read_bytes()]

    def age(self):
        """Makes everything an hour older, so that a tree head is due."""
        for directory, _, names in os.walk(self.root):
            for name in names:
                path = os.path.join(directory, name)
                past = os.stat(path).st_mtime - AN_HOUR
                os.utime(path, (past, past))

    # ---- the store

    def log(self, store="ipse.db"):
        """The lines of a log."""
        ran = self.ipse("--store", store, "--identity", self.identity, "log", "--json")
        if ran.code != 0 and "the log is empty" not in ran.err:
            raise Broken(f"the log cannot be read: {ran.err.strip()[-300:]}")
        return ran.out.splitlines()

    def ids(self, store="ipse.db"):
        """The ids of events that still have content."""
        events = (json.loads(line)["event"] for line in self.log(store))
        return [event["id"] for event in events if event]

    def verify(self, store="ipse.db"):
        """Checks that the store opens and everything in it follows from the log."""
        ran = self.ipse("--store", store, "--identity", self.identity, "verify")
        if ran.code != 0:
            raise Broken(f"`ipse verify` exits {ran.code}: {(ran.out + ran.err).strip()[-300:]}")

    def verify_bundle(self, name, store="ipse.db"):
        keys = f"{store}.keys"
        ran = self.run(self.programs.ipse_verify, name, "--trust", f"{keys}/log.vkey",
                       "--trust", f"{keys}/operator.pub")
        if ran.code != 0:
            said = (ran.out + ran.err).strip()[-300:]
            raise Broken(f"ipse-verify {name} exits {ran.code}: {said}")


def is_side_file(name):
    return name.endswith(SIDE_FILES)


def matches(name, patterns):
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def refs_in(text):
    return re.findall(r"\bev_[0-9a-f]{32}\b", text)
