"""A producer: appends events of the workload over HTTP, at a rate or as fast as possible.

usage: producer.py EVENTS_FILE PORT TOKEN SOURCE EVENTS_A_BATCH BATCHES A_SECOND

Prints `ready`, waits for a line, posts, and prints one line of JSON. With BATCHES above 0 it
creates this many batches before it prints `ready`, and posts one after the other. With BATCHES 0 it
posts A_SECOND batches per second until its standard input ends.

Guarantees: no event is sent twice, as each producer has its own source; an event that was not
appended is an error; a late batch is not made up for, so that there are no bursts.
"""
import http.client
import itertools
import json
import select
import sys
import time

TIMEOUT_S = 60


class Producer:
    """One persistent connection, and the result of each batch."""

    def __init__(self, port, token, per_batch):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"}
        self.per_batch, self.waits, self.answers = per_batch, [], []
        self.begun = self.ended = 0.0

    def post_all(self, bodies):
        """Posts one body after the other."""
        self.begun = time.monotonic()
        for body in bodies:
            self.post(body)
        self.ended = time.monotonic()

    def post_at_rate(self, bodies, a_second):
        """Posts `a_second` bodies per second until standard input ends."""
        self.begun = due = time.monotonic()
        for body in bodies:
            wait = max(0.0, due - time.monotonic())
            if select.select([sys.stdin], [], [], wait)[0]:
                break
            self.post(body)
            due = max(due + 1 / a_second, time.monotonic())
        self.ended = time.monotonic()

    def post(self, body):
        """Posts one body and waits until its events are durable."""
        asked = time.monotonic()
        self.connection.request("POST", "/api/agent/events", body, self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        self.waits.append(time.monotonic() - asked)
        if answer.status != 200:
            sys.exit(f"the server answered {answer.status}: {text[:500]!r}")
        self.answers.append(text)

    def report(self):
        """Checks and reports the results. This is done at the end, because it takes time too."""
        for text in self.answers:
            answer = json.loads(text)
            if answer["appended"] != self.per_batch:
                shown = {name: value for name, value in answer.items() if name != "results"}
                sys.exit(f"not all of {self.per_batch} events were appended: {shown}")
        events = len(self.answers) * self.per_batch
        return {"events": events, "begun": self.begun, "ended": self.ended, "waits_s": self.waits}


def bodies(events_file, source, per_batch):
    """Endless batches: the events of the file, repeated, with the ids of this source."""
    with open(events_file, encoding="ascii") as file:
        rests = [line.split(',"source":"w",', 1)[1] for line in file]
    for first in itertools.count(0, per_batch):
        numbers = range(first, first + per_batch)
        yield "".join(f'{{"id":"{number}","source":"{source}",{rests[number % len(rests)]}'
                      for number in numbers).encode("ascii")


def main(events_file, port, token, source, per_batch, batches, a_second):
    """Prepares the batches, posts them on request, and reports."""
    producer = Producer(int(port), token, int(per_batch))
    endless = bodies(events_file, source, int(per_batch))
    made = list(itertools.islice(endless, int(batches) or 1))
    print("ready", flush=True)
    sys.stdin.readline()
    if int(batches):
        producer.post_all(made)
    else:
        producer.post_at_rate(itertools.chain(made, endless), float(a_second))
    print(json.dumps(producer.report()), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
