// Retries of requests when that is safe.
//
// A request is retried:
//   - after status 429 or 503, if the response is a problem document with Retry-After whose
//     member retryable is true, which means that nothing has started, or if the request is
//     repeatable: it is neither a POST nor a PATCH, or it has an Idempotency-Key
//   - after status 409 with Retry-After, if the request has a key, because its call is still
//     running
//   - after a network error, if the request is repeatable
// The pause is Retry-After, or a backoff that grows from 0.5 s to 8 s without it. If the time of the
// signal passes in the pause after a network error, that error is thrown.
//
// An HTML page of a proxy is thrown as a ProblemError, because the caller expects JSON.

import { foreignPage, retryAfter } from "./errors.js";

/** The default number of retries of a request. */
export const defaultRetries = 2;

/** The longest Retry-After that is honored, in seconds. If it is longer, the caller gets the response immediately. */
const longest = 60;

const safe = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);

/** Wraps a fetch function so that it retries a request at most that number of times. */
export function retrying(fetch: (request: Request) => Promise<Response>, retries: number): (request: Request) => Promise<Response> {
  return async (request) => {
    for (let attempt = 0; attempt < retries; attempt++) {
      const spare = request.clone();
      let answer: Response | undefined;
      let seconds: number | undefined;
      let broken: unknown;
      try {
        answer = await fetch(request);
        seconds = await pause(request, answer, attempt);
      } catch (fault) {
        if (request.signal.aborted || !repeatable(request)) {
          throw fault;
        }
        broken = fault;
        seconds = backoff(attempt);
      }
      if (answer && seconds === undefined) {
        return withoutPage(answer, request);
      }
      await answer?.body?.cancel();
      await sleep((seconds ?? 0) * 1000, request.signal).catch((reason: unknown) => {
        throw broken !== undefined && isTimeout(reason) ? broken : reason; // the cause, and not only that the time has passed
      });
      request = spare;
    }
    return withoutPage(await fetch(request), request);
  };
}

/** Reports whether a request ended with the reason of AbortSignal.timeout. */
export function isTimeout(reason: unknown): boolean {
  return reason instanceof Error && reason.name === "TimeoutError";
}

async function withoutPage(answer: Response, request: Request): Promise<Response> {
  const page = foreignPage(answer, answer.url || request.url);
  if (page) {
    await answer.body?.cancel();
    throw page;
  }
  return answer;
}

function repeatable(request: Request): boolean {
  return safe.has(request.method) || request.headers.has("Idempotency-Key");
}

/** Returns the seconds to wait before the next attempt, or undefined if the request is not retried. */
async function pause(request: Request, answer: Response, attempt: number): Promise<number | undefined> {
  const after = retryAfter(answer.headers);
  if (answer.status === 409) {
    if (after === undefined || !request.headers.has("Idempotency-Key")) {
      return undefined;
    }
  } else if (answer.status === 429 || answer.status === 503) {
    if (!repeatable(request) && (after === undefined || !(await nothingStarted(answer)))) {
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

/**
 * Reports whether an error response is a problem that says so. A refusal without it may be about a
 * request that was stored in part, such as a batch. The body can still be read.
 */
async function nothingStarted(answer: Response): Promise<boolean> {
  if (!answer.headers.get("Content-Type")?.startsWith("application/problem+json")) {
    return false;
  }
  try {
    const problem: unknown = await answer.clone().json();
    return typeof problem === "object" && problem !== null && "retryable" in problem && problem.retryable === true;
  } catch {
    return false;
  }
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
