// Serves the tool record, which appends its word to the file in EFFECTS and then sleeps
// briefly. The file shows which calls ran, and how often.
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

import { McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";

import { attach } from "../src/attach.js";

const effects = () => {
  const server = new McpServer({ name: "effects-typescript", version: "1" });
  server.registerTool("record", { description: "Records a word.", inputSchema: z.object({ word: z.string() }) }, async ({ word }) => {
    appendFileSync(process.env.EFFECTS ?? "", `${word}\n`);
    await sleep(20);
    return { content: [{ type: "text", text: word }] };
  });
  return server;
};

await attach(process.env.ATTACH_URL ?? "", "effects-typescript", effects, { key: process.env.ATTACH_KEY ?? "", inFlight: 4 });
