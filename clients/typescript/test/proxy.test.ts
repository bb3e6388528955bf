// Tests of answers of a proxy, and of names in paths, without a server.

import assert from "node:assert/strict";
import { test } from "node:test";

import { CallError, CallyardError, createClient, events, lines, ProblemError } from "../src/index.js";

const page = async () => new Response("<!doctype html><title>Sign in</title>", { headers: { "Content-Type": "text/html; charset=utf-8" } });

const isPage = (e: unknown) => e instanceof ProblemError && e.status === 200 && e.message.startsWith("http://callyard.test answered with status 200 and an HTML page");

test("a sign-in page is a problem", async () => {
  const client = createClient("http://callyard.test", { fetch: page });
  await assert.rejects(client.call("demo", "echo"), isPage);
  await assert.rejects(client.wait("call_1"), isPage);
  await assert.rejects(client.GET("/servers"), isPage);
  await assert.rejects(client.GET("/events", { parseAs: "stream" }), isPage);
  for (const read of [lines, events]) {
    await assert.rejects(async () => {
      for await (const _ of read(await page())) {
        assert.fail("the page was read");
      }
    }, ProblemError);
  }
});

test("the page of an evaluation is no problem", async () => {
  const client = createClient("http://callyard.test", { fetch: page });
  const { data } = await client.GET("/evaluations/{id}/page", { params: { path: { id: "a/b" } }, parseAs: "text" });
  assert.match(data ?? "", /Sign in/);
});

test("names stay one segment of the path, or are refused", async () => {
  const sent: string[] = [];
  const fetch = async (request: Request) => {
    sent.push(new URL(request.url).pathname);
    return new Response("{}", { status: 404, headers: { "Content-Type": "application/problem+json" } });
  };
  const client = createClient("http://callyard.test", { fetch });
  for (const [name, escaped] of [["a/b", "a%2Fb"], ["../x", "..%2Fx"], ["50%", "50%25"], ["x?y=1", "x%3Fy%3D1"], ["a#b", "a%23b"], ["%2e%2e", "%252e%252e"], ["...", "..."]] as const) {
    await client.DELETE("/servers/{id}", { params: { path: { id: name } } });
    assert.equal(sent.pop(), `/servers/${escaped}`);
  }
  for (const name of [".", ".."]) {
    await assert.rejects(client.DELETE("/servers/{id}", { params: { path: { id: name } } }), CallyardError);
    await assert.rejects(client.wait(name), CallyardError);
  }
  assert.deepEqual(sent, []);
});

test("an answer that is not of a front door is an error", async () => {
  for (const body of ["{}", '{"content":[]}', '{"outcome":"later","id":"call_1"}']) {
    const client = createClient("http://callyard.test", { fetch: async () => new Response(body, { headers: { "Content-Type": "application/json" } }) });
    const unknown = (e: unknown) => e instanceof CallyardError && !(e instanceof CallError) && e.message.endsWith("with status 200 is unknown to this client.");
    await assert.rejects(client.call("demo", "echo"), unknown);
    await assert.rejects(client.wait("call_1"), unknown);
  }
});

test("headers of every type are sent", async () => {
  const sent: [string | null, string | null][] = [];
  const fetch = async (request: Request) => {
    sent.push([request.headers.get("X-Mine"), request.headers.get("Authorization")]);
    return new Response("{}", { headers: { "Content-Type": "application/json" } });
  };
  for (const headers of [new Headers({ "X-Mine": "1" }), [["X-Mine", "1"]] as [string, string][], { "X-Mine": "1" }]) {
    await createClient("http://callyard.test", { key: "k", headers, fetch }).GET("/servers");
    assert.deepEqual(sent.pop(), ["1", "Bearer k"]);
  }
  await createClient("http://callyard.test", { key: "k", headers: { authorization: "Basic x" }, fetch }).GET("/servers");
  assert.deepEqual(sent.pop(), [null, "Basic x"]);
});

test("the text of a denied call names the reason", async () => {
  const at = "2026-01-02T03:04:05Z";
  const approve = { by: "bo", kind: "approve", at, reason: "yes" };
  const deny = { by: "ann", kind: "deny", at, reason: "too expensive" };
  for (const [decisions, text] of [[[approve, deny], " by ann: too expensive"], [[{ ...deny, reason: "" }], " by ann"], [[approve], ""]] as const) {
    const call = { id: "call_1", server: "demo", tool: "echo", created: at, state: "denied", decisions };
    const client = createClient("http://callyard.test", { fetch: async () => Response.json(call) });
    await assert.rejects(client.wait("call_1"), (e: unknown) => e instanceof CallError && e.message === `Call call_1 of demo/echo ended as denied${text}`);
  }
});
