// Serves the tool quote as the server prices, by attaching to a worker.
import { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

import { attach } from "../src/attach.js";

const prices = () => {
  const server = new McpServer({ name: "prices", version: "1.0.0" });
  server.registerTool(
    "quote",
    { description: "What that number of an article costs.", inputSchema: z.object({ sku: z.string(), quantity: z.number().int().default(1) }), annotations: { readOnlyHint: true } },
    async ({ quantity }) => ({ content: [], structuredContent: { total: 2.5 * quantity } }),
  );
  return server;
};

await attach(process.env.ATTACH_URL ?? "ws://127.0.0.1:9191", "prices", prices, { key: process.env.ATTACH_KEY ?? "", inFlight: 16 });
