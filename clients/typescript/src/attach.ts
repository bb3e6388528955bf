/**
 * Serves an MCP server of the official SDK to Callyard from a separate program, which
 * dials a worker. It needs the packages ws and @modelcontextprotocol/server.
 */
import { randomUUID } from "node:crypto";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

import type { JSONRPCMessage, ServerContext, Transport } from "@modelcontextprotocol/server";
import WebSocket from "ws";

const firstPause = 200; // milliseconds before dialing again, doubling
const longestPause = 10_000;
const silence = 30_000; // a worker pings every 10 seconds
const meta = { session: "dev.callyard/session", clock: "dev.callyard/clock", seed: "dev.callyard/seed" };
const sessionEnded = "notifications/callyard/session_ended";
const draining = JSON.stringify({ jsonrpc: "2.0", method: "notifications/callyard/draining" });

/** The options of {@link attach}. */
export interface AttachOptions {
  /** The key that `callyard keys attach` printed for the server. */
  key: string;
  /** The maximum number of concurrent calls; the default is 16. */
  inFlight?: number;
  /** Aborting it drains the program. By default, SIGTERM and SIGINT do. */
  signal?: AbortSignal;
  /** Called with the name of each session that has ended; see {@link Episode}. */
  ended?: (session: string) => void;
  /** Called with a line when a connection ends; the default is console.error. */
  log?: (line: string) => void;
}

/** The training episode of a call. */
export interface Episode {
  /** The unique name of the episode, under which the tool can keep state. */
  session: string;
  /** The fixed time of the episode. If undefined, use the machine's clock. */
  clock?: Date;
  /** The seed for the tool's random numbers. If undefined, any seed may be used. */
  seed?: bigint;
}

/** Returns the episode of the call with this context, or undefined if it has none. */
export function episode(context: ServerContext): Episode | undefined {
  const told = (context.mcpReq._meta ?? {}) as Record<string, unknown>;
  const session = told[meta.session], clock = told[meta.clock], seed = told[meta.seed];
  if (typeof session !== "string") return undefined;
  return { session, ...(typeof clock === "string" && { clock: new Date(clock) }), ...(typeof seed === "string" && { seed: BigInt(seed) }) };
}

/** The worker refuses the program permanently: the key is not valid, or a header is wrong. */
export class RefusedError extends Error {}

/** An MCP server: McpServer or Server of the official SDK. */
export interface Connectable {
  connect(transport: Transport): Promise<void>;
  close(): Promise<void>;
}

/**
 * Serves until it is told to drain. It then accepts no new calls, and resolves when the calls
 * in flight are answered. When the connection ends, it dials again with a new server from
 * factory; it never resends a message of the old connection.
 *
 * @param url URL of the worker's listener for programs, such as ws://127.0.0.1:9191
 * @param server name of the server in Callyard
 * @throws RefusedError if dialing again would not help, and any error of factory
 */
export async function attach(url: string, server: string, factory: () => Connectable, options: AttachOptions): Promise<void> {
  const { key, inFlight = 16, log = console.error, ended } = options;
  const stop = options.signal ?? stopSignal();
  const address = `${url.replace(/\/+$/, "")}/attach/${encodeURIComponent(server)}`;
  const headers = { Authorization: `Bearer ${key}`, "Callyard-Instance": randomUUID(), "Callyard-In-Flight": String(inFlight), "Callyard-Language": "typescript" };
  for (let pause = firstPause; !stop.aborted; pause = Math.min(2 * pause, longestPause)) {
    const began = Date.now();
    log(await connection(new WebSocket(address, "mcp", { headers, perMessageDeflate: false, maxPayload: 0 }), factory, stop, ended));
    if (Date.now() - began > longestPause) pause = firstPause;
    await sleep(pause * (0.5 + Math.random() / 2), undefined, { signal: stop }).catch(() => undefined);
  }
}

/** Returns a signal that aborts at the first SIGTERM or SIGINT. The second one ends the process. */
function stopSignal(): AbortSignal {
  const controller = new AbortController();
  const drain = () => {
    for (const name of ["SIGTERM", "SIGINT"] as const) process.off(name, drain);
    controller.abort();
  };
  for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, drain);
  return controller.signal;
}

/** Serves one connection until it ends, and resolves to the reason. The worker closes it after it has drained. */
function connection(socket: WebSocket, factory: () => Connectable, stop: AbortSignal, told?: (session: string) => void): Promise<string> {
  const drain = () => socket.send(draining);
  const watchdog = setTimeout(() => socket.terminate(), silence);
  return new Promise<string>((ended, failed) => {
    let why = "";
    let wire: Socket | undefined;
    socket.on("upgrade", (response) => (wire = response.socket));
    socket.on("unexpected-response", (_, response) => {
      response.setEncoding("utf8").on("data", (part: string) => (why += part)).on("end", () => {
        socket.terminate();
        const line = `the worker refuses the program with HTTP ${response.statusCode}: ${why}`;
        if ([400, 401, 403].includes(response.statusCode ?? 0)) failed(new RefusedError(line));
        else ended(line);
      });
    });
    socket.on("ping", () => watchdog.refresh());
    socket.on("error", (error) => (why = error.message));
    socket.on("close", (code, reason) => ended(`the connection ended with code ${code}: ${reason.toString() || why}`));
    socket.on("open", () => {
      let made: Connectable;
      try {
        made = factory();
      } catch (error) {
        socket.close(1011); // dialing again would not help
        failed(error);
        return;
      }
      if (stop.aborted) drain();
      else stop.addEventListener("abort", drain);
      made.connect(new SocketTransport(socket, wire, told)).catch((error: Error) => {
        why = error.message;
        socket.close(1011);
      });
    });
  }).finally(() => {
    clearTimeout(watchdog);
    stop.removeEventListener("abort", drain);
  });
}

/** A transport with one MCP message per text frame. */
class SocketTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;

  private holding = false;

  constructor(private readonly socket: WebSocket, private readonly wire: Socket | undefined, private readonly told?: (session: string) => void) {}

  async start(): Promise<void> {
    this.socket.on("message", (data: WebSocket.RawData) => {
      try {
        const message = JSON.parse(data.toString()) as JSONRPCMessage;
        if ("method" in message && message.method === sessionEnded) this.told?.(String(message.params?.["session"]));
        else this.onmessage?.(message);
      } catch (error) {
        this.onerror?.(error as Error);
      }
    });
    this.socket.on("close", () => this.onclose?.());
  }

  send(message: JSONRPCMessage): Promise<void> {
    let text: string;
    try {
      text = JSON.stringify(message);
    } catch (error) {
      if (!("result" in message)) return Promise.reject(error);
      // The SDK sends nothing else for the request, so the call would wait for its timeout.
      const why = `The tool ran, but its result cannot be encoded as JSON: ${String((error as Error).message).split("\n", 1)[0]}`;
      text = JSON.stringify({ jsonrpc: "2.0", id: message.id, error: { code: -32603, message: why } });
    }
    this.hold();
    return new Promise((sent, failed) => this.socket.send(text, (error) => (error ? failed(error) : sent())));
  }

  /** Batches the messages of one turn of the event loop into one write. */
  private hold(): void {
    if (this.holding || this.wire === undefined) return;
    this.holding = true;
    this.wire.cork();
    setImmediate(() => {
      this.holding = false;
      this.wire?.uncork();
    });
  }

  async close(): Promise<void> {
    this.socket.close();
  }
}
