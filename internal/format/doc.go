// Package format converts tools and results from MCP to the formats of model providers, and their
// tool calls to MCP: OpenAI chat completions, OpenAI Responses, Anthropic and Gemini.
//
// It owns the tool names that providers see ([Name], [Directory.Candidates]), the subset of JSON
// Schema that each provider accepts ([Format.Schema]), the formats of their tools, tool calls and
// tool messages, the token estimate of a tool, the selection of tools by relevance, and the search
// for tool calls in a model's plain text ([Extract]).
//
// A name stands for one tool at every provider, as long as server and tool keep their names and
// whatever other tools exist. A constraint that a provider's schema cannot express is loosened,
// never narrowed; each loosening is listed and described to the model. (Strict mode does narrow,
// by design.) A schema that needs no change keeps its exact bytes. Arguments keep the bytes that the
// model wrote, except members that a schema of this package renamed or made nullable
// ([Format.Restore]).
//
// The package runs nothing, validates no arguments, fetches nothing that a schema refers to, and
// does not guess: arguments in a provider's tool-call block that are not JSON are an error. Only
// [Extract] repairs, and it reports each repair.
//
// It is one package because every provider has shapes of its own for schemas, calls and
// results that must agree with each other. The walk over schemas, the JSON values and the
// names are shared by all, so that no provider can differ in what the others promise.
package format
