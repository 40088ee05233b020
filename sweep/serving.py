"""Starts a server, requests one append, one intent and one bundle, and stops it."""
import contextlib
import fcntl
import http.client
import json
import random
import signal
import socket
import subprocess
import time

from world import DEADLINE, Broken, Ran

HOST = "127.0.0.1"
PAUSE = 0.004
EVENT = {"id": "served", "source": "arm-7", "type": "execution_result",
         "time": "2026-05-08T10:00:00Z", "data": {"zone": "dock", "success": False}}
INTENT = {"skill_id": "manipulation.grasp", "target_class": "glass_cup", "environment": "ward3",
          "params": {"force_n": 25}}


def serve(gates):
    """Returns a function that runs a server with these gate files."""
    def run(world, fault):
        env, record = world.faulty(fault) if fault else (world.env, None)
        command = [world.programs.ipse, "serve"]
        for name, path in gates.items():
            command += [f"--{name.replace('_', '-')}", str(path)]
        # The log is a file of the run, so that faults hit its lines too.
        words = world.path("serve.log")
        ran, starting = Ran(0, "", ""), contextlib.ExitStack()
        starting.enter_context(one_at_a_time())
        port = free_port()
        with words.open("wb") as log:
            process = subprocess.Popen([*command, "--listen", f"{HOST}:{port}"], cwd=world.root,
                                       env=env, stdout=subprocess.DEVNULL, stderr=log)
        try:
            came_up = listens(process, port)
            starting.close()
            if came_up:
                ask_all(world, port, ran)
                process.send_signal(signal.SIGTERM)
            ran.code = process.wait(DEADLINE)
        except subprocess.TimeoutExpired as error:
            raise Broken("the server did not stop") from error
        finally:
            starting.close()
            process.kill()
            process.wait()
        ran.err = words.read_text(errors="replace")
        if record:
            world.read_record(ran, record)
        return ran
    return run


@contextlib.contextmanager
def one_at_a_time():
    """Holds a lock: two runs that choose a port at once might choose the same one."""
    with open(__file__, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def free_port():
    """A port below the ephemeral range of the kernel."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
                return port
            except OSError:
                continue


def listens(process, port):
    """Whether the server started; if not, it ended."""
    until = time.monotonic() + DEADLINE
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return True
        time.sleep(PAUSE)
    if process.poll() is None:
        raise Broken("the server did not start")
    return False


def ask_all(world, port, ran):
    """Sends the requests and records what was acknowledged. A failed request is not recorded."""
    for role, path, body in [("producer", "/api/agent/events", EVENT),
                             ("planner", "/api/agent/intents", INTENT)]:
        status, answer = ask(world, port, role, path, body)
        if status in (200, 201):
            ran.acknowledged.append(json.loads(answer)["event_ref"])
    status, answer = ask(world, port, "auditor", "/api/audit/bundle")
    if status == 200:
        ran.bundle = answer


def ask(world, port, role, path, body=None):
    """Status and complete answer; status 0 without an answer."""
    connection = http.client.HTTPConnection(HOST, port, timeout=DEADLINE)
    headers = {"Authorization": f"Bearer {world.path(f'{role}.token').read_text()}",
               "Content-Type": "application/json"}
    try:
        connection.request("POST" if body else "GET", path, json.dumps(body) if body else None,
                           headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except TimeoutError as error:
        raise Broken(f"{path} was not answered") from error
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()
