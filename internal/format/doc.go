// Package format turns tools and results from the form of MCP into that of model
// providers, and their tool calls into that of MCP: OpenAI chat completions, OpenAI
// Responses, Anthropic and Gemini.
//
// It owns the names under which providers know tools ([Name], [Directory.Resolve]), what
// each provider takes of JSON Schema ([Format.Schema]), the shapes of their
// tools, tool calls and tool messages, the estimate of what a tool costs in
// tokens, the choice of tools by relevance, and the search for tool calls in the
// plain text of a model ([Extract]).
//
// It promises that a name stands for one tool, at every provider and for as long
// as server and tool keep theirs, whatever other tools come and go; that what a
// provider's schema cannot express is loosened and never made narrower, and that
// each loosening is listed and told to the model in the description (strict mode
// narrows, because that is what it is for); that a schema in which nothing must
// change stays byte for byte; and that arguments stay the bytes that the model
// wrote, but for members that a schema of this package had renamed or made
// nullable ([Format.Restore]).
//
// It refuses to run anything, to validate arguments, to fetch what a schema
// refers to, and to guess: arguments of a provider's own tool-call block that are
// not JSON are an error. Only [Extract] repairs, and says where it did.
//
// It is one package because every provider has shapes of its own for schemas, calls and
// results that must agree with each other. The walk over schemas, the JSON values and the
// names are shared by all, so that no provider can differ in what the others promise.
package format
