// The second generation of the TypeScript SDK: node v2.mjs URL legacy|REVISION
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { answer, play } from "./story.mjs";

const [, , url, era] = process.argv;
const seen = { asked: [] };
const client = new Client({ name: "typescript-v2", version: "1" }, {
  capabilities: { elicitation: { form: {} } },
  versionNegotiation: { mode: era === "legacy" ? "legacy" : { pin: era } },
});
client.setRequestHandler("elicitation/create", (request) => answer(request, seen));
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const report = await play({
  seen,
  legacy: era === "legacy",
  call: (name, args, options) => client.callTool({ name, arguments: args }, { timeout: 60_000, ...options }),
  list: async () => (await client.listTools()).tools,
});
report.revision = client.getNegotiatedProtocolVersion();
await client.close();
console.log(JSON.stringify(report));
