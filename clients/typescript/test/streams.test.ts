import assert from "node:assert/strict";
import { test } from "node:test";

import { eventsOf, lines, linesOf, ProblemError } from "../src/index.js";

/** A stream that arrives in pieces of that number of bytes. */
function inPieces(text: string, size: number): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  let from = 0;
  return new ReadableStream({
    pull(to) {
      if (from >= bytes.length) {
        to.close();
        return;
      }
      to.enqueue(bytes.slice(from, from + size));
      from += size;
    },
  });
}

async function all<T>(of: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const one of of) {
    found.push(one);
  }
  return found;
}

test("lines and events do not depend on how the bytes are cut", async () => {
  const stream = ': alive\n\nevent: fleet\nid: 1\ndata: {"a":\ndata: "ö"}\n\ndata:{}\r\n\r\nevent: none\n\ndata: cut';
  const text = '{"a":"ö"}\n\n{"a":"€"}';
  for (let size = 1; size < 40; size++) {
    assert.deepEqual(await all(eventsOf(inPieces(stream, size))), [
      { name: "fleet", id: "1", data: '{"a":\n"ö"}' },
      { name: "", id: "", data: "{}" },
    ]);
    assert.deepEqual(await all(lines(new Response(inPieces(text, size)))), [{ a: "ö" }, { a: "€" }]);
  }
});

test("leaving the loop closes the answer", async () => {
  let closed = false;
  const body = new ReadableStream<Uint8Array>({
    pull: (to) => to.enqueue(new TextEncoder().encode("1\n")),
    cancel: () => {
      closed = true;
    },
  });
  for await (const _ of lines(new Response(body))) {
    break;
  }
  assert.ok(closed);
});

test("a refusal is thrown, also that of a proxy", async () => {
  const refused = new Response("<h1>down</h1>", { status: 503, statusText: "Service Unavailable" });
  await assert.rejects(lines(refused).next(), (e) => e instanceof ProblemError && e.problem.status === 503 && e.message === "503 Service Unavailable");
});

test("a body of lines has each value on one", () => {
  assert.equal(linesOf([{ a: "x\ny" }, 1]), '{"a":"x\\ny"}\n1\n');
});
