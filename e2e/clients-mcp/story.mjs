// The story that each client of a TypeScript SDK plays. It judges nothing: it
// prints what it saw, and the Go test compares.

/**
 * Plays the story with a connected client.
 *
 * @param call calls a tool: (name, arguments, {onprogress, signal}) => result
 * @param list returns every tool that the client lists
 * @param legacy says that servers may ask by themselves, with requests of their own
 * @param seen what the client noted while it was asked: {asked: [message, …]}
 */
export async function play({ call, list, seen, legacy }) {
  const text = (result) => (result.content ?? []).map((c) => c.text ?? "").join("");
  const report = { tools: (await list()).map((t) => t.name).sort() };

  report.said = text(await call("everything__echo", { message: "good evening" }));
  report.simple = text(await call("conformance__test_simple_text", {}));

  const steps = [];
  await call("everything__trigger-long-running-operation", { duration: 1, steps: 4 }, { onprogress: (p) => steps.push(p.progress) });
  report.progress = steps;

  const stop = new AbortController();
  try {
    await call("everything__trigger-long-running-operation", { duration: 120, steps: 240 }, {
      onprogress: () => stop.abort("enough"),
      signal: stop.signal,
    });
    report.cancelled = "it was answered";
  } catch (error) {
    report.cancelled = stop.signal.aborted ? "yes" : String(error);
  }

  report.named = text(await call("conformance__test_input_required_result_elicitation", {}));
  report.confirmed = text(await call("risky__echo", { text: "it ran" }));
  if (legacy) {
    report.elicited = text(await call("asking__test_elicitation", { message: "Which user is it?" }));
  }
  report.asked = seen.asked;
  return report;
}

/** What a user answers: accept if a confirmation is requested, else a name. */
export function answer(request, seen) {
  const { message, requestedSchema } = request.params;
  seen.asked.push(message);
  const wants = Object.keys(requestedSchema.properties);
  return { action: "accept", content: wants.includes("confirm") ? { confirm: true } : { [wants[0]]: "Ada" } };
}
