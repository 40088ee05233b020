"""What the figures were measured on: hardware, kernel, versions.

Guarantee: nothing here names the machine, its paths, its users or where packages came from.
"""
import os
import platform
import re
import sqlite3
import time

import prepare
from measure import Trouble, run

PROBE = """
import duckdb, json, platform, polars, pyarrow
print(json.dumps({"DuckDB": duckdb.__version__, "Polars": polars.__version__,
                  "PyArrow": pyarrow.__version__, "Python": platform.python_version()}))
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
    """Everything whose version moves a figure."""
    ours = run([workshop.ipse, "--version"]).out.split()[-1]
    rivals = run([workshop.python, "-c", PROBE]).json()
    return {"ipse": ours, "rustc": rustc(), "libsqlite3-sys (SQLite in ipse)": bundled_sqlite(),
            "SQLite in Python": sqlite3.sqlite_version, **rivals}


def rustc():
    """The compiler on this machine, if there is one."""
    try:
        return run(["rustc", "--version"]).out.split()[1]
    except Trouble:
        return "not there"


def bundled_sqlite():
    """The crate that brings SQLite along, as the lock file has it."""
    with open(os.path.join(prepare.REPOSITORY, "Cargo.lock"), encoding="utf-8") as file:
        found = re.search(r'name = "libsqlite3-sys"\nversion = "([^"]+)"', file.read())
    return found.group(1) if found else "unknown"


def today():
    """The date, in UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime())
