import { type BatchResult, createClient, HeldError, isStored, lines, linesOf, textOf } from "../src/index.js";

const client = createClient(process.env["CALLYARD_URL"] ?? "http://127.0.0.1:8080", { key: process.env["CALLYARD_KEY"] });

try {
  const result = await client.call("demo", "echo", { message: "hello" });
  console.log(textOf(result));
} catch (error) {
  if (!(error instanceof HeldError)) throw error;
  console.log(error.message, error.approvalUrl);
  await client.wait(error.callId); // blocks until an approver decides
}

const { data } = await client.POST("/calls", {
  params: { header: { Prefer: "respond-async" } },
  body: { server: "demo", tool: "echo", arguments: { message: "stored" } },
});
if (isStored(data)) {
  console.log(textOf(await client.wait(data.id, { timeoutMs: 60_000 })));
}

const calls = ["a", "b"].map((message) => ({ server: "demo", tool: "echo", arguments: { message } }));
const answer = await client.POST("/batches", {
  params: { query: { stream: true } },
  headers: { "Content-Type": "application/x-ndjson" },
  body: linesOf(calls),
  bodySerializer: String,
  parseAs: "stream",
});
for await (const result of lines<BatchResult>(answer)) {
  console.log(result.index, result.state);
}
