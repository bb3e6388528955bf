// These tests run against a front door with the demo server and a policy that holds
// the tool add. e2e/clients_test.go starts it and sets CALLYARD_URL.

import assert from "node:assert/strict";
import { test } from "node:test";

import { type BatchCall, type BatchResult, CallError, createClient, events, type Fleet, HeldError, isHeld, isStored, lines, linesOf, ProblemError, textOf, WaitTimeoutError } from "../src/index.js";

const url = process.env["CALLYARD_URL"];
const limited = process.env["CALLYARD_LIMITED_URL"]; // allows one call per second
if (!url || !limited) {
  throw new Error("CALLYARD_URL is not set: go -C e2e test . -run TheClients starts a front door and these tests");
}
const client = createClient(url, { key: process.env["CALLYARD_KEY"] });

const echo = { path: { id: "demo", tool: "echo" } };

/** Calls a tool that is held, and returns the error. */
async function heldAdd(): Promise<HeldError> {
  const error: unknown = await client.call("demo", "add", { a: 2, b: 3 }).catch((e: unknown) => e);
  assert.ok(error instanceof HeldError);
  assert.doesNotMatch(error.message, /\.[.;]/);
  return error;
}

function decide(held: HeldError, confirm: boolean) {
  assert.ok(held.confirmationId);
  return client.POST("/confirmations/{id}", { params: { path: { id: held.confirmationId } }, body: { confirm } });
}

test("a call is one line", async () => {
  assert.equal(textOf(await client.call("demo", "echo", { message: "hello" })), "Echo: hello");
  assert.equal(textOf(await client.call("demo", "echo", { message: "k" }, { timeoutMs: 5000, idempotencyKey: crypto.randomUUID() })), "Echo: k");
  await assert.rejects(client.call("demo", "echo", { message: 5 }), (e) => e instanceof ProblemError && e.status === 422 && e.retryAfter === undefined);
});

test("a held call is no result and can be waited for", async () => {
  const held = await heldAdd();
  assert.match(held.message, /demo\/add is held and has not run/);
  await assert.rejects(client.wait(held.callId, { timeoutMs: 200 }), WaitTimeoutError);
  const waiting = client.wait(held.callId, { timeoutMs: 30_000 });
  await decide(held, true);
  assert.equal(textOf(await waiting), "5");
});

test("a call that was denied ends with an error", async () => {
  const held = await heldAdd();
  await decide(held, false);
  await assert.rejects(client.wait(held.callId), (e) => e instanceof CallError && (e.state === "denied" || e.state === "canceled") && e.message.includes(held.callId));
});

test("a stored call is waited for", async () => {
  const { data } = await client.POST("/calls", { params: { header: { Prefer: "respond-async" } }, body: { server: "demo", tool: "echo", arguments: { message: "s" } } });
  assert.ok(isStored(data));
  assert.equal(textOf(await client.wait(data.id)), "Echo: s");
});

test("a call over the limit is sent again when it fits", async () => {
  const patient = createClient(limited, { key: process.env["CALLYARD_KEY"] });
  for (const message of ["a", "b", "c"]) {
    assert.equal(textOf(await patient.call("demo", "echo", { message })), `Echo: ${message}`);
  }
  const hasty = createClient(limited, { key: process.env["CALLYARD_KEY"], retries: 0 });
  const calls = ["a", "b", "c"].map((message) => hasty.call("demo", "echo", { message }));
  await assert.rejects(Promise.all(calls), (e) => e instanceof ProblemError && e.status === 503 && e.retryAfter === 1);
  await Promise.allSettled(calls);
});

test("a call has a typed result", async () => {
  const { data, error } = await client.POST("/servers/{id}/tools/{tool}", { params: echo, body: { message: "hello" } });
  assert.equal(error, undefined);
  assert.ok(data && "content" in data);
  assert.equal(data.content?.[0]?.text, "Echo: hello");

  const again = await client.POST("/calls", { body: { server: "demo", tool: "echo", arguments: { message: "again" } } });
  assert.ok(again.data && "content" in again.data);
  assert.equal(again.data.content?.[0]?.text, "Echo: again");
});

test("arguments that do not fit are a problem with pointers", async () => {
  const { data, error, response } = await client.POST("/servers/{id}/tools/{tool}", { params: echo, body: { message: 5 } });
  assert.equal(data, undefined);
  assert.equal(response.status, 422);
  assert.equal(error?.type, "/problems/invalid-arguments");
  assert.equal(error.retryable, false);
  assert.deepEqual(error.errors?.map((fault) => fault.pointer), ["/message"]);
});

test("a held call runs once it is confirmed", async () => {
  const call = await client.POST("/servers/{id}/tools/{tool}", { params: { path: { id: "demo", tool: "add" } }, body: { a: 2, b: 3 } });
  assert.equal(call.response.status, 202);
  const held = call.data;
  assert.ok(isHeld(held));
  assert.equal(held.tool_name, "add");
  assert.ok(held.confirmation_id);

  const path = { id: held.call_id };
  assert.equal((await client.GET("/calls/{id}", { params: { path } })).data?.state, "held");
  const confirm = { params: { path: { id: held.confirmation_id } }, body: { confirm: true } };
  const { data } = await client.POST("/confirmations/{id}", confirm);
  assert.ok(data && "content" in data);
  assert.equal(data.content?.[0]?.text, "5");
  assert.equal((await client.POST("/confirmations/{id}", confirm)).response.status, 404);
  assert.equal((await client.GET("/calls/{id}", { params: { path } })).data?.state, "succeeded");
});

test("a batch answers with its results while they come", async () => {
  const calls: BatchCall[] = Array.from({ length: 40 }, (_, i) => ({ custom_id: `line-${i}`, server: "demo", tool: "echo", arguments: { message: `hello ${i}` } }));
  const answer = await client.POST("/batches", {
    params: { query: { stream: true } },
    headers: { "Content-Type": "application/x-ndjson" },
    body: linesOf(calls),
    bodySerializer: String,
    parseAs: "stream",
  });
  const said = new Map<string | undefined, string | undefined>();
  for await (const result of lines<BatchResult>(answer)) {
    assert.equal(result.state, "succeeded");
    said.set(result.custom_id, result.result?.content?.[0]?.text);
  }
  assert.equal(said.size, 40);
  assert.equal(said.get("line-7"), "Echo: hello 7");
});

test("results go on from a cursor", async () => {
  const { data } = await client.POST("/batches", { body: { calls: [{ server: "demo", tool: "echo", arguments: { message: "a" } }, { server: "demo", tool: "echo", arguments: { message: "b" } }] } });
  assert.ok(data && "id" in data);
  const read = async (query: { follow: boolean; cursor?: string }) => {
    const cursors: string[] = [];
    const answer = await client.GET("/batches/{id}/results", { params: { path: { id: data.id }, query }, parseAs: "stream" });
    for await (const result of lines<BatchResult>(answer)) {
      cursors.push(result.cursor);
    }
    return cursors;
  };
  const all = await read({ follow: true });
  assert.equal(all.length, 2);
  const [first, second] = all;
  assert.ok(first !== undefined);
  assert.deepEqual(await read({ follow: true, cursor: first }), [second]);
});

test("events say how the fleet is", async () => {
  for await (const event of events(await client.GET("/events", { parseAs: "stream" }))) {
    assert.equal(event.name, "fleet");
    const fleet = JSON.parse(event.data) as Fleet;
    assert.ok(fleet.servers.some((server) => server.id === "demo"));
    break;
  }
});

test("a stream that is refused throws its problem", async () => {
  const answer = await client.GET("/batches/{id}/results", { params: { path: { id: "batch_none" } }, parseAs: "stream" });
  await assert.rejects(lines(answer).next(), (e) => e instanceof ProblemError && e.problem.status === 404);
});
