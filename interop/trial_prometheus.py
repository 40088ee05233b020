"""Prometheus: `promtool` checks the text format, a real Prometheus scrapes with the token of an
observer, and the OpenMetrics parser of the Python client reads the other format."""

import contextlib
import json
import re
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from served import DEADLINE, Server
from trial import expect

TOOLS = ["prometheus", "promtool"]
PYTHON = ["prometheus_client"]

TEXT = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def page(server, token, accept):
    """A page of metrics, and its content type."""
    status, headers, answer = server.ask("/metrics", token, headers={"Accept": accept})
    expect(status == 200, "/metrics answered", status)
    return headers["Content-Type"], answer.read().decode()


def check_text(server, token):
    """Checks the text format with `promtool`."""
    kind, text = page(server, token, "text/plain;version=0.0.4")
    expect(kind == TEXT, "the content type is", kind)
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                          text=True, timeout=DEADLINE)
    complaints = (done.stdout + done.stderr).strip()
    expect(done.returncode == 0 and not complaints, "promtool complains:", complaints)
    return len(re.findall("^# TYPE ", text, flags=re.MULTILINE))


def check_openmetrics(server, token):
    """Checks OpenMetrics with the parser of the Python client."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    kind, text = page(server, token, "application/openmetrics-text;version=1.0.0")
    expect(kind == OPENMETRICS, "the content type is", kind)
    families = {family.name: family for family in text_string_to_metric_families(text)}
    for name in ("ipse_events", "ipse_build", "process_cpu_seconds", "ipse_server_store_bytes"):
        expect(name in families, "there is no", name)
    identities = {sample.labels["identity"] for sample in families["ipse_log_size"].samples}
    expect(len(identities) == 2 and server.identity in identities, "agents:", identities)
    return len(families)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextlib.contextmanager
def prometheus(place, server, token):
    """A Prometheus that scrapes the server with the token in a file."""
    credentials = place.scratch / "token"
    credentials.write_text(token + "\n")
    settings = place.scratch / "prometheus.yml"
    settings.write_text(f"""\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: ipse
    authorization: {{credentials_file: {json.dumps(str(credentials))}}}
    static_configs: [{{targets: [{json.dumps(server.url.removeprefix("http://"))}]}}]
""")
    url = f"http://127.0.0.1:{free_port()}"
    log = (place.scratch / "prometheus.log").open("w")
    process = subprocess.Popen(
        ["prometheus", f"--config.file={settings}", f"--storage.tsdb.path={place.scratch / 'tsdb'}",
         f"--web.listen-address={url.removeprefix('http://')}"],
        stdout=log, stderr=log, cwd=place.scratch)
    try:
        yield url
    finally:
        process.terminate()
        process.wait(DEADLINE)


def query(url, words):
    """The samples that a query finds; none while Prometheus does not answer."""
    address = f"{url}/api/v1/query?" + urllib.parse.urlencode({"query": words})
    try:
        with urllib.request.urlopen(address, timeout=DEADLINE) as answer:
            return json.load(answer)["data"]["result"]
    except (urllib.error.URLError, ConnectionError):
        return []


def scraped(place, server, token):
    """Checks that Prometheus finds the server up, with the metric names of the guide."""
    with prometheus(place, server, token) as url:
        until = time.monotonic() + DEADLINE
        while time.monotonic() < until:
            if query(url, "up == 1") and query(url, "ipse_log_size"):
                break
            time.sleep(0.2)
        log = (place.scratch / "prometheus.log").read_text()[-2000:]
        expect(query(url, "up == 1"), "Prometheus does not find the server up:", log)
        sizes = {it["metric"]["identity"] for it in query(url, "ipse_log_size")}
        expect(len(sizes) == 2, "figures of these identities:", sizes)
        for words in ("process_resident_memory_bytes > 0", "ipse_build_info == 1",
                      "ipse_server_store_bytes{file='store'} > 0",
                      "ipse_events_total{result='appended'}"):
            expect(query(url, words), "Prometheus has no", words)


def run(place):
    server = Server(place.ipse, place.scratch)
    token = server.run("token", "create", "--role", "observer").strip()
    with server:
        families = check_text(server, token)
        parsed = check_openmetrics(server, token)
        scraped(place, server, token)
        status, _, _ = server.ask("/api/agent/identity", token)
        expect(status == 403, "an observer got", status, "for /api/agent/identity")
    return f"{families} families to promtool, {parsed} to the OpenMetrics parser, scraped until up"
