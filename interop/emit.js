// Sends events with the npm package `cloudevents`, as its README does.
//
//   node emit.js URL TOKEN
//
// Prints one JSON array: the answer to each request, in order. The package hides the status.

const { CloudEvent, HTTP, Mode, emitterFor, httpTransport } = require("cloudevents");

const [url, token] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${token}` };
const event = (id) => new CloudEvent({
  id, source: "arm-js", type: "execution_result", time: "2026-05-06T10:00:00.000Z",
  subject: "cup", data: { skill_id: "grasp", success: true, id: "INNER", type: "note" },
});

async function main() {
  const send = httpTransport(url);
  const answers = [
    await emitterFor(send)(event("js-binary"), { headers }),
    await emitterFor(send, { binding: HTTP, mode: Mode.STRUCTURED })(
      event("js-structured"), { headers }),
    // The package has no emitter for batches; the events are its own, as it writes them.
    await send({
      headers: { "content-type": "application/cloudevents-batch+json" },
      body: JSON.stringify([event("js-batch-1"), event("js-batch-2"), { id: "no-event" }]),
    }, { headers }),
  ];
  console.log(JSON.stringify(answers));
}

main();
