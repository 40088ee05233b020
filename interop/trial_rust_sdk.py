"""The Rust SDK of CloudEvents with reqwest, built from `rust-sdk/`: binary mode and a batch."""

import json
import os
import subprocess

from served import SOURCE, Server
from trial import expect
from trial_cloudevents import check_stored

FULL = True  # building the SDK takes more than a minute
TOOLS = ["cargo"]
PYTHON = ["cloudevents", "requests"]

BUILD_SECONDS = 900  # far more than a build on a busy machine takes


def built(place):
    """The program, built once next to the other packages."""
    target = place.packages / "rust-sdk"
    env = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    done = subprocess.run(["cargo", "build", "--quiet", "--locked"], env=env,
                          cwd=SOURCE / "interop/rust-sdk", capture_output=True, text=True,
                          timeout=BUILD_SECONDS)
    expect(done.returncode == 0, "the SDK does not build:", done.stderr)
    return target / "debug/rust-sdk"


def run(place):
    program = built(place)
    server = Server(place.ipse, place.scratch)
    with server:
        done = subprocess.run([str(program), f"{server.url}/api/agent/events",
                               server.tokens["producer"]], capture_output=True, text=True)
        expect(done.returncode == 0, done.stderr)
        binary, batch = (line.split(" ", 1) for line in done.stdout.splitlines())
        expect(binary[0] == "201", binary)
        expect(batch[0] == "200" and json.loads(batch[1])["appended"] == 2, batch)
        # The SDK writes UTC in two ways.
        check_stored(server, "rs-binary", "arm-rs", time="2026-05-06T10:00:00+00:00")
        for event_id in ["rs-batch-1", "rs-batch-2"]:
            check_stored(server, event_id, "arm-rs")
    server.run("verify", "--identity", server.identity)
    return "events stored as sent: cloudevents-sdk 3"
