// A session of the first generation of the TypeScript SDK, opened or gone on with:
// node v1-session.mjs URL KEY [SESSION [end]]
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [, , url, key, sessionId, end] = process.argv;
const client = new Client({ name: "typescript-v1", version: "1" }, { capabilities: {} });
const transport = new StreamableHTTPClientTransport(new URL(url), {
  sessionId,
  requestInit: { headers: { Authorization: `Bearer ${key}` } },
});
const report = {};
try {
  await client.connect(transport); // with a session id it sends no initialize
  const result = await client.callTool({ name: "everything__echo", arguments: { message: "good evening" } });
  report.said = result.content[0].text;
  report.session = transport.sessionId;
  if (end) {
    await transport.terminateSession();
  }
} catch (error) {
  report.error = `${error.code} ${error.message}`;
}
await client.close();
console.log(JSON.stringify(report));
