"""The input of a trial, and its way to report a violated guarantee."""

import dataclasses
import pathlib


class Failed(Exception):
    """A violated guarantee, in one sentence."""


@dataclasses.dataclass
class Place:
    """The binaries under test, the installed packages, and a temporary directory."""

    ipse: str
    verify: str
    packages: pathlib.Path  # has venv/ and node_modules/
    scratch: pathlib.Path
    full: bool


def expect(holds, *words):
    """Raises `Failed` unless `holds`."""
    if not holds:
        raise Failed(" ".join(str(word) for word in words))
