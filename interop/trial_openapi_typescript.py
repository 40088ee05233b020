"""Types by openapi-typescript 7.13 and calls by openapi-fetch, compiled by TypeScript 5 under --strict.

It guarantees: the program of docs/guide/clients.md compiles unchanged and works against a real
server; and the types reject what the document does not allow.
"""

import re
import subprocess

from served import SOURCE, WIDE, Server
from trial import expect

TOOLS = ["node", "npm"]
NODE = ["openapi-typescript@7.13", "typescript@5", "openapi-fetch@0.17"]

GUIDE = SOURCE / "docs/guide/clients.md"
# Each line after `@ts-expect-error` must be a mistake, or the compiler stops at the comment.
MISTAKES = """
import createClient from "openapi-fetch";
import type { components, paths } from "./ipse.d.ts";
const client = createClient<paths, `application/${string}json`>({ baseUrl: "" });
// @ts-expect-error: no such parameter
client.GET("/api/agent/semantic", { params: { query: { environmnet: "ward3" } } });
// @ts-expect-error: no such kind
client.GET("/api/agent/semantic", { params: { query: { kind: "rumour" } } });
// @ts-expect-error: an event has a time
client.POST("/api/agent/events", { body: { id: "1", type: "note" } });
// @ts-expect-error: success is a boolean
client.POST("/api/agent/events", { body: { id: "1", type: "t", time: "t", data: { success: 1 } } });
// @ts-expect-error: an intent has a skill
client.POST("/api/agent/intents", { body: { params: { force_n: 25 } } });
// @ts-expect-error: a decision is confirmed or declined
client.POST("/api/agent/intents/{event_ref}/confirm", { params: { path: { event_ref: "" } }, body: { decision: "yes" } });
// @ts-expect-error: no such path
client.GET("/api/agent/nothing");
declare const fact: components["schemas"]["Fact"];
if (fact.fact_kind === "zone_risk") {
  fact.value.risk.toFixed(2);
  // @ts-expect-error: only facts about skills have one
  fact.value.success_rate;
}
"""


def ran(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    words = (done.stdout + done.stderr)[:4 * WIDE]
    expect(done.returncode == 0, f"{command[0]} ended with {done.returncode}:\n{words}")
    return done.stdout


def run(place):
    programs, here = place.packages / "node_modules/.bin", place.scratch
    (here / "node_modules").symlink_to(place.packages / "node_modules")
    program = re.search(r"```ts\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    expect(program, f"{GUIDE.name} has no program in TypeScript")
    (here / "client.mts").write_text(program[1])
    (here / "mistakes.mts").write_text(MISTAKES)
    with Server(place.ipse, here) as server:
        ran(str(programs / "openapi-typescript"), f"{server.url}/openapi.json", "-o",
            str(here / "ipse.d.ts"), cwd=here)
        ran(str(programs / "tsc"), "--strict", "--target", "es2022", "--module", "nodenext",
            "client.mts", "mistakes.mts", cwd=here)
        env = {**server.env, "IPSE": server.url, "PLANNER": server.tokens["planner"],
               "PRODUCER": server.tokens["producer"]}
        said = ran("node", "client.mjs", cwd=here, env=env)
    wanted = r"skill_success_rate admitted \{ force_n: 25 \}\s+\{[^}]*result: 'appended'"
    expect(re.search(wanted, said), "the program of the guide printed", said)
    return f"{MISTAKES.count('@ts-expect-error')} mistakes found; facts, intents and events called"
