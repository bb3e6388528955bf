// Package native describes servers whose tools are Go functions of this process: the built-in
// tools, and the tools that a program registers through pkg/worker.
//
// A [Server] is a named list of [Tool] values that may change during use. A tool has the definition
// that MCP clients see and a function that receives the arguments byte for byte. [Typed] creates a
// tool from a function with Go types: it derives the schemas, decodes the arguments and encodes the
// result.
//
// A panic in a tool becomes a result with isError and ends nothing else. No call sees a
// half-changed list of tools.
//
// Tools without a name, without a function, or with a schema that does not describe an object are
// rejected. Package session handles deadlines, slots, queues and size limits.
package native
