import { type BatchResult, createClient, isHeld, lines, linesOf } from "../src/index.js";

const client = createClient(process.env["CALLYARD_URL"] ?? "http://127.0.0.1:8080", { key: process.env["CALLYARD_KEY"] });

const { data, error } = await client.POST("/servers/{id}/tools/{tool}", {
  params: { path: { id: "demo", tool: "echo" } },
  body: { message: "hello" },
});
if (error) throw new Error(error.detail);
if (isHeld(data) && data.confirmation_id) {
  await client.POST("/confirmations/{id}", { params: { path: { id: data.confirmation_id } }, body: { confirm: true } });
} else if ("content" in data) {
  console.log(data.content?.[0]?.text);
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
