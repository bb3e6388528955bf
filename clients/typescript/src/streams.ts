// Streamed responses: JSON lines and server-sent events.

import { foreignPage, refusal } from "./errors.js";

/** A Response, or the result of openapi-fetch for a request with parseAs: "stream". */
export type Streamed =
  | Response
  | { data?: ReadableStream<Uint8Array> | null | undefined; error?: unknown; response: Response };

/** One server-sent event. */
export interface Event {
  /** The type of data: fleet, batch, progress, result or error. */
  name: string;
  id: string;
  /** The JSON text as received. */
  data: string;
}

/**
 * Yields the JSON values of a response with one value per line. An error response throws a
 * ProblemError. Leaving the loop closes the response. After an error, pass the cursor of the
 * last result to the next request to continue.
 */
export async function* lines<T>(answer: Streamed): AsyncGenerator<T, void, undefined> {
  for await (const line of textLines(await open(answer))) {
    if (line.text.trim() !== "") {
      yield JSON.parse(line.text) as T;
    }
  }
}

/** Yields the server-sent events of a response. Errors and closing work as for {@link lines}. */
export async function* events(answer: Streamed): AsyncGenerator<Event, void, undefined> {
  yield* eventsOf(await open(answer));
}

/** Yields the server-sent events of a byte stream. An incomplete last event is dropped. */
export async function* eventsOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Event, void, undefined> {
  let event: Event = { name: "", id: "", data: "" };
  let data: string[] = [];
  for await (const { text, whole } of textLines(body)) {
    if (!whole) {
      return;
    }
    if (text === "") {
      if (data.length > 0) {
        yield { ...event, data: data.join("\n") };
      }
      event = { name: "", id: "", data: "" };
      data = [];
      continue;
    }
    const colon = text.indexOf(":");
    const field = colon < 0 ? text : text.slice(0, colon);
    const value = colon < 0 ? "" : text.slice(colon + 1).replace(/^ /, "");
    if (field === "event") {
      event.name = value;
    } else if (field === "id") {
      event.id = value;
    } else if (field === "data") {
      data.push(value);
    }
  }
}

/** Returns a request body with one JSON value per line. Send it as application/x-ndjson. */
export function linesOf(values: Iterable<unknown>): string {
  let body = "";
  for (const value of values) {
    body += `${JSON.stringify(value)}\n`;
  }
  return body;
}

/** Returns the body of a response, or throws the error of an error response. */
async function open(answer: Streamed): Promise<ReadableStream<Uint8Array>> {
  const response = answer instanceof Response ? answer : answer.response;
  const body = answer instanceof Response ? answer.body : answer.data;
  if (!response.ok) {
    throw refusal(answer instanceof Response ? await response.text() : answer.error, response);
  }
  const page = foreignPage(response, response.url);
  if (page) {
    await body?.cancel();
    throw page;
  }
  if (!body) {
    throw new TypeError("The answer has no body to read: send the request with parseAs: \"stream\".");
  }
  return body;
}

/** Yields the lines of a UTF-8 stream. whole is false for a last line without a line ending. */
async function* textLines(body: ReadableStream<Uint8Array>): AsyncGenerator<{ text: string; whole: boolean }, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parts: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      const text = done ? decoder.decode() : decoder.decode(value, { stream: true });
      let from = 0;
      for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
        parts.push(text.slice(from, end));
        yield { text: parts.join("").replace(/\r$/, ""), whole: true };
        parts.length = 0;
        from = end + 1;
      }
      parts.push(text.slice(from));
      if (done) {
        const rest = parts.join("");
        if (rest !== "") {
          yield { text: rest, whole: false };
        }
        return;
      }
    }
  } finally {
    await reader.cancel();
  }
}
