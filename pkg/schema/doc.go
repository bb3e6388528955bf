// Package schema defines the domain types of Callyard: calls, results, tools, servers,
// workers, principals and errors.
//
// It contains only the types and their JSON encoding. It imports only the standard library,
// so that any package can depend on it, and it has no knowledge of HTTP, NATS or MCP
// sessions.
//
// Arguments and results are bytes ([Call.Arguments], [Result.Body]). Callyard passes the
// arguments to the MCP server unchanged, and the result to the caller unchanged. Nothing in
// this package decodes them.
package schema
