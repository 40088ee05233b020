"""Describes the machine of a measurement: hardware, kernel, versions.

Guarantee: nothing here names the machine, its paths, its users or the origin of packages.
"""
import os
import platform
import re
import sqlite3
import subprocess
import time

import prepare
from measure import Trouble, run

PROBE = """
import duckdb, json, platform, polars, pyarrow
print(json.dumps({"DuckDB": duckdb.__version__, "Polars": polars.__version__,
                  "PyArrow": pyarrow.__version__, "Python": platform.python_version()}))
"""
SERVING_PROBE = """
import json, platform
from importlib.metadata import version
named = {"FastAPI": "fastapi", "uvicorn": "uvicorn", "uvloop": "uvloop", "httptools": "httptools"}
print(json.dumps({**{name: version(package) for name, package in named.items()},
                  "Python": platform.python_version()}))
"""


def hardware():
    """CPU, cores, memory and kernel."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {"cpu": cpu_model(), "cores": os.cpu_count(), "memory_bytes": pages * size,
            "kernel": f"{platform.system()} {platform.release()}"}


def cpu_model():
    """The model as the kernel names it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            found = re.search(r"^model name\s*:\s*(.+)$", file.read(), re.MULTILINE)
    except OSError:
        found = None
    return found.group(1).strip() if found else platform.machine()


def versions(workshop):
    """The version of everything that affects a figure."""
    rivals = run([workshop.python, "-c", PROBE]).json()
    return {**our_versions(workshop), "SQLite in Python": sqlite3.sqlite_version, **rivals}


def serving_versions(workshop):
    """The same for the measurements over HTTP."""
    rivals = run([workshop.python, "-c", SERVING_PROBE]).json()
    return {**our_versions(workshop), "wrk": wrk(), **rivals}


def our_versions(workshop):
    """The version of our binary and of its parts."""
    ours = run([workshop.ipse, "--version"]).out.split()[-1]
    return {"ipse": ours, "rustc": rustc(), "libsqlite3-sys (SQLite in ipse)": bundled_sqlite()}


def wrk():
    """The version of `wrk`, which prints it on request and then ends with an error."""
    output = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False).stdout
    return output.split()[1].removeprefix("debian/") if output.split()[1:] else "unknown"


def rustc():
    """The compiler on this machine, if any."""
    try:
        return run(["rustc", "--version"]).out.split()[1]
    except Trouble:
        return "not there"


def bundled_sqlite():
    """The crate that contains SQLite, from the lock file."""
    with open(os.path.join(prepare.REPOSITORY, "Cargo.lock"), encoding="utf-8") as file:
        found = re.search(r'name = "libsqlite3-sys"\nversion = "([^"]+)"', file.read())
    return found.group(1) if found else "unknown"


def today():
    """The date, in UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime())
