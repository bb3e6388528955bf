// Package adapt turns something that does not speak MCP into a server. A [Source] lists tools and
// runs them, and [Client] returns an HTTP client whose peer is that source, in this process. A
// session uses it like any remote server over streamable HTTP, so health checks, definitions,
// timeouts and cancellation work unchanged.
//
// Arguments reach the source, and results reach the session, as the same bytes. A failed request
// fails with the same error text. Nothing is retried.
//
// Of MCP it supports only tools.
package adapt

import (
	"context"
	"encoding/json"
	"fmt"
)

// Address is the address of an adapted server for sessions. It does not resolve.
const Address = "http://adapted.invalid/mcp"

// Source is something to adapt. Its methods are safe for concurrent use.
type Source interface {
	// Offer returns the current tools. The error is a *schema.Error.
	Offer(ctx context.Context) (*Offer, error)
	// Call runs a tool with a JSON object of arguments and returns a CallToolResult. Errors other
	// than [ErrUnknownTool] and [*TooLarge] are those of an HTTP client. The httptrace of the
	// context tells whether a connection was made.
	Call(ctx context.Context, tool string, arguments json.RawMessage) ([]byte, error)
	// CloseIdle closes idle connections.
	CloseIdle()
}

// Offer is what a source provides. Do not change it after it was returned.
type Offer struct {
	Title   string // its own name; may be empty
	Version string
	Tools   []Tool
	// Notes are sentences about omitted parts, with reasons. They hold no secrets.
	Notes []string
}

// Tool is one tool of an offer.
type Tool struct {
	Name string
	From string          // its name at the source, such as "GET /pets"
	Raw  json.RawMessage // its definition
}

// ErrUnknownTool means that a source has no such tool.
var ErrUnknownTool = fmt.Errorf("the tool does not exist")

// TooLarge means that a response exceeds the limit, in bytes.
type TooLarge struct{ Limit int }

// Error implements error.
func (e *TooLarge) Error() string {
	return fmt.Sprintf("the answer exceeds the limit of %d bytes", e.Limit)
}
