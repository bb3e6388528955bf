// The first generation of the TypeScript SDK: node v1.mjs URL
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { answer, play } from "./story.mjs";

const seen = { asked: [] };
const client = new Client({ name: "typescript-v1", version: "1" }, { capabilities: { elicitation: { form: {} } } });
client.setRequestHandler(ElicitRequestSchema, (request) => answer(request, seen));
const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
await client.connect(transport);
const report = await play({
  seen,
  legacy: true,
  call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, { timeout: 60_000, ...options }),
  list: async () => {
    const all = [];
    let cursor;
    do {
      const page = await client.listTools({ cursor });
      all.push(...page.tools);
      cursor = page.nextCursor;
    } while (cursor);
    return all;
  },
});
report.revision = transport.protocolVersion;
await transport.terminateSession();
await client.close();
console.log(JSON.stringify(report));
