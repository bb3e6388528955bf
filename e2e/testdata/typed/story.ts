// Calls tools through a client that was generated from the document of a set. calls.ts calls
// each tool once.
import createClient, { type Client } from "openapi-fetch";

import { calls } from "./calls.js";
import type { paths } from "./tools.js";

const client: Client<paths> = createClient<paths>({ baseUrl: process.env.CALLYARD_URL ?? "" });

// What a program writes by hand: arguments and results have types. A call that is held or stored
// has no result.
const path = "/servers/everything/tools/get-structured-content";
const { data } = await client.POST(path, { body: { location: "New York" } });
if (data === undefined || !("structuredContent" in data) || data.structuredContent === undefined) throw new Error("no result");
const temperature: number = data.structuredContent.temperature;
console.log(temperature, data.structuredContent.conditions);

const refused = () =>
  // @ts-expect-error the schema has no such city
  client.POST(path, { body: { location: "Rome" } });
void refused;

await calls(client, async (asked) => {
  const { data, error, response } = await asked;
  console.log(JSON.stringify({ status: response.status, answer: data ?? error }));
});
