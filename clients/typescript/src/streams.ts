// Answers without an end: one JSON value on each line, and server-sent events.

import { refusal } from "./errors.js";

/** What openapi-fetch answers to a request with parseAs: "stream", or a Response. */
export type Streamed =
  | Response
  | { data?: ReadableStream<Uint8Array> | null | undefined; error?: unknown; response: Response };

/** One server-sent event. */
export interface Event {
  /** Says what data is: fleet, batch, progress, result or error. */
  name: string;
  id: string;
  /** JSON, as it came. */
  data: string;
}

/**
 * Reads the JSON values of an answer that has one on each line. A refusal is
 * thrown as a ProblemError. Leaving the loop closes the answer. After an error,
 * the cursor of the last result says where the next request goes on.
 */
export async function* lines<T>(answer: Streamed): AsyncGenerator<T, void, undefined> {
  for await (const line of textLines(await open(answer))) {
    if (line.text.trim() !== "") {
      yield JSON.parse(line.text) as T;
    }
  }
}

/** Reads the server-sent events of an answer. What holds for lines holds here. */
export async function* events(answer: Streamed): AsyncGenerator<Event, void, undefined> {
  yield* eventsOf(await open(answer));
}

/** Reads the events of a stream of bytes. One whose end did not come is dropped. */
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

/** Makes a request body of one JSON value on each line; send it as application/x-ndjson. */
export function linesOf(values: Iterable<unknown>): string {
  let body = "";
  for (const value of values) {
    body += `${JSON.stringify(value)}\n`;
  }
  return body;
}

/** The body of an answer; throws what refuses. */
async function open(answer: Streamed): Promise<ReadableStream<Uint8Array>> {
  const response = answer instanceof Response ? answer : answer.response;
  const body = answer instanceof Response ? answer.body : answer.data;
  if (!response.ok) {
    throw refusal(answer instanceof Response ? await response.text() : answer.error, response);
  }
  if (!body) {
    throw new TypeError("The answer has no body to read: send the request with parseAs: \"stream\".");
  }
  return body;
}

/** The lines of a stream of UTF-8; the last one may have no end. */
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
