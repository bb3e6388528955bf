// Requests that are sent again, where that is safe.
//
// An answer of status 429 or 503 is asked for again when the problem document says by
// Retry-After that nothing has started, or when the request may be repeated: a read, or
// one with an Idempotency-Key. So is a 409 with Retry-After to a request with a key: its
// call still runs. A request without an answer is sent again when it may be repeated.
// Retry-After says when; without it the pause grows from 0.5 s to 8 s.

import { retryAfter } from "./errors.js";

/** How often a request is sent again. */
export const defaultRetries = 2;

/** Seconds. Where Retry-After asks for more, the answer goes to the caller at once. */
const longest = 60;

const safe = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);

/** The fetch function, which sends a request again at most that number of times. */
export function retrying(fetch: (request: Request) => Promise<Response>, retries: number): (request: Request) => Promise<Response> {
  return async (request) => {
    for (let attempt = 0; attempt < retries; attempt++) {
      const spare = request.clone();
      let answer: Response | undefined;
      let seconds: number | undefined;
      try {
        answer = await fetch(request);
        seconds = pause(request, answer, attempt);
      } catch (fault) {
        if (request.signal.aborted || !repeatable(request)) {
          throw fault;
        }
        seconds = backoff(attempt);
      }
      if (answer && seconds === undefined) {
        return answer;
      }
      await answer?.body?.cancel();
      await sleep((seconds ?? 0) * 1000, request.signal);
      request = spare;
    }
    return fetch(request);
  };
}

function repeatable(request: Request): boolean {
  return safe.has(request.method) || request.headers.has("Idempotency-Key");
}

/** The seconds to wait before the next attempt; undefined says that there is none. */
function pause(request: Request, answer: Response, attempt: number): number | undefined {
  const after = retryAfter(answer.headers);
  if (answer.status === 409) {
    if (after === undefined || !request.headers.has("Idempotency-Key")) {
      return undefined;
    }
  } else if (answer.status === 429 || answer.status === 503) {
    const ours = answer.headers.get("Content-Type")?.startsWith("application/problem+json");
    if (!repeatable(request) && (after === undefined || !ours)) {
      return undefined;
    }
  } else {
    return undefined;
  }
  if (after === undefined) {
    return backoff(attempt);
  }
  return after <= longest ? after : undefined;
}

function backoff(attempt: number): number {
  return Math.min(0.5 * 2 ** attempt, 8) * (0.75 + Math.random() / 4);
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal.addEventListener("abort", stop, { once: true });
  });
}
