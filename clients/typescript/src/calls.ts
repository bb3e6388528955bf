// Short ways to call a tool, and to wait for a call that is stored or held.

import type { Client } from "openapi-fetch";

import { CallError, CallyardError, HeldError, refusal } from "./errors.js";
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

export interface CallOptions {
  /** How long the call may take, in milliseconds; without it the server's own time counts. */
  timeoutMs?: number | undefined;
  /** With a key the call runs once, however often it is sent. */
  idempotencyKey?: string | undefined;
  signal?: AbortSignal | undefined;
}

export interface WaitOptions {
  /** How long to wait, in milliseconds; without it as long as it takes. */
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

export interface Calls {
  /**
   * Calls a tool and gives its result. A tool that fails says so in its result:
   * isError is true. Throws a HeldError where somebody must approve the call first, a
   * CallError where it was stored and ended without a result, and a ProblemError for
   * every refusal.
   */
  call(server: string, tool: string, args?: Record<string, unknown>, options?: CallOptions): Promise<Schemas["CallToolResult"]>;
  /**
   * Waits until a stored or held call has ended and gives its result. Throws a
   * CallError where it ended without one, and a WaitTimeoutError when the time is over:
   * the call goes on. A held call ends when its approval expires.
   */
  wait(callId: string, options?: WaitOptions): Promise<Schemas["CallToolResult"]>;
}

/** The call has not ended within the time of wait; it goes on. */
export class WaitTimeoutError extends CallyardError {
  override readonly name = "WaitTimeoutError";
}

/** How long one request waits, in seconds: shorter than what proxies bear. */
const oneWait = 30;

const going = new Set<Schemas["CallState"]>(["held", "queued", "running"]);

export function callsOf(client: Client<paths, "application/json" | "application/problem+json">): Calls {
  const wait: Calls["wait"] = async (callId, { timeoutMs = Infinity, signal } = {}) => {
    const ends = Date.now() + timeoutMs;
    for (;;) {
      const seconds = Math.ceil(Math.min(Math.max(ends - Date.now(), 0) / 1000, oneWait));
      const { data, error, response } = await client.GET("/calls/{id}", { params: { path: { id: callId }, query: { wait: seconds } }, signal: signal ?? null });
      if (!data) {
        throw refusal(error, response);
      }
      if (data.result) {
        return data.result;
      }
      if (!going.has(data.state)) {
        throw new CallError(data);
      }
      if (Date.now() >= ends) {
        throw new WaitTimeoutError(`Call ${callId} has not ended within the time; it goes on.`);
      }
    }
  };
  return {
    wait,
    async call(server, tool, args = {}, { timeoutMs, idempotencyKey, signal } = {}) {
      const { data, error, response } = await client.POST("/calls", {
        params: { header: idempotencyKey === undefined ? {} : { "Idempotency-Key": idempotencyKey } },
        body: { server, tool, arguments: args, ...(timeoutMs === undefined ? {} : { timeout_ms: timeoutMs }) },
        signal: signal ?? null,
      });
      if (!data) {
        throw refusal(error, response);
      }
      switch (data.outcome) {
        case "held":
          throw new HeldError(data);
        case "accepted":
          return wait(data.id, { signal });
        case "completed": {
          const { outcome: _, ...result } = data;
          return result;
        }
      }
    },
  };
}

/** The text of a result: its text blocks, one after the other on lines. */
export function textOf(result: Schemas["CallToolResult"] | undefined): string {
  return (result?.content ?? []).flatMap((block) => block.text ?? []).join("\n");
}
