// A worker in plain JavaScript (Node 20 or newer): HOLDFAST_TOKEN=… node worker.mjs http://localhost:5678 thumbnails
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

const [url, queue] = process.argv.slice(2);
const [worker, ttl] = [`${hostname()}-${process.pid}`, 30]; // seconds of a lease
const [token, stop] = [process.env.HOLDFAST_TOKEN, { asked: false }];
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => (stop.asked = true));

async function call(verb, fields) { // sends a request until its result is known; the key makes repeats harmless
  const headers = { "Content-Type": "application/json", "Idempotency-Key": randomUUID(), ...(token && { Authorization: `Bearer ${token}` }) };
  for (;;) {
    try {
      const body = JSON.stringify({ worker, ...fields });
      const response = await fetch(`${url}/v1/${verb}`, { method: "POST", headers, body, signal: AbortSignal.timeout(30_000) });
      if (response.ok) return (await response.json()).result;
      if (response.status < 500 && response.status !== 429) throw Object.assign(new Error((await response.json()).title), { final: true });
    } catch (error) {
      if (error.final) throw error;
    }
    await sleep(1000);
  }
}

async function perform(job) {
  return job.data; // your code: its return value is the result, an exception fails the job
}

while (!stop.asked) {
  for (const job of await call("pop", { queues: [queue], ttl, wait: 5 })) {
    const lease = { jid: job.jid, token: job.token };
    const beat = setInterval(() => call("heartbeat", { ...lease, ttl }).catch(console.error), (ttl / 3) * 1000);
    await perform(job)
      .then((result) => call("complete", { ...lease, result }))
      .catch((error) => error.final || call("fail", { ...lease, group: error.name, message: String(error.stack) }))
      .catch(console.error) // the lease is lost: another worker has the job now
      .finally(() => clearInterval(beat));
  }
}
