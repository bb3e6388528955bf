// The sign-in that each generation of the TypeScript SDK plays: node login.mjs v1|v2 URL [SECONDS]
//
// It judges nothing. It prints a line for each thing that the test does for it, "authorize URL" and
// "end", and what it saw as the last line. With SECONDS it waits so long for its access token to
// expire; else it spoils the token, which the front door refuses in the same way.
import { once } from "node:events";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const [, , generation, url, seconds] = process.argv;
const { Client, StreamableHTTPClientTransport } =
  generation === "v2"
    ? await import("@modelcontextprotocol/client")
    : { ...(await import("@modelcontextprotocol/sdk/client/index.js")), ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")) };

const callback = createServer();
callback.listen(0, "127.0.0.1");
await once(callback, "listening");
const redirect = `http://127.0.0.1:${callback.address().port}/callback`;

const report = { asked: [], issued: 0 };
const kept = { client: { client_id: "app" } };
const provider = {
  redirectUrl: redirect,
  clientMetadata: { client_name: "App", redirect_uris: [redirect] },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => void (kept.client = client),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => {
    kept.tokens = tokens;
    report.issued++;
  },
  saveCodeVerifier: (verifier) => void (kept.verifier = verifier),
  codeVerifier: () => kept.verifier,
  state: () => crypto.randomUUID(),
  invalidateCredentials: (which) => {
    if (which === "all" || which === "tokens") {
      delete kept.tokens;
    }
  },
  redirectToAuthorization: async (to) => {
    if (report.asked.length === 0) {
      to.searchParams.set("scope", "tools:read"); // less than it needs, so that a call makes it ask again
    }
    report.asked.push(to.searchParams.get("scope"));
    if (kept.ended) {
      return; // nobody is at the browser any more
    }
    console.log(`authorize ${to}`);
    const [request, response] = await once(callback, "request");
    response.end("You can close this page.");
    kept.answer = new URL(request.url, redirect).searchParams;
  },
};

let client, transport;

async function connect() {
  client = new Client({ name: `typescript-${generation}`, version: "1" }, { capabilities: {} });
  transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  await client.connect(transport);
}

/** Does something, and again after a person has agreed to what it lacked. */
async function authorized(what) {
  for (;;) {
    try {
      return await what();
    } catch (error) {
      const answer = kept.answer;
      if (!answer) {
        throw error;
      }
      delete kept.answer;
      await transport.finishAuth(generation === "v2" ? answer : answer.get("code"));
    }
  }
}

async function call() {
  for (let tries = 0; ; tries++) {
    const result = await client.callTool({ name: "echo__echo", arguments: { text: "hello" } });
    if (!result.isError || tries === 40) {
      return result.content[0].text;
    }
    await sleep(250); // its server may still be starting
  }
}

await authorized(connect);
report.tools = (await client.listTools()).tools.map((tool) => tool.name);
try {
  report.said = await authorized(call);
} catch (error) {
  // The first generation renews its token in place of asking for more scopes, and fails.
  report.stuck = error.message;
  delete kept.tokens;
  await client.close();
  await authorized(connect);
  report.said = await authorized(call);
}

const before = kept.tokens.access_token;
if (seconds) {
  await sleep(1000 * seconds);
} else {
  kept.tokens = { ...kept.tokens, access_token: before.slice(0, -8) + "AAAAAAAA" };
}
report.again = await call();
report.renewed = kept.tokens.access_token !== before && kept.tokens.access_token.slice(-8) !== "AAAAAAAA";

console.log("end");
await once(createInterface({ input: process.stdin }), "line");
kept.ended = true;
const since = Date.now();
try {
  while (Date.now() - since < 20_000) {
    await client.callTool({ name: "echo__echo", arguments: { text: "hello" } });
  }
} catch (error) {
  report.refused = `${error.name}: ${error.message}`;
}
report.refused_after_ms = Date.now() - since;
console.log(JSON.stringify(report));
process.exit(0); // its event stream may be trying to come up again
