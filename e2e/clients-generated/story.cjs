// Runs a tool, and one that is held, with the client that openapi-generator makes for
// typescript-fetch. Its first argument is the folder of the compiled client.
const { CallsApi, Configuration } = require(process.argv[2]);

async function main() {
  const calls = new CallsApi(new Configuration({ basePath: process.env.CALLYARD_URL }));
  for (const callRequest of [
    { server: "demo", tool: "echo", arguments: { message: "hello" } },
    { server: "demo", tool: "add", arguments: { a: 1, b: 2 } },
  ]) {
    const answer = await calls.createCall({ callRequest });
    switch (answer.outcome) {
      case "completed":
        console.log("completed", answer.content[0].text);
        break;
      case "held":
        console.log("held", answer.toolName);
        break;
      default:
        console.log("neither:", answer);
    }
  }
}

main();
