"""A real `ipse serve` with two agents, and third-party tools that connect to it.

Shared by `api/check` and by the trials of `interop/run`. If a server does not start, or does not
stop with exit code 0, the program ends and prints the server's log.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request

SOURCE = pathlib.Path(__file__).resolve().parent.parent
GATES = {"ecm_registry": SOURCE / "examples/gates/ecm-registry.toml",
         "policy": SOURCE / "examples/gates/policy.toml",
         "temperament": SOURCE / "examples/gates/temperament.toml"}
ROLES = ["planner", "producer", "operator", "auditor"]
DEADLINE = 60  # seconds: far more than any awaited step takes
WIDE = 300  # shown characters of a failure


def fail(message):
    sys.exit(f"{pathlib.Path(sys.argv[0]).parent.name}/{pathlib.Path(sys.argv[0]).name}: {message}")


def call(*command, **more):
    """The standard output of a command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        fail(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def set_up(directory, tools, python_packages, node_packages):
    """Installs packages once into `directory`, and continues inside the virtual environment."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        print(f"missing programs: {', '.join(missing)}", file=sys.stderr)
        sys.exit(2)
    directory.mkdir(parents=True, exist_ok=True)
    python = directory / "venv/bin/python"
    if not python.exists():
        call("python3", "-m", "venv", str(directory / "venv"))
    if python_packages:
        call(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
             *python_packages)
    absent = [name for name in node_packages if not (directory / "node_modules" / bare(name)).exists()]
    if absent:
        call("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(directory),
             *node_packages)
    if pathlib.Path(sys.prefix).resolve() != directory / "venv":
        os.execv(python, [str(python), *sys.argv])


def bare(package):
    """The name of an npm package without its version."""
    return re.sub(r"(?<=.)@[^/]*$", "", package)


def lived():
    """Events in addition to the glass cup's: every kind of fact, and some that feed none."""
    for n in range(60):
        data = {"environment": "ward3", "zone": ["kitchen", "hall"][n % 2],
                "skill_id": "navigation.dock", "target_class": "charger",
                "params": {"speed": 0.1 + n % 5 / 10}, "object": {"mass": 2 + n % 3, "hot": False}}
        data["outcome"] = ["success", "success", "failed", "interrupted"][n % 4]
        if data["outcome"] == "failed":
            data["failure_reason"] = "misaligned"
        kind = "incident" if n % 10 == 9 else "execution_result"
        yield {"id": f"dock-{n}", "source": "base-2", "type": kind,
               "time": f"2026-05-06T10:{n:02}:00Z", "data": data}
    yield {"id": "note", "source": "base-2", "type": "note", "time": "2026-05-06T11:00:00Z"}


class Server:
    """A served store with two agents, and tokens of every role for both."""

    def __init__(self, ipse, directory, *options):
        self.ipse, self.directory, self.options = ipse, directory, options
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("IPSE_")}
        bound = directory / "bound.toml"
        bound.write_text(self.bound((SOURCE / "vectors/manifest/golden.toml").read_text()))
        other = directory / "other.toml"
        other.write_text(self.run("manifest", "new"))
        identities = [self.run("init", "--manifest", str(path)).strip() for path in (bound, other)]
        self.identity = identities[0]
        events = directory / "events.jsonl"
        cups = (SOURCE / "vectors/facts/glass_cup.events.jsonl").read_text()
        events.write_text(cups + "".join(json.dumps(event) + "\n" for event in lived()))
        for identity in identities:
            # Generated requests have events from any time.
            self.run("config", "--identity", identity, "max-ahead", "off")
            self.run("import", "--identity", identity, str(events))
        self.tokens, self.others = ({role: self.token(identity, role) for role in ROLES}
                                    for identity in identities)

    def bound(self, manifest):
        """A manifest that names the gate files instead of their hashes."""
        for name, file in GATES.items():
            line = f'{name} = {json.dumps(str(file))}'
            manifest = re.sub(f"^{name}_hash = .*$", line, manifest, flags=re.MULTILINE)
        return manifest

    def run(self, *arguments):
        return call(self.ipse, *arguments, cwd=self.directory, env=self.env)

    def token(self, identity, role):
        sources = ["--any-source"] if role == "producer" else []
        made = self.run("token", "create", "--identity", identity, "--role", role, *sources,
                        "--json")
        return json.loads(made)["token"]

    def __enter__(self):
        self.log = (self.directory / "serve.log").open("w+")
        command = [self.ipse, "serve", "--listen", "127.0.0.1:0", "--intent-rate", "60000",
                   *self.options]
        for name, file in GATES.items():
            command += [f"--{name.replace('_', '-')}", str(file)]
        self.process = subprocess.Popen(command, cwd=self.directory, env=self.env,
                                        stderr=self.log)
        until = time.monotonic() + DEADLINE
        while time.monotonic() < until and self.process.poll() is None:
            found = re.search(r"http://[0-9.:]+", (self.directory / "serve.log").read_text())
            if found:
                self.url = found[0]
                return self
            time.sleep(0.05)
        self.process.kill()
        fail("the server did not start:\n" + (self.directory / "serve.log").read_text())

    def __exit__(self, *_):
        self.process.terminate()
        try:
            code = self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            fail("the server did not stop")
        if code != 0:
            fail(f"the server ended with {code}:\n" + (self.directory / "serve.log").read_text())

    def ask(self, path, token=None, body=None, headers=(), method=None):
        """Sends a request: status, headers and the open answer."""
        request = urllib.request.Request(self.url + path, body, dict(headers), method=method)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            answer = urllib.request.urlopen(request, timeout=DEADLINE)
        except urllib.error.HTTPError as error:
            answer = error
        return answer.status, answer.headers, answer
