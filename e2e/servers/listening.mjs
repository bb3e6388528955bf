// A server of the first generation of the TypeScript SDK over streamable HTTP, as its
// own examples write it: what its tools ask and tell names no request, so it goes to
// the GET stream of the session. It prints its address.
import { randomUUID } from "node:crypto";
import { createMcpExpressApp } from "@modelcontextprotocol/sdk/server/express.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { isInitializeRequest } from "@modelcontextprotocol/sdk/types.js";

const said = (text) => ({ content: [{ type: "text", text }] });

function build() {
  const mcp = new McpServer({ name: "listening", version: "1" }, { capabilities: { logging: {} } });
  const server = mcp.server;
  mcp.registerTool("elicit", { description: "Asks for a name" }, async () => {
    const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] };
    const answer = await server.elicitInput({ message: "Who is it?", requestedSchema });
    return said(`${answer.action} ${answer.content?.name}`);
  });
  mcp.registerTool("sample", { description: "Asks for a text" }, async () => {
    const messages = [{ role: "user", content: { type: "text", text: "Say something" } }];
    const answer = await server.createMessage({ messages, maxTokens: 10 });
    return said(answer.content.text);
  });
  mcp.registerTool("roots", { description: "Asks for the roots" }, async () => {
    const { roots } = await server.listRoots();
    return said(roots.map((root) => root.uri).join(" "));
  });
  mcp.registerTool("tell", { description: "Logs and shows progress" }, async (extra) => {
    await server.sendLoggingMessage({ level: "info", data: "half of it is done" });
    const progressToken = extra._meta?.progressToken;
    if (progressToken !== undefined) {
      await server.notification({ method: "notifications/progress", params: { progressToken, progress: 1, total: 2 } });
    }
    return said("told");
  });
  return mcp;
}

const sessions = new Map();
const app = createMcpExpressApp();

app.post("/mcp", async (req, res) => {
  let transport = sessions.get(req.headers["mcp-session-id"]);
  if (!transport && isInitializeRequest(req.body)) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    transport.onclose = () => sessions.delete(transport.sessionId);
    await build().connect(transport);
  }
  if (!transport) {
    const error = { code: -32000, message: "Bad Request: No valid session ID provided" };
    res.status(400).json({ jsonrpc: "2.0", error, id: null });
    return;
  }
  await transport.handleRequest(req, res, req.body);
});

const inSession = async (req, res) => {
  const transport = sessions.get(req.headers["mcp-session-id"]);
  if (!transport) {
    res.status(400).send("Invalid or missing session ID");
    return;
  }
  await transport.handleRequest(req, res);
};
app.get("/mcp", inSession);
app.delete("/mcp", inSession);

const listener = app.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${listener.address().port}/mcp`);
});
process.on("SIGTERM", () => process.exit(0));
