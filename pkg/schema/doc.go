// Package schema holds the nouns of Callyard: what a call, a result, a tool, a
// server, a worker and a principal are, and how a failure is named.
//
// It owns the words and their JSON shape and nothing else. It imports the
// standard library only, so that anybody can depend on it, and it refuses to
// know about HTTP, NATS or MCP sessions.
//
// Arguments and results are bytes here ([Call.Arguments], [Result.Body]): what a
// caller sent reaches the MCP server unchanged, and what the server answered
// reaches the caller unchanged. Nothing in this package decodes them.
package schema
