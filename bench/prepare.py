"""Prepares everything before the measurements: environment, binary, streams, stores.

Guarantees: complete parts are reused; incomplete ones have a temporary name, so an interrupted run
leaves nothing that looks finished; a store that another binary made is made again; one binary is
used for a whole run, even if the file it was copied from is replaced.
"""
import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import sqlite3
import sys

import workload
from measure import Trouble, run, say

PACKAGES = ("duckdb", "polars", "pyarrow", "fastapi", "uvicorn", "uvloop", "httptools")
HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(HERE)
# Baselines that are not ours are next to the repository and are run there.
SHARED = os.path.join(os.path.dirname(REPOSITORY), "shared", "bench")
# A larger stream is removed once it is imported: no rival reads it.
KEPT_STREAM = 1_000_000
# A store of 1e7 events takes about 6 GB, its stream 3 GB; a job that writes copies the store.
LARGE_BYTES, LARGE_COPY_BYTES = 15_000_000_000, 8_000_000_000
MANIFEST = {"agent_id": "bench", "operator": "bench", "embodiment": "none",
            "policy_hash": "1" * 64, "ecm_registry_hash": "2" * 64, "temperament_hash": "3" * 64,
            "commissioned_at": "2026-02-01T00:00:00Z"}


class Workshop:
    """The working directory of a run, and its lock."""

    def __init__(self):
        target = os.environ.get("CARGO_TARGET_DIR") or os.path.join(REPOSITORY, "target")
        self.target = os.path.abspath(target)
        self.root = os.path.join(self.target, "bench")
        self.temporary = self.path("tmp")
        self.python = self.path("venv", "bin", "python")
        self.ipse = self.path("ipse")
        # Jobs that write copy a store into TMPDIR: it must be on a disk, not in memory.
        self.env = {**os.environ, "TMPDIR": self.temporary}
        self.env.pop("IPSE_STORE", None)
        self.binary_hash = None

    def path(self, *parts):
        """A path inside the folder."""
        return os.path.join(self.root, *parts)

    @contextlib.contextmanager
    def locked(self):
        """Locks the directory for this process; removes temporary files before and after."""
        os.makedirs(self.root, exist_ok=True)
        with open(self.path("lock"), "w", encoding="ascii") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise Trouble("another ./bench/run uses the same directory") from error
            self.sweep()
            try:
                yield
            finally:
                self.sweep()

    def sweep(self):
        """Removes all temporary files."""
        shutil.rmtree(self.temporary, ignore_errors=True)
        os.makedirs(self.temporary)

    @contextlib.contextmanager
    def new_directory(self, final):
        """A directory that gets its final name once its contents are complete."""
        part = os.path.join(self.temporary, "part-" + os.path.basename(final))
        os.makedirs(part)
        yield part
        shutil.rmtree(final, ignore_errors=True)
        os.makedirs(os.path.dirname(final), exist_ok=True)
        os.rename(part, final)

    @contextlib.contextmanager
    def copied(self, store):
        """A copy of a store with its keys, for a job that writes; removed afterwards."""
        folder = os.path.join(self.temporary, "copy")
        os.makedirs(folder)
        try:
            copy = os.path.join(folder, "store.db")
            shutil.copyfile(store, copy)
            shutil.copytree(store + ".keys", copy + ".keys")
            yield copy
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def stream(self, n, k):
        """The file of W(N, K), created if it is missing."""
        final = self.path("streams", f"{n}_{k}.jsonl")
        if not os.path.exists(final):
            say(f"writing {workload.named(n, k)}")
            part = os.path.join(self.temporary, os.path.basename(final))
            workload.write(part, n, k)
            os.makedirs(os.path.dirname(final), exist_ok=True)
            os.rename(part, final)
        return final

    def inputs(self, n, k):
        """The input directory of the rivals for W(N, K), created if it is missing."""
        final = self.path("inputs", f"{n}_{k}")
        if not os.path.exists(final):
            say(f"loading {workload.named(n, k)} for the rivals")
            with self.new_directory(final) as part:
                program = os.path.join(HERE, "inputs.py")
                run([self.python, program, self.stream(n, k), part], self.env)
        return final

    def store(self, n, k, rules="v1"):
        """The store of W(N, K) under a rule set, created if it is missing."""
        return os.path.join(self._store_directory(n, k, rules), "store.db")

    def load(self, n, k):
        """The cost and the size of importing W(N, K)."""
        with open(os.path.join(self._store_directory(n, k), "load.json"), encoding="ascii") as file:
            return json.load(file)

    def _store_directory(self, n, k, rules="v1"):
        final = self._place(n, k, rules)
        if not self.has_store(n, k, rules):
            shutil.rmtree(final, ignore_errors=True)
            stream = self.stream(n, k)
            say(f"importing {workload.named(n, k)} under {rules}")
            with self.new_directory(final) as part:
                load = self._import(stream, os.path.join(part, "store.db"), rules)
                load.update(n=n, k=k, binary=self.binary_hash)
                write_json(os.path.join(part, "load.json"), load)
            if n > KEPT_STREAM:
                os.remove(stream)
        return final

    def _place(self, n, k, rules):
        return self.path("stores", f"{n}_{k}" + ("" if rules == "v1" else f"_{rules}"))

    def has_store(self, n, k, rules="v1"):
        """Whether the store exists and was made by this binary."""
        try:
            path = os.path.join(self._place(n, k, rules), "load.json")
            with open(path, encoding="ascii") as file:
                return json.load(file)["binary"] == self.binary_hash
        except FileNotFoundError:
            return False

    def _import(self, stream, store, rules):
        manifest = os.path.join(self.temporary, "manifest.json")
        write_json(manifest, MANIFEST)
        run([self.ipse, "init", "--manifest", manifest, "--store", store, "--rules", rules],
            self.env)
        taken = run([self.ipse, "import", stream, "--store", store, "--json"], self.env)
        return {"appended": taken.json()["appended"], "wall_s": taken.wall_s,
                "cpu_s": taken.cpu_s, "others": taken.others,
                "store_bytes": store_bytes(store), "event_bytes": event_bytes(store)}


def store_bytes(store):
    """The size of a store that no process has open, with the rest of a write-ahead log."""
    files = (store, store + "-wal")
    return sum(os.path.getsize(file) for file in files if os.path.exists(file))


def event_bytes(store):
    """The bytes of the canonical events of a store."""
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        return db.execute("SELECT sum(length(CAST(payload AS BLOB))) FROM event").fetchone()[0]


def fact_counts(store):
    """Per kind: the number of facts, and the number of observations behind them."""
    summary = {}
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        for kind, value in db.execute("SELECT fact_kind, value FROM fact"):
            so_far = summary.setdefault(kind, [0, 0])
            so_far[0] += 1
            so_far[1] += json.loads(value)["n_observations"]
    return summary


def write_json(path, value):
    """Writes a file completely or not at all."""
    part = path + ".part"
    try:
        with open(part, "w", encoding="ascii") as file:
            json.dump(value, file, indent=1)
        os.replace(part, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(part)


def environment(workshop):
    """Creates the private environment of the rivals."""
    complete, wanted = workshop.path("venv", "complete"), " ".join(PACKAGES) + "\n"
    if read_text(complete) == wanted:
        return
    if not all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
        raise Trouble("this Python has no `venv`; on Debian: apt-get install python3-venv")
    say(f"making an environment with {', '.join(PACKAGES)}")
    shutil.rmtree(workshop.path("venv"), ignore_errors=True)
    run([sys.executable, "-m", "venv", workshop.path("venv")])
    run([workshop.python, "-m", "pip", "install", "--quiet",
         "--disable-pip-version-check", *PACKAGES])
    with open(complete, "w", encoding="ascii") as file:
        file.write(wanted)


def read_text(path):
    """The text of a file; None if it does not exist."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def wrk():
    """Installs `wrk`, the load generator, if it is missing."""
    if shutil.which("wrk"):
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Trouble("`wrk` is not installed; on Debian: apt-get install wrk")
    say("installing wrk")
    run(["apt-get", "update", "-qq"])
    run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", "wrk"],
        {**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def has_shared(name):
    """Whether a baseline is available."""
    return os.path.exists(os.path.join(SHARED, name))


def binary(workshop):
    """Installs the binary to measure: the one in IPSE_BIN, or a build of the profile `dist`."""
    given = os.environ.get("IPSE_BIN")
    if not given:
        say("cargo build --profile dist --locked")
        run(["cargo", "build", "--profile", "dist", "--locked", "--target-dir", workshop.target],
            cwd=REPOSITORY)
    source = given or os.path.join(workshop.target, "dist", "ipse")
    part = os.path.join(workshop.temporary, "ipse")
    try:
        shutil.copy2(source, part)
    except OSError as error:
        raise Trouble(f"could not copy the binary: {error}") from error
    os.rename(part, workshop.ipse)
    with open(workshop.ipse, "rb") as file:
        workshop.binary_hash = hashlib.sha256(file.read()).hexdigest()


def check_space(workshop, n, k):
    """Fails before a large store would fill the disk."""
    needed = LARGE_COPY_BYTES if workshop.has_store(n, k) else LARGE_BYTES
    free = shutil.disk_usage(workshop.root).free
    if free < needed:
        raise Trouble(f"a history of {workload.short(n)} events needs {needed / 1e9:.0f} GB of "
                      f"disk and {free / 1e9:.1f} GB are free; --no-large leaves it out")
