// Shortcuts to call a tool, and to wait for a stored or held call.

import type { Client } from "openapi-fetch";

import { CallError, CallyardError, HeldError, refusal } from "./errors.js";
import { isTimeout } from "./retries.js";
import type { components, paths } from "./schema.js";

type Schemas = components["schemas"];

export interface CallOptions {
  /** The timeout of the call in milliseconds. By default, the server's own timeout applies. */
  timeoutMs?: number | undefined;
  /** With a key, the call runs once even if it is sent repeatedly. */
  idempotencyKey?: string | undefined;
  signal?: AbortSignal | undefined;
}

export interface WaitOptions {
  /** The maximum time to wait in milliseconds. There is no limit by default. */
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
}

export interface Calls {
  /**
   * Calls a tool and resolves to its result. If the tool itself fails, isError of the
   * result is true. Throws a HeldError if the call needs an approval first, a CallError if
   * it was stored and ended without a result, and a ProblemError if the front door refused
   * the request.
   */
  call(server: string, tool: string, args?: Record<string, unknown>, options?: CallOptions): Promise<Schemas["CallToolResult"]>;
  /**
   * Waits until a stored or held call ends and resolves to its result. A held call that is
   * not approved ends when its approval expires. Throws a CallError if the call ended
   * without a result, a ProblemError if the front door refused the request, and a
   * WaitTimeoutError if the timeout passed; the call then continues.
   */
  wait(callId: string, options?: WaitOptions): Promise<Schemas["CallToolResult"]>;
}

/** The call did not end within the timeout of wait. It continues. */
export class WaitTimeoutError extends CallyardError {
  override readonly name = "WaitTimeoutError";
}

/** The wait parameter of one request, in seconds. It is shorter than the timeouts of common proxies. */
const oneWait = 30;

/** The longest timeout of timers, in milliseconds. */
const longestTimeout = 2 ** 31 - 1;

const going = new Set<Schemas["CallState"]>(["held", "queued", "running"]);

export function callsOf(client: Client<paths, "application/json" | "application/problem+json">): Calls {
  const wait: Calls["wait"] = async (callId, { timeoutMs = Infinity, signal } = {}) => {
    const ends = Date.now() + timeoutMs;
    const late = () => new WaitTimeoutError(`Call ${callId} did not end within the timeout, which does not cancel it.`);
    for (;;) {
      const left = ends - Date.now();
      const seconds = Math.ceil(Math.min(Math.max(left, 0) / 1000, oneWait));
      // The wait parameter is in whole seconds, so the last request ends with the timeout and not
      // with the answer. A wait without time left asks once.
      const limit = left > 0 && left <= longestTimeout ? AbortSignal.timeout(Math.ceil(left)) : undefined;
      const request = client.GET("/calls/{id}", { params: { path: { id: callId }, query: { wait: seconds } }, signal: eitherOf(signal, limit) });
      const { data, error, response } = await request.catch((fault: unknown) => {
        throw limit?.aborted && !signal?.aborted && isTimeout(fault) ? late() : fault;
      });
      if (!data) {
        throw refusal(error, response);
      }
      if (data.result) {
        return data.result;
      }
      if (!data.state) {
        throw unknown(`Call ${callId}`, response);
      }
      if (!going.has(data.state)) {
        throw new CallError(data);
      }
      if (Date.now() >= ends) {
        throw late();
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
        default:
          throw unknown(`${server}/${tool}`, response);
      }
    },
  };
}

/** Returns a signal that aborts when one of the two does. */
function eitherOf(a: AbortSignal | undefined, b: AbortSignal | undefined): AbortSignal | null {
  return a && b ? AbortSignal.any([a, b]) : (a ?? b ?? null);
}

/** Returns the error for an answer of a newer front door, or of another service. */
function unknown(what: string, response: Response): CallyardError {
  return new CallyardError(`${what}: the answer with status ${response.status} is unknown to this client.`);
}

/** Returns the text blocks of a result, joined by newlines. */
export function textOf(result: Schemas["CallToolResult"] | undefined): string {
  return (result?.content ?? []).flatMap((block) => block.text ?? []).join("\n");
}
