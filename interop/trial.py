"""What a trial gets, and how it says that a promise does not hold."""

import dataclasses
import pathlib


class Failed(Exception):
    """A promise that does not hold, in one sentence."""


@dataclasses.dataclass
class Place:
    """The binaries under trial, the installed packages, a directory of its own."""

    ipse: str
    verify: str
    packages: pathlib.Path  # has venv/ and node_modules/
    scratch: pathlib.Path
    full: bool


def expect(holds, *words):
    """Raises `Failed` unless `holds`."""
    if not holds:
        raise Failed(" ".join(str(word) for word in words))
