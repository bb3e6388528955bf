// Package native describes servers whose tools are Go functions of this process: the
// built-in tools, and the tools that a program registers through pkg/worker.
//
// A [Server] is a named list of [Tool] values that may change while it is used. A tool
// has the definition that MCP clients see and a function that gets the arguments as the
// bytes that the caller sent. [Typed] makes a tool from a function with Go types: it
// derives the schemas, decodes the arguments and encodes the result.
//
// It promises that a panic in a tool is a result with isError and ends nothing else, and
// that no call sees the list of tools half changed.
//
// It refuses tools without a name, without a function or with a schema that does not
// describe an object. Deadlines, places, queues and size limits are the business of
// package session.
package native
