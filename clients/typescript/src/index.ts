// The TypeScript client of Callyard's REST API.
//
// schema.ts is generated from the OpenAPI document and holds types only, which
// openapi-fetch turns into a client. The other files are handwritten and small. They add
// what the generator does not provide.

import createFetchClient, { type Client, type ClientOptions, defaultPathSerializer, mergeHeaders } from "openapi-fetch";

import { type Calls, callsOf } from "./calls.js";
import { CallyardError } from "./errors.js";
import { defaultRetries, retrying } from "./retries.js";
import type { components, operations, paths } from "./schema.js";

export type { components, operations, paths };
export { type CallOptions, type Calls, textOf, type WaitOptions, WaitTimeoutError } from "./calls.js";
export { CallError, CallyardError, HeldError, ProblemError } from "./errors.js";
export { type Event, events, eventsOf, lines, linesOf } from "./streams.js";

type Schemas = components["schemas"];
export type Batch = Schemas["Batch"];
export type BatchCall = Schemas["BatchCall"];
export type BatchResult = Schemas["BatchResult"];
export type Call = Schemas["Call"];
export type AcceptedCall = Schemas["AcceptedCall"];
export type CallAnswer = Schemas["CallAnswer"];
export type CallState = Schemas["CallState"];
export type CallToolResult = Schemas["CallToolResult"];
export type ConfirmationRequest = Schemas["ConfirmationRequest"];
export type Fleet = Schemas["Fleet"];
export type FleetChange = Schemas["FleetChange"];
export type Problem = Schemas["Problem"];
export type ProblemFault = Schemas["ProblemFault"];

/**
 * A client with a method for each HTTP method, whose paths, parameters, bodies and
 * responses are typed, and with the shortcuts call and wait.
 */
export type CallyardClient = Client<paths, "application/json" | "application/problem+json"> & Calls;

export interface Options extends Omit<ClientOptions, "baseUrl"> {
  /** An API key. Omit it if the front door requires none. */
  key?: string | undefined;
  /**
   * The maximum number of retries of a request when that is safe; the default is 2, and 0 disables retries.
   * The client sets no time limit: pass a signal with a request, such as AbortSignal.timeout(milliseconds).
   */
  retries?: number | undefined;
}

/**
 * Returns a client of the front door at the base URL url, such as http://127.0.0.1:8080.
 * It keeps no state except its options.
 */
export function createClient(url: string, { key, headers, retries = defaultRetries, fetch = (request) => globalThis.fetch(request), ...rest }: Options = {}): CallyardClient {
  const client = createFetchClient<paths, "application/json" | "application/problem+json">({
    pathSerializer,
    ...rest,
    baseUrl: url,
    fetch: retrying(fetch, retries),
    // mergeHeaders takes a list of pairs for an object.
    headers: mergeHeaders(key ? { Authorization: `Bearer ${key}` } : {}, Array.isArray(headers) ? new Headers(headers as [string, string][]) : headers),
  });
  return Object.assign(client, callsOf(client));
}

/**
 * Inserts the parameters into a path. It refuses the names "." and "..", which cannot be escaped: a URL
 * resolves both as relative paths, and the request would go to another operation.
 */
function pathSerializer(path: string, params: Record<string, unknown>): string {
  for (const [name, value] of Object.entries(params)) {
    if (value === "." || value === "..") {
      throw new CallyardError(`The parameter ${name} is "${value}", which cannot be sent in a path. Nothing was sent.`);
    }
  }
  return defaultPathSerializer(path, params);
}

/** Reports whether a call has not run because it waits for an approval. */
export function isHeld(answer: unknown): answer is ConfirmationRequest {
  return typeof answer === "object" && answer !== null && "requires_confirmation" in answer;
}

/** Reports whether a call was stored, as requested with Prefer, and continues asynchronously. */
export function isStored(answer: unknown): answer is AcceptedCall {
  return typeof answer === "object" && answer !== null && "state" in answer && "created" in answer;
}
