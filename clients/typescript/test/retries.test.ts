// Tests of which requests are retried, against a server that first refuses them.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";

import { createClient, ProblemError, textOf, WaitTimeoutError } from "../src/index.js";

const problem = JSON.stringify({ type: "/problems/quota-exceeded", title: "Quota exceeded", status: 429, detail: "Wait.", error: "Wait.", retryable: true });
const done = JSON.stringify({ content: [{ type: "text", text: "done" }], outcome: "completed" });
const ours = "application/problem+json";

/** Status, media type and Retry-After; status 0 closes the connection. */
type Refusal = [number, string?, string?];

/** A server that returns the refusals in order, then results. */
async function refusing(t: TestContext, ...refusals: Refusal[]): Promise<{ url: string; bodies: string[] }> {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece) => {
      body += piece;
    });
    request.on("end", () => {
      bodies.push(body);
      const [status, media = "text/html", after] = refusals.shift() ?? [200, "application/json"];
      if (status === 0) {
        request.socket.destroy();
        return;
      }
      response.writeHead(status, { "Content-Type": media, ...(after === undefined ? {} : { "Retry-After": after }) });
      response.end(status === 200 ? done : media === ours ? problem : "<h1>down</h1>");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, bodies };
}

const refused = (status: number, after: number | undefined) => (e: unknown) => e instanceof ProblemError && e.status === status && e.retryAfter === after;

test("a refused call is sent again after the time that was said", async (t) => {
  const { url, bodies } = await refusing(t, [429, ours, "1"], [503, ours, "0"]);
  const from = Date.now();
  assert.equal(textOf(await createClient(url).call("demo", "echo", { message: "a" })), "done");
  assert.ok(Date.now() - from >= 950);
  assert.deepEqual([bodies.length, ...new Set(bodies)], [3, '{"server":"demo","tool":"echo","arguments":{"message":"a"}}']);
});

test("the last refusal is thrown, with status and time", async (t) => {
  const { url, bodies } = await refusing(t, [429, ours, "0"], [429, ours, "0"], [429, ours, "7"]);
  await assert.rejects(createClient(url).call("demo", "echo"), refused(429, 7));
  assert.equal(bodies.length, 3);
});

test("without retries each request is sent once, and a long wait is left to the caller", async (t) => {
  for (const [retries, after] of [[0, 1], [2, 61]] as const) {
    const { url, bodies } = await refusing(t, [503, ours, String(after)]);
    await assert.rejects(createClient(url, { retries }).call("demo", "echo"), refused(429, after));
    assert.equal(bodies.length, 1);
  }
});

test("what a proxy says counts only for requests that may be repeated", async (t) => {
  for (const after of [undefined, "0"]) {
    const { url, bodies } = await refusing(t, [503, "text/html", after] as Refusal);
    await assert.rejects(createClient(url).call("demo", "echo"), refused(503, after === undefined ? undefined : 0));
    assert.equal(bodies.length, 1);
  }
  const { url, bodies } = await refusing(t, [503], [409, ours, "0"]);
  assert.equal(textOf(await createClient(url).call("demo", "echo", {}, { idempotencyKey: "k" })), "done");
  assert.equal(bodies.length, 3);
});

test("a request that was stored in part is repeated only with a key", async () => {
  let sent = 0;
  const fetch = async () => {
    sent++;
    if (sent > 1) {
      return new Response(done, { headers: { "Content-Type": "application/json" } });
    }
    const partly = { type: "/problems/unavailable", title: "X", status: 503, detail: "The first calls are stored.", error: "", retryable: false };
    return new Response(JSON.stringify(partly), { status: 503, headers: { "Content-Type": ours, "Retry-After": "0" } });
  };
  const client = createClient("http://callyard.test", { fetch });
  await assert.rejects(client.call("demo", "echo"), { message: "The first calls are stored." });
  assert.equal(sent, 1);
  sent = 0;
  assert.equal(textOf(await client.call("demo", "echo", {}, { idempotencyKey: "k" })), "done");
  assert.equal(sent, 2);
});

test("a broken connection is tried again only with a key", async (t) => {
  const first = await refusing(t, [0]);
  await assert.rejects(createClient(first.url).call("demo", "echo"), TypeError);
  assert.equal(first.bodies.length, 1);
  const second = await refusing(t, [0]);
  assert.equal(textOf(await createClient(second.url).call("demo", "echo", {}, { idempotencyKey: "k" })), "done");
});

test("an aborted request does not wait", async (t) => {
  const { url } = await refusing(t, [429, ours, "50"]);
  await assert.rejects(createClient(url).call("demo", "echo", {}, { signal: AbortSignal.timeout(200) }), { name: "TimeoutError" });
});

test("wait ends with its timeout although the front door answers later", async (t) => {
  const paths: (string | undefined)[] = [];
  const server = createServer((request) => {
    paths.push(request.url);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const client = createClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  await assert.rejects(client.wait("call_1", { timeoutMs: 200 }), WaitTimeoutError);
  await assert.rejects(client.wait("call_1", { timeoutMs: 200, signal: new AbortController().signal }), WaitTimeoutError);
  await assert.rejects(client.wait("call_1", { timeoutMs: 60_000, signal: AbortSignal.timeout(200) }), { name: "TimeoutError" });
  assert.deepEqual(paths, ["/calls/call_1?wait=1", "/calls/call_1?wait=1", "/calls/call_1?wait=30"]);
});

test("a timeout in the pause after a network error reports that error", async () => {
  const client = createClient("http://callyard.test", { fetch: () => Promise.reject(new TypeError("fetch failed")) });
  await assert.rejects(client.wait("call_1", { timeoutMs: 100 }), TypeError);
  await assert.rejects(client.GET("/batches", { signal: AbortSignal.timeout(100) }), TypeError);
});

test("a refusal names each fault", () => {
  const errors = [
    { pointer: "/a", message: "expected a number" },
    { parameter: "limit", message: "at most 10" },
    { pointer: "", message: "expected property \"b\"" },
  ];
  const problem = { type: "/problems/x", title: "X", status: 422, detail: "Two faults.", error: "", retryable: false, errors };
  assert.equal(new ProblemError(problem).message, 'Two faults. [/a: expected a number] [limit: at most 10] [whole document: expected property "b"]');
});
