// Serves the tool echo by attaching to a worker if ATTACH_URL is set, and over stdio
// otherwise, to compare both.
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
