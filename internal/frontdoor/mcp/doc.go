// Package mcp is the fabric seen as MCP servers: all of it at /mcp, each
// server alone at /mcp/{server}.
//
// It owns the streamable HTTP transport of both protocol eras, the names that
// tools get at /mcp, the lists that it keeps encoded, the sessions of the legacy
// era, and the one table that turns a kind of error into an MCP error.
//
// It promises that a call goes through the same gate as one over REST; that
// arguments and results stay the bytes that they are, with members of the
// protocol's own put in front; that a request of the modern era can be answered
// by any front door; that a caller that hangs up (modern) or cancels (legacy)
// cancels its call; and that a held call is the same held call as over REST, with
// the same token and the same fence.
//
// [Endpoint] takes HTTP requests (endpoint.go, post.go, legacy.go, guard.go) and answers
// them through an exchange and its response. It hands them to the part that serves them:
// lists (tools, resources, prompts and their names), discovery, sessions (of the legacy
// era), subscriptions (and notifications), requests (to MCP servers), and for what becomes
// of a call: heldCalls, tasks (stored calls) and suspendedCalls (a server waits for input).
//
// It refuses to judge calls (that is admission's), to listen (that is
// frontdoor's), to answer web pages of other origins, and to pass a caller's
// credentials on.
//
// No SDK is on the way: see docs/adr/0014-mcp-endpoint.md.
//
// It is one package because it serves two eras of the protocol with every capability of
// a server, and both share the names, the lists and the one way to answer a request.
package mcp
