"""Runs one process and measures it: CPU, wall time, and the CPU of all other processes meanwhile.

Guarantees: a process that fails ends the whole run with its own message; an interrupted process is
ended and waited for, so none is left behind.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

# Starts a command and prints its exit code and peak memory in KiB. Until it has become another
# program, a process is charged with the memory of its parent; this one is small.
SMALL_STARTER = """
import os, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss, file=sys.stderr)
"""


class Trouble(Exception):
    """An error that ends the run and that the user can fix."""


@dataclass
class Taken:
    """Output and cost of a process; `others` is the CPU of all other processes, in cores."""

    out: str
    err: str
    wall_s: float
    cpu_s: float
    others: float

    def json(self):
        """The output of a program that prints one line of JSON."""
        return json.loads(self.out)


def busy_seconds():
    """CPU seconds of all processes since boot; None if the system does not report them."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
    except OSError:
        return None
    idle, waiting = ticks[3], ticks[4]
    return (sum(ticks) - idle - waiting) / os.sysconf("SC_CLK_TCK")


def run(command, env=None, cwd=None):
    """Runs a command to its end; any exit code but 0 is an error."""
    busy, begun = busy_seconds(), time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        code, usage = _wait(command, env, cwd, out, err)
        wall = time.perf_counter() - begun
        said, words = _text(out), _text(err)
    if code != 0:
        tail = "\n".join(words.strip().splitlines()[-15:])
        name = os.path.basename(command[0])
        raise Trouble(f"`{' '.join([name, *command[1:]])}` ended with {code}:\n{tail}")
    cpu = usage.ru_utime + usage.ru_stime
    others = 0.0 if busy is None else max(0.0, busy_seconds() - busy - cpu) / wall
    return Taken(said, words, wall, cpu, others)


def _wait(command, env, cwd, out, err):
    try:
        child = subprocess.Popen(command, env=env, cwd=cwd, stdout=out, stderr=err,
                                 stdin=subprocess.DEVNULL)
    except OSError as error:
        raise Trouble(f"could not start `{command[0]}`: {error.strerror}") from error
    try:
        _, status, usage = os.wait4(child.pid, 0)
    except BaseException:
        child.kill()
        child.wait()
        raise
    child.returncode = os.waitstatus_to_exitcode(status)
    return child.returncode, usage


def _text(file):
    file.seek(0)
    return file.read().decode("utf-8", "replace")


def peak_memory(command, env):
    """The peak memory of a command, in bytes."""
    starter = [sys.executable, "-I", "-S", "-c", SMALL_STARTER, *command]
    words = run(starter, env).err
    code, kib = words.split()[-2:]
    if code != "0":
        raise Trouble(f"`{' '.join(command[1:])}` ended with {code}:\n{words}")
    return int(kib) * 1024


def say(words):
    """Prints a line of progress on standard error."""
    print(f"{time.strftime('%H:%M:%S')} {words}", file=sys.stderr, flush=True)
