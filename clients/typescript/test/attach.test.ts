// Tests of attached programs against a WebSocket server that acts as the worker.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { type TestContext, test } from "node:test";

import { McpServer } from "@modelcontextprotocol/server";
import { type WebSocket, WebSocketServer } from "ws";
import { z } from "zod";

import { attach, type Episode, episode, RefusedError } from "../src/attach.js";

interface Attached {
  socket: WebSocket;
  headers: Record<string, string | string[] | undefined>;
  path: string | undefined;
}

/** A fake worker that returns the programs that attach to it, in order. */
class Worker {
  readonly packets: number[] = []; // the size of each read in bytes, from all programs
  private readonly waiting: Attached[] = [];
  private wake: (() => void) | undefined;

  constructor(readonly http: HttpServer, readonly url: string) {
    http.on("connection", (raw: Socket) => raw.on("data", (data) => this.packets.push(data.length)));
    const sockets = new WebSocketServer({ server: http, perMessageDeflate: false });
    sockets.on("connection", (socket, request) => {
      this.waiting.push({ socket, headers: request.headers, path: request.url });
      this.wake?.();
    });
  }

  async next(): Promise<Attached> {
    while (this.waiting.length === 0) await new Promise<void>((wake) => (this.wake = wake));
    return this.waiting.shift() as Attached;
  }
}

async function startWorker(t: TestContext): Promise<Worker> {
  const http = createServer();
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  t.after(() => {
    http.closeAllConnections();
    http.close();
  });
  return new Worker(http, `ws://127.0.0.1:${(http.address() as AddressInfo).port}`);
}

const prices = () => {
  const server = new McpServer({ name: "prices", version: "1" });
  server.registerTool("quote", { inputSchema: z.object({ n: z.number() }) }, async ({ n }) => ({ content: [{ type: "text", text: String(2 * n) }] }));
  return server;
};

/** Sends a request and resolves to its response. */
function ask(program: Attached, id: number, method: string, params: object): Promise<{ result?: unknown; error?: unknown }> {
  return new Promise((answered) => {
    const listen = (data: { toString(): string }) => {
      const message = JSON.parse(data.toString()) as { id?: number };
      if (message.id !== id) return;
      program.socket.off("message", listen);
      answered(message as { result?: unknown });
    };
    program.socket.on("message", listen);
    program.socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  });
}

async function handshake(program: Attached): Promise<void> {
  await ask(program, 1, "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "worker", version: "1" } });
  program.socket.send(JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }));
}

const quote = (program: Attached, id: number) => ask(program, id, "tools/call", { name: "quote", arguments: { n: id } });

test("a result that has no JSON is answered with an error", async (t) => {
  const worker = await startWorker(t);
  const stop = new AbortController();
  const circle: Record<string, unknown> = {};
  circle["circle"] = circle;
  const odd = () => {
    const server = new McpServer({ name: "prices", version: "1" });
    for (const [name, value] of Object.entries({ big: { n: 12n }, circle })) {
      server.registerTool(name, { inputSchema: z.object({}) }, async () => ({ content: [], structuredContent: value as never }));
    }
    return server;
  };
  const done = attach(worker.url, "prices", odd, { key: "key", signal: stop.signal, log: () => undefined });
  const program = await worker.next();
  await handshake(program);
  for (const [id, name] of [[2, "big"], [3, "circle"]] as const) {
    const { error } = await ask(program, id, "tools/call", { name, arguments: {} });
    assert.match((error as { message: string }).message, /cannot be encoded as JSON/);
  }
  stop.abort();
  program.socket.close(1000);
  await done;
});

test("what the factory throws ends attach, and not the process", async (t) => {
  const worker = await startWorker(t);
  const factory = () => {
    throw new Error("no database");
  };
  const served = attach(worker.url, "prices", factory, { key: "key", signal: new AbortController().signal, log: () => undefined });
  await assert.rejects(served, /no database/);
});

test("a program attaches, answers, dials again and drains", async (t) => {
  const worker = await startWorker(t);
  const stop = new AbortController();
  const over = attach(`${worker.url}/`, "the prices", prices, { key: "cy_k", inFlight: 3, signal: stop.signal, log: () => undefined });
  const first = await worker.next();
  assert.equal(first.path, "/attach/the%20prices");
  assert.equal(first.socket.protocol, "mcp");
  assert.equal(first.headers["authorization"], "Bearer cy_k");
  assert.equal(first.headers["callyard-in-flight"], "3");
  await handshake(first);
  assert.deepEqual(await quote(first, 7), { jsonrpc: "2.0", id: 7, result: { content: [{ type: "text", text: "14" }] } });
  first.socket.terminate();
  const second = await worker.next();
  assert.equal(second.headers["callyard-instance"], first.headers["callyard-instance"]);
  await handshake(second);
  const draining = once(second.socket, "message");
  stop.abort();
  const [said] = (await draining) as [{ toString(): string }];
  assert.equal((JSON.parse(said.toString()) as { method: string }).method, "notifications/callyard/draining");
  assert.deepEqual((await quote(second, 8)).error, undefined); // a call in flight still ends
  second.socket.close(1000);
  await over;
});

test("a call tells of its episode, and the program is told of the end", async (t) => {
  const worker = await startWorker(t);
  const stop = new AbortController();
  const told: (Episode | undefined)[] = [];
  const asks = () => {
    const server = new McpServer({ name: "asks", version: "1" });
    server.registerTool("ask", { inputSchema: z.object({}) }, async (_, context) => {
      told.push(episode(context));
      return { content: [] };
    });
    return server;
  };
  let tell: (session: string) => void = () => undefined;
  const ended = new Promise<string>((resolve) => (tell = resolve));
  const over = attach(worker.url, "asks", asks, { key: "k", signal: stop.signal, log: () => undefined, ended: (session) => tell(session) });
  const program = await worker.next();
  await handshake(program);
  const full = { "dev.callyard/session": "episode_1", "dev.callyard/clock": "2026-01-31T12:00:00+02:00", "dev.callyard/seed": "-9223372036854775808" };
  for (const _meta of [{}, full, { "dev.callyard/session": "episode_2" }]) await ask(program, 9, "tools/call", { name: "ask", arguments: {}, _meta });
  assert.deepEqual(told, [undefined, { session: "episode_1", clock: new Date("2026-01-31T10:00:00Z"), seed: -(2n ** 63n) }, { session: "episode_2" }]);
  program.socket.send(JSON.stringify({ jsonrpc: "2.0", method: "notifications/callyard/session_ended", params: { session: "episode_1" } }));
  assert.equal(await ended, "episode_1");
  stop.abort();
  program.socket.close(1000);
  await over;
});

test("answers of one turn leave together", async (t) => {
  const worker = await startWorker(t);
  const stop = new AbortController();
  const over = attach(worker.url, "prices", prices, { key: "k", signal: stop.signal, log: () => undefined });
  const program = await worker.next();
  await handshake(program);
  worker.packets.length = 0;
  const raw = (program.socket as unknown as { _socket: Socket })._socket;
  raw.cork(); // so that the calls arrive together too
  const calls = Array.from({ length: 100 }, (_, i) => quote(program, i + 10));
  raw.uncork();
  assert.equal((await Promise.all(calls)).length, 100);
  assert.ok(worker.packets.length <= 20, `100 answers came in ${worker.packets.length} reads`);
  stop.abort();
  program.socket.close(1000);
  await over;
});

test("a frame that is not JSON costs nobody else an answer", async (t) => {
  const worker = await startWorker(t);
  const stop = new AbortController();
  const over = attach(worker.url, "prices", prices, { key: "k", signal: stop.signal, log: () => undefined });
  const program = await worker.next();
  await handshake(program);
  program.socket.send("{");
  assert.equal((await quote(program, 5)).error, undefined);
  stop.abort();
  program.socket.close(1000);
  await over;
});

for (const status of [400, 401, 403]) {
  test(`a program that is refused with ${status} gives up and says why`, async (t) => {
    const http = createServer();
    http.on("upgrade", (_, socket) => socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: 6\r\nConnection: close\r\n\r\nno key`));
    http.listen(0, "127.0.0.1");
    await once(http, "listening");
    t.after(() => http.close());
    const url = `ws://127.0.0.1:${(http.address() as AddressInfo).port}`;
    await assert.rejects(attach(url, "prices", prices, { key: "k", signal: new AbortController().signal, log: () => undefined }), (e) => e instanceof RefusedError && e.message.includes("no key"));
  });
}

test("a program that is told to come later dials again", async (t) => {
  let asked = 0;
  const http = createServer();
  const stop = new AbortController();
  http.on("upgrade", (_, socket) => {
    if (++asked === 2) stop.abort();
    socket.end("HTTP/1.1 503 Later\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  });
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  t.after(() => http.close());
  await attach(`ws://127.0.0.1:${(http.address() as AddressInfo).port}`, "prices", prices, { key: "k", signal: stop.signal, log: () => undefined });
  assert.equal(asked, 2);
});
