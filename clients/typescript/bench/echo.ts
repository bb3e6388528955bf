// The tool echo, attached to a worker where ATTACH_URL is set and on the standard streams
// elsewhere: the same server both ways, to compare them.
import { McpServer } from "@modelcontextprotocol/server";
import { StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

import { attach } from "../src/attach.js";

const echo = () => {
  const server = new McpServer({ name: "echo", version: "1" });
  server.registerTool(
    "echo",
    { description: "Answers its message.", inputSchema: z.object({ message: z.string() }), annotations: { readOnlyHint: true } },
    async ({ message }) => ({ content: [{ type: "text", text: `Echo: ${message}` }] }),
  );
  return server;
};

const url = process.env.ATTACH_URL;
if (url === undefined) await echo().connect(new StdioServerTransport());
else await attach(url, "echo", echo, { key: process.env.ATTACH_KEY ?? "", inFlight: 64 });
