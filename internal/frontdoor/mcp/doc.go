// Package mcp serves the fabric as MCP servers: all servers together at /mcp, and each server
// alone at /mcp/{server}.
//
// It owns the streamable HTTP transport of both protocol eras, the names of tools at /mcp, the
// cached encoded lists, the sessions of the legacy era, and the single table that maps error
// kinds to MCP errors.
//
// It guarantees that
//   - a call passes the same gate as a call over REST;
//   - arguments and results are forwarded byte for byte, with protocol members added in front;
//   - any front door can answer a request of the modern era;
//   - a call is canceled if its caller disconnects (modern) or cancels (legacy);
//   - a held call is the same as over REST, with the same token and the same fence.
//
// [Endpoint] accepts HTTP requests (endpoint.go, post.go, legacy.go, guard.go) and answers
// them through an exchange and its response. It dispatches them to lists (tools, resources,
// prompts and their names), discovery, sessions (of the legacy era), subscriptions (and
// notifications) and requests (to MCP servers). The outcome of a call is handled by heldCalls,
// tasks (stored calls) and suspendedCalls (a server waits for input).
//
// It does not judge calls (admission does) and does not open listeners (frontdoor does). It
// rejects requests from web pages of other origins, and never forwards a caller's credentials.
//
// It uses no SDK: see docs/adr/0014-mcp-endpoint.md.
//
// It is one package because it serves two eras of the protocol with every capability of
// a server, and both share the names, the lists and the one way to answer a request.
package mcp
